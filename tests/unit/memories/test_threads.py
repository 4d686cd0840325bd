"""One open vault used by many threads, and by the sync of an event loop at the same time."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread, get_ident

import pytest

from ipfsmem.errors import ClosedError, PassphraseError
from ipfsmem.holding import Holder
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from tests.support.device_lab import Lab, body

THREADS = 50


def use(memory: Memory, number: int) -> None:
    key = f"key-{number}"
    memory.write(key, f"text {number}")
    assert body(memory, key) == f"text {number}"
    memory.note("used", number=number)
    assert key in [item.key for item in memory.list()]
    memory.write("shared", f"by {number}")
    memory.scope("project").write(key, "in the scope")
    if number % 5 == 0:
        assert memory.forget(key)


def all_of_it_is_here(memory: Memory) -> None:
    kept = {f"key-{number}" for number in range(THREADS) if number % 5}
    assert {item.key for item in memory.list()} == {*kept, "shared"}
    assert len(memory.scope("project").list()) == THREADS
    events = [event["number"] for event in memory.timeline.read() if event["type"] == "used"]
    assert sorted(events) == list(range(THREADS))
    assert not memory.conflicts()


@pytest.mark.parametrize("mode", ["none", "local"])
def test_fifty_threads_use_one_vault(tmp_path: Path, mode: ModeName) -> None:
    with Memory.load("x", mode=mode, home=tmp_path) as memory, ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda number: use(memory, number), range(THREADS)))
        all_of_it_is_here(memory)


def test_threads_write_while_the_event_loop_syncs(lab: Lab) -> None:
    a = lab.create("a")

    async def both() -> None:
        with ThreadPoolExecutor(THREADS) as threads:
            loop = asyncio.get_running_loop()
            work = [loop.run_in_executor(threads, use, a, number) for number in range(THREADS)]
            while not all(one.done() for one in work):
                await a.sync()
            await asyncio.gather(*work)
        await a.sync()

    asyncio.run(both())
    all_of_it_is_here(a)
    all_of_it_is_here(lab.restore("b"))


def test_thread_waiting_while_the_vault_is_closed_gets_an_error(tmp_path: Path) -> None:
    memory = Memory.load("x", mode="none", home=tmp_path)
    begun = threading.Event()

    def late() -> None:
        begun.set()
        memory.write("late", "text")

    with ThreadPoolExecutor(1) as threads:
        with memory.replica.db.lock:
            waiting = threads.submit(late)
            assert begun.wait(60)
            threading.Event().wait(0.02)
            memory.close()
        with pytest.raises(ClosedError):
            waiting.result(60)


@pytest.mark.parametrize("work", ["begin_files", "scan", "render", "ingest_edits"])
def test_call_that_uses_plain_files_waits_for_the_busy_thread(tmp_path: Path, work: str) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        thread = threading.Thread(target=getattr(memory._open, work))
        with memory._open.lock:
            thread.start()
            thread.join(0.1)
            assert thread.is_alive()
        thread.join(60)
        assert not thread.is_alive()


def test_keys_locked_during_a_sync_are_dropped_by_the_syncing_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would end the process if another thread closed the connection."""
    (tmp_path / "stick").mkdir()
    memory = Memory.create(
        "default",
        "encrypted-ipfs",
        provider=str(tmp_path / "stick"),
        passphrase=False,
        home=tmp_path / "home",
    )
    memory.write("tone", "x")
    began, locked, closed_by, ended = Event(), Event(), list[int](), list[BaseException | int]()
    replica = memory.replica

    class Watch:
        def why_locked(self) -> str:
            return "the keys were locked" if locked.is_set() else ""

    async def reading(*_: object, **__: object) -> None:
        while True:
            began.set()
            replica.db.connection.execute("SELECT count(*) FROM blocks").fetchall()
            await asyncio.sleep(0)

    close = replica.close

    def closing() -> None:
        closed_by.append(get_ident())
        close()

    monkeypatch.setattr(replica, "lock_watch", Watch())
    monkeypatch.setattr(replica, "close", closing)
    monkeypatch.setattr("ipfsmem.open_vault.syncing.sync", reading)

    def work() -> None:
        ended.append(get_ident())
        try:
            asyncio.run(memory.sync())
        except PassphraseError as error:
            ended.append(error)

    holder = Holder(lambda: memory)
    holder.memory()
    syncing = Thread(target=work)
    syncing.start()
    assert began.wait(60)
    locked.set()
    with pytest.raises(PassphraseError, match="the keys were locked"):
        memory.read("tone")
    with pytest.raises(PassphraseError, match="the keys were locked"):
        holder.memory()
    while syncing.is_alive():
        holder.let_go_when_locked()
    assert isinstance(ended[1], PassphraseError) and closed_by[0] == ended[0]
    holder.let_go_when_locked()
    assert holder._memory is None
