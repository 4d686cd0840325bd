"""One table of the routes of the HTTP API: what each takes and gives, who may ask it, and the function that does its work.

The server has these routes, and the OpenAPI document is made of them. Which scopes a route touches follows from it here, in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from ipfsmem.api.bodies import Right
from ipfsmem.api.calls import QUERY, Call, Caller, Parameter
from ipfsmem.memory import Memory

#: What a route is about: one scope (or a stack of some), the caller's own scopes, or the whole memory.
About = Literal["scope", "caller", "whole"]


def reached(whole: Memory, scope: str) -> list[str]:
    """The scopes that a call which names one may read or write: those that lead to it, where it leads, and all that leads there."""
    scopes = whole._view().opened.scopes
    return list(dict.fromkeys([*scopes.stack(scope), *scopes.stack(scopes.target(scope))]))


class Route(NamedTuple):
    """An operation. `work` is done in a thread, on an open memory. A read of a scope gives what the caller's token covers of the scopes that lead
    there, and where it leads. `writes`: all of these are touched; `onward`: it reads all of these as one, whatever the token covers. `everybody`:
    what is everybody's is read with the scope. `seen`: a precondition is asked for; `new`: "nothing is there" may be one. `needs`:
    parameters that have to be given. `tagged`: its answer has an ETag. `beside`: it takes long, so other calls are answered meanwhile."""

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
    #: The types of content that an answer may have.
    gives: tuple[str, ...] = ("application/json",)
    #: Bytes of a body.
    most: int = 4 * 1024 * 1024
    #: A longer description than the summary.
    description: str = ""
    #: Parameters of its query that are its own.
    own: Mapping[str, Parameter] = {}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters of its query."""
        return ("namespace", *(("scope",) if self.about == "scope" else ()), *self.query)

    @property
    def known(self) -> Mapping[str, Parameter]:
        """The parameters of a query by name."""
        return {**QUERY, **self.own}

    def touched(self, whole: Memory, scope: str, stack: tuple[str, ...]) -> list[str]:
        """The scopes that the token of a request must be for. Only of routes about a scope."""
        if stack:
            return [*stack, ""]
        found = reached(whole, scope) if self.writes or self.onward else [scope]
        return [*found, *([""] if self.everybody else [])]

    def admit(self, caller: Caller, whole: Memory, scope: str, stack: tuple[str, ...]) -> None:
        """Raises Refused when the caller's token is not for what this touches."""
        caller.require(self.right)
        if caller.scopes is None or self.about == "caller":
            return
        if self.about == "whole":
            caller.require_all_scopes()
        else:
            caller.require_scopes(self.touched(whole, scope, stack))
