"""A call waits once for a busy database, however many transactions it needs, and the error has the next step."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.device import lock
from ipfsmem.device.connection import Connection
from ipfsmem.device.database import Database
from ipfsmem.device.lock import one_wait, waiting
from ipfsmem.errors import LockedError
from ipfsmem.holding import Holder
from ipfsmem.memory import Memory
from ipfsmem.tools import toolset
from tests.support.api_lab import Lab, told
from tests.support.cli_lab import Cli
from tests.support.extras import need_extra

_HOLDS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""
#: Milliseconds that a connection waits here.
_WAIT = 300
_NEXT = "Call again in a minute. If it fails again, ask the person to close the program that holds the lock."


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the milliseconds of each unsuccessful wait for another program."""
    found: list[int] = []
    execute = Connection.execute

    def watched(self: Connection, *given: Any) -> Any:
        try:
            return execute(self, *given)
        except LockedError:
            found.append(execute(self, "PRAGMA busy_timeout").fetchone()[0])
            raise

    monkeypatch.setattr(Connection, "execute", watched)
    monkeypatch.setitem(Database.__init__.__kwdefaults__, "wait", _WAIT / 1000)
    return found


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A home whose vault `m` another process uses."""
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.write("a", "one", description="A text about the number one")
        memory.folders.attach(tmp_path / "linked")
    (tmp_path / "linked" / "new.md").write_text("edited meanwhile\n")
    holding = subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(tmp_path / "m" / "state.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holding.stdout is not None and holding.stdout.readline() == b"held\n"
    yield tmp_path
    holding.kill()
    holding.communicate()


@pytest.mark.parametrize("tool", ["remember", "read_memory", "list_memories", "list_sessions"])
def test_call_of_tool_waits_once_for_busy_database(held: Path, waits: list[int], tool: str) -> None:
    need_extra("mcp", "mcp_types")
    from ipfsmem.mcp.server import MemoryServer

    (held / "project" / ".git").mkdir(parents=True)
    served = MemoryServer(Holder(lambda: Memory.load("m", home=held)), names=["all"], folder=held / "project")
    given = {
        "remember": {"key": "b", "body": "two", "description": "A text about the number two"},
        "read_memory": {"key": "a"},
    }.get(tool, {})
    for _ in range(2):  # the second call waits too: the other program may have ended
        waits.clear()
        answer = asyncio.run(served.call_tool(served.conversation_of(), tool, given, "test"))
        assert answer is not None and answer["isError"]
        assert answer["content"][0]["text"].endswith(f"in use by another program. {_NEXT}")
        assert max(waits) > 0 and sum(waits) <= _WAIT
    served.holder.close()


def test_request_waits_once_for_busy_database(held: Path, waits: list[int]) -> None:
    async def ask(client: Any) -> None:
        for path in ("/v1/memories/a", "/v1/vaults"):
            waits.clear()
            await told(client.get(path), 503, "LockedError")
            assert max(waits) > 0 and sum(waits) <= _WAIT

    Lab(held, "m", "m", open_memory=lambda: Memory.load("m", home=held)).run(ask)


def test_tool_of_open_memory_works_after_busy_database_is_free(tmp_path: Path, waits: list[int]) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        tool = next(one for one in toolset(memory) if one.name == "remember")
        holding = subprocess.Popen(
            [sys.executable, "-c", _HOLDS, str(tmp_path / "m" / "state.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holding.stdout is not None and holding.stdout.readline() == b"held\n"
        try:
            assert tool.call(key="b", body="two").is_error
        finally:
            holding.kill()
            holding.communicate()
        assert sum(waits) <= _WAIT
        assert not tool.call(key="b", body="two").is_error
        # A wait that a call shortened does not shorten the next one's.
        assert memory.replica.db.connection.execute("PRAGMA busy_timeout").fetchone()[0] == _WAIT


def test_successful_wait_shortens_no_later_one(tmp_path: Path) -> None:
    """Otherwise a call with two successful waits, each longer than half the limit, would fail at the
    second."""
    with one_wait(10.0):
        for _ in range(3):
            with waiting(10.0) as allowed:
                assert allowed == 10.0
                time.sleep(0.01)


def test_failed_waits_share_one_limit_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(lock.time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> float:
        with contextlib.suppress(LockedError), waiting(10.0) as allowed:
            now[0] += seconds
            raise LockedError("busy")
        return allowed

    with one_wait(10.0):
        assert [wait(4), wait(6), wait(0)] == [10.0, 6.0, 0.0]
        now[0] += 10.0
        assert wait(0) == 10.0


@pytest.mark.parametrize("words", [("write", "b", "--body", "two"), ("recall", "number")])
def test_command_waits_once_for_busy_database(
    held: Path, waits: list[int], words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(held, monkeypatch)
    assert "in use by another program" in cli.fails(5, *words, "--vault", "m").err
    assert max(waits) > 0 and sum(waits) <= _WAIT
