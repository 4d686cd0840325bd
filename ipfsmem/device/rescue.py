"""What can still be read of a damaged database, copied into a sound one in memory.

Each row counts for itself: a value of `meta` and a row of the journal by its checksum, a part of the tree by its hash, a block
by its digest. What does not have its own is left out and named. The damaged file is opened to be read only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from ipfsmem.causal.tree import Node, parse_node
from ipfsmem.causal.value import Entry, check_entry, decode_entry
from ipfsmem.device.codec import Codec
from ipfsmem.device.connection import (
    DAMAGED_HINT,
    Connection,
    DatabaseDamagedError,
    damaged,
    open_to_be_read,
)
from ipfsmem.device.database import Database
from ipfsmem.device.identity import Device, open_row
from ipfsmem.device.state import Frame, Store, link, locations, read_row
from ipfsmem.device.tables import authors, blocks, held_texts, journal, meta, nodes, schema
from ipfsmem.device.tables.nodes import NodeRow
from ipfsmem.errors import DamagedError, FormatError, IpfsmemError, OpenError, StorageError
from ipfsmem.ring.keyring import Ring

T = TypeVar("T")

#: Values that are made anew here, and need not be read.
_MADE_ANEW = (meta.STATE, meta.JOURNAL_CHAIN)


class Rescued(msgspec.Struct, frozen=True):
    """A sound database in memory, and what could not be read, in words."""

    db: Database
    lost: tuple[str, ...]


def rescue(folder: Path, device: Device, codec: Codec, *, sealed: bool) -> Rescued:
    """Read all that can be read of `state.db` in `folder`. `codec` gets the keys of the ring that is found; `sealed`: whether
    there must be one.

    Raises StorageError when nothing can be read.
    """
    path = folder / "state.db"
    lost: list[str] = []
    target = Database(None)
    try:
        with closing(_open(path)) as source, target.transaction():
            values = _values(source, lost)
            for name in values.keys() - set(_MADE_ANEW):
                target.set_meta(name, values[name])
            eks = _use_ring(device, codec, values.get(meta.RING), target, lost, sealed=sealed)
            held_texts.note_others(target.connection, _until_damage(source, held_texts.others, lost))
            written_over = _until_damage(source, lambda db: iter(authors.everyone(db).items()), lost)
            authors.put(target.connection, ((mark, " ".join(by)) for mark, by in written_over))
            for mark, row in _until_damage(source, held_texts.kept_rows, lost):
                held_texts.keep(target.connection, mark, row)
            entries = _entries(source, codec, eks, values, lost)
            if lost and not entries:
                raise DatabaseDamagedError(f"nothing can be read of {path}", hint=DAMAGED_HINT)
            digests = {bytes.fromhex(loc.sha) for entry in entries.values() for loc in locations(entry)}
            found = ((digest, data) for digest in digests if (data := _block(source, digest)) is not None)
            # A text that is not there is named by whoever reads it.
            Store(target, codec).apply(entries, Frame({}, {}), found)
    except BaseException:
        target.close()
        raise
    return Rescued(target, tuple(dict.fromkeys(lost)))


def _open(path: Path) -> Connection:
    db = open_to_be_read(path)
    try:
        if not schema.check(db):
            raise damaged(path, "it is empty")
    except BaseException:
        db.close()
        raise
    return db


def _until_damage(db: Connection, rows: Callable[[Connection], Iterator[T]], lost: list[str]) -> Iterator[T]:
    """Rows of a table, up to one that SQLite cannot find its way behind."""
    try:
        yield from rows(db)
    except (StorageError, TypeError, AttributeError) as error:
        lost.append(f"what SQLite cannot read ({error})")


def _values(source: Connection, lost: list[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, value in _until_damage(source, meta.everything, lost):
        if value is not None:
            found[name] = value
        else:
            lost.append(f"the value {name!r}, which does not have its checksum")
    return found


def _use_ring(
    device: Device, codec: Codec, stored: bytes | None, target: Database, lost: list[str], *, sealed: bool
) -> list[str]:
    """Give the codec the keys of the ring; the ids of all keys under which something may lie."""
    if stored is not None:
        try:
            ring = Ring.restore(open_row(device.row_key, stored))
        except (OpenError, FormatError):
            meta.forget(target.connection, [meta.RING])
        else:
            codec.use_ring(ring)
            return ["", *dict.fromkeys(key.id for key in (*ring.keys, *ring.spare))]
    if sealed:
        lost.append(
            "the encryption keys of this memory, without which none of its encrypted texts can be read"
        )
    return [""]


def _entries(
    source: Connection, codec: Codec, eks: list[str], values: dict[str, bytes], lost: list[str]
) -> dict[str, Entry]:
    texts: dict[str, bytes] = {}
    for row in _until_damage(source, nodes.rows, lost):
        node = _node(source, codec, eks, row)
        if node is None:
            lost.append(f"a part of the memory ({str(row.prefix) or 'top'}), with whatever stands in it")
        else:
            texts.update(node.entries or {})
    state = values.get(meta.STATE)
    chain = b"" if state is None else link(b"", state)
    sound = True
    for seq, stored in _until_damage(source, journal.readable, lost):
        chain = link(chain, stored or b"")
        try:
            changes = read_row(codec, stored)[0] if stored is not None else None
        except (ValueError, FormatError, OpenError):
            changes = None
        if changes is None:
            sound = False
            lost.append(f"the change {seq}: what it changed stands as it was before")
        for name, text in (changes or {}).items():
            texts.pop(name, None)
            if text is not None:
                texts[name] = text
    if sound and meta.STATE in values and chain != values.get(meta.JOURNAL_CHAIN, chain):
        lost.append(
            "changes that are missing or not in their order: an older text may stand in the place of a newer one"
        )
    entries: dict[str, Entry] = {}
    for name, text in texts.items():
        try:
            entries[name] = decode_entry(name, text)
            check_entry(name, entries[name], published=False)
        except IpfsmemError as error:
            entries.pop(name, None)
            lost.append(f"{name}: {error}")
    return entries


def _node(source: Connection, codec: Codec, eks: list[str], row: NodeRow) -> Node | None:
    """A part of the tree, when what is stored has the hash that its row names."""
    stored = _block(source, row.file)
    for ek in eks if stored is not None and isinstance(row.prefix, str) else ():
        try:
            return parse_node(row.prefix, codec.open_node(row.prefix, ek, stored or b""), row.hash)
        except (OpenError, FormatError, DamagedError):
            continue
    return None


def _block(source: Connection, digest: bytes) -> bytes | None:
    """A block that has its digest; None for every other."""
    try:
        data = blocks.get(source, digest)
    except StorageError:
        return None
    return data if isinstance(data, bytes) and sha256(data).digest() == digest else None
