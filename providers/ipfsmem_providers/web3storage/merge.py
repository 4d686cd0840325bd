"""Merging small shards, so that a new device need not read very many of them.

Each publish stores a small shard. When there are too many, the next publish puts those of their blocks that its tree needs
into its own shard, and one index of the old shards replaces theirs. The old shards stay as long as a root needs them. The
cost is spread as in a log-structured merge: a block is stored again once in many publishes, until its shard is
no longer small. Plans only; sends nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.provider.contract import Block
from ipfsmem_providers.web3storage.contents import Contents, links_of
from ipfsmem_providers.web3storage.shards import Slices, read_shard
from ipfsmem_providers.web3storage.uploads import IndexKind, Upload

_SHA256: Final = b"\x12\x20"


class MergePlan(msgspec.Struct, frozen=True):
    """The bytes of the small shards to merge, the positions of their blocks, and the indexes that a new one replaces.

    `replaced` may include indexes whose replacement is already listed, which a publish that was cut off left.
    """

    small: dict[bytes, bytes]
    slices: dict[bytes, Slices]
    replaced: list[Upload]


async def plan_merge(contents: Contents, uploads: Mapping[CID, Upload], most: int) -> MergePlan | None:
    """Return what to merge now, given the upload list; None with at most `most` small shards.

    Reads those shards; an unreadable one is not merged.
    """
    listed = {digest for item in uploads.values() if not item.is_index for digest in item.shards}
    ours = [item for item in uploads.values() if item.kind is IndexKind.SMALL and item.small in listed]
    if len(ours) <= most:
        return None
    contents.set_uploads(uploads.values())
    # A merge begins with one more than `most`. Still more: the last merge was cut off before it removed the indexes it replaced.
    merged = [item for item in uploads.values() if item.kind is IndexKind.MERGED and len(ours) > most + 1]
    await contents.read_indexes(merged)
    already_merged = {shard for item in merged for shard in contents.shards_of_index(item)}
    remaining = sorted(
        (item for item in ours if item.small not in already_merged), key=lambda item: item.small
    )
    replaced = [item for item in ours if item.small in already_merged]
    small: dict[bytes, bytes] = {}
    slices: dict[bytes, Slices] = {}
    if len(remaining) > most:
        await contents.load_small(item.small for item in remaining)
        for item in remaining:
            data = contents.small_shard(item.small)
            if data is not None:
                small[item.small] = data
                slices[item.small] = _slices(data)
                replaced.append(item)
    return MergePlan(small, slices, replaced) if replaced else None


def _slices(shard: bytes) -> Slices:
    slices: Slices = {}
    for cid, offset, length in read_shard(shard):
        slices.setdefault(cid.multihash, (offset, length))
    return slices


def with_merged_blocks(root: CID, blocks: Iterable[Block], small: Iterable[bytes]) -> Iterator[Block]:
    """Yield `blocks`, then the blocks of small shards that the tree needs, parents first.

    Only links in `blocks` and in small shards are followed. Blocks reached only through other shards, and
    damaged ones, stay in place.
    """
    links: dict[CID, tuple[CID, ...]] = {}
    for cid, data in blocks:
        links[cid] = links_of(cid, data)
        yield cid, data
    here = {cid: (shard, offset, length) for shard in small for cid, offset, length in read_shard(shard)}
    seen: set[CID] = set()
    stack = [root]
    while stack:
        cid = stack.pop()
        if cid in seen:
            continue
        seen.add(cid)
        if cid in here and cid not in links:
            shard, offset, length = here[cid]
            data = shard[offset : offset + length]
            if cid.multihash[:2] != _SHA256 or hashlib.sha256(data).digest() != cid.digest:
                continue
            links[cid] = links_of(cid, data)
            yield cid, data
        stack.extend(reversed(links.get(cid, ())))
