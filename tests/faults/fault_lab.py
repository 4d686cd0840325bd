"""Fixtures of the fault tests: two devices and a stick, children that kill themselves, and checks.

A child is a fork of this process. It counts every change that it is about to make to a file or a database
and kills itself with SIGKILL before the k-th, so that running k = 0, 1, 2, ... covers every write
boundary. The inside of a COMMIT is SQLite's; the tests of a truncated write-ahead log cover it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.device import connection, root_folders
from ipfsmem.memory import Memory
from ipfsmem.sync.report import SyncReport
from ipfsmem.vault.home import Home
from ipfsmem.wallet.root_keys import RootKeys
from tests.support import effort

VAULT_NAME = "alex"
ROOT = RootKeys.from_random(b"\x05" * 64, "default", 1)
Ack = Callable[[str], None]
#: Every text of a vault, alternatives included: key -> bodies without header.
Texts = dict[str, set[str]]

_CHANGES = ("write", "fsync", "replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link", "ftruncate")
_READS = ("SELECT", "PRAGMA")


# -- devices and a stick ----------------------------------------------------------------------------------------------


class Lab:
    """One folder with the homes of some devices and a stick that they sync through."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stick = folder / "stick"

    def home(self, device: str) -> Path:
        """Return a device's home folder."""
        return self.folder / f"home-{device}"

    def create(self, device: str, mode: str = "encrypted-ipfs") -> Memory:
        """Create the vault on this device."""
        self.stick.mkdir(parents=True, exist_ok=True)
        return Memory.create(
            VAULT_NAME,
            mode,
            provider=str(self.stick),
            unlock=ROOT if mode != "local" else None,
            passphrase=False,
            home=Home(folder=self.home(device), label=device),
        )

    def restore(self, device: str, provider: Any = None, *, create: bool = True) -> Memory:
        """Restore the vault to a device that has only the root key; create it only if it does not exist."""
        return Memory.load(
            VAULT_NAME,
            "encrypted-ipfs",
            provider=provider or str(self.stick),
            unlock=ROOT,
            passphrase=False,
            home=Home(folder=self.home(device), label=device),
            create=create,
        )

    def open(self, device: str) -> Memory:
        """Open the vault on a device that has it."""
        return Memory.load(VAULT_NAME, provider=str(self.stick), home=self.home(device))

    def copy(self, target: Path) -> Lab:
        """Copy everything to another folder."""
        shutil.copytree(self.folder, target)
        return Lab(target)


def sync(memory: Memory) -> SyncReport:
    """One sync."""
    return asyncio.run(memory.sync())


def stay_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent copied homes from taking a new device id, because each trial copies them."""
    monkeypatch.setattr("ipfsmem.device.replica.place", lambda path: "here")


# -- children ------------------------------------------------------------------------------------------------------


class Outcome:
    """The result of a child: what it acknowledged, whether it was killed, what it raised."""

    def __init__(self, acknowledged: list[str], killed: bool, failure: str) -> None:
        self.acknowledged = acknowledged
        self.killed = killed
        self.failure = failure


def in_child(work: Callable[[Ack], None], *, kill_before: int | None = None) -> Outcome:
    """Run `work` in a fork. With `kill_before` it dies before its change number `kill_before` (from 0)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - its output comes through the pipe
        os.close(reading)
        raw_write = os.write

        def say(kind: bytes, text: str) -> None:
            data = kind + text.encode("utf-8", "replace")
            raw_write(writing, struct.pack(">I", len(data)) + data)

        code = 0
        try:
            event = _kill_before(kill_before) if kill_before is not None else lambda: None

            def ack(text: str) -> None:
                event()
                say(b"a", text)

            work(ack)
        except BaseException:
            say(b"e", traceback.format_exc())
            code = 1
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    acknowledged, failure = [], ""
    while data:
        (length,) = struct.unpack(">I", data[:4])
        kind, text, data = data[4:5], data[5 : 4 + length].decode(), data[4 + length :]
        if kind == b"a":
            acknowledged.append(text)
        else:
            failure = text
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or os.WIFEXITED(status), status
    return Outcome(acknowledged, killed, failure)


def _kill_before(number: int) -> Callable[[], None]:
    """Install the hooks in this process. Returns the function that counts one change."""
    left = number
    locks: set[int] = set()

    def event() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not (args and isinstance(args[0], int) and args[0] in locks):
                event()
            return real(*args, **kwargs)

        return call

    real_open = os.open

    def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        lock = str(path).endswith("lock")
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and not lock:
            event()
        fd = real_open(path, flags, *args, **kwargs)
        (locks.add if lock else locks.discard)(fd)
        return fd

    def statement(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, sql: str, *args: Any) -> Any:
            if not sql.lstrip().startswith(_READS):
                event()
            return real(self, sql, *args)

        return call

    for name in _CHANGES:
        setattr(os, name, counted(getattr(os, name)))
    os.open = opened  # type: ignore[assignment]
    for name in ("execute", "executemany"):
        setattr(connection._Cursor, name, statement(getattr(connection._Cursor, name)))
    sys.addaudithook(lambda name, args: event() if name == "open" and _by_name(args) else None)
    return event


def _by_name(args: tuple[Any, ...]) -> bool:
    """Return whether an audit event is of the builtin open for writing; os.open is counted where it is
    called."""
    mode = args[1]
    return isinstance(mode, str) and any(letter in mode for letter in "wax+") and not isinstance(args[0], int)


def every_boundary(
    work: Callable[[Lab, Ack], None], start: Callable[[int], Lab], *, step: int = 1, first: int = 0
) -> Iterator[tuple[Lab, Outcome]]:
    """Kill `work` before its change number first, first + step, ..., each on a fresh copy, until it
    completes.

    A short run uses a three times larger step (tests/support/effort.py). With IPFSMEM_EVERY_BOUNDARY in
    the environment every change is tried, which takes minutes."""
    if os.environ.get("IPFSMEM_EVERY_BOUNDARY"):
        step, first = 1, 0
    elif not effort.THOROUGH:
        step = 3 * step + 2
    number = first
    while True:
        lab = start(number)
        outcome = in_child(lambda ack, lab=lab: work(lab, ack), kill_before=number)  # type: ignore[misc]
        assert not outcome.failure, outcome.failure
        yield lab, outcome
        shutil.rmtree(lab.folder)
        if not outcome.killed:
            return
        number += step


# -- checks -----------------------------------------------------------------------------------------------------------


def texts(memory: Memory) -> Texts:
    """Return every available text, alternatives included, without headers."""
    found: Texts = {}
    store = memory.replica.store
    with memory.replica.reading():
        for key, entry in store.memories():
            for value in entry.values():
                data = store.body(f"m/{key}", value)
                if data is not None:
                    found.setdefault(key, set()).add(body_of(data))
    return found


def body_of(data: bytes) -> str:
    """Return the text below the header of a memory file."""
    return data.decode().split("---\n", 2)[-1].strip()


def merged(*many: Texts) -> Texts:
    """Return all texts of several vaults."""
    found: Texts = {}
    for one in many:
        for key, bodies in one.items():
            found.setdefault(key, set()).update(bodies)
    return found


def lacks(held: Texts, wanted: Texts) -> Texts:
    """Return what is wanted and not present."""
    return {
        key: bodies - held.get(key, set()) for key, bodies in wanted.items() if bodies - held.get(key, set())
    }


def assert_sound(memory: Memory) -> None:
    """Check that every state node loads, every live text opens, and both folders equal a rebuild from the
    same rows."""
    assert [f for f in memory.check() if f.level == "error"] == []
    replica = memory.replica
    with replica.reading():
        for name, entry in replica.store.entries():
            for value in entry.values():
                assert value.body is None or replica.store.body(name, value) is not None, name
    if replica.ring is None and replica.config.vault is not None:
        return
    with replica.transaction():
        replica.store.checkpoint(folders=True)
        assert_folders(memory)


def assert_folders(memory: Memory) -> None:
    """Check that the folders `s/` and `o/`, updated path by path, equal rebuilt ones."""
    replica, run = memory.replica, memory.replica.db.connection
    kept = run.execute("SELECT path, cid, size FROM folders ORDER BY path").fetchall()
    counted = run.execute("SELECT digest, size, refs FROM objects ORDER BY digest").fetchall()
    run.execute("DELETE FROM objects")
    run.execute("DELETE FROM folders")
    deltas: dict[bytes, tuple[int, int]] = {}
    from ipfsmem.device.state import locations

    for _, entry in replica.store.entries():
        for loc in locations(entry):
            digest = bytes.fromhex(loc.sha)
            deltas[digest] = (loc.size, deltas.get(digest, (0, 0))[1] + 1)
    root_folders.change_objects(replica.db, deltas)
    root_folders.state_folder(replica.db, replica.codec.extension, None)
    assert run.execute("SELECT path, cid, size FROM folders ORDER BY path").fetchall() == kept
    assert run.execute("SELECT digest, size, refs FROM objects ORDER BY digest").fetchall() == counted


def converge(*memories: Memory) -> None:
    """Sync until no device receives anything; check that all are equal."""
    for _ in range(2):
        for memory in memories:
            report = sync(memory)
            assert report.not_fetched == 0, report
    first = memories[0]
    for other in memories[1:]:
        assert texts(other) == texts(first)
        assert other.files() == first.files()
        assert other.timeline.read() == first.timeline.read()
        assert other.status().root == first.status().root
    for memory in memories:
        assert [f for f in memory.check() if f.level == "error"] == []


@contextlib.contextmanager
def closing(*memories: Memory) -> Iterator[tuple[Memory, ...]]:
    """Close all at the end."""
    try:
        yield memories
    finally:
        for memory in memories:
            memory.close()
