"""Read and write markers: memories that name the mailbox ops that full devices admitted (format section 5.3)."""

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

#: The scope of markers, and the `type` in their header.
MAILBOX: Final = "mailbox"
WEEK_MS: Final = 7 * 24 * 3600 * 1000
#: Weeks after which a marker may be deleted, and the age in milliseconds after which an op needs a person's decision.
KEPT_WEEKS: Final = 18
MAX_OP_AGE_MS: Final = 90 * 24 * 3600 * 1000
#: The week number of marks that are never deleted: marks of ops whose clock was ahead, so that their age is unknown.
FOREVER: Final = 0
#: Bytes of a full marker. Small, because each admission uploads one marker again.
FULL: Final = 32 * 1024
#: Tokens of a full marker.
FULL_TOKENS: Final = (FULL - 64) // 34

_KEY = lazy_pattern(r"got-([0-9a-f]{16})-(0|[1-9][0-9]{0,6})-(0|[1-9][0-9]{0,4})")
_TOKEN = lazy_pattern(r"[=+][0-9a-f]{32}")


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
    """The tokens in the markers of a person's devices: `+` and the mark of an admitted op, or `=` and the mark of an
    entry whose new ops are all marked.

    `missing`: (name, body) of the markers that could not be read. If there is one, nothing may be admitted for this
    person.
    """

    tokens: frozenset[str] = frozenset()
    missing: tuple[tuple[str, str], ...] = ()

    def has_entry(self, agent: str, start: str, sha: str) -> bool:
        """Tell whether every new op of this entry is marked: only then may a provider's copy of it be deleted."""
        return entry_token(agent, start, sha) in self.tokens


def entry_token(agent: str, start: str, sha: str) -> str:
    """Return the token of an entry with this SHA-256.

    The token binds agent and start: an agent that claims to repeat another agent's ops marks none of those.
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
            data = bodies(value.body)
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


def marker_value(body: str) -> Value:
    """Return the value of a marker with this body. Its clock is ZERO, since markers need no order."""
    return Value(b=(), body=body, h=ZERO, kind=LIVE)


def stale_markers(names: Iterable[str], dev: str, now_ms: int) -> list[str]:
    """Return the markers that a device may delete: the ops that they name are too old to be admitted again."""
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
