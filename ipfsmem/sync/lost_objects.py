"""Objects of the state that turn out to be missing here: left out of roots and requested again. Damaged
reference counts are recounted.

Four values in `meta`, set and read here, say what is due. Nothing is requested here.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.content.cid import CID
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import let_go
from ipfsmem.device.tables import meta
from ipfsmem.sync.times import DAY_MS, passed


def leave_out(db: Database, digests: Iterable[bytes]) -> None:
    """Exclude lost objects from roots, request them again, and rebuild the tree (inside a transaction)."""
    if let_go(db, digests):
        db.set_meta(meta.LACKING, b"1")
    db.set_meta(meta.WHOLE, b"")


def miss(db: Database) -> None:
    """Note a missing text: the next sync, in any process, requests it and objects with damaged bytes (inside
    a transaction)."""
    if gone := db.drop_damaged():
        leave_out(db, gone)
    db.set_meta(meta.LACKING, b"1")


def note_whole(db: Database, root: CID) -> None:
    """Record that a root's tree holds all local data of the state (inside a transaction)."""
    db.set_meta(meta.WHOLE, str(root).encode())


def recount_when_due(replica: Replica) -> None:
    """Recount object references once a day: with a damaged count, a root would omit an object still in use."""
    db, now = replica.db, replica.world.now()
    stored = db.get_meta(meta.COUNTED)
    if stored is not None:
        if not passed(int(stored), now, DAY_MS):
            return
        if replica.store.recount():
            db.set_meta(meta.WHOLE, b"")
    db.set_meta(meta.COUNTED, str(now).encode())


def recount_now(db: Database) -> None:
    """Schedule a recount for the next publish because rows of objects were lost (inside a transaction)."""
    db.set_meta(meta.COUNTED, b"0")


def recounting(db: Database) -> bool:
    """Tell whether rows of objects were lost and not yet recounted: unnamed objects may still be needed."""
    return db.get_meta(meta.COUNTED) == b"0"
