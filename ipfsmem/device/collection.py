"""Garbage collection on this device: deletes blocks that neither the state nor a kept root needs.

Mark and sweep inside one transaction. The caller decides which roots are kept; blocks of the state always are.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.content.cid import CID, PB_PREFIX
from ipfsmem.content.dagpb import decode_node
from ipfsmem.device.database import Database
from ipfsmem.device.last_change import blocks_for_undo
from ipfsmem.device.state import Store
from ipfsmem.device.tables import blocks, folders, nodes, objects, renders
from ipfsmem.device.texts_of_others import blocks_of_kept_texts


class Collected(msgspec.Struct, frozen=True):
    """How many blocks were deleted (or would be), and their bytes."""

    blocks: int
    bytes: int


def reachable(db: Database, roots: Iterable[CID]) -> set[bytes]:
    """Digests of every block of the trees `roots`. Below a block that is missing here nothing is known."""
    found: set[bytes] = set()
    stack = [cid.encode() for cid in roots]
    while stack:
        cid = stack.pop()
        if cid[4:] in found:
            continue
        found.add(cid[4:])
        if cid[:4] == PB_PREFIX and (block := db.block(cid[4:])) is not None:
            stack.extend(link.cid.encode() for link in decode_node(block).links)
    return found


def collect(store: Store, roots: Iterable[CID], *, dry_run: bool, forgotten: str | None = None) -> Collected:
    """Delete blocks that neither the state nor a kept root nor an edit of a plain file needs (inside a transaction).

    The texts of plain files stay, as edits are merged with them; those of the memory with the key `forgotten` do not.
    """
    db = store.db
    needed = reachable(db, roots)
    run = db.connection
    needed.update(nodes.files(run), objects.digests(run), folders.digests(run))
    needed.update(store.object_digests())
    needed.update(blocks_of_kept_texts(store))
    needed.update(blocks_for_undo(store))
    if store.codec.cover is None:
        needed.update(renders.texts_needed(run, forgotten or ""))
    gone = [(digest, size) for digest, size in blocks.sizes(run) if digest not in needed]
    if not dry_run:
        blocks.forget(run, [digest for digest, _ in gone])
    return Collected(len(gone), sum(size for _, size in gone))
