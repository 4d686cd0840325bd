"""Finding stored objects by what they are called instead of by CID, where CIDs do not lead to them.

The format names an object after the SHA-256 of its bytes and puts it at `o/<digit>/.../<name>` (section 6.1); in plain
mode a body can also be a file under `memory/`. So a raw block that a gateway does not serve by its CID, or that the
provider cut into other blocks, is read as that file, and kept only when its hash is the one that was asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias, TypeVar

from ipfsmem.content.cid import CID, RAW, raw_cid
from ipfsmem.content.dagpb import TYPE_DIRECTORY, TYPE_HAMT, decode_node, decode_unixfs
from ipfsmem.errors import FormatError

_T = TypeVar("_T")
#: (root, path, whether only the first block) -> bytes, or None when it is not there.
Read: TypeAlias = Callable[[CID, tuple[str, ...], bool], Awaitable[bytes | None]]
Path: TypeAlias = tuple[str, ...]
_NAME: Final = 40
_DEPTH: Final = 16
_AT_ONCE: Final = 8
_LISTINGS_MAX: Final = 20_000
_SHA256: Final = b"\x12\x20"


class StoredFiles:
    """Remembers folders and files seen, so that each is asked for once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._folders: dict[tuple[CID, Path], frozenset[str]] = {}
        self._seen: dict[CID, tuple[CID, Path]] = {}  #: files under `memory/` by the raw CID of their bytes

    async def find(self, cids: Iterable[CID], roots: Iterable[CID]) -> dict[CID, bytes]:
        """Those of `cids` that are whole files under `roots`; checked."""
        wanted = {cid for cid in cids if cid.codec == RAW and cid.multihash[:2] == _SHA256}
        found: dict[CID, bytes] = {}
        for root in roots:
            top = await self._list(root, ()) if wanted else frozenset()
            if "o" in top:
                await self._objects(root, ("o",), wanted, found)
            elif "memory" in top:
                await self._objects(root, ("memory", ".ipfsmem", "o"), wanted, found)
                await self._bodies(root, wanted, found)
        return found

    async def _objects(self, root: CID, base: Path, wanted: set[CID], found: dict[CID, bytes]) -> None:
        async def one(cid: CID) -> None:
            name = cid.digest.hex()[:_NAME]
            path = base
            for digit in name[:_DEPTH]:
                listed = await self._list(root, path)
                if name in listed:
                    self._take(await self._read(root, (*path, name), False), {cid}, found)
                    return
                if digit not in listed:
                    return
                path = (*path, digit)

        await _each(list(wanted), one)
        wanted.difference_update(found)

    async def _bodies(self, root: CID, wanted: set[CID], found: dict[CID, bytes]) -> None:
        """Files under `memory/`: which one it is cannot be told from a hash, so all new ones are looked at once."""

        async def one(path: Path) -> None:
            data = await self._read(root, path, False)
            if data is not None:
                self._seen[raw_cid(hashlib.sha256(data).digest())] = (root, path)
                self._take(data, wanted, found)

        known = [self._seen[cid] for cid in wanted if cid in self._seen]
        for place in known:
            self._take(await self._read(*place, False), wanted, found)
        wanted.difference_update(found)
        if wanted:
            looked = {place for place in self._seen.values() if place[0] == root}
            paths = [("memory", name) for name in sorted(await self._list(root, ("memory",)))]
            await _each([p for p in paths if p[1].endswith(".md") and (root, p) not in looked], one)
            wanted.difference_update(found)

    def _take(self, data: bytes | None, wanted: set[CID], found: dict[CID, bytes]) -> None:
        if data is not None:
            cid = raw_cid(hashlib.sha256(data).digest())
            if cid in wanted:
                found[cid] = data

    async def _list(self, root: CID, path: Path) -> frozenset[str]:
        """Names in a folder; none when it is not one. A hint: what is read is checked by its hash."""
        known = self._folders.get((root, path))
        if known is not None:
            return known
        block = await self._read(root, path, True)
        names: frozenset[str] = frozenset()
        if block is not None:
            try:
                node = decode_node(block)
                kind = decode_unixfs(node.data or b"").type
                cut = (
                    2 if kind == TYPE_HAMT else 0
                )  # shards below are not followed: entries at the top are enough
                if kind in (TYPE_DIRECTORY, TYPE_HAMT):
                    names = frozenset(link.name[cut:] for link in node.links)
            except FormatError:
                pass
        if len(self._folders) > _LISTINGS_MAX:
            self._folders.clear()
        self._folders[root, path] = names
        return names


async def _each(items: list[_T], work: Callable[[_T], Awaitable[None]]) -> None:
    """Some at once."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_AT_ONCE, len(items))):
            group.create_task(worker())
