"""What sessions of agents were shown already, so that the same text is not put before a model twice.

Of each session a file in the folder of a memory holds keyed hashes of what it was shown, and no word: `shown.json`. It is written
without waiting for the disk, is lost without harm, and what is damaged is as if it were not there: then something is shown again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.device.atomic_files import read_file, write_atomic
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import IpfsmemError

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica

_FILE = "shown.json"
_MAX = 1024 * 1024
#: Digits of a mark; sessions that are remembered, and marks of one: the oldest go.
_DIGITS = 12
MAX_SESSIONS, MAX_MARKS = 64, 400


class _Shown(msgspec.Struct, frozen=True):
    #: By the hash of a session's name, the one that was shown something last at the end: the marks, one after the other.
    sessions: dict[str, str] = {}


def mark_of(replica: Replica, *what: str) -> str:
    """What stands for a text that is shown: only who has this device's keys can tell which."""
    key = replica.device.row_key if replica.config.mode.sealed else b""
    said = msgspec.json.encode(what)
    return blake2b(said, digest_size=_DIGITS // 2, key=key, person=b"shown text").hexdigest()


def session_mark(replica: Replica, session: str) -> str:
    """What stands for a session that a person or program called so."""
    called = session.encode(
        errors="backslashreplace"
    ).decode()  # any name, also one that holds half a character
    return f"n{mark_of(replica, 'session', called)}"


class ShownTexts:
    """What the sessions that somebody named were shown of one memory: beside it, or in RAM where nothing lies on a disk."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._held: dict[str, frozenset[str]] = {}

    def to(self, session: str) -> frozenset[str]:
        """The marks of what it was shown."""
        folder, mark = self._replica.folder, session_mark(self._replica, session)
        return self._held.get(mark, frozenset()) if folder is None else shown_to(folder, mark)

    def note(self, session: str, marks: Iterable[str]) -> None:
        """Note that it was shown these."""
        folder, mark = self._replica.folder, session_mark(self._replica, session)
        if folder is None:
            self._held[mark] = self._held.get(mark, frozenset()) | set(marks)
        elif not self._replica.read_only:
            note_shown(folder, mark, marks)

    def forget(self, session: str) -> None:
        """Note that it has nothing of that before it any more."""
        folder, mark = self._replica.folder, session_mark(self._replica, session)
        self._held.pop(mark, None)
        if folder is not None and not self._replica.read_only:
            forget_shown(folder, mark)


def shown_to(folder: Path, session: str) -> frozenset[str]:
    """The marks of what a session was shown."""
    marks = _read(folder).sessions.get(session, "")
    return frozenset(marks[at : at + _DIGITS] for at in range(0, len(marks), _DIGITS))


def note_shown(folder: Path, session: str, marks: Iterable[str]) -> None:
    """Note that a session was shown these. Failing to note it fails nothing."""
    new = list(dict.fromkeys(marks))
    if not new or not session:
        return
    with contextlib.suppress(IpfsmemError), file_lock(folder / "shown.lock", wait=0.1):
        sessions = dict(_read(folder).sessions)
        before = sessions.pop(session, "")
        kept = [before[at : at + _DIGITS] for at in range(0, len(before), _DIGITS)]
        kept = [*(mark for mark in kept if mark not in new), *new][-MAX_MARKS:]
        _write(folder, dict([*sessions.items(), (session, "".join(kept))][-MAX_SESSIONS:]))


def forget_shown(folder: Path, session: str) -> None:
    """Note that a session has nothing before it any more of what it was shown. Failing to note it fails nothing."""
    if session not in _read(folder).sessions:
        return
    with contextlib.suppress(IpfsmemError), file_lock(folder / "shown.lock", wait=0.5):
        _write(folder, {one: marks for one, marks in _read(folder).sessions.items() if one != session})


def _read(folder: Path) -> _Shown:
    with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
        data = read_file(folder / _FILE, _MAX)
        if data is not None:
            return read_json(data, _Shown)
    return _Shown()


def _write(folder: Path, sessions: dict[str, str]) -> None:
    write_atomic(folder / _FILE, msgspec.json.encode(_Shown(sessions)), durable=False)
