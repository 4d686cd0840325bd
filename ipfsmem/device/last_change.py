"""What this device's last write or forget took away and put there: enough to undo it, and no more than that one.

One sealed row beside the state, written in the transaction of the change itself. What a command changed that cannot be taken
back (a whole scope, an import) takes its place: who then asks to undo means that, and not the write before it. Edits of plain
files and what others wrote leave it alone. Undoing is done elsewhere; nothing here changes an entry.
"""

from __future__ import annotations

import msgspec

from ipfsmem.causal.value import Entry, decode_entry, encode_entry
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import Store, located
from ipfsmem.device.tables import meta


class LastChange(msgspec.Struct, frozen=True):
    """`gone` are the values that went, `came` the dots that stand there instead; `at` is in ms since 1970 UTC. Without a name
    it cannot be taken back, and `operation` says what was done."""

    operation: str
    name: str
    at: int
    gone: Entry
    came: tuple[str, ...]


class _Row(msgspec.Struct):
    operation: str
    name: str
    at: int
    gone: bytes
    came: tuple[str, ...]


_decoder = msgspec.json.Decoder(_Row)


def note_change(replica: Replica, operation: str, name: str, before: Entry, after: Entry) -> None:
    """Remember a change of one entry as the last one (inside its transaction). None at all is not remembered."""
    gone = {dot: value for dot, value in before.items() if dot not in after}
    came = tuple(dot for dot in after if dot not in before)
    if gone or came:
        row = _Row(operation, name, replica.world.now(), encode_entry(gone), came)
        replica.db.set_meta(meta.LAST_CHANGE, replica.codec.seal_row(msgspec.json.encode(row)))


def last_change(replica: Replica) -> LastChange | None:
    """The last change, None when there was none."""
    stored = replica.db.get_meta(meta.LAST_CHANGE)
    if stored is None:
        return None
    row = _decoder.decode(replica.codec.open_row(stored))
    gone = decode_entry(row.name, row.gone) if row.name else {}
    return LastChange(row.operation, row.name, row.at, gone, row.came)


def note_for_good(replica: Replica, done: str) -> None:
    """The last change cannot be taken back (inside its transaction). `done` says it, with whose it was: "the scope work was
    forgotten"."""
    row = _Row(done, "", replica.world.now(), b"", ())
    replica.db.set_meta(meta.LAST_CHANGE, replica.codec.seal_row(msgspec.json.encode(row)))


def undo_blocks(store: Store) -> set[bytes]:
    """The digests of the blocks that undoing needs."""
    stored = store.db.get_meta(meta.LAST_CHANGE)
    if stored is None:
        return set()
    row = _decoder.decode(store.codec.open_row(stored))
    if not row.name:
        return set()
    return {bytes.fromhex(loc.sha) for loc in located(decode_entry(row.name, row.gone))}
