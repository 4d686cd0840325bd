"""Names and limits of small objects: what a provider stores by itself, outside of packs and trees."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.lazy_pattern import lazy_pattern

#: Maximum bytes of one object; none is empty.
SMALL_MAX: Final = 1024 * 1024
#: Maximum number of names in one call of `get_small` and `remove_small`, and of boxes in one of `list_small`.
SMALL_BATCH: Final = 64
#: Maximum number of objects of one box that are listed: the first ones by name.
LISTED_MAX: Final = 10_000
_LABEL_MAX: Final = 64
_BOX: Final = lazy_pattern(r"[a-z0-9]{16,32}")
_NAME: Final = lazy_pattern(r"([a-z0-9]{16,32})/([a-z0-9-]+(?:\.[a-z0-9-]+)*)\.([0-9a-f]{64})")


class SmallName(NamedTuple):
    """The parts of a name: `<box>/<label>.<digest>`."""

    box: str
    label: str
    digest: str  #: SHA-256 of the content, 64 hex digits


def small_box(anchor: bytes, agent: str = "") -> str:
    """Return the box of the vault with this anchor's public key, or that of one of its agents, by id."""
    return hashlib.sha256(b"ipfsmem/v1/small\0" + anchor + bytes.fromhex(agent)).hexdigest()[:32]


def small_name(box: str, label: str, data: bytes) -> str:
    """Return the name of an object. Raises FormatError for a bad box or label, and for no data or too much."""
    name = f"{box}/{label}.{hashlib.sha256(data).hexdigest()}"
    if parse_small_name(name) is None:
        raise FormatError(f"{box[:40]}/{label[:80]} cannot name a small object")
    if not 0 < len(data) <= SMALL_MAX:
        raise FormatError(f"a small object has 1 to {SMALL_MAX:,} bytes, not {len(data):,}")
    return name


def parse_small_name(name: str) -> SmallName | None:
    """Return the parts of a name; None for any other text."""
    match = _NAME.fullmatch(name)
    if match is None or len(match[2]) > _LABEL_MAX:
        return None
    return SmallName(match[1], match[2], match[3])


def is_small(name: str, data: bytes) -> bool:
    """Tell whether `data` is the content of the object with this name."""
    parsed = parse_small_name(name)
    return (
        parsed is not None
        and 0 < len(data) <= SMALL_MAX
        and hashlib.sha256(data).hexdigest() == parsed.digest
    )


def require_boxes(boxes: Collection[str]) -> None:
    """Raise ProviderRefused for what is not the name of a box, and for too many."""
    if len(boxes) > SMALL_BATCH:
        raise ProviderRefused(f"at most {SMALL_BATCH} boxes are listed together, not {len(boxes)}")
    for box in boxes:
        if _BOX.fullmatch(box) is None:
            raise ProviderRefused(f"{box[:40]!a} is not a box of small objects")


def require_names(names: Collection[str]) -> None:
    """Raise ProviderRefused for what is not the name of a small object, and for too many."""
    if len(names) > SMALL_BATCH:
        raise ProviderRefused(f"at most {SMALL_BATCH} small objects are named together, not {len(names)}")
    for name in names:
        if parse_small_name(name) is None:
            raise ProviderRefused(f"{name[:80]!a} is not the name of a small object")


def require_small(name: str, data: bytes) -> None:
    """Raise ProviderRefused unless `data` is the content of the object with this name."""
    require_names([name])
    if not is_small(name, data):
        raise ProviderRefused(f"{len(data):,} bytes are not the small object {name}")


def listed(found: Iterable[tuple[str, int]], boxes: Collection[str]) -> dict[str, int]:
    """Return the objects of `boxes` among names and sizes that somebody lists, sorted by name, at most LISTED_MAX of a box."""
    counts = dict.fromkeys(boxes, 0)
    kept: dict[str, int] = {}
    for name, size in sorted(found):
        parsed = parse_small_name(name)
        if parsed is not None and 0 < size <= SMALL_MAX and counts.get(parsed.box, LISTED_MAX) < LISTED_MAX:
            counts[parsed.box] += 1
            kept[name] = size
    return kept
