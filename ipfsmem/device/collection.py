"""Collect garbage on this device: delete blocks that neither the state nor a kept root needs.

Mark and sweep in one transaction. The caller decides which roots are kept; blocks of the state are always kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable

import msgspec

from ipfsmem.content.cid import CID, DAG_PB
from ipfsmem.content.dagpb import decode_node
from ipfsmem.device.database import Database
from ipfsmem.device.last_change import blocks_for_undo
from ipfsmem.device.state import StateStore
from ipfsmem.device.tables import blocks, folders, nodes, objects, tracked_files
from ipfsmem.device.texts_of_others import blocks_of_kept_texts
from ipfsmem.errors import FormatError


class Collected(msgspec.Struct, frozen=True):
    """The number of blocks that were (or would be) deleted, and their bytes."""

    blocks: int
    bytes: int


def reachable(db: Database, roots: Iterable[CID]) -> set[bytes]:
    """Return the digests of every block of the trees `roots`, except below a block that is missing here or is not a folder."""
    # Visited by CID, not by digest: a hostile root could name a folder as a raw block and hide the blocks below it.
    seen: set[CID] = set()
    stack = list(roots)
    while stack:
        cid = stack.pop()
        if cid in seen:
            continue
        seen.add(cid)
        if cid.codec == DAG_PB and (block := db.block(cid.digest)) is not None:
            with contextlib.suppress(FormatError):  # a hostile root can name any text as a folder
                stack.extend(link.cid for link in decode_node(block).links)
    return {cid.digest for cid in seen}


def collect(
    store: StateStore, roots: Iterable[CID], *, dry_run: bool, forgotten: Collection[tuple[str, str]] = ()
) -> Collected:
    """Delete blocks that neither the state, a kept root nor a plain file needs (inside a transaction).

    The texts of plain files are kept, since edits are merged with them, except those of the memories `forgotten`, by
    scope and key.
    """
    from ipfsmem.device.dreams import (
        blocks_for_dreams,
    )  # imported late: results refer to `Collected`, so most commands load this module

    db = store.db
    needed = reachable(db, roots)
    run = db.connection
    needed.update(nodes.files(run), objects.digests(run), folders.digests(run))
    needed.update(store.object_digests())
    needed.update(blocks_of_kept_texts(store))
    needed.update(blocks_for_undo(store))
    needed.update(blocks_for_dreams(store))
    if store.codec.cover is None:
        needed.update(tracked_files.texts_needed(run, forgotten))
    gone = [(digest, size) for digest, size in blocks.sizes(run) if digest not in needed]
    if not dry_run:
        blocks.forget(run, [digest for digest, _ in gone])
    return Collected(len(gone), sum(size for _, size in gone))
