"""A request of the HTTP API as values, before a memory is opened: its parameters, its precondition, its caller. Pure.

Unknown parameters are refused, as a mistyped name would silently mean another scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ipfsmem.api.problems import Problem, said
from ipfsmem.bundle.keys import check_scope
from ipfsmem.errors import IpfsmemError, UsageError
from ipfsmem.memories.memory_records import SEEN_DIGITS
from ipfsmem.memory import Memory
from ipfsmem.open_vault.method_group import RENAMED
from ipfsmem.operation import Right

_ETAG: Final = re.compile(rf'"([0-9a-f]{{{SEEN_DIGITS}}})"')
KEY_SCHEMA: Final = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}
_RANK: Final[dict[Right, int]] = {"read": 0, "write": 1, "admin": 2}
#: The answers to a write without a precondition, and to a restore that does not say what is shown.
NO_PRECONDITION: Final = said(
    428,
    "UsageError",
    "a write requires If-Match with the ETag of a read, or If-None-Match: * for a new memory",
)
NO_SEEN: Final = said(
    428,
    "UsageError",
    'a restore requires seen, from a read, or "" if nothing is shown',
)


class Refused(Exception):
    """A refused request, with the problem that answers it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class Caller(msgspec.Struct, frozen=True):
    """The rights of a token. `scopes` None: all of them; "" is the unnamed one."""

    right: Right
    scopes: frozenset[str] | None = None

    def may(self, right: Right) -> bool:
        """Tell whether the caller has this right."""
        return _RANK[self.right] >= _RANK[right]

    def require(self, right: Right) -> None:
        """Raise Refused without this right."""
        if not self.may(right):
            raise Refused(
                said(
                    403,
                    "RightError",
                    f"the token allows {self.right}; this requires {right}",
                    hint=f"Create one: ipfsmem token new --right {right}{_for(self.scopes)}",
                    exit_code=26,
                )
            )

    def require_scopes(self, scopes: Sequence[str]) -> None:
        """Raise Refused if the token is not for all scopes of a request, whatever led to them."""
        other = [] if self.scopes is None else [scope for scope in scopes if scope not in self.scopes]
        if self.scopes is not None and other:
            names = ", ".join(scope or "the default scope" for scope in dict.fromkeys(other))
            raise Refused(
                said(
                    403,
                    "ScopeError",
                    f"the token is not for: {names}",
                    hint=f"Create one for these too: ipfsmem token new --right {self.right}{_for(self.scopes.union(other))}",
                    exit_code=26,
                )
            )

    def require_all_scopes(self) -> None:
        """Raise Refused for a token limited to scopes, if a request is about the whole memory."""
        if self.scopes is not None:
            raise Refused(
                said(
                    403,
                    "ScopeError",
                    "this requires access to the whole vault, and the token is limited to scopes",
                    hint=f"Create one for the whole vault: ipfsmem token new --right {self.right}",
                    exit_code=26,
                )
            )


def _for(scopes: frozenset[str] | None) -> str:
    """Return the options of `ipfsmem token new` for a token of these scopes. The unnamed scope needs a named one with it; alone
    it needs a token for everything."""
    names = sorted(scopes or ())
    options = "".join(f" --scope {scope}" for scope in names if scope)
    return f"{options} --everybody" if options and "" in names else options


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A vault of this server. `locked`: its keys are locked, so nothing can be read; `until`: when they lock, in milliseconds
    since 1970 UTC."""

    vault_name: str
    locked: bool
    until: int | None


class Vaults(msgspec.Struct, frozen=True, kw_only=True):
    """The vaults of this server that the caller can use, and the caller's right and scopes; `scopes` None: all scopes."""

    vaults: list[Served]
    right: Right
    scopes: list[str] | None
    version: str


class Call(NamedTuple):
    """A valid request: `memory` in the scope that it names, `whole` without one."""

    memory: Memory
    whole: Memory
    caller: Caller
    scope: str
    stack: tuple[str, ...]
    key: str
    query: Mapping[str, Any]
    body: Any
    #: The `seen` of the caller: the token's hash, "" for a new memory; None without a precondition.
    seen: str | None
    #: The cache of this memory, emptied by a change.
    remembered: Callable[[], dict[Any, Any]] = dict


class Reply(NamedTuple):
    """An answer with a status, and the ETag of the shown text."""

    value: Any
    status: int = 200
    seen: str = ""


class Download(NamedTuple):
    """Bytes with their content type and a file name."""

    data: bytes
    content_type: str
    name: str


# -- parameters ----------------------------------------------------------------------------------------------


def _scope_or_nothing(text: str) -> str:
    return check_scope(text) if text else ""


class Parameter(NamedTuple):
    """The declaration of a parameter, for the document and for requests."""

    schema: dict[str, Any]
    read: Callable[[str], Any]
    about: str
    several: bool = False


def _text(about: str, most: int = 200) -> Parameter:
    def read(text: str) -> str:
        if len(text) > most:
            raise UsageError(f"has {len(text):,} characters, at most {most} are allowed")
        return text

    return Parameter({"type": "string", "maxLength": most}, read, about)


#: Every query parameter by name.
QUERY: Final[dict[str, Parameter]] = {
    "vault": Parameter(KEY_SCHEMA, str, "Vault of this server; default: that of the token."),
    "scope": Parameter(KEY_SCHEMA, _scope_or_nothing, "Scope; default: the default scope."),
    "stack": Parameter(
        {"type": "array", "items": KEY_SCHEMA, "maxItems": 16},
        check_scope,
        "Read these scopes in this order, then the default scope.",
        several=True,
    ),
    "cursor": _text("`next` of the previous page."),
}

#: `scope` of a route about a part of the vault, where none is not the default scope.
PART: Final = Parameter(
    {"type": "string", "pattern": "^([a-z0-9][a-z0-9_-]{0,63})?$"},
    _scope_or_nothing,
    "Scope; an empty one is the default scope; default: the whole vault.",
)

#: The header with `outdated` of an answer that is a file.
OUTDATED: Final = "Ipfsmem-Outdated"


def read_query(
    pairs: Sequence[tuple[str, str]],
    names: Sequence[str],
    needed: Sequence[str] = (),
    parameters: Mapping[str, Parameter] = QUERY,
) -> dict[str, Any]:
    """Return the parameters of a request by name. Raises UsageError for an unknown, a repeated or a missing one."""
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name not in names:
            hint = f"Parameters: {', '.join(names)}"
            if (new := RENAMED.get(name)) in names:
                raise UsageError(f"the parameter {name} was renamed to {new}", hint=hint)
            raise UsageError(f"unknown parameter {name[:40]!a}", hint=hint)
        parameter = parameters[name]
        value = _read(parameter, name, text)
        if parameter.several:
            values.setdefault(name, []).append(value)
            if len(values[name]) > parameter.schema["maxItems"]:
                raise UsageError(f"{name} is given too many times")
        elif name in values:
            raise UsageError(f"{name} is given twice")
        else:
            values[name] = value
    if lacking := [name for name in needed if not values.get(name)]:
        raise UsageError(f"{', '.join(lacking)} is missing; required: {', '.join(needed)}")
    return values


def _read(parameter: Parameter, name: str, text: str) -> Any:
    """Return the value of a parameter; an error names the parameter."""
    try:
        return parameter.read(text)
    except IpfsmemError as error:
        raise type(error)(f"{name}: {error}", hint=error.hint) from None


def precondition(match: Sequence[str], none_match: Sequence[str], *, new: bool) -> str | None:
    """Return the `seen` of If-Match; "" for `If-None-Match: *`, which only `new` allows; None without either. Raises
    UsageError."""
    if not match and not none_match:
        return None
    if list(none_match) == ["*"] and not match and new:
        return ""
    tag = _ETAG.fullmatch(match[0].strip()) if len(match) == 1 and not none_match else None
    if tag is None:
        raise UsageError(
            "give one ETag of a read in If-Match" + (", or If-None-Match: * for a new memory" if new else "")
        )
    return tag[1]
