"""Copy a vault's small objects to another provider: they are in no root, so a move of roots leaves them behind."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from ipfsmem.errors import ProviderError
from ipfsmem.provider.contract import Provider, SmallArea, small_area
from ipfsmem.provider.small_objects import SMALL_BATCH, small_box


class SmallCopies(NamedTuple):
    """The number of small objects that were copied, and of those that could not be."""

    copied: int
    left: int


async def copy_small_objects(anchor: bytes, sources: Sequence[Provider], target: Provider) -> SmallCopies:
    """Copy the objects in the box of the vault with this anchor that `target` lacks.

    A source that does not list is left out, as it may be gone. What it lists and does not have is not there. Raises
    the ProviderError of `target`.
    """
    box, area = small_box(anchor), small_area(target)
    there = set(await area.list_small([box])) if area is not None else set[str]()
    copied = 0
    left: set[str] = set()
    for source in filter(None, map(small_area, sources)):
        missing = [name for name in await _listed(source, box) if name not in there]
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
    return SmallCopies(copied, len(left - there))


async def _listed(source: SmallArea, box: str) -> list[str]:
    with contextlib.suppress(ProviderError):
        return [*await source.list_small([box])]
    return []
