"""A vault served over MCP to the official client, in this process or as a separate program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ipfsmem.memory import Memory
from tests.support.extras import need_extra

#: The two versions of the protocol that the SDK serves: with and without a handshake.
ERAS = ("legacy", "auto")


#: Timeout in seconds for one test's coroutine on a heavily loaded machine.
_PATIENCE = 120.0


def play(work: Callable[[], Awaitable[None]]) -> None:
    """Run one test's coroutine within two minutes. A server that starts slowly is not mistaken for one of
    an older protocol."""
    from mcp.client import session

    async def bounded() -> None:
        await asyncio.wait_for(work(), _PATIENCE)

    with patch.object(session, "DISCOVER_TIMEOUT_SECONDS", _PATIENCE, create=True):
        asyncio.run(bounded())


@contextlib.asynccontextmanager
async def client_of(served: Any, era: str, **more: Any) -> AsyncIterator[Any]:
    """Connect the official client to a `MemoryServer` in this process."""
    from mcp import Client

    async with Client(served.server, mode=era, **more) as client:
        yield client


def program(home: Path, *arguments: str, **environment: str) -> Any:
    """Return the parameters with which the client starts `ipfsmem serve mcp` as a program."""
    from mcp.client.stdio import StdioServerParameters

    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "ipfsmem.cli", "serve", "mcp", *arguments],
        env={**surroundings(home), **environment},
    )


def surroundings(home: Path) -> dict[str, str]:
    """Return an environment that hides this machine's user."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "IPFSMEM_HOME": str(home / "ipfsmem"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


@pytest.fixture
def memory() -> Iterator[Memory]:
    """Return an empty vault in this process."""
    need_extra("mcp", "mcp_types")
    with Memory.load("alex", "none") as memory:
        yield memory
