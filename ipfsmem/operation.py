"""The declaration of an operation: a typed function, the right that it requires, and its name in each interface.

The signature has the parameters with bounds and descriptions (`Annotated`, `msgspec.Meta`). The method of `Memory`, the command, the
HTTP route, the tool for models and the docs are derived from it. Annotations stay strings until an interface needs them, so that a
declaration does not import modules for its types alone.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sized
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, ParamSpec, TypeVar

import msgspec

from ipfsmem.errors import IpfsmemError, UsageError

if TYPE_CHECKING:
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.open_vault.handle import VaultHandle
    from ipfsmem.open_vault.syncing import Syncing

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Right = Literal["read", "write", "admin"]
#: The texts that an operation works on, which decides its options and the HTTP tokens that may call it. `stack`: reads one scope,
#: or several as one. `scope`: reads or writes one scope. `target`: reads or writes the scope to which the named scope is
#: redirected. `part`: works on the named scope, or on the whole vault if none is named (`View.named`). `memory`: works on the whole
#: vault. `scopes`: lists the scopes that the caller's token covers, or works on the scope in its argument `name`. `user`: works on
#: files of this user, so it can run without a vault (`Operation.run_alone`).
About = Literal["stack", "scope", "target", "part", "memory", "scopes", "user"]
#: The beginning of a message about one item of a list.
OF_ITEM = "has an item that "
Face = Literal["python", "cli", "http", "mcp"]
JSON = dict[str, Any]

#: Marks a parameter without a default.
REQUIRED: Final = object()
#: The code flag of a coroutine function (`inspect.CO_COROUTINE`).
_COROUTINE: Final = 0x80


class Except(msgspec.Struct, frozen=True):
    """The interfaces in which a parameter does not exist."""

    faces: tuple[Face, ...]


class Cli(msgspec.Struct, frozen=True):
    """How a parameter differs on the command line from what follows from its name and type."""

    #: Name of the option; "" for the name of the parameter.
    name: str = ""
    metavar: str = ""
    #: Help text; "" for the description.
    help: str = ""
    #: Whether it is a required argument of one or more words, which are joined by spaces.
    joined: bool = False
    #: Whether it is an option, although it is positional in Python.
    option: bool = False
    #: Its possible values, if the command line accepts fewer.
    words: tuple[str, ...] = ()
    #: Whether it is a day or time in words (`wording.moment_of`). Any other text is refused before the vault is opened.
    moment: bool = False
    #: Whether it is a path. An empty text is refused before the vault is opened.
    path: bool = False


class Http(msgspec.Struct, frozen=True):
    """How a parameter differs in a route."""

    #: A default and type that replace those in Python.
    default: Any = None
    type: Any = None
    #: Whether it is in the query although the route has a body.
    query: bool = False
    #: Whether an empty text in the query is a value; otherwise the parameter counts as left out.
    empty: bool = False
    #: Whether it is required, although it is optional in Python.
    required: bool = False
    #: Whether it identifies what the caller was shown: a request without it is answered with 428.
    shown: bool = False
    #: Whether it is in the header `If-Match`: the ETag of a response. `new`: the parameter that is "" if the request has
    #: `If-None-Match: *`.
    etag: bool = False
    new: str = ""
    #: Further texts that a call with it works on, which the token must cover: those of the scope that it names with all redirected
    #: scopes, of the whole vault, or of the named scope alone.
    reaches: Literal["", "named", "all", "itself"] = ""


class FileBody(msgspec.Struct, frozen=True):
    """Marks a parameter that is the body of a request, byte for byte; the other arguments are in the query."""

    #: Maximum bytes; a longer body is refused while it is received.
    most: int
    #: Summary of the route, and the first paragraph of its description, because a body accepts fewer forms than the argument.
    summary: str
    about: str


class Files(msgspec.Struct, frozen=True):
    """Marks a route that sends its result of bytes as a file."""

    #: The parameter that chooses the kind of file.
    by: str
    #: Content type and file name by its value.
    kinds: Mapping[str, tuple[str, str]]


class Stored(msgspec.Struct, frozen=True):
    """Marks a text that is stored: it must be Unicode, without half a character (a lone surrogate)."""


class ForModels(msgspec.Struct, frozen=True):
    """How a parameter differs in a tool. Descriptions are short because each word costs tokens in every conversation."""

    description: str = ""
    #: Name of the argument; "" for the name of the parameter.
    name: str = ""
    #: A default and a maximum for models only; the maximum is of a number, the characters of a text, or the items of a list.
    default: Any = None
    most: int | None = None
    #: A maximum of the characters of each item of a list.
    each: int | None = None
    #: The only values that a model may pass.
    words: tuple[str, ...] = ()
    #: Whether it is required, although it is optional in Python.
    required: bool = False


#: A key; `bundle.keys.check_key` refuses other texts.
Key = Annotated[
    str,
    msgspec.Meta(description="Its key: 1 to 64 of a-z, 0-9, _ and -, such as feedback_tone."),
    ForModels("Key: a-z, 0-9, _ and -.", most=64),
]
#: Maximum characters of a tag, a category or a type.
MAX_WORD: Final = 200
#: Types of parameters that filter memories.
Tag = Annotated[
    str | None,
    msgspec.Meta(min_length=1, max_length=MAX_WORD, description="Only memories with this tag."),
    ForModels("Only with this tag."),
]
Category = Annotated[
    str | None,
    msgspec.Meta(min_length=1, max_length=MAX_WORD, description="Only memories of this category."),
    ForModels("Only this category."),
]
#: Maximum characters of a reason.
MAX_REASON: Final = 1_000
#: Why something is deleted.
Reason = Annotated[
    str,
    msgspec.Meta(max_length=MAX_REASON, description="Reason, recorded in the timeline."),
    ForModels("Why, for the timeline."),
]


def check_reason(reason: str) -> str:
    """Validate a reason before the removal, because it is recorded afterwards. Raises UsageError if it cannot be recorded."""
    if not isinstance(reason, str):
        raise UsageError(f"a reason is text, not {type(reason).__name__}")
    if any("\ud800" <= c <= "\udfff" for c in reason):
        raise UsageError(
            "the reason holds half a character (a lone surrogate)",
            hint="Nothing was removed. Leave that character out of the reason.",
        )
    return reason


#: A callback of long operations (`sync.progress.Progress`); commands show a progress bar.
OnProgress = Annotated[
    Callable[[str, int, int], None] | None,
    msgspec.Meta(description="Called with the activity, the amount done, and the total (0: unknown)."),
    Except(("cli", "http", "mcp")),
]


class Items(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A result that is a sequence of the items of its first field."""

    def _items(self) -> tuple[T, ...]:
        items: tuple[T, ...] = getattr(self, self.__struct_fields__[0])
        return items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items())

    def __getitem__(self, at: int) -> T:
        return self._items()[at]


def is_absent(result: object) -> bool:
    """Return whether a result means "not found": None, or a false value. An empty sequence is a result."""
    return result is None or (not result and not isinstance(result, Items))


class Put:
    """A result with a field `created`, of an operation that creates or changes something. A route answers 201 if it was created."""

    __slots__ = ()
    created: bool


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A result that is a text in a format of its own, such as Markdown. A route returns the text instead of JSON."""

    format: str
    text: str


class View:
    """The texts that a call works on: the scopes that it reads, in order, and the scope that it writes."""

    __slots__ = ("_scopes", "_syncing", "named", "opened", "remembered", "scope")

    def __init__(
        self,
        opened: VaultHandle,
        scope: str,
        scopes: tuple[str, ...] | None = None,
        *,
        syncing: Callable[[], Syncing] | None = None,
        named: str | None = None,
    ) -> None:
        """`scope`: the scope to write. `scopes`: the scopes to read as one, `scope` first; None for `scope` and the scopes
        redirected to it. `syncing`: the providers, only for operations on the whole vault. `named`: the scope that the caller
        named, "" for the default scope; None if it named none."""
        self.opened, self.scope, self._scopes, self._syncing = opened, scope, scopes, syncing
        self.named = named
        #: The cache of a server, valid until the vault changes; None without a server.
        self.remembered: dict[Any, Any] | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes to read, in order of precedence."""
        if self._scopes is not None:
            return self._scopes
        return tuple(self.opened.read_order(self.scope))

    @property
    def covered(self) -> frozenset[str] | None:
        """The scopes that the caller's token covers; None: all."""
        from ipfsmem.open_vault.handle import covered_scopes

        return covered_scopes()

    @property
    def target(self) -> str:
        """The scope to which the scope to write is redirected."""
        return self.opened.scopes.target(self.scope) if self.scope else ""

    @property
    def syncing(self) -> Syncing:
        """The providers, opened on first use."""
        assert self._syncing is not None
        return self._syncing()

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, from the server's cache if the vault did not change since."""
        if self.remembered is None:
            return make()
        if key not in self.remembered:
            self.remembered[key] = make()
        value: T = self.remembered[key]
        return value

    def sources(self) -> list[MemoryStore]:
        """The memories of the scopes to read."""
        return [self.opened.memories.in_scope(one) for one in self.scopes]


_CLI, _FOR_MODELS, _HTTP = Cli(), ForModels(), Http()
#: The fields of `Meta` that are used.
_SAID: Final = ("ge", "le", "min_length", "max_length", "description")


class Parameter:
    """One parameter of an operation: its type, bounds and description, and its name in each interface."""

    def __init__(self, name: str, hint: Any, default: Any = REQUIRED, *, positional: bool = False) -> None:
        extras: list[Any] = []
        while typing.get_origin(hint) is typing.Annotated:
            hint, *more = typing.get_args(hint)
            extras += more
        self.name, self.default = name, default
        #: The type without `Annotated`, and without None if that is the default.
        self.type = _without_none(hint) if default is None else hint
        self.optional = self.type is not hint
        self._metas = [one for one in extras if isinstance(one, msgspec.Meta)]
        marks: dict[type, Any] = {type(one): one for one in extras}
        self.is_stored = Stored in marks
        self.file: FileBody | None = marks.get(FileBody)
        self.cli: Cli = marks.get(Cli) or _CLI
        #: Whether it is positional in Python, and an argument of its command.
        self.positional = positional
        self.is_argument = positional and not self.cli.option
        self.models: ForModels = marks.get(ForModels) or _FOR_MODELS
        self.http: Http = marks.get(Http) or _HTTP
        self.missing_in: tuple[Face, ...] = marks[Except].faces if Except in marks else ()
        bounds: dict[str, Any] = dict.fromkeys(_SAID)
        for meta in reversed(self._metas):
            bounds |= {name: value for name in _SAID if (value := getattr(meta, name)) is not None}
        #: Bounds: of a number, of the characters of a text, of the items of a list.
        self.least, self.most = bounds["ge"], bounds["le"]
        self.shortest, self.longest = bounds["min_length"] or 0, bounds["max_length"]
        self.description: str = bounds["description"] or ""
        #: Its possible values, for a parameter with a fixed set of values; else empty.
        self.words = typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()
        inside = typing.get_args(self.type)
        #: Whether it is a list of values.
        self.is_list = typing.get_origin(self.type) in (Iterable, list, tuple)
        #: The parameter by which each item of a list is checked.
        self.item = Parameter(name, inside[0]) if self.is_list else None
        self._is_sized = bool(self.item or self.shortest or self.longest is not None)

    @property
    def required(self) -> bool:
        """Whether it is required."""
        return self.default is REQUIRED

    def called(self, face: Face) -> str:
        """Its name in an interface."""
        if face == "cli" and self.is_argument:
            return self.cli.metavar or self.name.upper()
        if face == "cli":
            return f"--{(self.cli.name or self.name).replace('_', '-')}"
        if face == "http" and self.http.etag:
            return "If-Match"
        return self.models.name or self.name if face == "mcp" else self.name

    def annotated(self) -> Any:
        """Its type with the bounds, for msgspec; a list is a tuple."""
        inner: Any = (
            self.http.type or self.type
            if self.item is None
            else types.GenericAlias(tuple, (self.item.annotated(), ...))
        )
        annotation = typing.Annotated[(inner, *self._metas)] if self._metas else inner
        return annotation | None if self.optional and not self.is_required_in_http else annotation

    @property
    def is_required_in_http(self) -> bool:
        """Whether the body of a request must have it."""
        return self.required or self.http.required

    @functools.cached_property
    def _accepts(self) -> tuple[Callable[[Any], bool], str] | None:
        from ipfsmem.open_vault.method_group import check_of  # most calls pass one or two defaults

        plain: Any = self.type
        if self.item is not None:
            plain = typing.cast(Any, Iterable)[self.item.type]
        elif self.words:
            plain = str
        return check_of(plain | None if self.optional else plain)

    @property
    def allowed(self) -> str:
        """Its bounds or its values in words; "" if any value of its type is valid."""
        if self.words:
            return _alternatives(self.words)
        if self.least is None and self.most is not None:
            return f"{self.most} or less"
        if self.least is not None and self.most is None:
            return f"{self.least} or more"
        if self.least is not None and self.most is not None:
            return f"{self.least}{' to ' if self.least < 0 else '-'}{self.most}"
        unit = "characters" if self.item is None else "items"
        if self.longest is not None:
            return (
                f"{self.shortest}-{self.longest:,} {unit}"
                if self.shortest
                else f"at most {self.longest:,} {unit}"
            )
        return f"at least {self.shortest} {unit}" if self.shortest else ""

    def problem(self, value: Any) -> str:
        """Return why a value is refused; "" if it is accepted."""
        if self._accepts is not None and not self._accepts[0](value):
            from ipfsmem.open_vault.method_group import type_of

            return f"is {self._accepts[1]}, not {type_of(value, self._accepts[1])}"
        if value is None:
            return ""
        if self.words and value not in self.words:
            return f"must be {self.allowed} (got {value[:40]!a})"
        if not (self.least is None or value >= self.least) or not (self.most is None or value <= self.most):
            # Python refuses to print a number of thousands of digits.
            value_text = f" (got {value})" if abs(value) < 10**20 else ""
            return f"must be {self.allowed}{value_text}"
        if self.is_stored and isinstance(value, str) and not value.isascii() and _has_half_a_character(value):
            return "holds half a character (a lone surrogate)"
        return self._wrong_size(value) if self._is_sized and isinstance(value, Sized) else ""

    def _wrong_size(self, value: Sized) -> str:
        size, unit = len(value), "characters" if isinstance(value, str) else "items"
        if self.longest is not None and size > self.longest:
            return f"has {size:,} {unit}, at most {self.longest:,} are allowed"
        if size < self.shortest:
            return f"must have at least {self.shortest} {unit}" if size else "is empty"
        is_checked = isinstance(value, list | tuple | set | frozenset)
        if self.item is None or (is_checked and not self.item._metas and not self.item.is_stored):
            return ""  # the types of their items are checked already
        problem = next(
            (said for one in typing.cast("list[Any]", value) if (said := self.item.problem(one))), ""
        )
        return f"{OF_ITEM}{problem}" if problem else ""


class operation(msgspec.Struct, kw_only=True, frozen=True):  # noqa: N801  a decorator
    """Decorator that declares a function as an operation."""

    #: Short help of the command, summary of the route and text of its row in the docs, without a full stop.
    summary: str
    right: Right
    about: About
    #: Further texts that a token must cover: `named` for those of all redirected scopes, as for every operation that writes; `all`
    #: for the whole vault.
    reaches: Literal["", "named", "all"] = ""
    #: Whether it reads the default scope too, after the others.
    everybody: bool = False
    #: Errors that a caller in Python may catch, each as `UsageError: reason`.
    raises: tuple[str, ...] = ()
    #: The message of an interface if the result is None, with arguments in braces.
    absent: str = ""
    #: Names that do not follow from that of the function: its name in the audit log, also if it only reads, and the words of its
    #: command; "" for none.
    audit: str | None = None
    command: str | None = None
    #: Method and path of its route; "" for none.
    http: str = ""
    #: How its route sends a result of bytes.
    file: Files | None = None
    #: The status of its route's responses.
    status: int = 200
    #: Name and title of its tool, and the description for models; "" for none.
    tool: str = ""
    title: str = ""
    for_models: str = ""
    #: Why its tool returns less than the result; "" if it returns all of it.
    less_for_models: str = ""
    #: Whether it can delete data; whether a repeated call is idempotent.
    destructive: bool = False
    idempotent: bool = False
    #: Whether other threads may use the vault while it runs.
    waits: bool = False
    #: Whether a server opens the vault a second time to run it, because it takes long.
    beside: bool = False
    #: Whether a server imports the edits of linked folders first, which fails on a damaged disk.
    ingests: bool = True
    #: The name, if it is not that of the package in `operations` followed by that of the function: `sessions.add`.
    name: str = ""

    def __call__(self, function: Callable[P, R]) -> Operation[P, R]:
        return Operation(self, function)


class Operation(Generic[P, R]):
    """A declared operation. An interface calls `run`. Only another operation, whose call was checked, may call `work`."""

    def __init__(self, declared: operation, function: Callable[P, R]) -> None:
        assert isinstance(function, types.FunctionType)
        self.declared = declared
        root, *inside = function.__module__.removeprefix("ipfsmem.operations").split(".")
        group = [] if root else inside[:-1]
        self.name = declared.name or ".".join([*group, function.__name__.rstrip("_")])
        words = self.name.replace("s.", " ").replace(".", " ")
        #: The words of its command; "" for none.
        self.command = words if declared.command is None else declared.command
        unsaid = "" if declared.right == "read" else words
        #: Its name in the audit log (`vault log --operations`); "" if it is not recorded.
        self.audit = unsaid if declared.audit is None else declared.audit
        self.work: Callable[P, R] = function
        self._function = function
        #: Types of results that are not imported with the module, and the modules of each.
        self._late: Mapping[str, str] = function.__globals__.get("LATE", {})
        code = function.__code__
        #: Whether it is a coroutine.
        self.is_coroutine = bool(code.co_flags & _COROUTINE)
        self._convert: Callable[[Any], Any] | None = None
        #: The names of the parameters except the view.
        self.names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        self._positional = self.names[: code.co_argcount - 1]
        defaults = function.__defaults__ or ()
        self._defaults = dict(
            zip(self._positional[len(self._positional) - len(defaults) :], defaults, strict=True)
        )
        self._defaults |= function.__kwdefaults__ or {}
        self._parameters: dict[str, Parameter] = {}

    @property
    def is_scoped(self) -> bool:
        """Whether it works on one or several scopes that the caller chose."""
        return self.declared.about not in ("memory", "scopes", "user")

    @property
    def method(self) -> str:
        """The name of its method in Python, with a trailing underscore if it is a keyword."""
        from keyword import iskeyword  # needed for an error only

        short = self.name.rpartition(".")[2]
        return f"{short}_" if iskeyword(short) else short

    @property
    def doc(self) -> str:
        """The docstring without its indentation."""
        first, _, rest = (self._function.__doc__ or "").strip().partition("\n")
        lines = [line[4:] if line.startswith("    ") else line for line in rest.split("\n")]
        return "\n".join([first, *lines]).rstrip()

    def parameter(self, name: str) -> Parameter:
        """A parameter by its name; this evaluates its type."""
        if name not in self._parameters:
            self._parameters[name] = Parameter(
                name,
                self._type_of(name),
                self._defaults.get(name, REQUIRED),
                positional=name in self._positional,
            )
        return self._parameters[name]

    def parameters(self, face: Face) -> list[Parameter]:
        """The parameters that exist in an interface."""
        every = (self.parameter(name) for name in self.names)
        return [one for one in every if face not in one.missing_in]

    @functools.cached_property
    def result(self) -> Any:
        """The type of the result in Python."""
        return self._type_of("return")

    @property
    def answer(self) -> Any:
        """The type of the result in every other interface, encoded as JSON: never None."""
        if self._convert is not None:
            return self._type_of("return", self._convert)
        return _without_none(self.result)

    def answers_with(self, convert: Callable[[Any], T]) -> Callable[[Any], T]:
        """Decorator: `convert` makes the answer of every other interface from the result, for example with an exit code."""
        self._convert = convert
        return convert

    def answered(self, result: Any) -> Any:
        """The result in every other interface."""
        return result if self._convert is None else self._convert(result)

    def _type_of(self, name: str, function: Callable[..., Any] | None = None) -> Any:
        """An annotation as a type. `LATE` of its module maps names to the modules from which they are imported now."""
        names = self._function.__globals__
        hint = (function or self._function).__annotations__.get(name, Any)
        if (
            name == "return"
        ):  # the fields of a result have such types too, which msgspec looks up in the module
            names |= {one: getattr(import_module(module), one) for one, module in self._late.items()}
        words = re.findall(r"\w+", str(hint))
        late = {
            one: getattr(import_module(module), one) for one, module in self._late.items() if one in words
        }
        # `typing.get_type_hints` does the same in ten times as many calls.
        return eval(hint, names | late) if isinstance(hint, str) else hint  # noqa: S307

    def run(self, view: View, arguments: Mapping[str, Any], face: Face = "python") -> R:
        """Run it for an interface: refuse a closed vault and wrong arguments, hold the vault's lock, and record the call in the
        audit log.

        Of an asynchronous operation, returns a coroutine, whose arguments are checked already and which holds the lock only between
        its suspensions.

        Raises ClosedError, PassphraseError, UsageError, and the errors of the operation.
        """
        opened = view.opened
        opened.refuse_closed(self.name)
        arguments = self._checked(arguments, face)
        if self.is_coroutine:
            return typing.cast(R, self._noted_later(view, face, arguments))
        if self.declared.waits:
            result = self._noted(view, face, arguments)
        else:
            with opened.lock:
                opened.refuse_closed(self.name)  # another thread may have closed it before the lock was free
                result = self._noted(view, face, arguments)
        if self._late:
            self._name_late_types()
        return result

    def _name_late_types(self) -> None:
        """Add the types that the operation imported to its module, so that msgspec can resolve the type of the answer."""
        for name, module in self._late.items():
            if module in sys.modules:
                self._function.__globals__.setdefault(name, getattr(sys.modules[module], name))

    def run_alone(self, arguments: Mapping[str, Any], face: Face) -> R:
        """Run an operation about the user without a vault, and so without an audit record. Raises UsageError for wrong arguments,
        and the errors of the operation."""
        assert self.declared.about == "user"
        work: Callable[..., R] = self.work
        return work(None, **self._checked(arguments, face))

    def refuse(
        self, view: View, arguments: Mapping[str, Any], face: Face, error: IpfsmemError
    ) -> typing.NoReturn:
        """Raise an error that an interface found before running the operation, and record the attempt."""
        with self._auditing(view, face, arguments):
            raise error

    def _checked(self, arguments: Mapping[str, Any], face: Face) -> Mapping[str, Any]:
        """Return the checked arguments, with each iterator as a tuple. Raises UsageError for a wrong argument."""
        for name, value in arguments.items():
            if value is self._defaults.get(name, REQUIRED):
                continue  # a default is valid, and most arguments are defaults: no type is evaluated for them
            parameter = self._parameters.get(name) or self.parameter(name)
            if parameter.is_list and isinstance(value, Iterable) and not isinstance(value, Sized):
                most = None if parameter.longest is None else parameter.longest + 1
                # An iterator can be read only once, and may never end.
                value = tuple(islice(value, most))
                arguments = {**arguments, name: value}
            if problem := parameter.problem(value):
                label = f"{self.method}: " if face == "python" else ""
                if face == "cli":
                    problem = problem.removeprefix(OF_ITEM)  # an option that is given again has no list
                raise UsageError(f"{label}{parameter.called(face)} {problem}")
        return arguments

    def _noted(self, view: View, face: Face, arguments: Mapping[str, Any]) -> R:
        work: Callable[..., R] = self.work
        if not self.audit:
            return work(view, **arguments)
        from ipfsmem.open_vault.audit import advise_on

        method = self.name.rpartition(".")[2]
        with self._auditing(view, face, arguments) as ended:
            result = work(view, **arguments)
            ended(result)
        advise_on(view.opened, self.audit, method, result, arguments)
        return result

    async def _noted_later(self, view: View, face: Face, arguments: Mapping[str, Any]) -> Any:
        work: Callable[..., Awaitable[Any]] = typing.cast(Any, self.work)
        if not self.audit:
            result = await work(view, **arguments)
            self._name_late_types()
            return result
        with self._auditing(view, face, arguments):
            result = await work(view, **arguments)
        self._name_late_types()
        return result

    def _auditing(
        self, view: View, face: Face, arguments: Mapping[str, Any]
    ) -> contextlib.AbstractContextManager[Callable[[object], None]]:
        from ipfsmem.open_vault.audit import auditing

        # A read by a program with a token is always recorded.
        noted = {**arguments, "preview": False} if face == "http" else arguments
        if face == "http" and any(one.file is not None for one in self.parameters(face)):
            noted = {**noted, "dry_run": False}  # the counts would reveal which of the sent texts exist
        scope = arguments.get("scope") or "" if self.declared.about in ("memory", "user") else view.scope
        if self.declared.about == "scopes":
            scope = arguments["name"]
            noted = {**noted, "token": scope}
        return auditing(view.opened, self.audit, scope, noted, self.name.rpartition(".")[2])


def _has_half_a_character(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _alternatives(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _without_none(hint: Any) -> Any:
    hints = [one for one in typing.get_args(hint) if one is not types.NoneType]
    if len(hints) == len(typing.get_args(hint)):
        return hint
    return hints[0] if len(hints) == 1 else typing.Union[tuple(hints)]  # noqa: UP007
