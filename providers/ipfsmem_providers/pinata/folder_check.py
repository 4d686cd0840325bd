"""Compare a folder made by Pinata with what was sent: according to its documents v3 accepts no folders, and a
list proves nothing.

Compared are Pinata's number of files, the names at the top, and a few files read back through the gateway.
That does not prove completeness, but detects a folder upload that failed as a whole. Readers check every byte
anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipfsmem.content.cid import CID, DAG_PB
from ipfsmem.content.dagpb import TYPE_DIRECTORY, decode_node, decode_unixfs
from ipfsmem.errors import FormatError, ProviderError, ProviderUnavailable
from ipfsmem_providers.gateways.own_gateway import OwnGateway
from ipfsmem_providers.http.body import Body

#: Next step when Pinata accepts no folder.
HINT: Final = "Pinata's v3 API accepts no folders, by its documents. Use a plan that accepts CARs, or a key with the scopes of the legacy API, which accepts folders: PINATA_API=legacy."
#: Files larger than this are not read back.
_SAMPLE_MAX: Final = 8 * 1024 * 1024


async def difference(
    reader: OwnGateway, root: CID, parts: Sequence[tuple[str, Body]], counted: int | None
) -> str:
    """Return how `root` differs from `parts` (paths below one folder, or one file), as the end of a sentence, or "".

    `counted`: the number of files by Pinata, None when unknown. Without a readable gateway, nothing more is
    compared. Raises ProviderUnavailable when the folder can be read there and a file of it cannot.
    """
    if counted is not None and counted != len(parts):
        return f"which holds {counted} of {len(parts)} files that were sent"
    if not reader.reads:
        return ""
    folder = len(parts) > 1 or "/" in parts[0][0]
    if folder:
        if root.codec != DAG_PB:
            return f"which is one block, instead of a folder of {len(parts)} files"
        try:
            block = (await reader.get_blocks([root])).get(root)
        except ProviderError:
            return ""
        if block is None:
            return ""
        if text := _top(block, {path.split("/")[1] for path, _ in parts}):
            return text
    for path, body in _sample(parts):
        below = tuple(path.split("/")[1:]) if folder else ()
        try:
            data = await reader.file(root, below, max_bytes=_SAMPLE_MAX)
        except ProviderError:
            return ""
        if data is None:
            if not folder:
                return ""
            raise ProviderUnavailable(
                f"pinata serves the folder {root} but not {'/'.join(below)} in it yet; nothing points to it",
                hint="Sync again in a while.",
            )
        if data != b"".join([piece async for piece in body.pieces()]):
            return f"whose {'/'.join(below) or 'file'} differs from the upload"
    return ""


def _top(block: bytes, ours: set[str]) -> str:
    """Return how the names in a folder's first block differ; a sharded folder has other labels and is not compared."""
    try:
        node = decode_node(block)
        kind = decode_unixfs(node.data or b"").type
    except FormatError:
        return "which cannot be read"
    theirs = {link.name for link in node.links}
    if kind == TYPE_DIRECTORY and theirs != ours:
        return f"which holds {', '.join(sorted(theirs)[:5]) or 'nothing'} instead of {', '.join(sorted(ours)[:5])}"
    return ""


def _sample(parts: Sequence[tuple[str, Body]]) -> list[tuple[str, Body]]:
    """Return the first file, the last and the largest that can be read back."""
    small = [part for part in parts if part[1].size <= _SAMPLE_MAX]
    chosen = dict((*small[:1], *small[-1:]))
    if small:
        path, body = max(small, key=lambda part: part[1].size)
        chosen[path] = body
    return list(chosen.items())
