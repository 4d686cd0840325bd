"""Parse and build entry names (format section 5).

The first part and the number of parts determine the kind of an entry. Do not test prefixes: a scope can be named `m`,
`t` or like a key. The default scope is "".
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import msgspec

from ipfsmem.bundle.keys import check_scope, is_key, is_scope
from ipfsmem.canonical import MAX_INT
from ipfsmem.errors import FormatError
from ipfsmem.lazy_pattern import lazy_pattern

#: First part of an entry name.
_MEMORY, SEGMENT, _CARD = "m", "t", "c"
#: Maximum length of an entry name, in characters.
_MAX_CHARACTERS = 256
_DEVICE = lazy_pattern(r"[0-9a-f]{16}")
_NUMBER = lazy_pattern(r"0|[1-9][0-9]{0,15}")
_DAY = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MARKERS = "m/mailbox/got-"
_MARKER = lazy_pattern(r"m/mailbox/got-([0-9a-f]{16})-(0|[1-9][0-9]{0,6})-(0|[1-9][0-9]{0,4})")


class MemoryName(msgspec.Struct, frozen=True, gc=False):
    """`m/<key>` or `m/<scope>/<key>`: the siblings of one memory."""

    scope: str
    key: str

    @property
    def entry(self) -> str:
        """Return the entry name."""
        return memory_entry(self.key, self.scope)


class SegmentName(msgspec.Struct, frozen=True, gc=False):
    """`t/<day>/<dev>/<i>` or `t/<scope>/<day>/<dev>/<i>`: segment i (from 0) of a device for a UTC day."""

    scope: str
    day: str
    dev: str
    i: int

    @property
    def entry(self) -> str:
        """Return the entry name."""
        return segment_entry(self.day, self.dev, self.i, self.scope)


class CardName(msgspec.Struct, frozen=True, gc=False):
    """`c/<scope>`: the card of a scope."""

    scope: str


EntryName = MemoryName | SegmentName | CardName


def memory_entry(key: str, scope: str = "") -> str:
    """Return the entry name of a memory; neither key nor scope is checked."""
    return f"m/{scope}/{key}" if scope else f"m/{key}"


def segment_entry(day: str, dev: str, i: int, scope: str = "") -> str:
    """Return the entry name of timeline segment i (from 0) of a device for a UTC day."""
    return f"t/{scope}/{day}/{dev}/{i}" if scope else f"t/{day}/{dev}/{i}"


def card_entry(scope: str) -> str:
    """Return the entry name of a scope's card. Raises KeyNameError for the default scope."""
    return f"c/{check_scope(scope)}"


def parse_entry(name: str) -> EntryName:
    """Parse an entry name. Raises FormatError."""
    parsed = _parse(name)
    if parsed is None:
        raise FormatError(f"{name!r} is not the name of an entry")
    return parsed


@lru_cache(maxsize=4096)
def check_entry_name(name: str) -> str:
    """Return `name` if it is valid. Raises FormatError."""
    parse_entry(name)
    return name


def memory_name(name: str) -> MemoryName | None:
    """Parse the entry name of a memory; None for any other entry."""
    if name[:1] != _MEMORY:
        return None
    if "/" not in (key := name[2:]) and name[1:2] == "/":  # the most frequent case: faster than the cache
        return MemoryName("", key) if is_key(key) else None
    parsed = _parse(name)
    return parsed if isinstance(parsed, MemoryName) else None


def marker_parts(name: str) -> tuple[str, int, int] | None:
    """Return device, week and number of a marker of admitted mailbox ops (format section 5.3); None for any other entry."""
    found = _MARKER.fullmatch(name) if name.startswith(_MARKERS) else None
    return None if found is None else (found[1], int(found[2]), int(found[3]))


def segment_name(name: str) -> SegmentName | None:
    """Parse the entry name of a segment; None for any other entry."""
    parsed = _parse(name) if name[:1] == SEGMENT else None
    return parsed if isinstance(parsed, SegmentName) else None


def card_name(name: str) -> CardName | None:
    """Parse the entry name of a card; None for any other entry."""
    parsed = _parse(name) if name[:1] == _CARD else None
    return parsed if isinstance(parsed, CardName) else None


def scope_of(name: str) -> str:
    """Return the scope of a valid entry name."""
    parts = name.split("/")
    return parts[1] if len(parts) == {_MEMORY: 3, SEGMENT: 5, _CARD: 2}[parts[0]] else ""


def entry_context(name: str) -> str:
    """Return the context of the sealed object that holds a body of this entry (format section 3): all parts but the
    first."""
    return name.partition("/")[2]


def entry_display_name(name: str) -> str:
    """Return the entry's display name: `<key>` or `timeline/<day>`, each prefixed with `<scope>/`, or
    `scopes/<scope>`."""
    parsed = parse_entry(name)
    if isinstance(parsed, CardName):
        return f"scopes/{parsed.scope}"
    place = parsed.key if isinstance(parsed, MemoryName) else f"timeline/{parsed.day}"
    return f"{parsed.scope}/{place}" if parsed.scope else place


def _parse(name: str) -> EntryName | None:
    # Untrusted names can have any length and must not fill the cache.
    return _parsed(name) if len(name) <= _MAX_CHARACTERS else None


@lru_cache(maxsize=1024)  # one write parses the same name several times
def _parsed(name: str) -> EntryName | None:
    parts = name.split("/")
    first, count = parts[0], len(parts)
    if first == _MEMORY and count in (2, 3):
        scope = parts[1] if count == 3 else ""
        if is_key(parts[-1]) and (count == 2 or is_scope(scope)):
            return MemoryName(scope, parts[-1])
    elif first == SEGMENT and count in (4, 5):
        scope = parts[1] if count == 5 else ""
        day, dev, i = parts[-3:]
        if (
            _is_calendar_day(day)
            and _DEVICE.fullmatch(dev)
            and _NUMBER.fullmatch(i)
            and int(i) <= MAX_INT
            and (count == 4 or is_scope(scope))
        ):
            return SegmentName(scope, day, dev, int(i))
    elif first == _CARD and count == 2 and is_scope(parts[1]):
        return CardName(parts[1])
    return None


@lru_cache(maxsize=4096)
def _is_calendar_day(text: str) -> bool:
    if _DAY.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
