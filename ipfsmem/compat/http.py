"""Data types of the routes of other programs' HTTP interfaces: parameters, permission and handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

Right = Literal["read", "write"]


class HttpAnswer(NamedTuple):
    """An answer; `value` None has no body."""

    value: Any = None
    status: int = 200


class HttpCall(NamedTuple):
    """A request. `memory`: the whole vault; `workspace`: the scope that the server was started with; `may`: whether the caller's
    token covers a scope, which raises if not."""

    memory: Memory
    workspace: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    may: Callable[[str], bool]
    require: Callable[[str], None]

    def number(self, name: str, usual: int, most: int) -> int:
        """Return a whole number of the query. Raises UsageError."""
        text = self.query.get(name, "")
        if not text:
            return usual
        if not text.isascii() or not text.isdecimal() or len(text) > 9:
            raise UsageError(f"invalid {name}: {text[:40]!a}")
        return min(int(text), most)

    def object(self) -> dict[str, Any]:
        """Return the body as a JSON object. Raises UsageError."""
        if not isinstance(self.body, dict):
            raise UsageError("the body is not a JSON object")
        return self.body


class HttpRoute(NamedTuple):
    """One route."""

    method: str
    path: str
    right: Right
    work: Callable[[HttpCall], HttpAnswer]
