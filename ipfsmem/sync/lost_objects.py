"""Objects that the state names and that turned out not to be on this device: they are left out of roots and asked for again.
Where the disk changed how often an object is named, that is counted anew.

Four values in `meta` say what is due; here they are set and read. Nothing is asked for here.
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
    """Objects that turned out to be lost stand in no root from now on, are asked for again, and the tree is made anew
    (inside a transaction)."""
    if let_go(db, digests):
        db.set_meta(meta.LACKING, b"1")
    db.set_meta(meta.WHOLE, b"")


def miss(db: Database) -> None:
    """A text turned out not to be here: the next sync asks for it, and for objects whose bytes the disk changed, whichever
    process syncs (inside a transaction)."""
    if gone := db.drop_damaged():
        leave_out(db, gone)
    db.set_meta(meta.LACKING, b"1")


def note_whole(db: Database, root: CID) -> None:
    """Remember that the tree of a root holds all that this device holds of the state (inside a transaction)."""
    db.set_meta(meta.WHOLE, str(root).encode())


def recount_when_due(replica: Replica) -> None:
    """Count once a day how often each object is named: with a count that the disk changed, a root would leave out an object that is
    still named."""
    db, now = replica.db, replica.world.now()
    stored = db.get_meta(meta.COUNTED)
    if stored is not None:
        if not passed(int(stored), now, DAY_MS):
            return
        if replica.store.recount():
            db.set_meta(meta.WHOLE, b"")
    db.set_meta(meta.COUNTED, str(now).encode())


def recount_now(db: Database) -> None:
    """Rows of objects were lost: the next publish counts them anew (inside a transaction)."""
    db.set_meta(meta.COUNTED, b"0")


def counting_anew(db: Database) -> bool:
    """Whether rows of objects were lost and are not counted anew yet: what they do not name may be needed all the same."""
    return db.get_meta(meta.COUNTED) == b"0"
