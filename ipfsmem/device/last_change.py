"""Record the last write or forget of this device, with the data to undo it.

One sealed row, written in the transaction of the change itself. A change that cannot be undone (of a whole scope, an
import) replaces the row, so that an undo never reverts an older change. Edits of plain files and writes of others do
not touch it. Undo is in `memories.undo`.
"""

from __future__ import annotations

import msgspec

from ipfsmem.causal.value import Entry, decode_entry, encode_entry
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateStore, locations
from ipfsmem.device.tables import meta
from ipfsmem.device.writing import Writing


class LastChange(msgspec.Struct, frozen=True):
    """`name`: the entry; "" for a change that cannot be undone, which `operation` describes. `gone`: the values that it replaced,
    `came`: the new dots, `at`: ms since 1970 UTC."""

    operation: str
    name: str
    at: int
    gone: Entry
    came: tuple[str, ...]


class _ChangeRow(msgspec.Struct):
    operation: str
    name: str
    at: int
    gone: bytes
    came: tuple[str, ...]


def note_change(change: Writing, operation: str, name: str, before: Entry) -> None:
    """Record a change of one entry as the last one in its transaction, unless nothing was changed. `before`: the entry as it was."""
    after, replica = change.entry(name), change.replica
    gone = {dot: value for dot, value in before.items() if dot not in after}
    came = tuple(dot for dot in after if dot not in before)
    if gone or came:
        row = _ChangeRow(operation, name, replica.environment.now(), encode_entry(gone), came)
        change.set(meta.LAST_CHANGE, replica.codec.seal_row(msgspec.json.encode(row)))


def last_change(replica: Replica) -> LastChange | None:
    """Return the last change, if any."""
    stored = replica.db.get_meta(meta.LAST_CHANGE)
    if stored is None:
        return None
    row = msgspec.json.decode(replica.codec.open_row(stored), type=_ChangeRow)
    gone = decode_entry(row.name, row.gone) if row.name else {}
    return LastChange(row.operation, row.name, row.at, gone, row.came)


def note_irrevocable(replica: Replica, done: str) -> None:
    """Record that the last change cannot be undone (inside its transaction). `done` describes it: "the scope work was forgotten"."""
    row = _ChangeRow(done, "", replica.environment.now(), b"", ())
    replica.db.set_meta(meta.LAST_CHANGE, replica.codec.seal_row(msgspec.json.encode(row)))


def blocks_for_undo(store: StateStore) -> set[bytes]:
    """Return the digests of the blocks that undo needs."""
    stored = store.db.get_meta(meta.LAST_CHANGE)
    if stored is None:
        return set()
    row = msgspec.json.decode(store.codec.open_row(stored), type=_ChangeRow)
    if not row.name:
        return set()
    return {bytes.fromhex(loc.sha) for loc in locations(decode_entry(row.name, row.gone))}
