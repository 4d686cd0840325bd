"""A trustless gateway over a dictionary of blocks, for stand-ins: raw blocks, CARs, and paths.

A CAR is sent while its tree is walked. With `rooted` it behaves like a dedicated gateway: it serves pinned
roots by CID, and other blocks only by path under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from aiohttp import web

from ipfsmem.content.car import header, section
from ipfsmem.content.cid import CID, DAG_PB, parse_cid
from ipfsmem.content.dagpb import TYPE_DIRECTORY, TYPE_HAMT, BlockLink, decode_node, decode_unixfs
from ipfsmem.content.fetch import drive, from_mapping
from ipfsmem.content.reader import Reader
from ipfsmem.errors import FormatError, NotFoundError

Blocks = Mapping[CID, bytes]
_PIECE = 256 * 1024


def below(blocks: Blocks, root: CID, *, entity: bool = False) -> Iterator[tuple[CID, bytes]]:
    """Yield the blocks under a root, depth first, each once; missing ones are skipped."""
    stack, seen = [root], set()
    while stack:
        cid = stack.pop()
        if cid in seen or cid not in blocks:
            continue
        seen.add(cid)
        yield cid, blocks[cid]
        if cid.codec == DAG_PB:
            node = decode_node(blocks[cid])
            kind = decode_unixfs(node.data or b"").type
            links: Sequence[BlockLink] = node.links
            if entity and kind in (TYPE_DIRECTORY, TYPE_HAMT):
                links = [link for link in links if kind == TYPE_HAMT and len(link.name) == 2]
            stack += [link.cid for link in reversed(links)]


async def answer(
    request: web.Request, blocks: Blocks, *, roots: Callable[[], set[CID]], rooted: bool
) -> web.StreamResponse:
    """The answer to `GET /ipfs/{cid}[/{path}]`."""
    text, _, path = request.match_info["tail"].partition("/")
    try:
        root = parse_cid(text)
    except FormatError:
        return web.Response(status=400, text="invalid cid")
    if rooted and root not in roots():
        return web.Response(
            status=403, text="ERR_ID:00006: the owner of this gateway does not have this content pinned"
        )
    walked = [root]
    try:
        for name in (part for part in path.split("/") if part):
            found = drive(Reader().resolve(walked[-1], [name]), from_mapping(blocks))
            walked.append(found.cid)
    except (NotFoundError, FormatError):
        return web.Response(status=404, text="no link named so")
    cid = walked[-1]
    if cid not in blocks:
        return web.Response(status=404, text="not found")
    if request.query.get("format") == "raw":
        return web.Response(body=blocks[cid], content_type="application/vnd.ipld.raw")
    if request.query.get("format") == "car":
        scope = request.query.get("dag-scope", "all")
        return await _car(request, root, _scope(blocks, walked, scope))
    data = drive(Reader().read_file(cid), from_mapping(blocks))
    return web.Response(body=data, content_type="application/octet-stream")


def _scope(blocks: Blocks, walked: list[CID], scope: str) -> Iterator[tuple[CID, bytes]]:
    """Return the blocks on a path, then the requested ones of its target."""
    *way, cid = walked
    sent = dict.fromkeys(way)
    yield from ((step, blocks[step]) for step in sent)
    end = [(cid, blocks[cid])] if scope == "block" else below(blocks, cid, entity=scope == "entity")
    yield from (block for block in end if block[0] not in sent)


async def _car(request: web.Request, root: CID, found: Iterator[tuple[CID, bytes]]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/vnd.ipld.car"})
    await response.prepare(request)
    piece = bytearray(header([root]))
    for cid, data in found:
        piece += section(cid, data)
        if len(piece) >= _PIECE:
            await response.write(bytes(piece))
            piece.clear()
    await response.write(bytes(piece))
    await response.write_eof()
    return response
