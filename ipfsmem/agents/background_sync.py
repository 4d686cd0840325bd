"""Run the background sync, which a hook starts in a separate process (`agents/background_start.py`).

The hook's agent does not wait for the network. One background sync runs at a time per vault; a concurrent request
leaves a mark for one more sync. The process has a time limit and a low priority, and reports only in the vault's
notes (`device/agent_notes.py`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ipfsmem.agents.background_start import process_input
from ipfsmem.agents.vectors_apart import end_when_locked, ending_after, is_at
from ipfsmem.device.agent_notes import hook_notes, note_attempt, note_background, note_hook
from ipfsmem.device.lock import file_lock
from ipfsmem.device.wall_clock import now_ms
from ipfsmem.errors import IpfsmemError, LockedError, NotFoundError, PassphraseError
from ipfsmem.locations import BACKGROUND_LOCK, vault_folder

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Time limit of one sync, and of the process, in seconds.
PATIENCE = 120.0
_END = 400.0
#: Maximum syncs in a row, if hooks request more meanwhile.
_MAX_SYNCS = 3
_AGAIN_FILE = "background.again"


def run(vault_name: str, home: Path, given: bytes) -> None:
    """Scan linked folders, pull, merge and publish. Raises nothing: the notes record the result."""
    place = vault_folder(home, vault_name)
    if not place.is_dir():
        return
    with ending_after(_END):
        _syncs(vault_name, home, place, given)


def _syncs(vault_name: str, home: Path, place: Path, given: bytes) -> None:
    folder, passphrase = process_input(given, "folder"), process_input(given, "passphrase") or None
    again, lock = place / _AGAIN_FILE, place / BACKGROUND_LOCK
    for _ in range(_MAX_SYNCS):
        if passphrase is not None and not lock.exists():
            break  # locked since it was started
        with contextlib.suppress(OSError):
            again.touch(0o600)
        try:
            with file_lock(lock, wait=0), _ending_when_locked(lock):
                if again.exists():
                    again.unlink(missing_ok=True)
                    _once(vault_name, home, place, folder, passphrase)
        except LockedError:
            break  # the holder sees the mark
        except (IpfsmemError, OSError):
            break
        if not again.exists():
            break


@contextlib.contextmanager
def _ending_when_locked(lock: Path) -> Iterator[None]:
    """End this process if `ipfsmem lock` deletes the lock file while the block runs."""
    mine, done = lock.stat().st_ino, threading.Event()
    watching = (lambda: is_at(lock, mine), lambda: os._exit(PassphraseError.exit_code), done)
    threading.Thread(target=end_when_locked, args=watching, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _once(vault_name: str, home: Path, place: Path, folder: str, passphrase: str | None) -> None:
    import asyncio  # not for the hook, which only starts this in a separate process

    note_background(place, tried=now_ms())
    error: Exception | None = None
    try:
        brought = asyncio.run(asyncio.wait_for(_sync(vault_name, home, folder, passphrase), PATIENCE))
    except NotFoundError:
        return  # no vault has that name
    except Exception as caught:  # status shows our bugs too
        error, brought = caught, False
    if isinstance(error, PassphraseError):
        note_hook(place, locked=now_ms())
    elif hook_notes(place).locked:
        note_hook(place, locked=0)
    note_attempt(place, error, brought=brought)


async def _sync(vault_name: str, home: Path, folder: str, passphrase: str | None) -> bool:
    """Sync once. Tell whether that changed entries. An unpublished vault only scans its folders."""
    from ipfsmem.memory import Memory  # hooks open no vault at most events

    async with await Memory.aload(vault_name, home=home, passphrase=passphrase) as memory:
        _look_at_project(memory, folder)
        if not memory.mode.published or not memory.replica.config.providers:
            memory.folders.scan()
            _finish(memory, folder)
            return False
        _make_ready(memory, folder)  # a prompt waits for it, and a sync may take long, or fail
        report = await memory.sync()
        _finish(memory, folder)
        return bool(report.entries_changed)


def _finish(memory: Memory, folder: str) -> None:
    """Do the work that exceeds a hook's time limit. Errors of the index are ignored: prompts get memories without it."""
    dream_if_due(memory)
    _make_ready(memory, folder)


def _make_ready(memory: Memory, folder: str) -> None:
    from ipfsmem.agents.session_text import make_ready

    with contextlib.suppress(IpfsmemError):
        make_ready(memory, folder)


def dream_if_due(memory: Memory) -> None:
    """Run an automatic dream if enabled and due. A failure is only recorded for `dream status`. The next sync publishes the
    result."""
    from ipfsmem.operations.dream_runs import is_automatic

    with contextlib.suppress(IpfsmemError):
        if is_automatic(memory.replica):
            memory.dreams.run_due()


def _look_at_project(memory: Memory, folder: str) -> None:
    """Record an unconnected folder, and follow a moved one. Errors are ignored."""
    if not folder:
        return
    from ipfsmem.agents.adoption import connect_followed, follow
    from ipfsmem.agents.claude_folders import ClaudeHome
    from ipfsmem.agents.projects import find_connected
    from ipfsmem.device.project_folders import note_unconnected
    from ipfsmem.files.attaching import is_too_wide

    with contextlib.suppress(IpfsmemError, OSError):
        project, row = find_connected(memory, folder)
        if row is None and not is_too_wide(project.folder):
            if not connect_followed(memory, ClaudeHome.of(os.environ), project):
                note_unconnected(memory.replica, str(project.folder))
        elif (
            row is not None
            and row.path != str(project.folder)
            and not project.part
            and project.git_inode == row.git_inode != 0
        ):
            follow(memory, ClaudeHome.of(os.environ), project, row)
