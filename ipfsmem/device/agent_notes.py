"""Store the results of hooks and background syncs, for `status` and for the next session of an agent.

There are three small files in the folder of a vault: `hooks.json` for hooks, `background.json` for the syncs that
hooks start, and `syncing.json` for `sync --every`. They can be written while the keys are locked, so they contain
only times, names of errors, and keyed hashes of texts shown to sessions. They are written without fsync; a lost or
damaged file reads as empty.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TypeVar

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.device.atomic_files import read_file, write_atomic
from ipfsmem.device.lock import file_lock
from ipfsmem.device.wall_clock import now_ms
from ipfsmem.errors import IpfsmemError

_HOOKS = "hooks.json"
_BACKGROUND = "background.json"
_SYNCING = "syncing.json"
_MAX_BYTES = 64 * 1024
#: Maximum number of remembered sessions; the oldest is dropped.
MAX_SESSIONS = 32


class HookNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in milliseconds since 1970 UTC, 0 for never."""

    #: When a hook last found the keys locked; 0 once a hook opened the vault again.
    locked: int = 0
    #: When a hook last failed or timed out, and the name of the error.
    failed: int = 0
    failure: str = ""
    #: When each session was last shown memories, by the hash of its id; -1 for a session that began while keys were
    #: locked.
    sessions: dict[str, int] = {}
    #: A keyed hash of the text that each of these sessions was shown last.
    given: dict[str, str] = {}


class BackgroundNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in milliseconds since 1970 UTC, 0 for never."""

    #: When a sync last began, and when a sync last succeeded.
    tried: int = 0
    worked: int = 0
    #: When the current series of failures began, and the error of the last failure.
    failing: int = 0
    failure: str = ""
    #: When a sync last brought something new to this device.
    brought: int = 0


_Notes = TypeVar("_Notes", HookNotes, BackgroundNotes)


def hook_notes(folder: Path) -> HookNotes:
    """Return the notes of hooks in the folder of a vault."""
    return _read(folder / _HOOKS, HookNotes())


def background_notes(folder: Path) -> BackgroundNotes:
    """Return the notes of background syncs in the folder of a vault."""
    return _read(folder / _BACKGROUND, BackgroundNotes())


def syncing_notes(folder: Path) -> BackgroundNotes:
    """Return the notes of `sync --every` in the folder of a vault."""
    return _read(folder / _SYNCING, BackgroundNotes())


def note_hook(folder: Path, *, session: str = "", at: int = 0, given: str = "", **changes: int | str) -> None:
    """Record the result of a hook; a failure to record is ignored.

    `session`: hash of the id of the session that was shown memories. `at`: when, in milliseconds since 1970 UTC.
    `given`: a keyed hash of the text.
    """
    with contextlib.suppress(IpfsmemError), file_lock(folder / "hooks.lock", wait=0.1):
        before = hook_notes(folder)
        sessions, texts = before.sessions, before.given
        if session:
            newest = sorted(
                ((one, when) for one, when in sessions.items() if one != session), key=lambda one: one[1]
            )
            sessions = dict([*newest, (session, at)][-MAX_SESSIONS:])
            texts = {
                one: text for one, text in (texts | {session: given}).items() if text and one in sessions
            }
        _write(
            folder / _HOOKS,
            before,
            msgspec.structs.replace(before, sessions=sessions, given=texts, **changes),
        )


def note_background(folder: Path, **changes: int | str) -> None:
    """Record changes to the notes of a background sync; the caller must have their lock. A failure to record is
    ignored."""
    _note(folder / _BACKGROUND, **changes)


def note_attempt(folder: Path, error: Exception | None, *, brought: bool = False) -> None:
    """Record the end of a background sync, as `note_background` does. `brought`: the sync changed data on this
    device."""
    _note_attempt(folder / _BACKGROUND, error, brought)


def note_syncing(folder: Path, error: Exception | None, *, brought: bool = False) -> None:
    """Record the end of one sync of `sync --every`; arguments as for `note_attempt`."""
    if folder.is_dir():
        _note_attempt(folder / _SYNCING, error, brought)


def _note_attempt(path: Path, error: Exception | None, brought: bool) -> None:
    now, before = now_ms(), _read(path, BackgroundNotes())
    if error is None:
        _note(path, worked=now, failing=0, failure="", brought=now if brought else before.brought)
        return
    kind = error.kind if isinstance(error, IpfsmemError) else type(error).__name__
    # A first failure in the future means that the clock was set back since.
    since = before.failing if 0 < before.failing <= now else now
    _note(path, failing=since, failure=kind)


def _note(path: Path, **changes: int | str) -> None:
    with contextlib.suppress(IpfsmemError):
        before = _read(path, BackgroundNotes())
        _write(path, before, msgspec.structs.replace(before, **changes))


def _read(path: Path, empty: _Notes) -> _Notes:
    with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
        data = read_file(path, _MAX_BYTES)
        if data is not None:
            return read_json(data, type(empty))
    return empty


def _write(path: Path, before: msgspec.Struct, after: msgspec.Struct) -> None:
    if after != before:
        write_atomic(path, msgspec.json.encode(after), durable=False)
