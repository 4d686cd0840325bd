"""Markers of mailbox entries: memories that name the ops which full devices admitted (format section 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from ipfsmem import canonical
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.causal.authorship import IsMine, is_own
from ipfsmem.causal.clock import ZERO
from ipfsmem.causal.entries import MemoryName, memory_entry, memory_name
from ipfsmem.causal.value import LIVE, Entry, Value
from ipfsmem.causal.view import Bodies
from ipfsmem.errors import FormatError
from ipfsmem.lazy_pattern import lazy_pattern

#: The scope of markers, and the type in their header.
MAILBOX: Final = "mailbox"
WEEK_MS: Final = 7 * 24 * 3600 * 1000
#: Weeks after which a marker may be deleted; ops that are older than `ADMITTED_MS` are not admitted without a person.
KEPT_WEEKS: Final = 18
ADMITTED_MS: Final = 90 * 24 * 3600 * 1000
#: The week of marks that are kept for ever: those of ops whose clock was ahead, so that their age is unknown.
FOREVER: Final = 0
#: Bytes of a full marker: each admission uploads one again.
FULL: Final = 32 * 1024
#: Tokens of a full marker.
FULL_TOKENS: Final = (FULL - 64) // 34

_KEY = lazy_pattern(r"got-([0-9a-f]{16})-(0|[1-9][0-9]{0,6})-(0|[1-9][0-9]{0,4})")
_TOKEN = lazy_pattern(r"[=+][0-9a-f]{32}")


class MarkerName(msgspec.Struct, frozen=True):
    """`m/mailbox/got-<dev>-<week>-<i>`: marker i (from 0) that a device made in a week since 1970."""

    dev: str
    week: int
    i: int

    @property
    def entry(self) -> str:
        """Return the entry name."""
        return memory_entry(f"got-{self.dev}-{self.week}-{self.i}", MAILBOX)


class Marks(msgspec.Struct, frozen=True):
    """What the markers of a person's devices say: `=` and the mark of an entry whose new ops are all done, `+` and the mark of an op.

    `missing` are (name, body) of markers that could not be read: nothing may be admitted for this person then.
    """

    tokens: frozenset[str] = frozenset()
    missing: tuple[tuple[str, str], ...] = ()

    def has_entry(self, agent: str, start: str, sha: str) -> bool:
        """Tell whether every new op of this entry is done: only then may it be deleted at a provider."""
        return entry_token(agent, start, sha) in self.tokens


def entry_token(agent: str, start: str, sha: str) -> str:
    """Return the token of an entry with this SHA-256.

    It binds agent and start: an agent that claims to repeat another one's ops marks nothing of that one.
    """
    text = canonical.encode([agent, start, sha])
    return "=" + sha256(b"ipfsmem/v1/mailbox-done\0" + text).hexdigest()[:32]


def op_token(mark: str) -> str:
    """Return the token of an op with this mark."""
    return "+" + mark


def marker_name(name: str) -> MarkerName | None:
    """Parse the entry name of a marker; None for any other entry."""
    parsed = memory_name(name)
    if not isinstance(parsed, MemoryName) or parsed.scope != MAILBOX:
        return None
    found = _KEY.fullmatch(parsed.key)
    return MarkerName(found[1], int(found[2]), int(found[3])) if found else None


def is_marker(name: str, file: MemoryFile) -> bool:
    """Tell whether a memory is a marker; indexes, lists, contexts and plain folders omit it."""
    return file.type == MAILBOX and marker_name(name) is not None


def read_marks(
    entries: Mapping[str, Entry], bodies: Bodies, mine: IsMine, lost: Collection[str] = ()
) -> Marks:
    """Return the union of the markers that the devices of the person in `mine` wrote. Lines of another form are ignored.

    `lost`: bodies of markers that the person gave up; ops that only these named may be admitted again.
    """
    tokens: set[str] = set()
    missing: set[tuple[str, str]] = set()
    for name, entry in entries.items():
        if marker_name(name) is None:
            continue
        for dot, value in entry.items():
            if value.body is None or not is_own(dot, value.author, mine):
                continue
            data = bodies(value.body)
            if data is None:
                if value.body not in lost:
                    missing.add((name, value.body))
            else:
                tokens.update(tokens_of(data))
    return Marks(frozenset(tokens), tuple(sorted(missing)))


def tokens_of(data: bytes) -> set[str]:
    """Return the tokens of a marker's text; none when it is not one."""
    try:
        file = parse_memory(data)
    except FormatError:
        return set()
    return set(filter(_TOKEN.fullmatch, file.body.split("\n"))) if file.type == MAILBOX else set()


def marker_text(tokens: Iterable[str]) -> bytes:
    """Return the text of a marker."""
    return render_memory(MemoryFile({"type": MAILBOX}, "\n".join(sorted(tokens))))


def marker_value(body: str) -> Value:
    """Return the value of a marker with this body; it has no place among clocks."""
    return Value(b=(), body=body, h=ZERO, kind=LIVE)


def stale_markers(names: Iterable[str], dev: str, now_ms: int) -> list[str]:
    """Return the markers of a device that it may delete: what they name is too old to be admitted again."""
    week = now_ms // WEEK_MS
    named = ((name, marker_name(name)) for name in names)
    return sorted(
        name
        for name, marker in named
        if marker is not None
        and marker.dev == dev
        and marker.week != FOREVER
        and marker.week + KEPT_WEEKS < week
    )
