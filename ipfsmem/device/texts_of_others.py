"""Record, next to the state, the texts of other people and the person's own texts that these replaced (format section 5.2).

*Held*: a keyed hash of each text of another person, so that the text is attributed to that person when it is written
again. The row is kept when the text is deleted, since an agent that was shown the text may write it later. *Kept*:
the last own text of a memory that other people replaced, which agents see until there is a new own text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from ipfsmem.causal.authorship import author_of_copy, is_own
from ipfsmem.causal.entries import memory_name
from ipfsmem.causal.value import Entry, decode_entry, encode_entry
from ipfsmem.causal.view import siblings
from ipfsmem.device.connection import damaged
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateStore, locations
from ipfsmem.device.tables import held_texts, meta
from ipfsmem.errors import FormatError, OpenError


class _Known(msgspec.Struct, frozen=True):
    """Whether there are texts of others, and own texts that they replaced."""

    others: bool
    own: bool


def note_others(replica: Replica, entries: Mapping[str, Entry]) -> None:
    """Record the texts of others in these entries (inside a transaction)."""
    rows = [
        (mark(replica, value.body), author_of_copy(dot, value, replica.is_mine))
        for name, entry in entries.items()
        for dot, value in entry.items()
        if value.body is not None
        and not is_own(dot, value.author, replica.is_mine)
        and memory_name(name) is not None
    ]
    if rows:
        held_texts.note_others(replica.db.connection, rows)
        replica.caches.forget(_Known)


def reassign_authors(replica: Replica) -> None:
    """Rebuild the rows after a ring was joined that assigns a device to another person than before (inside a transaction).
    Usually this compares a few ids."""
    strangers = sorted(device for device in replica.store.frame.ctx if not replica.is_mine(device))
    stored = replica.db.get_meta(meta.STRANGERS)
    stored_authors = stored.decode().split() if stored else []
    if strangers == stored_authors:
        return
    if not set(stored_authors) <= set(strangers):
        held_texts.forget_others(replica.db.connection)
        replica.caches.forget(_Known)
    note_others(replica, dict(replica.store.entries()))
    replica.db.set_meta(meta.STRANGERS, " ".join(strangers).encode())


def keep_own(replica: Replica, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> None:
    """Keep the last own text of each memory that has only texts of others left, and drop it where there is an own text again or
    the memory is deleted (inside the transaction of the change). `before`, `after`: the changed entries."""
    run, mine = replica.db.connection, replica.is_mine
    some = _are_there(replica).own
    for name, entry in after.items():
        own = [is_own(dot, value.author, mine) for dot, value in entry.items()]
        if (not some and all(own)) or memory_name(name) is None:
            continue
        row_mark = mark(replica, hashlib.sha256(name.encode()).hexdigest())
        if any(own) or not entry or any(value.body is None for value in entry.values()):
            held_texts.forget_kept(run, row_mark)
            continue
        own_values = {dot: v for dot, v in before.get(name, {}).items() if is_own(dot, v.author, mine)}
        if last := siblings(own_values):
            dot = last[0].dots[0]
            row = replica.codec.seal_row(encode_entry({dot: own_values[dot]}))
            held_texts.keep(run, row_mark, row)
            replica.caches.forget(_Known)
            some = True


def with_retained_own(replica: Replica, name: str, entry: Entry) -> Entry:
    """Return the entry, with the kept own text under its old dot where others replaced every own one."""
    if not entry:
        return entry
    here = replica.device.id
    for dot, value in entry.items():
        if (not value.author and dot[:16] == here) or is_own(dot, value.author, replica.is_mine):
            return entry
    row_mark = mark(replica, hashlib.sha256(name.encode()).hexdigest())
    row = held_texts.kept(replica.db.connection, row_mark)
    return entry if row is None else entry | _kept_entry(replica.store, name, row)


def blocks_of_kept_texts(store: StateStore) -> set[bytes]:
    """Return the digests of the blocks that hold kept texts."""
    return {
        bytes.fromhex(loc.sha)
        for row in held_texts.all_kept(store.db.connection)
        for loc in locations(_kept_entry(store, "kept", row))
    }


def _kept_entry(store: StateStore, name: str, row: bytes) -> Entry:
    """Return a kept own text. Raises DatabaseDamagedError."""
    try:
        return decode_entry(name, store.codec.open_row(row))
    except (FormatError, OpenError):
        raise damaged(store.db.path, "an own text that others replaced cannot be read") from None


def author_of_text(replica: Replica, entry: Entry, body: str) -> str:
    """Return the author of the text with the hash `body`, as far as this device has seen it; "" if it is not another person's.
    `entry`: the entry that it is written to. If an own value has the same body too, the text is own."""
    whose = held_texts.whose(replica.db.connection, mark(replica, body))
    return "" if whose is None or _own_has(replica, entry, body) else whose


def any_others(replica: Replica) -> bool:
    """Return whether this device has held texts of others; usually not, as most vaults belong to one person."""
    return _are_there(replica).others


def _are_there(replica: Replica) -> _Known:
    return replica.caches.of(_Known, lambda: _Known(*held_texts.are_there(replica.db.connection)))


def forget_known(replica: Replica) -> None:
    """Have the tables read again: something else wrote into them."""
    replica.caches.forget(_Known)


def entries_of_others(replica: Replica) -> Iterator[tuple[str, Entry]]:
    """Yield the memories that hold a value of another person (inside `reading`)."""
    if any_others(replica):
        for name, entry in replica.store.entries():
            if memory_name(name) is not None and not all(
                is_own(dot, value.author, replica.is_mine) for dot, value in entry.items()
            ):
                yield name, entry


def _own_has(replica: Replica, entry: Entry, body: str) -> bool:
    """Return whether an own value has this body. Searches all entries, so it is called only when a text of others has it."""
    entries = replica.store.holding(body.encode())
    return any(
        value.body == body and is_own(dot, value.author, replica.is_mine)
        for one in (entry, *(one_entry for name, one_entry in entries if memory_name(name) is not None))
        for dot, value in one.items()
    )


def mark(replica: Replica, body: str) -> bytes:
    """Return a keyed hash of a hash (64 hex digits), so that a row reveals nothing to a thief of this device's disk."""
    return hashlib.blake2b(bytes.fromhex(body), digest_size=16, key=replica.device.row_key).digest()
