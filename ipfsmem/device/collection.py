"""Letting go of blocks on this device that nothing needs any more: not the state, not a root that is kept.

Mark and sweep inside one transaction. Which roots are kept is decided above; what the state needs is never in question.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.content.cid import CID, PB_PREFIX
from ipfsmem.content.dagpb import decode_node
from ipfsmem.device.database import Database
from ipfsmem.device.last_change import undo_blocks
from ipfsmem.device.others_texts import kept_blocks
from ipfsmem.device.state import Store
from ipfsmem.device.tables import blocks, folders, nodes, objects, renders


class Collected(msgspec.Struct, frozen=True):
    """Blocks that went (or would), and their bytes."""

    blocks: int
    bytes: int


def reachable(db: Database, roots: Iterable[CID]) -> set[bytes]:
    """Digests of every block below `roots` that is here. A block that is missing ends its branch."""
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

    Texts that plain files stand for are what an edit of them is merged with; those of the key `forgotten` are not kept.
    """
    db = store.db
    needed = reachable(db, roots)
    run = db.connection
    needed.update(nodes.files(run), objects.digests(run), folders.digests(run))
    needed.update(store.located())
    needed.update(kept_blocks(store))
    needed.update(undo_blocks(store))
    needed.update(renders.texts_needed(run, forgotten or ""))
    gone = [(digest, size) for digest, size in blocks.sizes(run) if digest not in needed]
    if not dry_run:
        blocks.forget(run, [digest for digest, _ in gone])
    return Collected(len(gone), sum(size for _, size in gone))
