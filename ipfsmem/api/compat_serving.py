"""Routes of other programs on the server of the HTTP API: with its tokens, rights and scopes, in the formats of those programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web

from ipfsmem.api.calls import Caller
from ipfsmem.api.routes import reached
from ipfsmem.canonical import read_json, write_json
from ipfsmem.compat import agh_http, librefang_http
from ipfsmem.compat.http import HttpAnswer, HttpCall, HttpRoute
from ipfsmem.errors import IpfsmemError, NotFoundError, UsageError
from ipfsmem.memory import Memory


class ProgramRoutes(NamedTuple):
    """The routes of a program and its error format."""

    routes: Sequence[HttpRoute]
    problem: Callable[[IpfsmemError], HttpAnswer]
    #: Path of a health check that needs no token; "" for none.
    health: str = ""


PROGRAMS: Final = {
    "librefang": ProgramRoutes(librefang_http.ROUTES, librefang_http.problem, librefang_http.HEALTH),
    "agh": ProgramRoutes(agh_http.ROUTES, agh_http.problem),
}


def worked(
    program: ProgramRoutes,
    route: HttpRoute,
    workspace: str,
    request: web.Request,
    body: Any,
    caller: Caller,
    whole: Memory,
) -> HttpAnswer:
    """Return the answer of a route on an open memory. Raises Refused, and errors not caused by the request."""
    caller.require(route.right)
    call = HttpCall(
        whole,
        workspace,
        dict(request.match_info),
        {name: request.query[name] for name in request.query},
        body,
        lambda scope: caller.scopes is None or caller.scopes.issuperset(reached(whole, scope)),
        lambda scope: caller.require_scopes(reached(whole, scope)),
    )
    try:
        return route.work(call)
    except (UsageError, NotFoundError) as error:
        return program.problem(error)


def body_of(data: bytes) -> Any:
    """Parse the body as JSON; None without a body. Raises UsageError."""
    if not data.strip():
        return None
    try:
        return read_json(data, Any)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"the body is not JSON: {error}") from None


def response(answer: HttpAnswer) -> web.Response:
    """Return the HTTP response of an answer."""
    if answer.value is None:
        return web.Response(status=answer.status)
    return web.Response(
        status=answer.status,
        body=write_json(answer.value),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
