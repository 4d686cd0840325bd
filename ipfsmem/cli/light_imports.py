"""Import click and msgspec without modules of Python that they import for functions that commands do not call: a third of the
modules' time in a read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any, Final, cast


class _Later(ModuleType):
    """A module of Python that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


class _Inspect(_Later):
    """`inspect` for click: it unindents the help of each option with it, which is one line. All else is that of Python."""

    @staticmethod
    def cleandoc(doc: str) -> str:
        """Do as `inspect.cleandoc`."""
        if "\n" not in doc and "\t" not in doc:
            return doc.lstrip()
        import inspect

        return inspect.cleandoc(doc)


#: Where functions of `nacl.bindings` are that commands call, by how their names begin.
_BINDINGS: Final = {
    "crypto_aead_": "crypto_aead",
    "crypto_box_seal": "crypto_box",
    "crypto_core_": "crypto_core",
    "crypto_scalarmult": "crypto_scalarmult",
    "crypto_sign": "crypto_sign",
}


class _Bindings(ModuleType):
    """`nacl.bindings`, whose functions come from the modules that define them, on first use. For any other name the whole package
    is imported."""

    def __init__(self, name: str, path: list[str]) -> None:
        super().__init__(name)
        self.__path__ = path
        self._lock = Lock()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set it. Python sets each imported submodule, which the package hides by its function of the same name."""
        super().__setattr__(name, getattr(value, name, value) if isinstance(value, ModuleType) else value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        module = next((there for begin, there in _BINDINGS.items() if name.startswith(begin)), "")
        try:
            found = getattr(import_module(f"{self.__name__}.{module}"), name) if module else None
        except (ImportError, AttributeError):  # another version of PyNaCl
            found = None
        if found is None:
            with self._lock:  # two threads import it once
                if sys.modules.get(self.__name__) is self:
                    del sys.modules[self.__name__]
            found = getattr(import_module(self.__name__), name)
        vars(self)[name] = found
        return found


def _gettext() -> ModuleType:
    """Return `gettext` for a program in one language: it would search the system for translations of click."""
    module = cast("Any", ModuleType("gettext"))
    module.gettext = lambda message: message
    module.ngettext = lambda singular, plural, n: singular if n == 1 else plural
    return module  # type: ignore[no-any-return]


def _platform() -> ModuleType:
    """Return `platform` for `uuid`, which asks it for the name of the system and for nothing else."""
    module = cast("Any", ModuleType("platform"))
    module.system = lambda: "Linux"
    return module  # type: ignore[no-any-return]


#: Whether `uuid` may be imported with `_platform`.
_KNOWN_SYSTEM: Final = sys.platform == "linux"


@contextlib.contextmanager
def _instead(modules: dict[str, ModuleType | None]) -> Iterator[None]:
    """Let imports find these in place of the modules with their names, except those that are imported already. None: the module is
    missing."""
    known = cast("dict[str, ModuleType | None]", sys.modules)
    given = {name: module for name, module in modules.items() if name not in known}
    known.update(given)
    try:
        yield
    finally:
        for name in given:
            del sys.modules[name]


def _is_alone() -> bool:
    """Tell whether no other thread runs, which could import one of the modules at the same time."""
    return len(sys._current_frames()) == 1


def load_pathlib() -> None:
    """Import `pathlib` without `ipaddress`, with which `urllib.parse` checks hosts."""
    if _is_alone():
        with _instead({"ipaddress": _Later("ipaddress")}):
            import pathlib  # noqa: F401


def load_uuid() -> None:
    """Import `uuid` without `platform`."""
    if not _KNOWN_SYSTEM or "uuid" in sys.modules or not _is_alone():
        return
    try:
        with _instead({"platform": _platform()}):
            import uuid  # noqa: F401
    except AttributeError:  # it needs more
        pass


def load_msgspec() -> None:
    """Import msgspec without `typing_extensions`, which it replaces by Python's own `typing`, without `textwrap`, with which it writes
    schemas, without the classes with which it describes types, and `uuid` without `platform`."""
    load_uuid()
    if not _is_alone():
        return
    later = {name: _Later(name) for name in ("textwrap", "msgspec.inspect")}
    with _instead({"typing_extensions": None, **later}):
        import msgspec  # noqa: F401


def load_nacl() -> None:
    """Import `nacl.bindings` without its modules for functions that are not called, which take most of its time."""
    if "nacl.bindings" in sys.modules or not _is_alone():
        return
    import nacl

    bindings = _Bindings("nacl.bindings", [f"{place}/bindings" for place in nacl.__path__])
    sys.modules["nacl.bindings"] = cast("Any", nacl).bindings = bindings


def load_click() -> None:
    """Import click without `inspect` and `gettext`, and `uuid` without `platform`."""
    load_uuid()
    if not _is_alone():
        return
    with _instead({"inspect": _Inspect("inspect"), "gettext": _gettext()}):
        import click  # noqa: F401
