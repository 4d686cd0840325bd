"""The base of groups of methods, and the checks before each public method: a closed vault, and arguments of the wrong type.

Types come from the annotations; further conditions are checked by the method.
"""

from __future__ import annotations

import contextlib
import functools
import io
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, ParamSpec, TypeVar

import msgspec

from ipfsmem.errors import UsageError
from ipfsmem.open_vault.handle import VaultHandle

P = ParamSpec("P")
T = TypeVar("T")

#: A check of a value's type, and the type's name in messages.
_Check = tuple[Callable[[Any], bool], str]
#: Flags of code objects; `inspect`, which names them, is slow to import.
_VAR_POSITIONAL: Final = 0x04
_AWAITED: Final = 0x80 | 0x200  # coroutines and asynchronous generators
_NO_DEFAULT: Final = object()
#: Former names of arguments and of parameters over HTTP, and the present ones.
RENAMED: Final = {"namespace": "vault"}
_WORDS: dict[Any, str] = {
    str: "a text",
    bytes: "bytes",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    types.NoneType: "None",
}
#: Classes whose instances are all accepted where the class is annotated.
_CLASSES: Final = frozenset([str, bytes, bool, types.NoneType])


class _MethodParameter(msgspec.Struct, frozen=True):
    """A parameter of a method."""

    name: str
    default: object


#: The parameters of a method without its instance: in order, by name, and what any further arguments are.
_Takes = tuple[list[_MethodParameter], dict[str, _MethodParameter], _MethodParameter | None]


class MethodGroup:
    """A group of methods of an open vault."""

    #: Methods that also work on a closed vault.
    WHEN_CLOSED: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, opened: VaultHandle) -> None:
        self._open = opened
        self._replica = opened.replica

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        validated(cls, cls.WHEN_CLOSED)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._open.vault_name}>"


def releases_lock(method: Callable[P, T]) -> Callable[P, T]:
    """Mark a method that waits for other work, while other threads may use the vault."""
    vars(method)["waits"] = True
    return method


def validated(owner: type, when_closed: Iterable[str] = ()) -> None:
    """Make each public method of a class refuse a closed vault and arguments of the wrong type.

    An instance has its `VaultHandle` as `_open`, and one thread at a time is in such a method. Coroutines run in one event loop
    and are not excluded by it; their steps are. Methods marked as handed on are unchanged.
    """
    for name, method in list(vars(owner).items()):
        if name.startswith("_") or getattr(method, "handed_on", False):
            continue
        if isinstance(method, types.FunctionType):
            setattr(owner, name, _refusing(method, of_instance=True, even_closed=name in when_closed))
        elif isinstance(method, classmethod):
            setattr(owner, name, classmethod(_refusing(method.__func__, of_instance=False)))


def _refusing(
    method: Callable[..., Any], *, of_instance: bool, even_closed: bool = False
) -> Callable[..., Any]:
    awaited = isinstance(method, types.FunctionType) and bool(method.__code__.co_flags & _AWAITED)

    @functools.cache
    def takes() -> _Takes:
        return _takes(_inner(method))

    @functools.cache
    def check_for(name: str) -> _Check | None:
        return check_of(_type_of(method, name))

    def refuse_wrong(parameter: _MethodParameter, value: object, called: str) -> None:
        if value is parameter.default:
            return  # a default is valid, so no type is looked up
        check = check_for(parameter.name)
        if check is not None and not check[0](value):
            raise _wrong(method, called, check, value)

    def refuse_closed(self: Any) -> None:
        if not even_closed:
            self._open.refuse_closed(method.__name__)

    @functools.wraps(method)
    def call(self: Any, /, *given: Any, **named: Any) -> Any:
        if of_instance:
            refuse_closed(self)
        in_order, by_name, rest = takes()
        for parameter, value in zip(in_order, given, strict=False):
            refuse_wrong(parameter, value, parameter.name)
        if rest is not None:
            for value in given[len(in_order) :]:
                refuse_wrong(rest, value, "each argument")
        for name, value in named.items():
            if name in by_name:
                refuse_wrong(by_name[name], value, name)
            elif (new := RENAMED.get(name)) in by_name:
                raise UsageError(f"{method.__name__}: the argument {name} was renamed to {new}")
        if not of_instance or awaited:
            return method(self, *given, **named)
        lock = contextlib.nullcontext() if getattr(method, "waits", False) else self._open.lock
        with lock:
            refuse_closed(self)  # meanwhile, by another thread
            return method(self, *given, **named)

    return call


def _inner(method: Any) -> types.FunctionType:
    """Return the function of a method."""
    while hasattr(method, "__wrapped__"):
        method = method.__wrapped__
    assert isinstance(method, types.FunctionType)
    return method


def _takes(function: types.FunctionType) -> _Takes:
    code = function.__code__
    names, last = code.co_varnames, code.co_argcount + code.co_kwonlyargcount
    ordered, by_key = names[1 : code.co_argcount], names[code.co_argcount : last]
    defaults = function.__defaults__ or ()
    defaults_of = dict(zip(ordered[len(ordered) - len(defaults) :], defaults, strict=True))
    defaults_of |= function.__kwdefaults__ or {}
    each = {name: _MethodParameter(name, defaults_of.get(name, _NO_DEFAULT)) for name in (*ordered, *by_key)}
    rest = _MethodParameter(names[last], _NO_DEFAULT) if code.co_flags & _VAR_POSITIONAL else None
    by_name = {name: each[name] for name in names[max(1, code.co_posonlyargcount) : last]}
    return [each[name] for name in ordered], by_name, rest


def _type_of(method: Callable[..., Any], parameter: str) -> Any:
    """Return the type of a parameter."""
    inner = _inner(method)
    annotated = types.SimpleNamespace(__annotations__={parameter: inner.__annotations__.get(parameter, Any)})
    return typing.get_type_hints(annotated, globalns=inner.__globals__)[parameter]


def _wrong(method: Callable[..., Any], name: str, check: _Check, value: object) -> UsageError:
    return UsageError(f"{method.__name__}: {name} is {check[1]}, not {type_of(value, check[1])}")


def check_of(hint: Any) -> _Check | None:
    """Return a check for values of an annotated type; None if any value is accepted, or only the method can check it."""
    if hint is Any:
        return None
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        each = [check_of(one) for one in inside]
        checks = [one for one in each if one is not None]
        if len(checks) < len(each):
            return None
        words = " or ".join(dict.fromkeys(word for _, word in checks))
        if all(isinstance(one, type) and one in _CLASSES for one in inside):
            return (lambda value: isinstance(value, inside)), words
        return (lambda value: any(accepts(value) for accepts, _ in checks)), words
    if origin is typing.Literal:
        return _literal(inside)
    if origin is tuple:
        return _tuple(inside)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(inside)
    if (
        origin is not None
        and origin is not Callable
        and isinstance(origin, type)
        and issubclass(origin, Iterable)
    ):
        return _iterable(origin, inside[0] if inside else Any)
    if origin is Callable or hint is Callable or origin is typing.get_origin(Callable[..., Any]):
        return callable, "a function"
    if hint is typing.BinaryIO:
        return _is_open_for_bytes, "a file opened for bytes (mode wb)"
    if not isinstance(hint, type) or (
        getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False)
    ):
        return None
    words = _WORDS.get(hint) or f"a {hint.__name__}"
    if hint in (int, float):
        number = (int, float) if hint is float else int
        return (lambda value: isinstance(value, number) and not isinstance(value, bool)), words
    return (lambda value: isinstance(value, hint)), words


def _is_open_for_bytes(value: object) -> bool:
    return callable(getattr(value, "write", None)) and not isinstance(value, io.TextIOBase)


def type_of(value: object, accepted: str) -> str:
    """Return the name of a value's type; if that of its items may be wrong (`accepted` names several), with theirs."""
    name = type(value).__name__
    if " of " not in accepted:
        return name
    if isinstance(value, Mapping):
        kinds = [_types_of(value), _types_of(value.values())]
        return f"{name}[{', '.join(kinds)}]" if value else name
    return (
        f"{name}[{_types_of(value)}]" if isinstance(value, list | tuple | set | frozenset) and value else name
    )


def _types_of(values: Iterable[object]) -> str:
    return " | ".join(sorted({type(one).__name__ for one in values})[:3])


def _literal(values: tuple[Any, ...]) -> _Check:
    """Accept any text: the method checks it, and lists the known words."""
    if all(isinstance(one, str) for one in values):
        return (lambda value: isinstance(value, str)), "a text"
    return (lambda value: any(value is one for one in values)), " or ".join(map(repr, values))


def _tuple(inside: tuple[Any, ...]) -> _Check:
    if len(inside) == 2 and inside[1] is Ellipsis:
        one = check_of(inside[0])
        return (
            lambda value: isinstance(value, tuple) and all(one is None or one[0](item) for item in value)
        ), f"a tuple of {_plural(one)}"
    each = [check_of(one) for one in inside]
    return (
        lambda value: (
            isinstance(value, tuple)
            and len(value) == len(each)
            and all(check is None or check[0](item) for check, item in zip(each, value, strict=True))
        )
    ), f"a tuple of {len(each)}"


def _mapping(inside: tuple[Any, ...]) -> _Check:
    names, values = check_of(inside[0]), check_of(inside[1])
    return (
        lambda value: (
            isinstance(value, Mapping)
            and all(names is None or names[0](name) for name in value)
            and all(values is None or values[0](item) for item in value.values())
        )
    ), "a mapping of texts"


def _iterable(kind: type[Iterable[Any]], inside: Any) -> _Check:
    """Refuse a text as a list of texts. Iterators that can be read only once are checked by the method."""
    one = check_of(inside)

    def accepts(value: Any) -> bool:
        if isinstance(value, str | bytes) or not isinstance(value, kind):
            return False
        if one is None or not isinstance(value, list | tuple | set | frozenset):
            return True
        return all(one[0](item) for item in value)

    return accepts, f"a list of {_plural(one)}"


def _plural(one: _Check | None) -> str:
    return "values" if one is None else f"{one[1].removeprefix('a ')}s"
