"""Find stored objects by path when their CIDs do not lead to them.

The format names an object after the SHA-256 of its bytes, at `o/<digit>/.../<name>` (section 6.1); in plain
mode a body can also be a file below `memory/` or `scopes/<scope>/memory/`. So a raw block that a gateway does
not serve by CID, or that the provider split differently, is read as that file, and used only if its hash
matches.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from ipfsmem.content.cid import CID, RAW, raw_cid
from ipfsmem.content.dagpb import TYPE_DIRECTORY, TYPE_HAMT, decode_node, decode_unixfs
from ipfsmem.errors import FormatError
from ipfsmem_providers.http.concurrency import for_each
from ipfsmem_providers.http.per_loop import PerLoop

#: (root, path, whether only the first block) -> bytes, or None when it is not there.
Read: TypeAlias = Callable[[CID, tuple[str, ...], bool], Awaitable[bytes | None]]
Path: TypeAlias = tuple[str, ...]
_NAME: Final = 40
_DEPTH: Final = 16
_AT_ONCE: Final = 8
_LISTINGS_MAX: Final = 20_000
_SHA256: Final = b"\x12\x20"


class _FileLocation(NamedTuple):
    """Location of a file, and the CID by which its folder links to it."""

    root: CID
    path: Path
    link: CID


class StoredFiles:
    """Looks for files below roots. Folders and files are remembered by CID, so that each is read once, below however many roots."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._folders: dict[CID, Mapping[str, CID]] = {}
        self._absent: set[CID] = set()  #: folders that could not be read in this search
        self._seen: dict[CID, _FileLocation] = {}  #: files below `memory/` by the raw CID of their bytes
        self._reading = PerLoop(lambda: defaultdict[CID, asyncio.Lock](asyncio.Lock))
        self._looked: set[CID] = set()  #: CIDs by which folders link to those files

    async def find(self, cids: Iterable[CID], roots: Iterable[CID]) -> dict[CID, bytes]:
        """Return those of `cids` that are whole files below `roots`; checked. Raises the ProviderError of a
        read that failed."""
        missing = {cid for cid in cids if cid.codec == RAW and cid.multihash[:2] == _SHA256}
        blocks: dict[CID, bytes] = {}
        self._absent.clear()
        for root in roots:
            top = await self._list(root, ()) if missing else {}
            if "o" in top:
                await self._objects(root, ("o",), missing, blocks)
            elif "memory" in top:
                await self._objects(root, ("memory", ".ipfsmem", "o"), missing, blocks)
                await self._bodies(root, missing, blocks)
        return blocks

    async def _objects(self, root: CID, base: Path, missing: set[CID], blocks: dict[CID, bytes]) -> None:
        async def one(cid: CID) -> None:
            name = cid.digest.hex()[:_NAME]
            path = base
            for digit in name[:_DEPTH]:
                listed = await self._list(root, path)
                if name in listed:
                    self._take(await self._read(root, (*path, name), False), {cid}, blocks)
                    return
                if digit not in listed:
                    return
                path = (*path, digit)

        await for_each(list(missing), one, _AT_ONCE)
        missing.difference_update(blocks)

    async def _bodies(self, root: CID, missing: set[CID], blocks: dict[CID, bytes]) -> None:
        """Search the files below `memory/` and those of scopes, timelines included.

        A hash does not identify the file, so each new file is read once.
        """

        async def one(file: _FileLocation) -> None:
            data = await self._read(file.root, file.path, False)
            if data is not None:
                self._looked.add(file.link)
                self._seen[raw_cid(hashlib.sha256(data).digest())] = file
                self._take(data, missing, blocks)

        for cid in missing & self._seen.keys():
            file = self._seen[cid]
            self._take(await self._read(file.root, file.path, False), {cid}, blocks)
            if cid not in blocks:  # its root was unpinned, or another file has its path now
                self._looked.discard(self._seen.pop(cid).link)
        missing.difference_update(blocks)
        if missing:
            await self._in_base(root, ("memory",), missing, blocks, one)
        scopes = await self._list(root, ("scopes",)) if missing else {}
        for scope in sorted(scopes):
            if missing:
                await self._in_base(root, ("scopes", scope, "memory"), missing, blocks, one)

    async def _in_base(
        self,
        root: CID,
        base: Path,
        missing: set[CID],
        blocks: dict[CID, bytes],
        one: Callable[[_FileLocation], Awaitable[None]],
    ) -> None:
        for folder in (base, (*base, "timeline")):
            if not missing:
                return
            names = await self._list(root, folder)
            files = [
                _FileLocation(root, (*folder, name), names[name])
                for name in sorted(names)
                if name.endswith((".md", ".jsonl"))
            ]
            # A link to a raw block tells its hash, so such a file is read only when it is wanted.
            new = [
                f for f in files if f.link in missing or (f.link.codec != RAW and f.link not in self._looked)
            ]
            await for_each(new, one, _AT_ONCE)
            missing.difference_update(blocks)

    def _take(self, data: bytes | None, missing: set[CID], blocks: dict[CID, bytes]) -> None:
        if data is not None:
            cid = raw_cid(hashlib.sha256(data).digest())
            if cid in missing:
                blocks[cid] = data

    async def _list(self, root: CID, path: Path) -> Mapping[str, CID]:
        """Return the links of a folder by name; empty if it is not a folder. Unchecked: files read through
        them are checked by hash."""
        cid = (await self._list(root, path[:-1])).get(path[-1]) if path else root
        if cid is None or cid in self._absent:
            return {}
        listing = self._folders.get(cid)
        if listing is not None:
            return listing
        locks = self._reading()
        try:
            async with locks[cid]:  # concurrent searches need the same folder: one reads it, the others wait
                if cid in self._absent:
                    return {}
                if cid not in self._folders:
                    await self._read_folder(root, path, cid)
                return self._folders.get(cid, {})
        finally:
            locks.pop(cid, None)

    async def _read_folder(self, root: CID, path: Path, cid: CID) -> None:
        block = await self._read(root, path, True)
        if block is None:
            self._absent.add(cid)  # the next search asks again
            return
        names: Mapping[str, CID] = {}
        try:
            node = decode_node(block)
            kind = decode_unixfs(node.data or b"").type
            # Of a sharded folder only the top is read, which has enough entries.
            cut = 2 if kind == TYPE_HAMT else 0
            if kind in (TYPE_DIRECTORY, TYPE_HAMT):
                names = {link.name[cut:]: link.cid for link in node.links}
        except FormatError:
            pass
        if len(self._folders) > _LISTINGS_MAX:
            self._folders.clear()
        self._folders[cid] = names
