"""Build a scope's folder `memory/` in the plain layout (a base), with MEMORY.md, files and timeline (format section
6).

People and the loader of three.ws can read it. A base of one block is cached under a hash of its inputs, so that a
change in one scope needs no work in others. Must run in a transaction, right after a checkpoint with folders.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from hashlib import sha256

import msgspec

from ipfsmem import invisible_characters
from ipfsmem.bundle import header, index, memory_file, timeline
from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal import merge3, view
from ipfsmem.causal.cards import is_forgotten
from ipfsmem.causal.entries import card_entry, memory_name, segment_name
from ipfsmem.causal.value import Entry, Loc, encode_entry
from ipfsmem.content.cid import RAW_PREFIX
from ipfsmem.content.dagpb import RawLink
from ipfsmem.content.hamt import Hashed, name_hash
from ipfsmem.content.unixfs import SHARD_ABOVE, file_bytes
from ipfsmem.device.bulk import blocks_here
from ipfsmem.device.database import Database
from ipfsmem.device.events import Timeline
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import Folder, add_file, add_folder
from ipfsmem.device.source_hash import source_hash
from ipfsmem.device.state import locations
from ipfsmem.device.tables import folders, meta
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.overview import ScopeView, file_name
from ipfsmem.published.plain_hamt import flat_folder, forget_flat

#: Prefix of `folders` rows that cache a scope's timeline files, by day and by a hash of their inputs.
_DAY_ROW = "p/"


class Base(msgspec.Struct, frozen=True, array_like=True):
    """The folder `scopes/<scope>`.

    `files`: CIDs of its contents other than memories with one text; they may equal an object. `blocks`: digests of the blocks
    made for it.
    """

    code: bytes
    made_from: bytes
    cid: bytes
    size: int
    files: list[bytes]
    blocks: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Base)


class Bases:
    """The bases of all scopes of a replica except the default scope: cached and current."""

    def __init__(self, replica: Replica, memories: MemoryStore, lost: Collection[bytes]) -> None:
        """Load the cache. `lost`: digests of the objects that are not local, and so are in no root."""
        self._replica = replica
        self._lost = lost
        self._memories = memories
        self._known: dict[str, Base] = {}
        for name, stored in meta.sound(replica.db.connection, meta.PLAIN_FOLDER):
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):  # derived: rebuilt
                self._known[name[len(meta.PLAIN_FOLDER) :]] = _decoder.decode(stored)
        wanted = [digest for base in self._known.values() for digest in base.blocks]
        here = blocks_here(replica.db, wanted)
        self._known = {
            scope: base
            for scope, base in self._known.items()
            if base.code == _code() and here.issuperset(base.blocks)
        }

    def base(self, scope: str, scope_view: ScopeView) -> Base | None:
        """Return the folder of a scope; None if it is forgotten."""
        card = scope_view[1].get(card_entry(scope))
        if card is not None and is_forgotten(card):
            return None
        made_from = _made_from(self._replica, scope_view, self._lost)
        known = self._known.get(scope)
        if known is not None and known.made_from == made_from:
            return known
        db = self._replica.db
        links = base_links(self._replica, self._memories.in_scope(scope), scope_view, self._lost)
        inner = flat_folder(db, links.hashed, scope)
        cid, size = add_folder(db, [(b"memory", *inner)])
        blocks = [link_cid[4:] for link_cid in (cid, inner[0], *links.made)]
        made = Base(_code(), made_from, cid, size, links.files, blocks)
        if links.small:
            db.set_meta(meta.PLAIN_FOLDER + scope, _encode(made))
        else:
            # A folder of many blocks caches its own shards; this row only records that it exists.
            db.set_meta(meta.PLAIN_FOLDER + scope, b"")
        return made

    def forget_all_but(self, scopes: Mapping[str, object]) -> None:
        """Remove rows of scopes that no longer have a folder."""
        db = self._replica.db
        for name, _ in list(meta.sound(db.connection, meta.PLAIN_FOLDER)):
            scope = name[len(meta.PLAIN_FOLDER) :]
            if scope not in scopes:
                meta.forget(db.connection, [name])
                forget_flat(db, scope)
                folders.forget_between(db.connection, *_day_range(scope))


class Links(msgspec.Struct, frozen=True):
    """The contents of a base.

    `files`: CIDs other than a memory's one text; `made`: those built for it; `small`: each of these and the folder itself are one
    block.
    """

    hashed: list[Hashed]
    files: list[bytes]
    made: list[bytes]
    small: bool


def base_links(
    replica: Replica, memories: MemoryStore, scope_view: ScopeView, lost: Collection[bytes]
) -> Links:
    """Return the contents of the folder `memory/` of a scope."""
    seen, others = scope_view
    # The usual case: the body is the file, so its CID follows from the value.
    hashed: list[Hashed] = [
        (one.slot, (file_name(one.key), RAW_PREFIX + one.sha, one.size))
        for one in seen
        if one.sha not in lost
    ]
    texts, merges = _texts(replica, memories, others)
    index = (b"MEMORY.md", *_any_file(replica.db, memories.whole_index(scope_view).encode()))
    days = _days(replica, memories.scope, others)
    made = [*merges, index[1], *(cid for _, cid, _ in days)]
    small = all(cid[:4] == RAW_PREFIX for cid in made)
    links = [*texts, index]
    if days:
        links.append((b"timeline", *add_folder(replica.db, days)))
        made.append(links[-1][1])
    hashed += [(name_hash(link[0]), link) for link in links]
    size = sum([len(link[0]) + len(link[1]) + 6 for _, link in hashed])
    files = [cid for _, cid, _ in (*texts, index, *days)]
    return Links(hashed, files, made, small and size <= SHARD_ABOVE)


def _texts(
    replica: Replica, memories: MemoryStore, others: Mapping[str, Entry]
) -> tuple[list[RawLink], list[bytes]]:
    """Return links to the shown text and conflict copies of the other memories, and the CIDs of merged texts."""
    links: list[RawLink] = []
    merges: list[bytes] = []
    for name, entry in others.items():
        parsed = memory_name(name)
        if parsed is None:
            continue
        key = parsed.key
        if len(entry) == 1:
            # Its CID is known without reading it; a body that is not local is in no root.
            (value,) = entry.values()
            if value.loc is not None and _is_object_local(replica.db, value.loc):
                links.append((file_name(key), *_located(value.loc.sha, value.loc.size)))
            continue
        view = memories.whole_view(key, entry)
        if view.data is not None:
            links.append((file_name(key), *add_file(replica.db, view.data)))
            merges.append(links[-1][1])
        for copy in view.conflicts:
            loc = entry[copy.dot].loc
            if loc is not None and _is_object_local(replica.db, loc):
                links.append((copy.file.encode(), *_located(loc.sha, loc.size)))
    return links, merges


def _days(replica: Replica, scope: str, others: Mapping[str, Entry]) -> list[RawLink]:
    """Return one file per UTC day; a day with unchanged segments keeps its file."""
    segments: dict[str, list[str]] = {}
    for name, entry in others.items():
        segment = segment_name(name)
        if segment is not None and entry:
            # A segment that is not fetched is not yet in the file, so its state is part of the hash.
            segments.setdefault(segment.day, []).extend(
                f"{name} {value.body} {value.loc is not None and replica.db.has_block(bytes.fromhex(value.loc.sha))}"
                for value in entry.values()
            )
    run = replica.db.connection
    known = folders.between(run, *_day_range(scope))
    links: list[RawLink] = []
    kept: set[str] = set()
    timeline = Timeline(replica, scope)
    for day, made_from in segments.items():
        row = f"{_DAY_ROW}{scope}/{day}/{sha256(' '.join(sorted(made_from)).encode()).hexdigest()}"
        kept.add(row)
        file = known.get(row)
        if file is None or not replica.db.has_block(file[0][4:]):
            lines = [event_line(event) + b"\n" for event in timeline.events((day, day))]
            file = _any_file(replica.db, b"".join(lines))
            folders.put(run, row, file)
        links.append((f"{day}.jsonl".encode(), *file))
    folders.forget(run, known.keys() - kept)
    return links


def _day_range(scope: str) -> tuple[str, str]:
    return f"{_DAY_ROW}{scope}/", f"{_DAY_ROW}{scope}0"


def _made_from(replica: Replica, scope_view: ScopeView, lost: Collection[bytes]) -> bytes:
    """Hash all inputs of a base: texts, entries, and which of their objects are local."""
    seen, others = scope_view
    parts = sorted(
        [
            f"{one.key} {one.sha.hex()} {one.size} {one.sha in lost} {one.section} {one.line}".encode()
            for one in seen
        ]
    )
    places = {name: [bytes.fromhex(loc.sha) for loc in locations(entry)] for name, entry in others.items()}
    here = blocks_here(replica.db, {digest for digests in places.values() for digest in digests})
    for name, entry in sorted(others.items()):
        absent = [str(i) for i, digest in enumerate(places[name]) if digest not in here]
        parts.append(b"%b %b %b" % (name.encode(), encode_entry(entry), " ".join(absent).encode()))
    return sha256(b"\n".join(parts)).digest()


def _is_object_local(db: Database, loc: Loc) -> bool:
    """Tell whether a plain object is local, so that a root may name it."""
    return not loc.ek and db.has_block(bytes.fromhex(loc.sha))


def _located(sha: str, size: int) -> Folder:
    return RAW_PREFIX + bytes.fromhex(sha), size


def _any_file(db: Database, data: bytes) -> Folder:
    """Store a file of any length."""
    root, blocks = file_bytes(data)
    db.add_blocks((cid.digest, block) for cid, block in blocks)
    return root.cid.encode(), root.tsize


def _code() -> bytes:
    return source_hash(header, index, invisible_characters, memory_file, merge3, timeline, view)
