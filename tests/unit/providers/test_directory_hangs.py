"""Folder provider: a mount that hangs costs a sync one timeout, other providers continue, and it is used
again later."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.packs import blocking_work
from ipfsmem_providers.packs.blocking_work import BlockingWork, heartbeat

from ipfsmem.errors import ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.hints import Refused
from tests.support.patience import PATIENCE

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0b"))
STALL = 0.3


class Mount(DirectoryProvider):
    """A folder on a share whose server may disappear: calls to the system then block, as with a real one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.pipe: tuple[int, int] | None = None
        self.blocked = 0

    def hang(self) -> None:
        """Hang. Only then is the timeout short, so that a loaded machine has time while it answers."""
        self._blocking._stall = STALL
        self.pipe = os.pipe()

    def come_back(self) -> None:
        """Return from the outage: blocked calls continue and end."""
        assert self.pipe is not None
        os.write(self.pipe[1], bytes(100))
        self.pipe = None
        self._blocking._stall = PATIENCE
        for thread in threading.enumerate():
            if thread.name == "ipfsmem-store":
                thread.join(60)

    def _checked(self, work, *args):  # type: ignore[no-untyped-def]
        if self.pipe is not None:
            self.blocked += 1
            os.read(self.pipe[0], 1)
        return super()._checked(work, *args)


def device(home: Path, *providers: Provider) -> Memory:
    return Memory.load("m", "encrypted-ipfs", provider=list(providers), unlock=WALLET, passphrase=False, home=home, create=True)  # fmt: skip


def test_hanging_mount_delays_a_sync_by_one_timeout(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    mount, other = Mount(tmp_path / "share"), SimProvider(SimCloud(), name="other")
    a = device(tmp_path / "a", mount, other)
    a.write("k", "before")
    assert asyncio.run(a.sync()).exit_code == 0
    mount.hang()
    a.write("k", "while it hangs")
    started = time.monotonic()
    report = asyncio.run(a.sync())
    took = time.monotonic() - started
    # Concurrent lookups wait concurrently; after that no more calls are made.
    waited = mount.blocked
    assert report.published and took >= STALL
    assert "hangs" in " ".join(notice.text for notice in report.notices if notice.kind == "provider-down")
    b = device(tmp_path / "b", other)
    assert b.read("k").file.body == "while it hangs"  # type: ignore[union-attr]
    asyncio.run(a.sync())
    assert mount.blocked == waited, "asked again although it hangs"
    mount.come_back()
    assert asyncio.run(a.sync()).exit_code == 0
    c = device(tmp_path / "c", DirectoryProvider(tmp_path / "share"))
    assert c.read("k").file.body == "while it hangs"  # type: ignore[union-attr]


def test_hanging_mount_is_used_again_after_it_responds(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    mount = Mount(tmp_path / "share")
    a = device(tmp_path / "a", mount)
    a.write("k", "text")
    mount.hang()
    with Refused("Check the share or the stick, or unmount it. It gets no more requests until then."):
        asyncio.run(a.sync())
    mount.come_back()
    assert asyncio.run(a.sync()).exit_code == 0
    with device(tmp_path / "b", DirectoryProvider(tmp_path / "share")) as b:
        assert b.read("k").file.body == "text"  # type: ignore[union-attr]


def test_work_with_progress_is_not_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is signalled in each interval of the timeout."""
    passed, beats, waits = threading.Semaphore(0), threading.Semaphore(0), list[float]()

    def slow() -> str:
        for _ in range(12):
            assert passed.acquire(timeout=PATIENCE)
            heartbeat()
            beats.release()
        return "done"

    async def wait(futures: list[asyncio.Future[None]], timeout: float) -> None:
        """Simulate a full `timeout` with one sign of progress in it, or with the end of the work."""
        waits.append(timeout)
        if len(waits) > 12:
            await asyncio.gather(*futures)
        else:
            passed.release()
            assert await asyncio.to_thread(beats.acquire, timeout=PATIENCE)

    with monkeypatch.context() as patch:
        patch.setattr(blocking_work.asyncio, "wait", wait)
        assert asyncio.run(BlockingWork("a stick", 1.0).run(slow)) == "done"
    assert len(waits) >= 12 and set(waits) == {1.0}
    ended = threading.Event()
    with pytest.raises(ProviderUnavailable, match="a stick does not answer"):
        asyncio.run(BlockingWork("a stick", 0.25).run(ended.wait))
    ended.set()
    asyncio.run(BlockingWork("a stick", 0.25).run(lambda: time.sleep(0.4), more=60.0))


def test_cancelled_call_waits_for_its_running_work() -> None:
    async def body() -> None:
        begun, may_end, done = threading.Event(), threading.Event(), list[bool]()

        def work() -> None:
            begun.set()
            done.append(may_end.wait(60))

        task = asyncio.ensure_future(BlockingWork("a stick", 60.0).run(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == [True]

    asyncio.run(body())


def test_program_exits_although_a_folder_hangs() -> None:
    code = (
        "import asyncio, time\n"
        "from ipfsmem_providers.packs.blocking_work import BlockingWork\n"
        "try: asyncio.run(BlockingWork('a share', 0.1, why='it hangs').run(lambda: time.sleep(600)))\n"
        "except Exception as error: print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "a share does not answer: it hangs\n"
