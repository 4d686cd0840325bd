"""The table of routes of the HTTP API: arguments and answers, the required right, and the function that does the work.

The server has these routes, and the OpenAPI document is made from them. Only this module derives the scopes of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from ipfsmem.api.calls import PART, QUERY, Call, Caller, Parameter
from ipfsmem.memory import Memory
from ipfsmem.operation import Right

#: Maximum bytes of a body, unless a route says another.
MOST: Final = 4 * 1024 * 1024
#: The subject of a route: one scope (or a stack of some), the named scope or else the whole memory, the caller's own scopes, or the whole
#: memory.
About = Literal["scope", "part", "caller", "whole"]


def reached(whole: Memory, scope: str) -> list[str]:
    """Return the scopes that a call naming one may read or write: those that lead to it or to its target, and the target."""
    scopes = whole._view().opened.scopes
    return list(dict.fromkeys([*scopes.stack(scope), *scopes.stack(scopes.target(scope))]))


class Route(NamedTuple):
    """An operation. `work` runs in a thread, on an open memory. A read of a scope returns the part that the caller's token
    covers of the scopes that lead there, and of the target. `writes`: it changes all of these; `onward`: it reads all of
    these as one, whatever the token covers. `everybody`: the default scope is read with the scope. `seen`: a precondition is
    required; `new`: "no memory" may be one. `needs`: required parameters. `tagged`: its answer has an ETag. `beside`: it
    takes long, so other calls are answered meanwhile."""

    method: str
    path: str
    name: str
    summary: str
    work: Callable[[Call], Any]
    answer: type
    right: Right = "read"
    about: About = "scope"
    body: type | None = None
    query: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ("200",)
    writes: bool = False
    onward: bool = False
    everybody: bool = False
    seen: bool = False
    new: bool = False
    needs: tuple[str, ...] = ()
    tagged: bool = False
    beside: bool = False
    #: Content types of the answer.
    gives: tuple[str, ...] = ("application/json",)
    #: Maximum bytes of a body.
    most: int = MOST
    #: A description longer than the summary.
    description: str = ""
    #: Query parameters of this route only.
    own: Mapping[str, Parameter] = {}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of all query parameters."""
        return ("vault", *(("scope",) if self.about in ("scope", "part") else ()), *self.query)

    @property
    def known(self) -> Mapping[str, Parameter]:
        """Return the query parameters by name."""
        return {**QUERY, **({"scope": PART} if self.about == "part" else {}), **self.own}

    def touched(self, whole: Memory, scope: str, stack: tuple[str, ...]) -> list[str]:
        """Return the scopes that the token of a request must cover. Only for routes about a scope."""
        if stack:
            return [*stack, ""]
        scopes = reached(whole, scope) if self.writes or self.onward else [scope]
        return [*scopes, *([""] if self.everybody else [])]

    def admit(self, caller: Caller, whole: Memory, scope: str | None, stack: tuple[str, ...]) -> None:
        """Raise Refused if the token lacks the right, or a scope of the request. `scope` None: the request names none."""
        caller.require(self.right)
        if caller.scopes is None or self.about == "caller":
            return
        if self.about == "whole" or (self.about == "part" and scope is None):
            caller.require_all_scopes()
        else:
            caller.require_scopes(self.touched(whole, scope or "", stack))
