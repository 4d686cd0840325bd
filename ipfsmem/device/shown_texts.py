"""Record the texts that sessions of agents were shown, so that a model does not read the same text twice.

`shown.json` in the folder of a vault holds keyed hashes by session, and no text. It is not synced to the disk; if it
is lost or damaged, texts are shown again.
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
#: Digits of a mark; maximum number of sessions, and of marks of one: the oldest are dropped.
_DIGITS = 12
MAX_SESSIONS, MAX_MARKS = 64, 400


class _ShownSessions(msgspec.Struct, frozen=True):
    #: The concatenated marks by the hash of a session's name, in the order of their last use.
    sessions: dict[str, str] = {}


def mark_of(replica: Replica, *what: str) -> str:
    """Return the mark of a text that is shown: only with this device's keys can it be matched to the text."""
    key = replica.device.row_key if replica.config.mode.sealed else b""
    encoded = msgspec.json.encode(what)
    return blake2b(encoded, digest_size=_DIGITS // 2, key=key, person=b"shown text").hexdigest()


def session_mark(replica: Replica, session: str) -> str:
    """Return the mark of a session that a person or program named."""
    called = session.encode(errors="backslashreplace").decode()  # any name, also one with a lone surrogate
    return f"n{mark_of(replica, 'session', called)}"


class ShownTexts:
    """The texts of one vault that named sessions were shown: in its folder, or in memory if nothing is on disk."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._held: dict[str, frozenset[str]] = {}

    def to(self, session: str) -> frozenset[str]:
        """Return the marks of the texts that a session was shown."""
        folder, mark = self._replica.folder, session_mark(self._replica, session)
        return self._held.get(mark, frozenset()) if folder is None else shown_to(folder, mark)

    def note(self, session: str, marks: Iterable[str]) -> None:
        """Record that a session was shown these."""
        folder, mark = self._replica.folder, session_mark(self._replica, session)
        if folder is None:
            self._held[mark] = self._held.get(mark, frozenset()) | set(marks)
        elif not self._replica.read_only:
            note_shown(folder, mark, marks)

    def forget(self, session: str) -> None:
        """Record that a session no longer has any of them in its context."""
        folder, mark = self._replica.folder, session_mark(self._replica, session)
        self._held.pop(mark, None)
        if folder is not None and not self._replica.read_only:
            forget_shown(folder, mark)


def shown_to(folder: Path, session: str) -> frozenset[str]:
    """Return the marks of the texts that a session was shown."""
    marks = _read(folder).sessions.get(session, "")
    return frozenset(marks[at : at + _DIGITS] for at in range(0, len(marks), _DIGITS))


def note_shown(folder: Path, session: str, marks: Iterable[str]) -> None:
    """Record that a session was shown these. A failure to record is ignored."""
    new = list(dict.fromkeys(marks))
    if not new or not session:
        return
    with contextlib.suppress(IpfsmemError), file_lock(folder / "shown.lock", wait=0.1):
        sessions = dict(_read(folder).sessions)
        before = sessions.pop(session, "")
        digests = [before[at : at + _DIGITS] for at in range(0, len(before), _DIGITS)]
        digests = [*(mark for mark in digests if mark not in new), *new][-MAX_MARKS:]
        _write(folder, dict([*sessions.items(), (session, "".join(digests))][-MAX_SESSIONS:]))


def forget_shown(folder: Path, session: str) -> None:
    """Record that a session no longer has in its context any text that it was shown. A failure to record is ignored."""
    if session not in _read(folder).sessions:
        return
    with contextlib.suppress(IpfsmemError), file_lock(folder / "shown.lock", wait=0.5):
        _write(folder, {one: marks for one, marks in _read(folder).sessions.items() if one != session})


def _read(folder: Path) -> _ShownSessions:
    with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
        data = read_file(folder / _FILE, _MAX)
        if data is not None:
            return read_json(data, _ShownSessions)
    return _ShownSessions()


def _write(folder: Path, sessions: dict[str, str]) -> None:
    write_atomic(folder / _FILE, msgspec.json.encode(_ShownSessions(sessions)), durable=False)
