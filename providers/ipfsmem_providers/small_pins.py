"""Stores small objects at a service that stores and pins trees only.

Each is a folder with one file, pinned under a name for its box. The file's name, `<size>.<box>.<label>.<digest>`, says what it is,
so a box is listed by its pins and their folders; a folder is read once, as it never changes. The box is in it because some services
keep one name for a root.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final

from ipfsmem.content.cid import CID
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.limits import Limits
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import build_tree
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, NotFoundError, ProviderRefused
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import MAX_BATCH, Pin, same_root
from ipfsmem.provider.small_objects import (
    LISTED_MAX,
    SMALL_MAX,
    is_small,
    listed,
    parse_small_name,
    require_boxes,
    require_names,
    require_small,
)

#: The prefix of the names of these pins.
PREFIX: Final = "ipfsmem-small-"
#: One folder with one file, as any service may lay it out.
_LIMITS: Final = Limits(blocks=64, total_bytes=2 * SMALL_MAX, entries=2, file_bytes=SMALL_MAX, depth=2)
#: Folders whose names are kept in memory, and objects that are read at once.
_KNOWN_MAX: Final = 4 * LISTED_MAX
_AT_ONCE: Final = 8


class PinnedSmallObjects(ProviderBase):
    """A provider that accepts uploads, lists, unpins, and serves blocks. See `SmallArea` for the methods."""

    @cached_property
    def _folders(self) -> dict[CID, tuple[str, int] | None]:
        """Name and size of the object in each folder; None for any other folder."""
        return {}

    async def put_small(self, name: str, data: bytes) -> None:
        """See `SmallArea`."""
        require_small(name, data)
        box, _, rest = name.partition("/")
        tree = build_tree({f"{len(data)}.{box}.{rest}": data})
        pin_name = f"{PREFIX}{box}"
        root = same_root(tree.cid, await self.put_car(tree.cid, tree.blocks, name=pin_name), self)
        if self.capabilities.pin:
            await self.pin(root, pin_name)

    async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
        """See `SmallArea`. Each box costs a list of pins."""
        require_boxes(boxes)
        found = await self._pinned(boxes)
        return listed(((name, size) for name, (size, _) in found.items()), boxes)

    async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
        """See `SmallArea`."""
        require_names(names)
        pinned = await self._pinned({name.partition("/")[0] for name in names})
        slots = asyncio.Semaphore(_AT_ONCE)
        found: dict[str, bytes] = {}

        async def read(name: str, pins: Sequence[Pin]) -> None:
            for pin in pins:  # the same object may be in a damaged folder too
                async with slots:
                    data = await self._content(pin.cid)
                if is_small(name, data):
                    found[name] = data
                    return

        await asyncio.gather(
            *(read(name, pinned[name][1]) for name in dict.fromkeys(names) if name in pinned)
        )
        return {name: found[name] for name in names if name in found}

    async def remove_small(self, names: Collection[str]) -> None:
        """See `SmallArea`."""
        require_names(names)
        pinned = await self._pinned({name.partition("/")[0] for name in names})
        for name in names:
            for pin in pinned[name][1] if name in pinned else ():
                await self.unpin(pin)

    async def _pinned(self, boxes: Collection[str]) -> dict[str, tuple[int, list[Pin]]]:
        """Return the size and the pins of each object in these boxes."""
        found: dict[str, tuple[int, list[Pin]]] = {}
        for box in sorted(boxes):
            pins = (await self.pins(f"{PREFIX}{box}"))[:LISTED_MAX]
            await self._read_folders([pin.cid for pin in pins])
            for pin in pins:
                known = self._folders.get(pin.cid)
                if known is not None and known[0].startswith(f"{box}/"):
                    found.setdefault(known[0], (known[1], []))[1].append(pin)
        return found

    async def _read_folders(self, roots: Sequence[CID]) -> None:
        """Read the folders that were not read before; those that are not served yet are read again next time."""
        unknown = list(dict.fromkeys(root for root in roots if root not in self._folders))
        if len(self._folders) + len(unknown) > _KNOWN_MAX:
            self._folders.clear()
            unknown = list(dict.fromkeys(roots))
        for start in range(0, len(unknown), MAX_BATCH):
            part = unknown[start : start + MAX_BATCH]
            for root, block in (await self.get_blocks(part)).items():
                self._folders[root] = _object_in(root, block)

    async def _content(self, root: CID) -> bytes:
        """Return the file in a folder; nothing if it cannot be read."""
        try:
            files = await drive_async(Reader(_LIMITS).read_tree(root), self.get_blocks)
        except (BlockError, FormatError, LimitError, NotFoundError, ProviderRefused):
            return b""
        return next(iter(files.values()), b"")


def _object_in(root: CID, block: bytes) -> tuple[str, int] | None:
    """Return name and size of the object in a folder, by the name of its one file."""
    try:
        verify_block(root, block)
        links = decode_node(block).links
    except (BlockError, FormatError, LimitError):
        return None
    if len(links) != 1:
        return None
    size, _, rest = links[0].name.partition(".")
    name = rest.replace(".", "/", 1)
    if not size.isdecimal() or len(size) > 7 or parse_small_name(name) is None:
        return None
    if not 0 < int(size) <= SMALL_MAX:  # it must not hide the object that has this name
        return None
    return name, int(size)
