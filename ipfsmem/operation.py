"""One operation of a memory, declared once: a typed function, who may call it, what it is about, and its name in each interface.

The signature has the parameters with their bounds and descriptions (`Annotated`, `msgspec.Meta`), the docstring says what the
operation does. The method of `Memory`, the command, the HTTP route, the tool for models and the docs are derived from them.
Annotations stay strings until an interface needs them, so a declaration imports nothing that only its types need.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sized
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, TypeVar

import msgspec

from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.memories.memories import Memories
    from ipfsmem.parts.open_memory import OpenMemory

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Right = Literal["read", "write", "admin"]
#: The texts that an operation is about, which decides its options and who may call it over HTTP. `stack`: it reads one scope, or
#: several as one. `scope`: it reads or writes one scope. `target`: the scope that a scope leads to, also where it only reads.
#: `memory`: all of them.
About = Literal["stack", "scope", "target", "memory"]
Face = Literal["python", "cli", "http", "mcp"]
JSON = dict[str, Any]

#: The default of a parameter that has none.
REQUIRED: Final = object()


class Except(msgspec.Struct, frozen=True):
    """The interfaces that do not have a parameter."""

    faces: tuple[Face, ...]


class Cli(msgspec.Struct, frozen=True):
    """A parameter on the command line, where its name and type do not say it."""

    #: Another name of the option; "" for that of the parameter.
    name: str = ""
    metavar: str = ""
    #: Another help text; "" for the description.
    help: str = ""
    #: An argument whose words are joined by blanks, and must be given.
    words: bool = False


class ForModels(msgspec.Struct, frozen=True):
    """A parameter of a tool, where it differs: each word costs a model tokens in every conversation."""

    description: str = ""
    #: Another name; "" for that of the parameter.
    name: str = ""
    #: Another default, and a lower maximum.
    default: Any = None
    most: int | None = None
    #: The only words that a model may give.
    words: tuple[str, ...] = ()


class View:
    """The texts that a call is about: the scopes that it reads, in order, and the scope that it writes."""

    __slots__ = ("_scopes", "opened", "scope")

    def __init__(self, opened: OpenMemory, scope: str, scopes: tuple[str, ...] | None = None) -> None:
        """`scope` is written. `scopes` are read as one, `scope` first; None for `scope` and the scopes that lead to it."""
        self.opened, self.scope, self._scopes = opened, scope, scopes

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that are read, the first before the next."""
        if self._scopes is not None:
            return self._scopes
        return tuple(self.opened.scopes.stack(self.scope)) if self.scope else ("",)

    def sources(self) -> list[Memories]:
        """The memories of the scopes that are read."""
        return [self.opened.memories.in_scope(one) for one in self.scopes]


class Parameter:
    """One parameter of an operation: its type, bounds and description, and its name in each interface."""

    def __init__(self, name: str, hint: Any, default: Any = REQUIRED, *, positional: bool = False) -> None:
        extras: list[Any] = []
        while typing.get_origin(hint) is typing.Annotated:
            hint, *more = typing.get_args(hint)
            extras += more
        self.name, self.default, self.positional = name, default, positional
        #: The type without `Annotated`, and without None where that is the default.
        self.type = _without_none(hint) if default is None else hint
        self.optional = self.type is not hint
        self._metas = [one for one in extras if isinstance(one, msgspec.Meta)]
        self.cli = _first(Cli, extras) or Cli()
        self.models = _first(ForModels, extras) or ForModels()
        self.missing_in = (_first(Except, extras) or Except(())).faces
        #: Bounds: of a number, of the characters of a text, of the items of a list.
        self.least, self.most = self._said("ge"), self._said("le")
        self.shortest, self.longest = self._said("min_length") or 0, self._said("max_length")
        self.description: str = self._said("description") or ""
        #: The words that it may be; none for anything else than one of some words.
        self.words = typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()
        inside = typing.get_args(self.type)
        #: What each item of a list is.
        self.item = Parameter(name, inside[0]) if self.is_list else None

    def _said(self, name: str) -> Any:
        return next((said for one in self._metas if (said := getattr(one, name)) is not None), None)

    @property
    def is_list(self) -> bool:
        """Whether it is a list of values."""
        return typing.get_origin(self.type) in (Iterable, list, tuple)

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    def called(self, face: Face) -> str:
        """Its name in an interface."""
        if face == "cli":
            return (
                self.cli.metavar if self.cli.words else f"--{(self.cli.name or self.name).replace('_', '-')}"
            )
        return self.models.name or self.name if face == "mcp" else self.name

    def annotated(self) -> Any:
        """Its type with the bounds, for msgspec; a list is a tuple."""
        inner: Any = (
            self.type if self.item is None else types.GenericAlias(tuple, (self.item.annotated(), ...))
        )
        made = typing.Annotated[(inner, *self._metas)] if self._metas else inner
        return made | None if self.optional else made

    @functools.cached_property
    def _accepts(self) -> tuple[Callable[[Any], bool], str] | None:
        from ipfsmem.parts.part import check_of  # most calls give a default or two

        plain: Any = self.type
        if self.item is not None:
            plain = typing.cast(Any, Iterable)[self.item.type]
        elif self.words:
            plain = str
        return check_of(plain | None if self.optional else plain)

    def problem(self, value: Any) -> str:
        """Why a value is refused; "" if it is accepted."""
        if self._accepts is not None and not self._accepts[0](value):
            return f"is {self._accepts[1]}, not {type(value).__name__}"
        if value is None:
            return ""
        if self.words and value not in self.words:
            return f"must be {' or '.join(self.words)} (got {value[:40]!a})"
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            got = (
                f" (got {value})" if abs(value) < 10**20 else ""
            )  # Python prints no number of thousands of digits
            return f"must be {self.least}{' to ' if self.least < 0 else '-'}{self.most}{got}"
        return self._wrong_size(value) if isinstance(value, Sized) else ""

    def _wrong_size(self, value: Sized) -> str:
        size, unit = len(value), "characters" if isinstance(value, str) else "items"
        if self.longest is not None and size > self.longest:
            return f"has {size:,} {unit}, at most {self.longest:,} are allowed"
        if size < self.shortest:
            return f"has at least {self.shortest} {unit}" if size else "is empty"
        if self.item is None:
            return ""
        problem = next(
            (said for one in typing.cast("list[Any]", value) if (said := self.item.problem(one))), ""
        )
        return f"has an item that {problem}" if problem else ""


class operation(msgspec.Struct, kw_only=True, frozen=True):  # noqa: N801  a decorator
    """Decorator of a function that declares an operation."""

    #: The short help of the command, the summary of the route, the row of a table. Without a full stop.
    summary: str
    right: Right
    about: About
    #: The errors that Python's caller may want to catch, one a line: `UsageError: why`.
    raises: tuple[str, ...] = ()
    #: Its name in the list of operations; "" where it is not listed.
    audit: str = ""
    #: Method and path of its route; "" for none.
    http: str = ""
    #: Name and title of its tool, and what a model is told of it; "" for none.
    tool: str = ""
    title: str = ""
    for_models: str = ""
    #: Whether it can delete something; whether the same call twice is as one.
    destructive: bool = False
    idempotent: bool = False
    #: Whether other threads may work with the memory meanwhile.
    waits: bool = False
    #: The name, where it is not that of the function: with a group as `sessions.add`.
    name: str = ""

    def __call__(self, function: Callable[P, R]) -> Operation[P, R]:
        return Operation(self, function)


class Operation(Generic[P, R]):
    """A declared operation. Interfaces call `run`; only another operation, whose call was checked, calls `work`."""

    def __init__(self, declared: operation, function: Callable[P, R]) -> None:
        assert isinstance(function, types.FunctionType)
        self.declared = declared
        self.name = declared.name or function.__name__.rstrip("_")
        self.work: Callable[P, R] = function
        self._function = function
        code = function.__code__
        #: The names of the parameters, without the view, and their defaults.
        self.names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        self._positional = self.names[: code.co_argcount - 1]
        given = function.__defaults__ or ()
        self._defaults = dict(zip(self._positional[len(self._positional) - len(given) :], given, strict=True))
        self._defaults |= function.__kwdefaults__ or {}
        self._parameters: dict[str, Parameter] = {}

    @property
    def doc(self) -> str:
        """The docstring, without its indentation."""
        first, _, rest = (self._function.__doc__ or "").strip().partition("\n")
        lines = [line[4:] if line.startswith("    ") else line for line in rest.split("\n")]
        return "\n".join([first, *lines]).rstrip()

    def parameter(self, name: str) -> Parameter:
        """One parameter; its type is evaluated now."""
        if name not in self._parameters:
            self._parameters[name] = Parameter(
                name,
                self._type_of(name),
                self._defaults.get(name, REQUIRED),
                positional=name in self._positional,
            )
        return self._parameters[name]

    def parameters(self, face: Face) -> list[Parameter]:
        """The parameters that an interface has."""
        every = (self.parameter(name) for name in self.names)
        return [one for one in every if face not in one.missing_in]

    @functools.cached_property
    def result(self) -> Any:
        """The type of the result: what Python gets, and as JSON every other interface."""
        return self._type_of("return")

    def _type_of(self, name: str) -> Any:
        """An annotation as a type. Names in `LATE` of the module, by where they are, are imported now."""
        hint, known = self._function.__annotations__.get(name, Any), self._function.__globals__
        late = {
            one: getattr(import_module(where), one)
            for one, where in known.get("LATE", {}).items()
            if one in str(hint)
        }
        annotated = types.SimpleNamespace(__annotations__={name: hint})
        return typing.get_type_hints(annotated, globalns=known | late, include_extras=True)[name]

    def run(self, view: View, asked: Mapping[str, Any], face: Face = "python") -> R:
        """Do it, for an interface: refuse a closed memory and wrong arguments, let one thread in at a time, and list it as done.

        Raises ClosedError, PassphraseError, UsageError, and what the operation raises.
        """
        opened = view.opened
        opened.refuse_closed(self.name)
        for name, value in asked.items():
            if value is self._defaults.get(name, REQUIRED):
                continue  # right by its definition; most calls give little else, and no type is evaluated for it
            parameter = self.parameter(name)
            if parameter.is_list and isinstance(value, Iterable) and not isinstance(value, Sized):
                most = None if parameter.longest is None else parameter.longest + 1
                value = tuple(
                    islice(value, most)
                )  # it may be one that can be read only once, or that never ends
                asked = {**asked, name: value}
            if problem := parameter.problem(value):
                label = f"{self.name.rpartition('.')[2]}: " if face == "python" else ""
                raise UsageError(f"{label}{parameter.called(face)} {problem}")
        if self.declared.waits:
            return self._noted(view, asked)
        with opened.alone:
            opened.refuse_closed(self.name)  # another thread may have closed it meanwhile
            return self._noted(view, asked)

    def _noted(self, view: View, asked: Mapping[str, Any]) -> R:
        work: Callable[..., R] = self.work
        if not self.declared.audit:
            return work(view, **asked)
        from ipfsmem.parts.noting import noting

        with noting(view.opened, self.declared.audit, view.scope, asked):
            return work(view, **asked)


def _first(kind: type[T], among: Iterable[Any]) -> T | None:
    return next((one for one in among if isinstance(one, kind)), None)


def _without_none(hint: Any) -> Any:
    left = [one for one in typing.get_args(hint) if one is not types.NoneType]
    if len(left) == len(typing.get_args(hint)):
        return hint
    return left[0] if len(left) == 1 else typing.Union[tuple(left)]  # noqa: UP007
