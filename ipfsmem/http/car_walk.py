"""The blocks of a CAR for a path, a scope and a range, in order: depth first, parents before children.

Blocks come from an asynchronous getter and are checked here. A missing, damaged or excess block ends the walk with
IncompleteWalk, so that the sender does not end an answer as if it were complete. Independent of HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from ipfsmem.content.cid import CID, DAG_PB, IDENTITY
from ipfsmem.content.dagpb import (
    TYPE_DIRECTORY,
    TYPE_FILE,
    TYPE_HAMT,
    TYPE_RAW,
    PbNode,
    UnixFS,
    decode_node,
    decode_unixfs,
)
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.limits import Limits
from ipfsmem.content.reader import Reader
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, NotFoundError
from ipfsmem.http.gateway_request import GatewayRequest, resolved
from ipfsmem.provider.contract import Block

Get = Callable[[list[CID]], Awaitable[Mapping[CID, bytes]]]
#: Blocks requested from the store at once.
_AHEAD: Final = 32


class IncompleteWalk(Exception):
    """The tree cannot be sent completely."""


class ResolvedPath(NamedTuple):
    """The blocks on a path, and the CIDs of its parts: the root first, the target last."""

    blocks: dict[CID, bytes]
    parts: tuple[CID, ...]


class _Step(NamedTuple):
    """A block still to be sent: its scope, and its wanted bytes (None: all)."""

    cid: CID
    scope: str
    span: tuple[int, int] | None = None


async def resolve_path(get: Get, root: CID, path: tuple[str, ...], limits: Limits) -> ResolvedPath:
    """Follow a path. Raises NotFoundError if it leads nowhere or a block of it is missing, LimitError for a long one."""
    passed: dict[CID, bytes] = {}

    async def recording(cids: list[CID]) -> Mapping[CID, bytes]:
        blocks = await get(cids)
        passed.update({cid: data for cid, data in blocks.items() if _is_sound(cid, data)})
        return {cid: passed[cid] for cid in cids if cid in passed}

    parts = [root]
    for name in path:
        reader = Reader(limits)
        try:
            entry = await drive_async(reader.resolve(parts[-1], [name]), recording)
        except FormatError as error:  # not a folder, or an invalid name
            raise NotFoundError(f"nothing is at {'/'.join(path)} in {root}: {error}") from None
        parts.append(entry.cid)
    if not path:
        await recording([root])
        if root not in passed and root.hash_code != IDENTITY:
            raise NotFoundError(f"{root} is not here")
    return ResolvedPath(passed, tuple(parts))


async def walk(
    get: Get, start: ResolvedPath, gateway_request: GatewayRequest, limits: Limits
) -> AsyncIterator[Block]:
    """Yield the blocks of an answer: those of the path, then those of its target. Identity CIDs are in their parents."""
    end = start.parts[-1]
    sent: set[CID] = set()
    blocks = total = 0
    for cid, data in start.blocks.items():
        if cid != end and cid.hash_code != IDENTITY:
            sent.add(cid)
            total += len(data)
            yield cid, data
    known = {end: start.blocks[end]} if end in start.blocks else {}
    stack = [_first(end, known.get(end, b""), gateway_request)]
    while stack:
        step = stack.pop()
        cid = step.cid
        if cid.hash_code == IDENTITY or (cid in sent and not gateway_request.dups):
            continue
        if cid not in known:
            # Those below it on the stack are needed anyway: one request to the store for many.
            ahead = [
                other.cid for other in stack[-_AHEAD:] if other.cid not in sent and other.cid not in known
            ]
            known.update(await get([cid, *ahead]))
        block = known.get(cid)
        if block is None or not _is_sound(cid, block):
            raise IncompleteWalk(f"{cid} is not here")
        if not gateway_request.dups:
            del known[cid]
        elif len(known) > _AHEAD:
            known = {cid: block}
        sent.add(cid)
        blocks, total = blocks + 1, total + len(block)
        if blocks > limits.blocks or total > limits.total_bytes:
            raise IncompleteWalk(f"more than {limits.blocks} blocks or {limits.total_bytes} bytes")
        yield cid, block
        try:
            stack += reversed(_below(step, block))
        except (FormatError, LimitError) as error:
            raise IncompleteWalk(f"{cid}: {error}") from None


def _first(cid: CID, data: bytes, gateway_request: GatewayRequest) -> _Step:
    """Return the start of the walk. Raises UsageError for a range outside the file."""
    if gateway_request.span is None or cid.hash_code == IDENTITY:
        return _Step(cid, gateway_request.scope)
    size = len(data)
    if cid.codec == DAG_PB:
        _, message = _decoded(data)
        if message is None or message.type not in (TYPE_FILE, TYPE_RAW):
            return _Step(cid, "entity")  # only files have ranges: send the whole entity
        size = (
            message.filesize if message.filesize is not None else len(message.data) + sum(message.blocksizes)
        )
    span = resolved(gateway_request.span, size)
    return _Step(cid, "block") if span is None else _Step(cid, "entity", span)


def _below(step: _Step, data: bytes) -> list[_Step]:
    if step.scope == "block" or step.cid.codec != DAG_PB:
        return []
    node, message = _decoded(data)
    if step.scope == "all":
        return [_Step(link.cid, "all") for link in node.links]
    if message is None or message.type == TYPE_DIRECTORY:
        return []
    if message.type == TYPE_HAMT:
        # Its own shards belong to it; entries have more than the digits of a slot.
        width = len(f"{message.fanout - 1:X}") if message.fanout else 2
        return [_Step(link.cid, "entity") for link in node.links if len(link.name) == width]
    if step.span is None or len(message.blocksizes) != len(node.links):
        return [_Step(link.cid, "entity") for link in node.links]
    steps: list[_Step] = []
    first, last = step.span
    at = len(message.data)
    for link, size in zip(node.links, message.blocksizes, strict=True):
        if size and first < at + size and last >= at:
            steps.append(_Step(link.cid, "entity", (max(0, first - at), min(size - 1, last - at))))
        at += size
    return steps


def _decoded(data: bytes) -> tuple[PbNode, UnixFS | None]:
    """Return a node, and its UnixFS message if it has one."""
    node = decode_node(data)
    try:
        return node, decode_unixfs(node.data) if node.data is not None else None
    except FormatError:
        return node, None


def _is_sound(cid: CID, data: bytes) -> bool:
    """Return whether a block matches its CID: damaged ones of the disk are not passed on."""
    try:
        verify_block(cid, data)
    except (BlockError, LimitError):
        return False
    return True
