"""Copy a vault's small objects to another provider: they are in no root, so a move of roots leaves them behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ipfsmem.errors import ProviderError
from ipfsmem.provider.contract import Provider, SmallArea, small_area
from ipfsmem.provider.small_objects import LISTED_MAX, SMALL_BATCH, small_box


class SmallCopies(NamedTuple):
    """The number of small objects that were copied, and of those that could not be. `unlisted`: sources that may have more."""

    copied: int
    left: int
    unlisted: tuple[str, ...]


async def copy_small_objects(
    anchor: bytes, sources: Sequence[Provider], target: Provider, agents: Iterable[str] = ()
) -> SmallCopies:
    """Copy the objects in the boxes of the vault with this anchor, and of its `agents` (ids), that `target` lacks.

    A source that does not list, or only the first LISTED_MAX, is reported. What it lists and does not have is not there.
    Raises the ProviderError of `target`.
    """
    boxes, area = [small_box(anchor), *(small_box(anchor, agent) for agent in agents)], small_area(target)
    there = set(await _list(area, boxes)) if area is not None else set[str]()
    copied = 0
    left: set[str] = set()
    unlisted: list[str] = []
    for provider in sources:
        source = small_area(provider)
        if source is None or provider is target:
            continue
        try:
            shown = await _list(source, boxes)
        except ProviderError:  # its objects are unknown; it may be gone for good
            unlisted.append(provider.name)
            continue
        if max(Counter(name.partition("/")[0] for name in shown).values(), default=0) >= LISTED_MAX:
            unlisted.append(provider.name)
        missing = [name for name in shown if name not in there]
        if area is None:
            left.update(missing)
            continue
        for start in range(0, len(missing), SMALL_BATCH):
            part = missing[start : start + SMALL_BATCH]
            try:
                found = await source.get_small(part)
            except ProviderError:  # another source may have them
                left.update(part)
                continue
            for name, data in found.items():
                await area.put_small(name, data)
                there.add(name)
                copied += 1
    return SmallCopies(copied, len(left - there), tuple(unlisted))


async def _list(area: SmallArea, boxes: Sequence[str]) -> list[str]:
    found: list[str] = []
    for start in range(0, len(boxes), SMALL_BATCH):
        found += await area.list_small(boxes[start : start + SMALL_BATCH])
    return found
