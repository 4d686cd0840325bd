"""Recover data from a damaged database, and from a write-ahead log that was removed under a running process.

Of a damaged database everything readable is copied into a sound one in memory. Each row is judged alone: a value of
`meta` and a row of the journal by its checksum, a node of the tree by its hash, a block by its digest. Rows that fail
are omitted and reported, and so are sessions kept on this device only, which go into no export. Only the state proves
that the tree is complete and current, and only the hash over the journal proves it for later changes: if they are
missing, that is reported too. The damaged file is opened read-only.

A process whose WAL was removed still reads it and saves a copy (`Database.abandon_if_replaced`). Others may meanwhile
have written under the same counters: two copies of one device. Acknowledged writes that only the copy has are written
here under new dots, in one transaction.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ipfsmem import canonical
from ipfsmem.bundle.timeline import own_id, parse_lines, segment_lines
from ipfsmem.causal.entries import MemoryName, memory_entry, memory_name, parse_entry, segment_name
from ipfsmem.causal.own_copies import unsigned_copies
from ipfsmem.causal.salvage import is_known_text
from ipfsmem.causal.state import covers
from ipfsmem.causal.tree import TreeNode, open_tree, parse_node
from ipfsmem.causal.value import Entry, Value, check_entry, decode_entry, same_identity
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
from ipfsmem.device.database_file import orphan_copies
from ipfsmem.device.events import Timeline
from ipfsmem.device.identity import Device, open_row
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.device.state import StateHeader, StateStore, locations, read_frame, read_row, read_top
from ipfsmem.device.tables import (
    authors,
    blocks,
    held_texts,
    hidden,
    journal,
    meta,
    nodes,
    reports,
    schema,
    sessions_here,
)
from ipfsmem.device.tables.nodes import NodeRow
from ipfsmem.device.tables.reports import ReportRow
from ipfsmem.device.tables.working_copies import Copies
from ipfsmem.device.texts_of_others import forget_known
from ipfsmem.device.writing import Writing
from ipfsmem.errors import (
    DamagedError,
    FormatError,
    IpfsmemError,
    LimitError,
    NotFoundError,
    OpenError,
    StorageError,
)
from ipfsmem.files.folder import PlainFolder
from ipfsmem.ring.keyring import Ring
from ipfsmem.vault.unlocking import codec_for
from ipfsmem.wording import count

T = TypeVar("T")

#: Values that are computed here, and need not be read.
_MADE_ANEW = (meta.STATE, meta.JOURNAL_CHAIN)
_log = logging.getLogger("ipfsmem.database")
#: Characters of the key kept before the hash, for a text that does not fit into its memory.
_STEM = 40


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
            rescued_rows = list(_kept(source, codec, lost))
            for mark, row, _ in rescued_rows:
                held_texts.keep(target.connection, mark, row)
            entries = _entries(source, codec, eks, values, lost)
            if lost and not entries:
                raise DatabaseDamagedError(f"{path} is unreadable", hint=DAMAGED_HINT)
            if schema.version(source) >= schema.HIDDEN:
                hidden.hide(target.connection, _until_damage(source, hidden.rows, lost))
            if schema.version(source) >= schema.SESSIONS_HERE:
                here = len(set(_until_damage(source, sessions_here.marks, lost)))
                lost += [f"{count(here, 'session')} kept on this device only"] if here else []
            all_entries = [*entries.values(), *(entry for _, _, entry in rescued_rows)]
            digests = {bytes.fromhex(loc.sha) for entry in all_entries for loc in locations(entry)}
            object_blocks = (
                (digest, data) for digest in digests if (data := _block(source, digest)) is not None
            )
            # A missing text is reported when it is read.
            StateStore(target, codec).apply(entries, StateHeader({}, {}), object_blocks)
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
        outcome = verdict(source)
    except StorageError as error:
        outcome = str(error)
    if outcome != "ok":
        lost.append(f"rows may be missing ({outcome})")


def _values(source: Connection, lost: list[str]) -> dict[str, bytes]:
    values: dict[str, bytes | None] = {}
    for name, value in _until_damage(source, meta.everything, lost):
        values[name] = values.get(name) if value is None else value
    lost += [
        f"the value {name!r}, which does not have its checksum" for name in values if values[name] is None
    ]
    return {name: value for name, value in values.items() if value is not None}


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


def merge_left_copies(replica: Replica) -> None:
    """Merge all copies in this vault's folder and remove them. One that cannot be merged now stays and is logged."""
    assert replica.folder is not None
    for path in orphan_copies(replica.folder):
        try:
            with replica.transaction():
                text = _merge(replica, path) if path.exists() else ""
                if text:
                    reports.add(
                        replica.db.connection, ReportRow(replica.environment.now(), "removed-log", text)
                    )
        except IpfsmemError as error:
            _log.error(
                "the log of %s was removed while a program had it open. The texts that only that log had are in %s and were not merged: %s",
                replica.db.path,
                path,
                error,
            )
            continue
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        if text:
            _log.warning("%s", text)


def _merge(replica: Replica, path: Path) -> str:
    """Write what only the copy at `path` has (inside a transaction). Return the message for the user, or ""."""
    lost: tuple[str, ...] = ()
    try:
        copy = _read(replica, path)
    except IpfsmemError:
        copy, lost = _rescue(replica, path)
    with contextlib.closing(copy):
        if copy.ring is not None:
            replica.set_ring(copy.ring if replica.ring is None else replica.ring.join(copy.ring))
        merging = _Merging(replica, copy, whole=not lost)
        merging.texts()
        merging.rows()
        merging.links()
    lost += tuple(merging.without)
    back = [*merging.back, *([count(merging.events, "event")] if merging.events else [])]
    if not back and not lost:
        return ""
    message = (
        f"the log of {replica.db.path} was removed while a program had it open; "
        f"from a copy of that log came back: {', '.join(back[:5]) or 'nothing'}"
    )
    if len(back) > 5:
        message += f" and {len(back) - 5} more"
    return message + (f". Lost: {'; '.join(dict.fromkeys(lost))}" if lost else "")


def _read(replica: Replica, path: Path) -> Replica:
    """Read a complete copy into memory. Raises StorageError for an incomplete one."""
    db = Database(None)
    try:
        with contextlib.closing(open_to_be_read(path)) as source:
            source.commit()
            source.backup(db.connection)
        if (outcome := db.verdict()) != "ok":
            raise StorageError(outcome)
        copy = _in_memory(replica, db)
        for _ in copy.store.texts():
            pass
        return copy
    except BaseException:
        db.close()
        raise


def _rescue(replica: Replica, path: Path) -> tuple[Replica, tuple[str, ...]]:
    """Read what is readable of a copy that others wrote to while it was made; also return what is not."""
    device, config = replica.first_device, replica.config
    rescued = rescue(path, device, codec_for(config, device, replica.environment), sealed=config.mode.sealed)
    return _in_memory(replica, rescued.db), rescued.lost


def _in_memory(replica: Replica, db: Database) -> Replica:
    device = replica.first_device
    codec = codec_for(replica.config, device, replica.environment)
    return Replica(None, replica.config, device, codec, replica.environment, db=db)


class _Merging:
    """One copy and the database. `back`, `events`: what was recovered; `without`: descriptions of what could
    not be kept."""

    def __init__(self, replica: Replica, copy: Replica, *, whole: bool) -> None:
        self._replica = replica
        self._copy = copy
        self._whole = whole
        self._common = _common_count(replica, copy)
        self.back: list[str] = []
        self.events = 0
        self.without: list[str] = []

    def _knew(self, ctx: Mapping[str, int], dot: str) -> bool:
        """Tell whether the side with this `ctx` knew a write of the other side."""
        if dot[:16] == self._replica.device.id:
            return int(dot[17:]) <= self._common
        return covers(ctx, dot)

    def texts(self) -> None:
        """Merge memories, events and all other entries."""
        store, copy = self._replica.store, self._copy.store
        here, there = dict(store.texts()), dict(copy.texts())
        # Cards sort first: nothing is written into a scope without a card.
        changed = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
        newest = max(store.frame.hlc, copy.frame.hlc)
        if newest != store.frame.hlc:
            store.apply({}, StateHeader(store.frame.ctx, store.frame.seen, newest))
        change = Writing(self._replica)
        lines: dict[str, list[bytes]] = {}
        for name in changed:
            segment = segment_name(name)
            if segment is None:
                self._one(change, name, store.entry(name), copy.entry(name))
            elif segment.dev in (self._replica.device.id, self._copy.device.id):
                self._segment(change, name, lines.setdefault(segment.scope, []))
        for scope, scope_lines in lines.items():
            self._events(change, scope, scope_lines)
        change.commit()

    def _segment(self, change: Writing, name: str, lines: list[bytes]) -> None:
        """Merge the lines of a segment of this device, or its deletion."""
        ours, theirs = self._replica.store.entry(name), self._copy.store.entry(name)
        for value in theirs.values():
            body = self._copy.store.body(name, value)
            if body is None:
                self.without.append("events of a day")
            else:
                lines += segment_lines(body)
        if not theirs and self._whole:
            there = self._copy.store.frame.ctx
            change.remove(name, [dot for dot in ours if self._knew(there, dot)])

    def _events(self, change: Writing, scope: str, lines: list[bytes]) -> None:
        """Append the missing events. An event whose id was reused here gets a new id."""
        if not lines or scope_forgotten(self._replica.store, scope):
            return
        db, mine = self._replica.db, self._replica.device.id
        timeline = Timeline(self._replica, scope)
        known = timeline.events()
        ids = {str(event["id"]) for event in known}
        there = {_without_id(event) for event in known}
        n = max(_counted(self._replica), _counted(self._copy))
        new: list[dict[str, Any]] = []
        for event in parse_lines(b"\n".join(lines) + b"\n"):
            if _without_id(event) in there:
                continue
            if str(event["id"]) in ids:
                n += 1
                event = {**event, "id": own_id(mine, n)}
            new.append(event)
        if new:
            db.set_meta(meta.EVENTS, str(n).encode())
            timeline.add_lines(change, new)
            self.events += len(new)

    def _one(self, change: Writing, name: str, ours: Entry, theirs: Entry) -> None:
        here, there = self._replica.store.frame.ctx, self._copy.store.frame.ctx
        gone = [dot for dot in ours if self._whole and dot not in theirs and self._knew(there, dot)]
        left = [value for dot, value in ours.items() if dot not in gone]
        news = [
            (dot, value)
            for dot, value in theirs.items()
            if not (dot in ours and same_identity(value, ours[dot]))
            and not self._knew(here, dot)
            and not is_known_text(value, left)
        ]
        if gone:
            change.remove(name, gone)
        for value in sorted(unsigned_copies(name, news, self._replica.is_mine), key=lambda one: one.h):
            if self._put(change, name, value):
                self.back.append(_shown(name))

    def _put(self, change: Writing, name: str, value: Value) -> bool:
        """Write one value next to the existing ones, or under its own key when it does not fit."""
        body = None
        if value.body is not None:
            body = self._copy.store.body(name, value)
            if body is None:
                self.without.append(f"the text of {_shown(name)}")
                return False
            assert value.loc is not None
            block = self._copy.db.block(bytes.fromhex(value.loc.sha))
            if block is not None:
                self._replica.db.add_blocks([(bytes.fromhex(value.loc.sha), block)])
            if not value.loc.ek and self._replica.vault_tag is not None:
                self._replica.db.set_meta(meta.LOCAL_BODIES, b"1")
            if value.base is not None:
                base = self._copy.db.block(bytes.fromhex(value.base.sha))
                if base is not None:
                    self._replica.db.add_blocks([(bytes.fromhex(value.base.sha), base)])
        try:
            change.write_again(name, value)
        except NotFoundError:
            if body is not None:  # a forget inside a forgotten scope has nothing left to hide
                self.without.append(f"{_shown(name)}, whose scope was forgotten")
            return False
        except LimitError:
            memory = memory_name(name)
            if memory is None or body is None or value.body is None:
                self.without.append(_shown(name))
                return False
            key = f"{memory.key[:_STEM]}-{value.body[:16]}"
            change.write_alternative(memory_entry(key, memory.scope), body, of=value.author)
        return True

    def rows(self) -> None:
        """Merge local data: sessions kept here, hidden texts, replaced own texts, and authorship of texts."""
        db, there = self._replica.db.connection, self._copy.db.connection
        for mark in list(sessions_here.marks(there)):
            ours, theirs = list(sessions_here.rows(db, mark)), list(sessions_here.rows(there, mark))
            own_rows = {row for _, row in ours}
            new = [row for _, row in theirs if row not in own_rows]
            first = ours[-1][0] + 1 if ours else 1
            sessions_here.add(db, mark, enumerate(new, first))
            if new:
                self.back.append("a session")
        known = {mark for mark, _ in hidden.rows(db)}
        hidden.hide(db, [(mark, row) for mark, row in hidden.rows(there) if mark not in known])
        held_texts.note_others(db, list(held_texts.others(there)))
        for mark, row in held_texts.kept_rows(there):
            if held_texts.kept(db, mark) is None:
                held_texts.keep(db, mark, row)
        forget_known(self._replica)
        by = authors.everyone(db)
        authors.put(
            db, [(mark, " ".join(names)) for mark, names in authors.everyone(there).items() if mark not in by]
        )

    def links(self) -> None:
        """Link again folders linked only in that log that still carry its marker; their contents are read again."""
        rows = Copies(self._replica.db.connection, self._replica.codec.cover)
        here = rows.all()
        known = {value for row in here for value in (row.id, row.path)}
        for row in Copies(self._copy.db.connection, self._copy.codec.cover).all():
            if not row.path or known & {row.id, row.path}:
                continue
            try:
                with contextlib.closing(PlainFolder(Path(row.path))) as folder:
                    if folder.marker() != row.id:
                        continue  # unlinked meanwhile
            except StorageError:
                self.without.append(f"the link of {row.path}, which cannot be read now")
                continue
            rows.put(msgspec.structs.replace(row, lines=b"", in_step=b"", vanished=b""))
            self.back.append(f"the link of {row.path}")


def _common_count(replica: Replica, copy: Replica) -> int:
    """Return a count up to which both surely wrote the same under this device's id: a lower bound.

    Later texts may appear twice, or reappear after a delete; none is lost.
    """
    mine = replica.device.id
    greatest = 0
    ours, theirs = replica.store.frame.seen.get(mine), copy.store.frame.seen.get(mine)
    if ours is not None and theirs is not None and (ours.n, ours.r) == (theirs.n, theirs.r):
        greatest = ours.n
    for name, entry in replica.store.entries():
        for dot, value in entry.items():
            if dot[:16] == mine and int(dot[17:]) > greatest:
                other = copy.store.entry(name).get(dot)
                if other is not None and same_identity(value, other):
                    greatest = int(dot[17:])
    state = replica.db.get_meta(meta.STATE)
    if state == copy.db.get_meta(meta.STATE):
        frame = StateHeader({}, {}) if state is None else read_frame(replica.codec, state)
        both = zip(journal.rows(replica.db.connection), journal.rows(copy.db.connection), strict=False)
        for (_, row), _ in takewhile(lambda pair: pair[0] == pair[1], both):
            _, frame = read_row(replica.codec, row)
        greatest = max(greatest, frame.ctx.get(mine, 0))
    return greatest


def _counted(replica: Replica) -> int:
    """Return the number of this device's last event."""
    return int(replica.db.get_meta(meta.EVENTS) or b"0")


def _without_id(event: Mapping[str, Any]) -> bytes:
    """Return an event's content without its id."""
    return canonical.encode({name: value for name, value in event.items() if name != "id"})


def _shown(name: str) -> str:
    """Return an entry's display name."""
    parsed = parse_entry(name)
    if isinstance(parsed, MemoryName):
        return f"{parsed.scope}/{parsed.key}" if parsed.scope else parsed.key
    return f"the scope {parsed.scope}" if parsed.scope else "an event"
