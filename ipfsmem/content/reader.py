"""Read UnixFS paths, folders, files and trees from untrusted blocks.

Reading methods are generators that yield CIDs and receive a mapping of CID to block, so that the same code reads from
a local store (`drive`) and from the network (`drive_async`). Each block is checked against its CID once, in this
module. Walks are iterative and bounded by Limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ipfsmem.content import hamt
from ipfsmem.content.cid import CID, DAG_PB, RAW
from ipfsmem.content.dagpb import (
    TYPE_DIRECTORY,
    TYPE_FILE,
    TYPE_HAMT,
    TYPE_RAW,
    TYPE_SYMLINK,
    BlockLink,
    PbNode,
    UnixFS,
    count_links,
    decode_node,
    decode_unixfs,
    name_bytes,
)
from ipfsmem.content.fetch import Fetch, drive, drive_async, from_mapping, with_known_blocks
from ipfsmem.content.limits import FILE_DEPTH_MAX, OWN_LIMITS, Limits
from ipfsmem.content.unixfs import check_name
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import FormatError, LimitError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["BATCH", "Fetch", "Reader", "TreeEntry", "drive", "drive_async", "from_mapping", "verify_block"]

#: Maximum number of CIDs in one request.
BATCH = 256


class TreeEntry(NamedTuple):
    """The target of a path or listing. `size`: the length of a file, None for a folder."""

    path: str
    cid: CID
    is_dir: bool
    size: int | None


#: Part of a file: bytes, or a block to fetch with its required length.
_Part = bytes | tuple[CID, int | None]
_Nodes = dict[CID, tuple[PbNode, UnixFS]]


class _PendingFolder(NamedTuple):
    """A folder shard that is not read yet: its folder, and its position in the hash trie."""

    path: str
    cid: CID
    prefix: int
    used: int


class Reader:
    """Reads trees within one set of limits: unique blocks and their bytes are summed over all calls."""

    def __init__(self, limits: Limits = OWN_LIMITS) -> None:
        self.limits = limits
        self._seen: dict[CID, int] = {}
        self._bytes = 0

    @property
    def blocks(self) -> int:
        """Return the number of unique blocks read so far."""
        return len(self._seen)

    @property
    def total_bytes(self) -> int:
        """Return the bytes of the unique blocks read so far."""
        return self._bytes

    # -- blocks

    def get(self, cids: Iterable[CID]) -> Fetch[dict[CID, bytes]]:
        """Return the checked blocks of `cids`, requested in batches, each once. Raises NotFoundError if one is
        missing."""
        wanted: list[CID] = []
        out: dict[CID, bytes] = {}
        for cid in dict.fromkeys(cids):
            if cid.multihash[:1] == b"\0":
                out[cid] = cid.digest
                self._count(cid, out[cid])
            else:
                wanted.append(cid)
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            blocks = yield batch
            for cid in batch:
                data = blocks.get(cid)
                if data is None:
                    raise NotFoundError(f"block {cid} is not there")
                verify_block(cid, data)
                self._count(cid, data)
                out[cid] = data
        return out

    def _count(self, cid: CID, data: bytes) -> None:
        if cid in self._seen:
            return
        self._seen[cid] = len(data)
        self._bytes += len(data)
        if len(self._seen) > self.limits.blocks:
            raise LimitError(f"the tree has more than {self.limits.blocks} blocks")
        if self._bytes > self.limits.total_bytes:
            raise LimitError(f"the tree has more than {self.limits.total_bytes} bytes")

    def _nodes(self, cids: Iterable[CID]) -> Fetch[_Nodes]:
        """Return the decoded nodes of `cids`. A node with several links to it is decoded once."""
        blocks = yield from self.get(cids)
        return self._decoded(blocks)

    def _decoded(self, blocks: Mapping[CID, bytes]) -> _Nodes:
        """Decode blocks that are read together. Raises LimitError first if they have more links than names and chunks
        allowed.
        """
        most = self.limits.entries + self.limits.blocks
        nodes: _Nodes = {}
        links = 0
        for cid, block in blocks.items():
            links += _links(cid, block)
            if links > most:
                raise LimitError(f"the tree has more than {most} links")
            nodes[cid] = _decode(cid, block)
        return nodes

    def _one(self, cid: CID) -> Fetch[bytes]:
        blocks = yield from self.get((cid,))
        return blocks[cid]

    # -- folders

    def list_directory(self, cid: CID) -> Fetch[list[BlockLink]]:
        """Return the entries of a folder, sharded or not, by name. Raises FormatError if `cid` is not a folder."""
        folders = yield from self._folders([_PendingFolder("", cid, 0, 0)])
        return folders[""]

    def list_directories(self, cids: Iterable[CID]) -> Fetch[dict[CID, list[BlockLink]]]:
        """Return the entries of several folders, requesting their blocks together."""
        by_path = {str(cid): cid for cid in cids}
        folders = yield from self._folders([_PendingFolder(path, cid, 0, 0) for path, cid in by_path.items()])
        return {by_path[path]: entries for path, entries in folders.items()}

    def resolve(self, root: CID, path: str | Sequence[str]) -> Fetch[TreeEntry]:
        """Return the target of `path` (with slashes, or a sequence of names) below `root`; read only the shards on
        the path.

        Raises NotFoundError with the name of the missing part.
        """
        names = [part for part in path.split("/") if part] if isinstance(path, str) else list(path)
        if len(names) > self.limits.depth:
            raise LimitError(f"a path has {len(names)} parts, {self.limits.depth} allowed")
        cid = root
        for done, name in enumerate(names):
            check_name(name)
            entry = yield from self._lookup(cid, name)
            if entry is None:
                raise NotFoundError(f"there is no {'/'.join(names[: done + 1])} in {root}")
            cid = entry
        return (yield from self.stat(cid, "/".join(names)))

    def stat(self, cid: CID, path: str = "") -> Fetch[TreeEntry]:
        """Return whether `cid` is a folder or a file, and the length of a file."""
        block = yield from self._one(cid)
        if cid.codec == RAW:
            return TreeEntry(path, cid, False, len(block))
        ((_, message),) = self._decoded({cid: block}).values()
        if message.type in (TYPE_DIRECTORY, TYPE_HAMT):
            return TreeEntry(path, cid, True, None)
        size = message.filesize if message.filesize is not None else len(message.data)
        return TreeEntry(path, cid, False, size)

    def _lookup(self, cid: CID, name: str) -> Fetch[CID | None]:
        hashed = hamt.murmur3(name_bytes(name))
        prefix = used = 0
        while True:
            ((node, message),) = self._decoded({cid: (yield from self._one(cid))}).values()
            if message.type == TYPE_DIRECTORY and not used:
                return _only(node.links, name)
            _check_shard(cid, message)
            shard = hamt.read_shard(node, message, prefix, used)
            used += shard.bits
            prefix = hashed >> (64 - used)
            slot = prefix & ((1 << shard.bits) - 1)
            for index, entry in shard.entries:
                if index == slot:
                    return entry.cid if entry.name == name else None
            below = [child for index, child in shard.children if index == slot]
            if not below:
                return None
            cid = below[0]

    def _folders(
        self, walks: list[_PendingFolder], nodes: _Nodes | None = None
    ) -> Fetch[dict[str, list[BlockLink]]]:
        """Return the entries of several folders by path, requesting the shards of all folders level by level.

        `nodes`: the top nodes of the folders that were already read.
        """
        by_path: dict[str, list[BlockLink]] = {walk.path: [] for walk in walks}
        count = 0
        while walks:
            if nodes is None:
                nodes = yield from self._nodes(walk.cid for walk in walks)
            below: list[_PendingFolder] = []
            for walk in walks:
                node, message = nodes[walk.cid]
                entries = by_path[walk.path]
                count += len(node.links)
                if count > self.limits.entries:
                    raise LimitError(f"the tree has more than {self.limits.entries} entries")
                if message.type == TYPE_DIRECTORY and not walk.used:
                    entries += node.links
                    continue
                _check_shard(walk.cid, message)
                shard = hamt.read_shard(node, message, walk.prefix, walk.used)
                entries += [entry for _, entry in shard.entries]
                below += [
                    walk._replace(
                        cid=child, prefix=walk.prefix << shard.bits | index, used=walk.used + shard.bits
                    )
                    for index, child in shard.children
                ]
            walks = below
            nodes = None
        for path, entries in by_path.items():
            entries.sort()
            _check_entries(path, entries)
        return by_path

    # -- files

    def read_file(self, cid: CID, *, max_bytes: int | None = None) -> Fetch[bytes]:
        """Return the bytes of a file.

        Raises FormatError if `cid` is not a file; LimitError, before its chunks are requested, if it is longer than
        `max_bytes` (default: the limit of the reader).
        """
        files = yield from self.read_files((cid,), max_bytes=max_bytes)
        return files[cid]

    def read_files(self, cids: Iterable[CID], *, max_bytes: int | None = None) -> Fetch[dict[CID, bytes]]:
        """Return the bytes of several files, requesting their blocks together; `max_bytes` applies to each."""
        limit = self.limits.file_bytes if max_bytes is None else max_bytes
        files: dict[CID, list[_Part]] = {cid: [(cid, None)] for cid in cids}
        unfinished = set(files)
        total = count = 0
        for _ in range(FILE_DEPTH_MAX + 1):
            if not unfinished:
                break
            wanted = [part[0] for cid in unfinished for part in files[cid] if isinstance(part, tuple)]
            blocks = yield from self.get(wanted)
            for cid in list(unfinished):
                parts: list[_Part] = []
                whole = True
                for part in files[cid]:
                    if isinstance(part, bytes):
                        parts.append(part)
                        continue
                    chunks = count + _links(part[0], blocks[part[0]])
                    if chunks > self.limits.blocks:
                        raise LimitError(f"the files have {chunks} chunks, {self.limits.blocks} allowed")
                    pieces, size = _file_parts(part, blocks[part[0]])
                    if part[1] is None:
                        if size > limit:
                            raise LimitError(f"file {cid} has {size} bytes, {limit} allowed")
                        total += size
                    # A chunk can be repeated, so the number of unique blocks does not limit these.
                    count += len(pieces)
                    if total > self.limits.total_bytes or count > self.limits.blocks:
                        raise LimitError(
                            f"the files have more than {self.limits.total_bytes} bytes or {self.limits.blocks} chunks"
                        )
                    parts += pieces
                    whole = whole and (not pieces or isinstance(pieces[-1], bytes))
                files[cid] = parts
                if whole:
                    unfinished.remove(cid)
        if unfinished:
            raise LimitError(f"file {next(iter(unfinished))} has more than {FILE_DEPTH_MAX} levels of chunks")
        return {
            cid: b"".join(part for part in parts if isinstance(part, bytes)) for cid, parts in files.items()
        }

    # -- trees

    def walk(self, root: CID, *, enter: Callable[[str, CID], bool] | None = None) -> Fetch[dict[str, CID]]:
        """Return every file below `root` as path (no leading slash) and CID, requesting folders level by level.

        Only folders are read, and dag-pb entries to determine their type. `enter(path, cid)` may return False for a
        folder or dag-pb file with known content, which is then omitted. If `root` is a file, its path is "".
        """
        files, _ = yield from self._walk(root, enter)
        return files

    def read_tree(self, root: CID) -> Fetch[dict[str, bytes]]:
        """Return every file below `root` as path and bytes."""
        paths, known = yield from self._walk(root, None)
        files = yield from with_known_blocks(self.read_files(paths.values()), known)
        return {path: files[cid] for path, cid in paths.items()}

    def _walk(
        self, root: CID, enter: Callable[[str, CID], bool] | None
    ) -> Fetch[tuple[dict[str, CID], dict[CID, bytes]]]:
        """Return the files by path, and the blocks of files that were read to determine their type."""
        if root.codec == RAW:
            return {"": root}, {}
        files: dict[str, CID] = {}
        looked_at: dict[CID, bytes] = {}
        level = [("", root)]
        total = depth = 0
        while level:
            blocks = yield from self.get(cid for _, cid in level)
            nodes = self._decoded(blocks)
            folders: list[_PendingFolder] = []
            for path, cid in level:
                if nodes[cid][1].type in (TYPE_DIRECTORY, TYPE_HAMT):
                    folders.append(_PendingFolder(path, cid, 0, 0))
                else:
                    files[path] = cid
                    looked_at[cid] = blocks[cid]
            if folders and depth >= self.limits.depth:
                raise LimitError(f"the tree is deeper than {self.limits.depth} folders")
            listed = yield from self._folders(folders, nodes)
            level = []
            for folder, entries in listed.items():
                total += len(entries)
                if total > self.limits.entries:
                    raise LimitError(f"the tree has more than {self.limits.entries} entries")
                start = folder + "/" if folder else ""
                for entry in entries:
                    path = start + entry.name
                    if entry.cid.codec == RAW:
                        files[path] = entry.cid
                    elif enter is None or enter(path, entry.cid):
                        level.append((path, entry.cid))
            depth += 1
        return files, looked_at


def _links(cid: CID, block: bytes) -> int:
    try:
        return count_links(block) if cid.codec == DAG_PB else 0
    except FormatError as error:
        raise FormatError(f"block {cid} is not UnixFS: {error}") from None


def _decode(cid: CID, block: bytes) -> tuple[PbNode, UnixFS]:
    if cid.codec != DAG_PB:
        raise FormatError(f"{cid} is neither a file nor a folder: codec {cid.codec:#x}")
    try:
        node = decode_node(block)
        if node.data is None:
            raise FormatError("no UnixFS message")
        message = decode_unixfs(node.data)
    except LimitError:
        raise
    except FormatError as error:
        raise FormatError(f"block {cid} is not UnixFS: {error}") from None
    if message.type == TYPE_SYMLINK:
        raise FormatError(f"{cid} is a symbolic link; they are refused")
    return node, message


def _check_shard(cid: CID, message: UnixFS) -> None:
    if message.type != TYPE_HAMT:
        raise FormatError(f"{cid} is not a folder")


def _only(links: Sequence[BlockLink], name: str) -> CID | None:
    targets = [link.cid for link in links if link.name == name]
    if len(targets) > 1:
        raise FormatError(f"a folder holds {name!r} twice")
    return targets[0] if targets else None


def _check_entries(path: str, entries: list[BlockLink]) -> None:
    before: str | None = None
    for entry in entries:
        check_name(entry.name)
        if entry.name == before:
            raise FormatError(f"folder {path or '/'} holds {entry.name!r} twice")
        before = entry.name


def _file_parts(wanted: tuple[CID, int | None], block: bytes) -> tuple[list[_Part], int]:
    """Return the parts that replace one block of a file, and their length in bytes."""
    cid, expected = wanted
    pieces: list[_Part]
    if cid.codec == RAW:
        pieces, size = [block], len(block)
    else:
        node, message = _decode(cid, block)
        if message.type not in (TYPE_FILE, TYPE_RAW):
            raise FormatError(f"{cid} is not a file")
        if len(message.blocksizes) != len(node.links):
            raise FormatError(f"file {cid} has {len(node.links)} chunks and {len(message.blocksizes)} sizes")
        size = len(message.data) + sum(message.blocksizes)
        if message.filesize is not None and message.filesize != size:
            raise FormatError(f"file {cid} says it has {message.filesize} bytes, its parts have {size}")
        pieces = [message.data] if message.data else []
        pieces += [(link.cid, length) for link, length in zip(node.links, message.blocksizes, strict=True)]
    if expected is not None and size != expected:
        raise FormatError(f"chunk {cid} has {size} bytes, its file says {expected}")
    return pieces, size
