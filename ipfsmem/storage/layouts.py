"""What a published root holds in each publishing mode (format section 6): the sealed layout and the plain one.

A layout puts the blocks of a root among the replica's blocks and answers its CID. It decides no content: commit and
ring come in as they are. Must run inside a transaction, right after a checkpoint with folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal.entries import memory_name, segment_name
from ipfsmem.causal.tree import DIGITS, is_leaf
from ipfsmem.causal.value import Entry, Loc
from ipfsmem.content.cid import CID, RAW_PREFIX, decode_cid
from ipfsmem.content.dagpb import RawLink
from ipfsmem.content.hamt import name_hash
from ipfsmem.content.unixfs import file_bytes
from ipfsmem.replica.database import Database
from ipfsmem.replica.events import Timeline
from ipfsmem.replica.folders import (
    Folder,
    add_file,
    add_folder,
    objects_folder,
    objects_not_here,
    state_folder,
)
from ipfsmem.replica.many import no_collection
from ipfsmem.replica.replica import Replica
from ipfsmem.storage.flat_folder import flat_folder
from ipfsmem.storage.memories import Memories
from ipfsmem.storage.secret_check import SecretCheck
from ipfsmem.storage.shown import file_name

#: Rows of `folders` that remember the timeline files of the plain layout, by day and by what went into them.
_DAY_ROW = "p"


class SealedLayout:
    """`keyring.json`, `head.ipm`, `s/`, `o/`: nothing that can be read without a key but the ring's public part."""

    def __init__(self, check: SecretCheck | None = None) -> None:
        """`check` is told of every new text just before the root is made."""
        self._check = check

    def build(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        """The root for a sealed commit and the ring beside it."""
        if self._check is not None:
            self._check.look(replica)
        db = replica.db
        links: list[RawLink] = [
            (b"keyring.json", *add_file(db, keyring)),
            (b"head.ipm", *add_file(db, head)),
            (b"s", *state_folder(db, replica.codec.extension, ())),
        ]
        objects = objects_folder(db)
        if objects:
            links.append((b"o", *objects))
        return decode_cid(add_folder(db, links)[0])


class PlainLayout:
    """`memory/` as people read it, and under `memory/.ipfsmem/` what a device needs to join it.

    `memories` and `timeline` are those of the replica that is published; their caches make a publish cheap.
    `check` may stop it: it sees every new text in the transaction that decides what is published.
    """

    def __init__(self, memories: Memories, timeline: Timeline, check: SecretCheck | None = None) -> None:
        self._memories = memories
        self._timeline = timeline
        self._check = check

    def build(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        """The root for a plain commit and the ring beside it. Raises SecretsError."""
        if self._check is not None:
            self._check.look(replica)
        with no_collection():
            return self._root(replica, head, keyring)

    def _root(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        db = replica.db
        looked = seen, others = self._memories.overview.look(keep=True)
        lost = objects_not_here(db)
        if lost:
            seen = [one for one in seen if one.sha not in lost]
        # The usual case: the body is the file, so its CID follows from the value.
        hashed = [(one.slot, (file_name(one.key), RAW_PREFIX + one.sha, one.size)) for one in seen]
        files = self._texts(replica, others)
        files.append((b"MEMORY.md", *_any_file(db, self._memories.whole_index(looked).encode())))
        days = self._days(replica, others)
        shown = {RAW_PREFIX + one.sha for one in seen}
        shown.update(cid for _, cid, _ in (*files, *days))
        inner: list[RawLink] = [
            (b"commit.json", *add_file(db, head)),
            (b"keyring.json", *add_file(db, keyring)),
            (b"s", *state_folder(db, replica.codec.extension, ())),
        ]
        objects = _hidden_objects(db, shown)
        if objects:
            inner.append((b"o", *objects))
        files.append((b".ipfsmem", *add_folder(db, inner)))
        if days:
            files.append((b"timeline", *add_folder(db, days)))
        hashed += [(name_hash(link[0]), link) for link in files]
        return decode_cid(add_folder(db, [(b"memory", *flat_folder(db, hashed))])[0])

    def _texts(self, replica: Replica, others: Mapping[str, Entry]) -> list[RawLink]:
        """The shown text of the other memories, and their conflict copies."""
        links: list[RawLink] = []
        for name, entry in others.items():
            parsed = memory_name(name)
            if parsed is None:
                continue
            key = parsed.key
            if len(entry) == 1:
                # Its CID is known without reading it; what is not here stands in no root.
                (value,) = entry.values()
                if value.loc is not None and _stands(replica.db, value.loc):
                    links.append((file_name(key), *_located(value.loc.sha, value.loc.size)))
                continue
            view = self._memories.whole_view(key, entry)
            if view.data is not None:
                links.append((file_name(key), *add_file(replica.db, view.data)))
            for copy in view.conflicts:
                loc = entry[copy.dot].loc
                if loc is not None and _stands(replica.db, loc):
                    links.append((copy.file.encode(), *_located(loc.sha, loc.size)))
        return links

    def _days(self, replica: Replica, others: Mapping[str, Entry]) -> list[RawLink]:
        """One file for each UTC day; a day whose segments did not change keeps its file."""
        segments: dict[str, list[str]] = {}
        for name, entry in others.items():
            segment = segment_name(name)
            if segment is not None and entry:
                # What is not fetched is not in the file yet, so it is part of what the file was made from.
                segments.setdefault(segment.day, []).extend(
                    f"{name} {value.body} {value.loc is not None and replica.db.has_block(bytes.fromhex(value.loc.sha))}"
                    for value in entry.values()
                )
        run = replica.db.connection
        known = {
            row[0]: (bytes(row[1]), row[2])
            for row in run.execute("SELECT path, cid, size FROM folders WHERE path >= 'p' AND path < 'q'")
        }
        links: list[RawLink] = []
        kept: set[str] = set()
        for day, made_from in segments.items():
            row = f"{_DAY_ROW}{day}/{sha256(' '.join(sorted(made_from)).encode()).hexdigest()}"
            kept.add(row)
            file = known.get(row)
            if file is None or not replica.db.has_block(file[0][4:]):
                lines = [event_line(event) + b"\n" for event in self._timeline.events((day, day))]
                file = _any_file(replica.db, b"".join(lines))
                run.execute("INSERT OR REPLACE INTO folders VALUES (?,?,?)", (row, *file))
            links.append((f"{day}.jsonl".encode(), *file))
        run.executemany("DELETE FROM folders WHERE path=?", [(row,) for row in known.keys() - kept])
        return links


def _stands(db: Database, loc: Loc) -> bool:
    """Whether a plain object is here, so that a root may name it."""
    return not loc.ek and db.has_block(bytes.fromhex(loc.sha))


def _located(sha: str, size: int) -> Folder:
    return RAW_PREFIX + bytes.fromhex(sha), size


def _any_file(db: Database, data: bytes) -> Folder:
    """Keep a file of any length."""
    root, blocks = file_bytes(data)
    db.add_blocks((cid.digest, block) for cid, block in blocks)
    return root.cid.encode(), root.tsize


def _hidden_objects(db: Database, shown: Iterable[bytes]) -> Folder | None:
    """The folder `o/` of all objects that no file above equals (by CID: of one block each); None when all stand above."""
    above = set(shown)
    rows = [
        (name, RAW_PREFIX + bytes(digest), size)
        for name, digest, size in db.connection.execute(
            "SELECT name, digest, size FROM objects WHERE held=1 ORDER BY name"
        )
    ]
    rows = [row for row in rows if row[1] not in above]
    return _prefix_folder(db, rows, 0) if rows else None


def _prefix_folder(db: Database, rows: Sequence[tuple[str, bytes, int]], depth: int) -> Folder:
    """A folder by the prefix rule of format section 6.1, where each object has a size of 1."""
    if is_leaf(len(rows), len(rows), depth):
        return add_folder(db, [(name.encode(), cid, size) for name, cid, size in rows])
    below: dict[str, list[tuple[str, bytes, int]]] = {}
    for row in rows:
        below.setdefault(row[0][depth], []).append(row)
    return add_folder(
        db,
        [
            (digit.encode(), *_prefix_folder(db, below[digit], depth + 1))
            for digit in DIGITS
            if digit in below
        ],
    )
