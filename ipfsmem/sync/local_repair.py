"""Repair this device's own data: lost objects of the state, damaged bookkeeping, damaged nodes of the state.

Lost objects are omitted from roots and requested again; damaged reference counts are recounted. Values in `meta` say
what is due. A read with a missing text imports this module too, so imports that only a sync needs are inside functions.

Damaged bookkeeping (rows and `meta` values about other devices and providers) is dropped before a sync, and rebuilt
where possible. Without such a row or value, a sync repeats some work; with a damaged one, every sync would fail. The
bookkeeping contains no text of the user. Irrecoverable losses are reported.

Damaged state nodes are restored from published copies of this device or others. State nodes name each other by hash (format
section 6.1), so their bytes prove themselves. The exact stored bytes are requested first, then the same node of the
newest known root. Local writes made after that root
exist nowhere else and are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import drop_lost, state_folder
from ipfsmem.device.tables import damaged_rows, marks, meta, reports
from ipfsmem.device.tables.reports import ReportRow
from ipfsmem.errors import DamagedError, IpfsmemError
from ipfsmem.sync.times import DAY_MS, passed

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch
    from ipfsmem.content.reader import Reader
    from ipfsmem.provider.contract import Provider
    from ipfsmem.sync.fetch import Fetcher
    from ipfsmem.sync.report import Notices

#: Replacement of a damaged `meta` value by name; None to remove it.
NOTES: Final[dict[str, bytes | None]] = {
    **dict.fromkeys(
        (
            meta.ANCHOR_PINS,
            meta.ANCHOR_BEHIND,
            meta.ASKED_FOR,
            meta.COLLECTED,
            meta.COMMIT,
            meta.DREAMS,
            meta.GONE_LATELY,
            meta.GUARD_PINS,
            meta.LISTS,
            meta.PAUSES,
            meta.PROVIDER_CACHES,
        )
    ),
    **dict.fromkeys((meta.MOVED_ANSWERED, meta.NAMES, meta.PUT, meta.ROOT, meta.SECRET_RULES, meta.SIGNED)),
    **dict.fromkeys((meta.NOTICES_SHOWN, meta.WHOLE)),
    **dict.fromkeys((meta.LACKING, meta.SENDING), b"1"),
    meta.COUNTED: b"0",
}


def leave_out(db: Database, digests: Iterable[bytes]) -> None:
    """Mark lost objects as missing, so that the next sync requests them and rebuilds the tree (inside a transaction)."""
    if drop_lost(db, digests):
        db.set_meta(meta.LACKING, b"1")
    db.set_meta(meta.WHOLE, b"")


def note_missing_text(db: Database) -> None:
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
    db, now = replica.db, replica.environment.now()
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


def recount_is_due(db: Database) -> bool:
    """Return whether rows of objects were lost and not yet recounted: unreferenced objects may still be needed."""
    return db.get_meta(meta.COUNTED) == b"0"


def forget_damaged_notes(replica: Replica, notices: Notices) -> None:
    """Drop damaged table rows, and damaged values of `NOTES`."""
    _forget_rows(replica, notices)
    _forget_values(replica, notices)


def _forget_rows(replica: Replica, notices: Notices) -> None:
    db = replica.db.connection
    tables = damaged_rows.tables(db)
    if not tables:
        return
    with replica.transaction():
        damaged_rows.forget(db, tables)
        if "objects" in tables:
            recount_now(replica.db)
        if "marks" in tables:
            marks.restore(db, replica.store.frame.hlc)
            _say(
                replica,
                notices,
                "marks-damaged",
                "this device's record of each device's newest version was damaged on the disk and rebuilt from the local versions; for a device without one here, an older version may be accepted as its newest once",
            )


def _forget_values(replica: Replica, notices: Notices) -> None:
    db = replica.db.connection
    if not any(meta.is_changed(db, name) for name in NOTES):
        return
    with replica.transaction():
        # Another process may have stored a sound one meanwhile.
        changed = [name for name in NOTES if meta.is_changed(db, name)]
        for name in changed:
            instead = NOTES[name]
            if instead is None:
                meta.forget(db, [name])
            else:
                replica.db.set_meta(name, instead)
        if meta.DREAMS in changed:
            _say(
                replica,
                notices,
                "dreams-damaged",
                "this device's record of the last dreams was damaged on the disk, so they cannot be undone. The revisions of a memory: ipfsmem history KEY",
            )
        if meta.NAMES in changed:
            _say(
                replica,
                notices,
                "names-damaged",
                "the signed records by which the wallet and the recovery phrase find this vault were damaged on the disk. Records at a provider remain valid. If nothing was published since the phrase was made, make a new one: ipfsmem key phrase",
            )


def _say(replica: Replica, notices: Notices, kind: str, text: str) -> None:
    """Report it in this sync, and store it for `check`: the loss remains even when this sync fails."""
    notices.say(kind, text)
    reports.add(replica.db.connection, ReportRow(replica.environment.now(), kind, text))


async def repair_state(replica: Replica, providers: Sequence[Provider]) -> bool:
    """Repair the damaged state nodes found by any process. Return True if there were some and all are repaired."""
    if replica.db.get_meta(meta.DAMAGED_STATE) is None:
        return False
    from ipfsmem.sync.fetch import Fetcher

    fetcher = Fetcher(replica.db, providers)
    tried: set[tuple[str, bytes]] = set()
    while damaged := _damaged_parts(replica):
        # Below a repaired node others may be damaged; unavailable ones are not requested again.
        if tried.issuperset(damaged):
            return False
        for part in damaged:
            if part not in tried:
                await _repair_part(replica, fetcher, *part)
        tried.update(damaged)
    with replica.transaction():
        meta.forget(replica.db.connection, [meta.DAMAGED_STATE])
        if tried:
            # Folders name nodes by their bytes, which may now be those of another device's node.
            state_folder(replica.db, replica.codec.extension, None)
            leave_out(replica.db, ())
    return True


def _damaged_parts(replica: Replica) -> list[tuple[str, bytes]]:
    replica.store.mark_outdated()
    with replica.reading():
        return replica.store.damaged_nodes()


async def _repair_part(replica: Replica, fetcher: Fetcher, prefix: str, digest: bytes) -> None:
    file = replica.store.file_of_node(prefix)
    if file is not None:
        blocks, _ = await fetcher.try_get([raw_cid(file)])
        if any(_put_back(replica, prefix, digest, stored) for stored in blocks.values()):
            return
    root = replica.db.get_meta(meta.ROOT)
    if root is None:
        return
    from ipfsmem.content.fetch import drive_async
    from ipfsmem.content.reader import Reader

    try:
        reading = _file_in(Reader(), parse_cid(root.decode()), prefix, replica.codec.extension)
        stored = await drive_async(reading, fetcher.get)
    except IpfsmemError:
        return  # unavailable now; readers are told that it is damaged
    _put_back(replica, prefix, digest, stored)


def _file_in(reader: Reader, root: CID, prefix: str, extension: str) -> Fetch[bytes]:
    """Return the file of node `prefix` in a root."""
    from ipfsmem.published.root_reader import MAX_NODE, read_root

    state = (yield from read_root(reader, root)).state
    if state is None:
        raise DamagedError(f"version {root} holds no state")
    path = (*prefix[:-1], f"{prefix[-1:] or 'top'}{extension}")
    entry = yield from reader.resolve(state, path)
    return (yield from reader.read_file(entry.cid, max_bytes=MAX_NODE))


def _put_back(replica: Replica, prefix: str, digest: bytes, stored: bytes) -> bool:
    with replica.transaction():
        return replica.store.restore_node(prefix, digest, stored)
