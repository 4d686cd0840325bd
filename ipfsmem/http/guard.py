"""The checks before every handler of our HTTP servers: host names, tokens, sizes, and errors as JSON.

Any page in the user's browser can reach a server on 127.0.0.1 through a name that resolves to it, so requests are answered only
under expected host names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from ipfsmem.errors import (
    FormatError,
    IpfsmemError,
    LimitError,
    NotFoundError,
    ProviderRefused,
    ProviderUnavailable,
    SealError,
    StorageError,
    UsageError,
)
from ipfsmem.loopback import LOCAL_HOSTS, has_bearer, host_of


class NotServed(Exception):
    """An unsupported form: 400 if none was named, 406 for another one."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_STATUS: Final[tuple[tuple[type[IpfsmemError], int], ...]] = (
    (LimitError, 413),
    (FormatError, 400),
    (SealError, 400),
    (UsageError, 400),
    (NotFoundError, 404),
    (ProviderRefused, 400),
    (ProviderUnavailable, 503),
    (StorageError, 507),
)


def error(status: int, reason: str, details: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an error in the form of all our servers: {"error":{"reason","details"}}."""
    body = msgspec.json.encode({"error": {"reason": reason, "details": details}})
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def json(value: Any, status: int = 200) -> web.Response:
    """Return a JSON answer that must not be cached."""
    return web.Response(
        status=status,
        body=msgspec.json.encode(value),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def guard(hosts: Collection[str] = LOCAL_HOSTS) -> Any:
    """Return middleware that refuses other host names and turns our errors into answers."""
    allowed = frozenset(host.lower() for host in hosts)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if host_of(request.headers.get("Host", "")) not in allowed:
            return error(421, "WRONG_HOST", "this server is not known under that name")
        try:
            return await handler(request)
        except web.HTTPException as answer:
            if answer.status < 400:
                raise
            headers = {name: answer.headers[name] for name in ("Allow",) if name in answer.headers}
            return error(answer.status, answer.reason.upper().replace(" ", "_"), answer.reason, headers)
        except NotServed as problem:
            return error(problem.status, "NOT_ACCEPTABLE", str(problem))
        except IpfsmemError as problem:
            status = next((status for kind, status in _STATUS if isinstance(problem, kind)), 500)
            return error(status, type(problem).__name__, str(problem))

    return middleware


def need_token(request: web.Request, token: str) -> None:
    """Raise 401 unless the request carries `Authorization: Bearer <token>`; 403 if the server has none."""
    if not token:
        raise web.HTTPForbidden(reason="This server takes no writes")
    if not has_token(request, token):
        raise web.HTTPUnauthorized(reason="Token wrong or missing")


def has_token(request: web.BaseRequest, token: str) -> bool:
    """Return whether the request carries `Authorization: Bearer <token>`. Never with an empty token."""
    return has_bearer(request.headers.get("Authorization", ""), token)
