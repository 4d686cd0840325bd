"""Copy a vault's small objects to another provider: they are in no root, so a move of roots leaves them behind."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from ipfsmem.errors import ProviderError
from ipfsmem.provider.contract import Provider, SmallArea, small_area
from ipfsmem.provider.small_objects import SMALL_BATCH, small_box


class SmallCopies(NamedTuple):
    """Small objects that were copied, and those of a provider that answers that the target keeps nowhere."""

    copied: int
    left: int


async def copy_small_objects(anchor: bytes, sources: Sequence[Provider], target: Provider) -> SmallCopies:
    """Copy the objects in the box of the vault with this anchor that `target` lacks.

    A source that fails is left out, as it may be gone; what it lists and does not have is not copied. Raises the
    ProviderError of `target`.
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
            for name, data in (await _read(source, missing[start : start + SMALL_BATCH])).items():
                await area.put_small(name, data)
                there.add(name)
                copied += 1
    return SmallCopies(copied, len(left))


async def _listed(source: SmallArea, box: str) -> list[str]:
    with contextlib.suppress(ProviderError):
        return [*await source.list_small([box])]
    return []


async def _read(source: SmallArea, names: Sequence[str]) -> dict[str, bytes]:
    with contextlib.suppress(ProviderError):
        return await source.get_small(names)
    return {}
