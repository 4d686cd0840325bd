"""Copies everything readable from a damaged database into a sound one in memory.

Each row is judged alone: a value of `meta` and a row of the journal by its checksum, a node of the tree by its hash, a block by
its digest. Rows that fail are left out and reported, and so are sessions kept on this device only, which go into no export. Only
the state proves that the tree is complete and current, and only the hash over the journal proves it for later changes: if they
are missing, that is reported too. The damaged file is opened read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from ipfsmem.causal.tree import TreeNode, open_tree, parse_node
from ipfsmem.causal.value import Entry, check_entry, decode_entry
from ipfsmem.device.codec import Codec
from ipfsmem.device.connection import (
    DAMAGED_HINT,
    Connection,
    DatabaseDamagedError,
    open_to_be_read,
    unusable,
    verdict,
)
from ipfsmem.device.database import Database
from ipfsmem.device.identity import Device, open_row
from ipfsmem.device.state import StateHeader, StateStore, locations, read_row, read_top
from ipfsmem.device.tables import (
    authors,
    blocks,
    held_texts,
    hidden,
    journal,
    meta,
    nodes,
    schema,
    sessions_here,
)
from ipfsmem.device.tables.nodes import NodeRow
from ipfsmem.errors import DamagedError, FormatError, IpfsmemError, OpenError, StorageError
from ipfsmem.ring.keyring import Ring
from ipfsmem.wording import count

T = TypeVar("T")

#: Values that are computed here, and need not be read.
_MADE_ANEW = (meta.STATE, meta.JOURNAL_CHAIN)


class Rescued(msgspec.Struct, frozen=True):
    """A sound database in memory, and descriptions of what could not be read."""

    db: Database
    lost: tuple[str, ...]


def rescue(path: Path, device: Device, codec: Codec, *, sealed: bool) -> Rescued:
    """Read everything readable from the database at `path`. `codec` receives the keys of the ring that is found; `sealed`:
    whether there must be one. Raises StorageError if nothing can be read."""
    lost: list[str] = []
    target = Database(None)
    try:
        with closing(_open(path)) as source, target.transaction():
            _check_file(source, lost)
            values = _values(source, lost)
            for name in values.keys() - set(_MADE_ANEW):
                target.set_meta(name, values[name])
            eks = _use_ring(device, codec, values.get(meta.RING), target, lost, sealed=sealed)
            held_texts.note_others(target.connection, _until_damage(source, held_texts.others, lost))
            written_over = _until_damage(source, lambda db: iter(authors.everyone(db).items()), lost)
            authors.put(target.connection, ((mark, " ".join(by)) for mark, by in written_over))
            kept = list(_kept(source, codec, lost))
            for mark, row, _ in kept:
                held_texts.keep(target.connection, mark, row)
            entries = _entries(source, codec, eks, values, lost)
            if lost and not entries:
                raise DatabaseDamagedError(f"{path} is unreadable", hint=DAMAGED_HINT)
            if schema.version(source) >= schema.HIDDEN:
                hidden.hide(target.connection, _until_damage(source, hidden.rows, lost))
            if schema.version(source) >= schema.SESSIONS_HERE:
                here = len(set(_until_damage(source, sessions_here.marks, lost)))
                lost += [f"{count(here, 'session')} kept on this device only"] if here else []
            held = [*entries.values(), *(entry for _, _, entry in kept)]
            digests = {bytes.fromhex(loc.sha) for entry in held for loc in locations(entry)}
            found = ((digest, data) for digest in digests if (data := _block(source, digest)) is not None)
            # A missing text is reported when it is read.
            StateStore(target, codec).apply(entries, StateHeader({}, {}), found)
    except BaseException:
        target.close()
        raise
    return Rescued(target, tuple(dict.fromkeys(lost)))


def _open(path: Path) -> Connection:
    db = open_to_be_read(path)
    try:
        if not schema.check(db):
            raise unusable(f"{path} is damaged: it is empty")
    except BaseException:
        db.close()
        raise
    return db


def _until_damage(db: Connection, rows: Callable[[Connection], Iterator[T]], lost: list[str]) -> Iterator[T]:
    """Yield rows of a table up to one that SQLite cannot get past."""
    try:
        yield from rows(db)
    except (StorageError, TypeError, AttributeError) as error:
        lost.append(f"data that SQLite cannot read ({error})")


def _check_file(source: Connection, lost: list[str]) -> None:
    """Report a fault that SQLite finds: then rows may be hidden even in tables without a proof of completeness."""
    try:
        found = verdict(source)
    except StorageError as error:
        found = str(error)
    if found != "ok":
        lost.append(f"rows may be missing ({found})")


def _values(source: Connection, lost: list[str]) -> dict[str, bytes]:
    found: dict[str, bytes | None] = {}
    for name, value in _until_damage(source, meta.everything, lost):
        found[name] = found.get(name) if value is None else value
    lost += [f"the value {name!r}, which does not have its checksum" for name in found if found[name] is None]
    return {name: value for name, value in found.items() if value is not None}


def _use_ring(
    device: Device, codec: Codec, stored: bytes | None, target: Database, lost: list[str], *, sealed: bool
) -> list[str]:
    """Give the codec the keys of the ring; returns the ids of all keys that may have sealed something."""
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
            "the encryption keys of this vault, without which none of its encrypted texts can be read"
        )
    return [""]


def _kept(source: Connection, codec: Codec, lost: list[str]) -> Iterator[tuple[bytes, bytes, Entry]]:
    """Yield own texts that others replaced, as stored and as read."""
    for mark, row in _until_damage(source, held_texts.kept_rows, lost):
        try:
            if not isinstance(mark, bytes) or not isinstance(row, bytes):
                raise FormatError("a row is of another type")
            entry = decode_entry("m/kept", codec.open_row(row))
            check_entry("m/kept", entry, published=False)
        except IpfsmemError:
            lost.append("an own text that others replaced")
        else:
            yield mark, row, entry


def _entries(
    source: Connection, codec: Codec, eks: list[str], values: dict[str, bytes], lost: list[str]
) -> dict[str, Entry]:
    state = values.get(meta.STATE)
    texts = _tree(source, codec, eks, state, lost)
    chain = b"" if state is None else journal.link(b"", state)
    rows = journal.readable if schema.version(source) > schema.FIRST else journal.without_checksums
    for seq, stored in _until_damage(source, rows, lost):
        chain = journal.link(chain, stored or b"")
        try:
            changes = read_row(codec, stored)[0] if stored is not None else None
        except (ValueError, FormatError, OpenError):
            changes = None
        if changes is None:
            lost.append(f"the change {seq}: its texts are as before")
        for name, text in (changes or {}).items():
            texts.pop(name, None)
            if text is not None:
                texts[name] = text
    if chain != values.get(meta.JOURNAL_CHAIN):
        lost.append("changes may be missing: older texts may have replaced newer ones")
    entries: dict[str, Entry] = {}
    for name, text in texts.items():
        try:
            entries[name] = decode_entry(name, text)
            check_entry(name, entries[name], published=False)
        except IpfsmemError as error:
            entries.pop(name, None)
            lost.append(f"{name}: {error}")
    return entries


def _tree(
    source: Connection, codec: Codec, eks: list[str], state: bytes | None, lost: list[str]
) -> dict[str, bytes]:
    """Return the texts of the tree. Nodes that the state does not reach may be outdated: they are used where nothing newer was
    found, and that is reported."""
    found: dict[tuple[str, bytes], TreeNode] = {}
    unread: list[tuple[str, bytes]] = []
    for row in _until_damage(source, nodes.rows, lost):
        node = _node(source, codec, eks, row)
        if node is None:
            unread.append((str(row.prefix), b""))
        else:
            found[node.prefix, node.digest] = node
    texts: dict[str, bytes] = {}
    doubtful = [""]
    try:
        top = None if state is None else read_top(codec, state)
    except (ValueError, FormatError, OpenError):
        lost.append("the state, which cannot be opened")
        top = None
    if top is not None:
        missed: list[tuple[str, bytes]] = []
        for part in open_tree(top, lambda prefix, digest: _found(found, prefix, digest)).readable(missed):
            texts.update(part.entries or {})
        doubtful = [prefix for prefix, _ in missed]
        unread += missed
    lost += [f"a part of the vault ({prefix or 'top'}) with its contents" for prefix, _ in unread]
    older = [node for node in found.values() if node.prefix.startswith(tuple(doubtful))]
    for node in sorted(older, key=lambda node: len(node.prefix)):
        texts.update(node.entries or {})
    if older:
        lost.append(
            f"{len(older)} parts of the vault may be older than the last writes: forgotten texts may be among them"
        )
    return texts


def _found(found: dict[tuple[str, bytes], TreeNode], prefix: str, digest: bytes) -> bytes:
    """Return the JSON of a node. Raises DamagedError if it was not found."""
    node = found.get((prefix, digest))
    if node is None:
        raise DamagedError(f"a part of the memory ({prefix or 'top'}) was not found")
    return node.raw


def _node(source: Connection, codec: Codec, eks: list[str], row: NodeRow) -> TreeNode | None:
    """Return a node of the tree if its stored bytes have the hash that its row names."""
    stored = _block(source, row.file)
    for ek in eks if stored is not None and isinstance(row.prefix, str) else ():
        try:
            return parse_node(row.prefix, codec.open_node(row.prefix, ek, stored or b""), row.hash)
        except (OpenError, FormatError, DamagedError):
            continue
    return None


def _block(source: Connection, digest: bytes) -> bytes | None:
    """Return a block that has its digest; None for any other."""
    try:
        data = blocks.get(source, digest)
    except StorageError:
        return None
    return data if isinstance(data, bytes) and sha256(data).digest() == digest else None
