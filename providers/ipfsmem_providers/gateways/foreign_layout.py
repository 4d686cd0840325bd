"""Raw blocks of files in a tree with another program's UnixFS layout: chunked or wrapped files are reassembled.

Stored objects are looked up by their CID as one raw block (format section 6.1), but a service with its own
layout keeps the same bytes in other blocks. So each file that we would store as one block is reassembled
while the tree is read, and returned in addition. A raw block has the CID of its bytes, so nothing is trusted.
Only unfinished files are kept in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Final

from ipfsmem.content.cid import CID, DAG_PB, RAW, raw_cid
from ipfsmem.content.dagpb import TYPE_FILE, TYPE_RAW, decode_node, decode_unixfs
from ipfsmem.content.unixfs import CHUNK
from ipfsmem.errors import FormatError
from ipfsmem.provider.contract import Block

#: Maximum bytes of unfinished files in memory; beyond that the oldest is dropped, and later read by its path.
_HELD_MAX: Final = 16 * 1024 * 1024
#: Maximum number of chunks named but not yet received.
_CHUNKS_MAX: Final = 200_000


class _PartialFile:
    """A file of which some chunks have come."""

    def __init__(self, size: int, chunks: list[CID]) -> None:
        self.size = size
        self.chunks = chunks
        self.got: dict[CID, bytes] = {}
        self.missing = set(chunks)

    @property
    def held(self) -> int:
        return sum(map(len, self.got.values()))


class ForeignLayout:
    """Takes the checked blocks of one tree, parents before children, and returns raw blocks of whole files."""

    def __init__(self) -> None:
        #: The unfinished file of a chunk; None for chunks of files that are not reassembled.
        self._chunks: dict[CID, _PartialFile | None] = {}
        self._halves: dict[_PartialFile, None] = {}  #: unfinished files, oldest first
        self._held = 0

    def file(self, cid: CID, data: bytes) -> Block | None:
        """Return the file that this block completes, as a raw block; None when it completes none, or already
        is such a block."""
        chunk = cid in self._chunks
        half = self._chunks.pop(cid, None)
        if not chunk and cid.codec != DAG_PB:
            return None
        try:
            content = data if cid.codec == RAW else self._content(data, chunk=chunk)
        except FormatError:  # the reader of the tree reports it
            content = None
        if not chunk:
            return None if content is None else _raw(content)
        if half is None or half not in self._halves:
            return None
        if content is None:
            self._give_up(half)
            return None
        return self._add(half, cid, content)

    def _content(self, data: bytes, *, chunk: bool) -> bytes | None:
        """Return the bytes of a file or chunk that is one node; None for any other, whose chunks are noted."""
        node = decode_node(data)
        message = decode_unixfs(node.data or b"")
        if message.type not in (TYPE_FILE, TYPE_RAW):
            return None
        own = message.data or b""
        if not node.links:
            return own if len(own) <= CHUNK else None
        chunks = [link.cid for link in node.links]
        size = sum(message.blocksizes)
        # Files with layers of nodes are larger than one block. A chunk that two files share comes once, for one of them.
        whole = not chunk and not own and size <= CHUNK and not any(one in self._chunks for one in chunks)
        if len(self._chunks) + len(chunks) <= _CHUNKS_MAX:
            half = _PartialFile(size, chunks) if whole else None
            if half is not None:
                self._halves[half] = None
            for one in chunks:
                self._chunks.setdefault(one, half)
        return None

    def _add(self, half: _PartialFile, cid: CID, content: bytes) -> Block | None:
        half.got[cid] = content
        half.missing.discard(cid)
        self._held += len(content)
        if not half.missing:
            self._give_up(half)
            whole = b"".join(half.got[one] for one in half.chunks)
            return _raw(whole) if len(whole) == half.size else None
        while self._held > _HELD_MAX:
            self._give_up(next(one for one in self._halves if one.got))
        return None

    def _give_up(self, half: _PartialFile) -> None:
        if half in self._halves:
            del self._halves[half]
            self._held -= half.held


async def with_files(tree: AsyncIterator[Block]) -> AsyncIterator[Block]:
    """Yield the blocks of a tree, each followed by the raw block of the file that it completes, if any."""
    layout = ForeignLayout()
    async for cid, data in tree:
        yield cid, data
        file = layout.file(cid, data)
        if file is not None:
            yield file


def _raw(content: bytes) -> Block:
    return raw_cid(hashlib.sha256(content).digest()), content
