"""Runs one of our servers, by default on an address that only this machine reaches.

It binds and serves; the application decides what, and to whom.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator

from aiohttp import web

from ipfsmem.errors import ConfigError
from ipfsmem.http.connection_limits import BACKLOG, TRUSTED, ConnectionLimits, Connections
from ipfsmem.loopback import is_loopback


@contextlib.asynccontextmanager
async def running(
    app: web.Application,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    public: bool = False,
    limits: ConnectionLimits | None = None,
) -> AsyncIterator[str]:
    """Yield the URL of `app` while it runs; port 0 selects a free one. `limits`: of its connections.

    Raises ConfigError if the address is taken, or is reachable from other machines without `public`.
    """
    if not public and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines",
            hint="Serve on 127.0.0.1, or say that it is meant to be public and name the host names it is asked by.",
        )
    app.on_response_prepare.append(_without_versions)
    # Nothing received is decompressed (format section 8): a megabyte may become a gigabyte.
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=2.0, handler_cancellation=True, auto_decompress=False
    )
    await runner.setup()
    assert runner.server is not None
    listening: asyncio.Server | None = None
    trusted = app.get(TRUSTED, lambda request: False)
    connections = Connections(limits or ConnectionLimits(), runner.server, trusted)
    loop = asyncio.get_running_loop()
    try:
        try:
            listening = await loop.create_server(connections, host, port, backlog=BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ConfigError(
                    f"cannot serve on {host}:{port}: another program uses it",
                    hint="Choose another --port; 0 takes a free one.",
                ) from error
            words = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise ConfigError(f"cannot serve on {host}:{port}: {words}") from error
        bound_port = listening.sockets[0].getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound_port}"
    finally:
        if listening is not None:
            listening.close()
        connections.close()
        await runner.cleanup()


async def _without_versions(_: web.Request, answer: web.StreamResponse) -> None:
    """Remove the library's Server header, which names versions: only useful to find outdated ones."""
    answer.headers["Server"] = "ipfsmem"
