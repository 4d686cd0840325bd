"""Import click and msgspec without modules of Python that commands do not need: a seventh of a read's instructions."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final, cast

#: Whether `uuid` asks `platform` for nothing but the name of the system.
_ON_LINUX: Final = sys.platform == "linux"


class _Inspect(ModuleType):
    """`inspect` for click, which unindents the help of each option with it: a line without an indent. All else is Python's own."""

    @staticmethod
    def cleandoc(doc: str) -> str:
        """Do as `inspect.cleandoc`."""
        if doc[:1].isalnum() and "\n" not in doc and "\t" not in doc:
            return doc
        text: str = _python_inspect().cleandoc(doc)
        return text

    def __getattr__(self, name: str) -> Any:
        return getattr(_python_inspect(), name)


def _python_inspect() -> Any:
    """Return the module itself, also while the other one stands in its place."""
    if isinstance(sys.modules.get("inspect"), _Inspect):
        del sys.modules["inspect"]
    return import_module("inspect")


def _platform() -> ModuleType:
    """Return `platform` for `uuid`, which asks it for the name of the system."""
    module = cast("Any", ModuleType("platform"))
    module.system = lambda: "Linux"
    return module  # type: ignore[no-any-return]


@contextlib.contextmanager
def _instead(substitutes: dict[str, ModuleType | None]) -> Iterator[None]:
    """Let imports receive these for the modules with their names, unless they are imported already or another thread could import
    them meanwhile. None: the module is missing. A library that needs more of one is imported again by its caller, with Python's own."""
    if len(sys._current_frames()) > 1:
        yield
        return
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    placed = {name: module for name, module in substitutes.items() if name not in modules}
    modules.update(placed)
    try:
        with contextlib.suppress(Exception):
            yield
    finally:
        for name, module in placed.items():
            if name in modules and modules[name] is module:
                del modules[name]


def _for_uuid() -> dict[str, ModuleType | None]:
    """Return the substitute for `platform`, where `uuid` is about to import it."""
    return {"platform": _platform()} if _ON_LINUX and "uuid" not in sys.modules else {}


def load_click() -> None:
    """Import click without `inspect`, and `uuid` without `platform`."""
    with _instead({"inspect": _Inspect("inspect"), **_for_uuid()}):
        import click  # noqa: F401


def load_msgspec() -> None:
    """Import msgspec without `typing_extensions`, for which it takes Python's own `typing`, and `uuid` without `platform`."""
    with _instead({"typing_extensions": None, **_for_uuid()}):
        import msgspec  # noqa: F401
