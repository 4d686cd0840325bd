"""Small objects at a Kubo node: each is a pinned block, and its box, label and size are the name of the pin.

The digest in an object's name is that of its CID, so one list of pins shows a box, and a block is read by its name alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final

from ipfsmem.content.cid import CID, RAW, raw_cid
from ipfsmem.provider.contract import Block, Pin
from ipfsmem.provider.small_objects import SMALL_MAX, listed, parse_small_name
from ipfsmem_providers.kubo.blocks import Blocks
from ipfsmem_providers.kubo.pins import KuboPins

#: The prefix of the names of these pins.
PREFIX: Final = "ipfsmem-small-"


class KuboSmallObjects:
    """The small objects of one node; names were checked."""

    def __init__(
        self, pins: KuboPins, blocks: Blocks, send: Callable[[CID, Block, str], Awaitable[Pin]]
    ) -> None:
        """`send` stores a block and pins it under a name."""
        self._pins, self._blocks, self._send = pins, blocks, send

    async def put(self, name: str, data: bytes) -> None:
        """Store and pin an object."""
        parsed = parse_small_name(name)
        assert parsed is not None, "checked"
        cid = _cid(name)
        await self._send(cid, (cid, data), f"{PREFIX}{parsed.box}/{len(data)}.{parsed.label}")

    async def sizes(self, boxes: Collection[str]) -> dict[str, int]:
        """Return the objects of these boxes with their sizes, by one list."""
        found = await self._pinned(boxes)
        return listed(((name, size) for name, (size, _) in found.items()), boxes)

    async def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return those that are pinned; a node may keep a block long after its pin is removed."""
        cids = dict.fromkeys(map(_cid, names))
        blocks, there = await asyncio.gather(self._blocks.get([*cids]), self._pinned(_boxes(names)))
        return {name: blocks[cid] for name in names if name in there and (cid := _cid(name)) in blocks}

    async def remove(self, names: Collection[str]) -> None:
        """Remove the pins of these objects."""
        there = await self._pinned(_boxes(names))
        for name in names:
            if name in there:
                await self._pins.drop(there[name][1])

    async def _pinned(self, boxes: Collection[str]) -> dict[str, tuple[int, Pin]]:
        """Return the size and pin of each object in these boxes."""
        prefix = f"{PREFIX}{next(iter(boxes))}/" if len(boxes) == 1 else PREFIX
        found = {}
        for pin in await self._pins.beginning_with(prefix):
            box, _, rest = pin.name.removeprefix(PREFIX).partition("/")
            size, _, label = rest.partition(".")
            name = f"{box}/{label}.{pin.cid.digest.hex()}"
            usable = size.isdecimal() and len(size) < 8 and 0 < int(size) <= SMALL_MAX
            if usable and pin.cid.codec == RAW and box in boxes:
                found[name] = int(size), pin
        return found


def _boxes(names: Iterable[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}


def _cid(name: str) -> CID:
    return raw_cid(bytes.fromhex(name[-64:]))
