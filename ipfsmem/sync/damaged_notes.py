"""Damaged local notes about other devices and providers: dropped before a sync, and rebuilt where possible.

User texts are not touched. Such a row or value would end every sync; without it, more is read, stored,
requested or counted again. Irrecoverable losses are reported.
"""

from __future__ import annotations

from typing import Final

from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import damaged_rows, marks, meta, reports
from ipfsmem.device.tables.reports import ReportRow
from ipfsmem.sync.lost_objects import recount_now
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
    reports.add(replica.db.connection, ReportRow(replica.world.now(), kind, text))
