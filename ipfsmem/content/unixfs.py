"""Build the blocks of UnixFS files and folders by the profile `unixfs-v1-2025` (IPIP-0499; format section 6).

Kubo with that profile and Helia create the same CIDs. Large files are streamed and never in memory as a whole;
children precede parents.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ipfsmem.content import hamt
from ipfsmem.content.cid import CID, PB_PREFIX, RAW_PREFIX, decode_cid
from ipfsmem.content.dagpb import TYPE_FILE, BlockLink, RawLink, UnixFS, encode_raw, encode_unixfs, raw_links
from ipfsmem.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = [
    "CHUNK",
    "SHARD_ABOVE",
    "WIDTH",
    "Block",
    "BlockLink",
    "Directory",
    "FileRoot",
    "check_name",
    "directory",
    "file_blocks",
    "file_bytes",
    "raw_directory",
]

#: Bytes of one chunk of a file.
CHUNK = 1024 * 1024
#: Links per node of a chunked file.
WIDTH = 1024
#: A folder with a longer block becomes a HAMT, in bytes.
SHARD_ABOVE = 262_144
_FOLDER = b"\x0a\x02\x08\x01"  # data field: UnixFS message of type Directory

Block = tuple[CID, bytes]


class Readable(Protocol):
    """A binary stream. `read(n)` returns at most n bytes, and none at the end."""

    def read(self, size: int, /) -> bytes: ...


class FileRoot(NamedTuple):
    """The root of a finished file: CID, bytes of all its blocks, and length of the file in bytes."""

    cid: CID
    tsize: int
    size: int


class Directory(NamedTuple):
    """A finished folder: CID, total bytes of its blocks and all below, and its own blocks (one, or the shards with the root last)."""

    cid: CID
    tsize: int
    blocks: list[Block]


class _Part(NamedTuple):
    cid: bytes
    tsize: int
    size: int


def check_name(name: str) -> None:
    """Refuse an invalid entry name: empty, `.`, `..`, with a slash or NUL."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise FormatError(f"{name!r} cannot be the name of a file or folder")


def file_blocks(source: bytes | Readable) -> Generator[Block, None, FileRoot]:
    """Yield the blocks of a file, children before parents, and return its root (`root = yield from ...`).

    A file of up to one chunk is one raw block; a larger file is a balanced tree of chunks of fixed size.
    """
    read = _reader(source)
    chunk = read()
    levels: list[list[_Part]] = [[]]  # the incomplete node of each level, from the leaves up
    while True:
        following = read() if len(chunk) == CHUNK else b""
        part = _Part(RAW_PREFIX + sha256(chunk).digest(), len(chunk), len(chunk))
        yield decode_cid(part.cid), chunk
        levels[0].append(part)
        if not following:
            break
        yield from _close_full(levels)
        chunk = following
    # Close the incomplete nodes from the bottom. Each adds a node to the level above, so none is empty. The root is
    # the first level with a single node.
    for level in range(len(levels)):
        parts = levels[level]
        if level == len(levels) - 1 and len(parts) == 1:
            break
        node, block = _file_node(parts)
        yield decode_cid(node.cid), block
        if level + 1 == len(levels):
            return FileRoot(decode_cid(node.cid), node.tsize, node.size)
        levels[level + 1].append(node)
    (root,) = levels[-1]
    return FileRoot(decode_cid(root.cid), root.tsize, root.size)


def _close_full(levels: list[list[_Part]]) -> Generator[Block, None, None]:
    level = 0
    while len(levels[level]) == WIDTH:
        node, block = _file_node(levels[level])
        yield decode_cid(node.cid), block
        levels[level] = []
        level += 1
        if level == len(levels):
            levels.append([])
        levels[level].append(node)


def file_bytes(data: bytes) -> tuple[FileRoot, list[Block]]:
    """Return root and blocks of a file in memory."""
    blocks: list[Block] = []
    builder = file_blocks(data)
    while True:
        try:
            blocks.append(next(builder))
        except StopIteration as done:
            return done.value, blocks


def _file_node(parts: list[_Part]) -> tuple[_Part, bytes]:
    size = sum(part.size for part in parts)
    message = UnixFS(TYPE_FILE, filesize=size, blocksizes=tuple(part.size for part in parts))
    block = encode_raw([(b"", part.cid, part.tsize) for part in parts], encode_unixfs(message))
    tsize = len(block) + sum(part.tsize for part in parts)
    return _Part(PB_PREFIX + sha256(block).digest(), tsize, size), block


def _reader(source: bytes | Readable) -> Callable[[], bytes]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        view = memoryview(source)
        offsets = iter(range(0, len(view), CHUNK))

        def slices() -> bytes:
            offset = next(offsets, None)
            return b"" if offset is None else bytes(view[offset : offset + CHUNK])

        return slices

    def stream() -> bytes:
        # Pipes and sockets can return fewer bytes than requested; chunks must not depend on that.
        data = source.read(CHUNK)
        if not data or len(data) == CHUNK:
            return data
        parts = [data]
        missing = CHUNK - len(data)
        while missing:
            data = source.read(missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    return stream


def directory(links: Iterable[BlockLink]) -> Directory:
    """Build the folder with these links, as one block or as a HAMT by the rule of the profile.

    Raises FormatError for an invalid or duplicate name.
    """
    entries = list(links)
    for link in entries:
        check_name(link.name)
    if len({link.name for link in entries}) != len(entries):
        raise FormatError(f"a folder would hold a name twice: {_first_duplicate(entries)!r}")
    blocks, tsize = raw_directory(raw_links(entries))
    return Directory(decode_cid(blocks[-1][0]), tsize, [(decode_cid(cid), block) for cid, block in blocks])


def raw_directory(links: list[RawLink]) -> tuple[list[tuple[bytes, bytes]], int]:
    """Build a folder from valid encoded links. Return its blocks with their CIDs as bytes, and its cumulative size."""
    # Each link needs at least its name, its CID and 6 bytes of framing, so most large folders are detected without encoding.
    if sum(len(link[0]) + len(link[1]) + 6 for link in links) <= SHARD_ABOVE:
        block = encode_raw(links, None) + _FOLDER
        if len(block) <= SHARD_ABOVE:
            cid = PB_PREFIX + sha256(block).digest()
            return [(cid, block)], len(block) + sum(link[2] for link in links)
    return hamt.build(links)


def _first_duplicate(entries: list[BlockLink]) -> str:
    seen: set[str] = set()
    for link in entries:
        if link.name in seen:
            return link.name
        seen.add(link.name)
    return ""
