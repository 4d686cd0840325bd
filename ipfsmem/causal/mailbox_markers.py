"""Read and write markers: memories that name the mailbox ops that full devices admitted (format section 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.causal.authorship import IsMine, is_own
from ipfsmem.causal.clock import ZERO
from ipfsmem.causal.entries import marker_parts, memory_entry
from ipfsmem.causal.value import LIVE, Entry, Value
from ipfsmem.errors import FormatError
from ipfsmem.lazy_pattern import lazy_pattern

#: Returns the body of a value of an entry; None if it is not on this device.
EntryBodies = Callable[[str, Value], bytes | None]

#: The scope of markers, and the `type` in their header.
MAILBOX: Final = "mailbox"
WEEK_MS: Final = 7 * 24 * 3600 * 1000
#: Number of weeks with markers whose markers a device keeps, and the age in milliseconds after which an op needs a
#: person's decision.
KEPT_WEEKS: Final = 18
MAX_OP_AGE_MS: Final = 90 * 24 * 3600 * 1000
#: Bytes of a full marker. Small, because each admission uploads one marker again.
FULL: Final = 32 * 1024
#: Tokens of a full marker.
FULL_TOKENS: Final = (FULL - 64) // 33

_TOKEN = lazy_pattern(r"[0-9a-f]{32}")


class MarkerName(msgspec.Struct, frozen=True):
    """`m/mailbox/got-<dev>-<week>-<i>`: marker i (from 0) of a device for a week, counted from 1970."""

    dev: str
    week: int
    i: int

    @property
    def entry(self) -> str:
        """Return the entry name."""
        return memory_entry(f"got-{self.dev}-{self.week}-{self.i}", MAILBOX)


class Marks(msgspec.Struct, frozen=True):
    """The content of the markers of a person's devices: the marks of admitted ops, and the entries whose ops are all
    admitted.

    `missing`: (name, body) of the markers that could not be read. If there is one, nothing may be admitted for this
    person.
    """

    tokens: frozenset[str] = frozenset()
    missing: tuple[tuple[str, str], ...] = ()

    def has_entry(self, sha: str) -> bool:
        """Tell whether every op of the entry with this SHA-256 is done: only then may it be deleted at a provider."""
        return entry_token(sha) in self.tokens


def entry_token(sha: str) -> str:
    """Return the token of an entry with this SHA-256."""
    return sha[:32]


def marker_name(name: str) -> MarkerName | None:
    """Parse the entry name of a marker; None for any other entry."""
    parts = marker_parts(name)
    return None if parts is None else MarkerName(*parts)


def is_marker(name: str, file: MemoryFile) -> bool:
    """Tell whether a memory is a marker; indexes, lists, contexts and plain folders omit it."""
    return file.type == MAILBOX and marker_name(name) is not None


def read_marks(
    entries: Mapping[str, Entry], bodies: EntryBodies, mine: IsMine, lost: Collection[str] = ()
) -> Marks:
    """Return the union of the markers written by devices of the person in `mine`. Malformed lines are ignored.

    `lost`: bodies of markers that the person declared lost; ops that only these name can be admitted again.
    """
    tokens: set[str] = set()
    missing: set[tuple[str, str]] = set()
    for name, entry in entries.items():
        if marker_name(name) is None:
            continue
        for dot, value in entry.items():
            if value.body is None or not is_own(dot, value.author, mine):
                continue
            data = bodies(name, value)
            if data is None:
                if value.body not in lost:
                    missing.add((name, value.body))
            else:
                tokens.update(tokens_of(data))
    return Marks(frozenset(tokens), tuple(sorted(missing)))


def tokens_of(data: bytes) -> set[str]:
    """Return the tokens of a marker's text; an empty set if the text is not a marker."""
    try:
        file = parse_memory(data)
    except FormatError:
        return set()
    return set(filter(_TOKEN.fullmatch, file.body.split("\n"))) if file.type == MAILBOX else set()


def marker_text(tokens: Iterable[str]) -> bytes:
    """Return the text of a marker."""
    return render_memory(MemoryFile({"type": MAILBOX}, "\n".join(sorted(tokens))))


class MarkerWrite(NamedTuple):
    """A marker to write: its entry, the own dots that it replaces, its value and its text."""

    name: str
    replaces: tuple[str, ...]
    value: Value
    text: bytes


def marker_writes(
    tokens: Iterable[str], dev: str, week: int, entry_of: Callable[[str], Entry], bodies: EntryBodies
) -> Iterator[MarkerWrite]:
    """Yield the markers to write so that they name these tokens: the first of the week with room, then new ones.

    Only values of the device itself are extended, since other members can write any value under the name of its
    marker.
    """
    left, i = sorted(tokens), 0
    while left:
        name = MarkerName(dev, week, i).entry
        i += 1
        held = {dot: bodies(name, value) for dot, value in entry_of(name).items() if dot[:16] == dev}
        known = set[str]().union(*(tokens_of(data) for data in held.values() if data is not None))
        room = FULL_TOKENS - len(known)
        if room <= 0 or None in held.values():
            continue
        text = marker_text(known.union(left[:room]))
        left = left[room:]
        value = Value(b=(), body=sha256(text).hexdigest(), h=ZERO, kind=LIVE)
        yield MarkerWrite(name, tuple(sorted(held)), value, text)


def stale_markers(names: Iterable[str], dev: str) -> list[str]:
    """Return the markers of a device that it may delete: those before the last KEPT_WEEKS weeks with markers.

    At least that many weeks have passed, even if the clock is wrong, so the ops that these name are too old to be
    admitted again.
    """
    named = [
        (name, marker) for name in names if (marker := marker_name(name)) is not None and marker.dev == dev
    ]
    kept = sorted({marker.week for _, marker in named})[-KEPT_WEEKS:]
    return sorted(name for name, marker in named if marker.week not in kept)
