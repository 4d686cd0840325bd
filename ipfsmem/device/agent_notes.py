"""What the hooks of agents' programs and the syncs beside them noted, for `status` and for the next session.

Small files in the folder of a memory, which can be written while its keys are locked: so they hold moments and the names of
errors, and no word, path or address. `hooks.json` is written by hooks, `background.json` by the sync beside them, `syncing.json` by
`sync --every`, as the service runs it. Of what a session was given there is a keyed hash. They are written without
waiting for the disk, are lost without harm, and what is damaged is as if it were not there.
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
_MAX = 64 * 1024
#: Sessions that are remembered; the oldest goes.
MAX_SESSIONS = 32


class HookNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Moments in milliseconds since 1970 UTC, 0 for never."""

    #: When a hook last found the keys locked, and nothing has opened the memory for one since.
    locked: int = 0
    #: When a hook last failed, or gave up because it took too long, and by which error.
    failed: int = 0
    failure: str = ""
    #: When each session was last given what is here, by the hash of its id; -1 for one that began while the keys were locked.
    sessions: dict[str, int] = {}
    #: A keyed hash of the text that each of these sessions was given last.
    given: dict[str, str] = {}


class BackgroundNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Moments in milliseconds since 1970 UTC, 0 for never."""

    #: When a sync last began, and when one last worked.
    tried: int = 0
    worked: int = 0
    #: Since when none has worked, and the error of the last.
    failing: int = 0
    failure: str = ""
    #: When one last brought something that was not here.
    brought: int = 0


_Notes = TypeVar("_Notes", HookNotes, BackgroundNotes)


def hook_notes(folder: Path) -> HookNotes:
    """What hooks noted of the memory in a folder."""
    return _read(folder / _HOOKS, HookNotes())


def background_notes(folder: Path) -> BackgroundNotes:
    """What syncs beside agents noted of the memory in a folder."""
    return _read(folder / _BACKGROUND, BackgroundNotes())


def syncing_notes(folder: Path) -> BackgroundNotes:
    """What `sync --every` noted of the memory in a folder."""
    return _read(folder / _SYNCING, BackgroundNotes())


def note_hook(folder: Path, *, session: str = "", at: int = 0, given: str = "", **changes: int | str) -> None:
    """Note something of a hook. `session`: the hash of one that was given what is here, `at` when, `given`: a keyed hash of that.
    Failing to note it fails nothing."""
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
    """Note something of a sync beside an agent; only the one that holds the lock of these syncs may. Failing to note it fails nothing."""
    _note(folder / _BACKGROUND, **changes)


def note_attempt(folder: Path, error: Exception | None, *, brought: bool = False) -> None:
    """Note how a sync beside an agent ended, as `note_background`. `brought`: it brought something that was not here."""
    _note_attempt(folder / _BACKGROUND, error, brought)


def note_syncing(folder: Path, error: Exception | None, *, brought: bool = False) -> None:
    """Note how one sync of `sync --every` ended."""
    if folder.is_dir():
        _note_attempt(folder / _SYNCING, error, brought)


def _note_attempt(path: Path, error: Exception | None, brought: bool) -> None:
    now, before = now_ms(), _read(path, BackgroundNotes())
    if error is None:
        _note(path, worked=now, failing=0, failure="", brought=now if brought else before.brought)
        return
    kind = error.kind if isinstance(error, IpfsmemError) else type(error).__name__
    # A first failure in the future is one of a clock that was set back.
    since = before.failing if 0 < before.failing <= now else now
    _note(path, failing=since, failure=kind)


def _note(path: Path, **changes: int | str) -> None:
    with contextlib.suppress(IpfsmemError):
        before = _read(path, BackgroundNotes())
        _write(path, before, msgspec.structs.replace(before, **changes))


def _read(path: Path, empty: _Notes) -> _Notes:
    with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
        data = read_file(path, _MAX)
        if data is not None:
            return read_json(data, type(empty))
    return empty


def _write(path: Path, before: msgspec.Struct, after: msgspec.Struct) -> None:
    if after != before:
        write_atomic(path, msgspec.json.encode(after), durable=False)
