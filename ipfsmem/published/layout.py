"""Build published roots, in sealed and plain layout (format section 6).

A layout adds the root's blocks to the replica and returns its CID, given commit and ring as bytes. It must run in a
transaction, right after a checkpoint with folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ipfsmem.causal.tree import DIGITS, is_leaf
from ipfsmem.content.cid import CID, RAW_PREFIX, decode_cid
from ipfsmem.content.dagpb import RawLink
from ipfsmem.content.hamt import name_hash
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import (
    Folder,
    add_file,
    add_folder,
    objects_folder,
    objects_held,
    objects_not_here,
    state_folder,
)
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.secret_check import SecretCheck
from ipfsmem.published.plain_hamt import flat_folder
from ipfsmem.published.plain_layout import Bases, base_links


class Layout:
    """Base of both layouts: scan new texts for secrets, then build the root."""

    def __init__(self, check: SecretCheck | None = None) -> None:
        """Set `check`, called with every new text in the transaction that publishes; it may abort."""
        self._check = check

    def prepare(self, replica: Replica) -> None:
        """Do the part of `build` that need not block other writers. It can take seconds after many changes."""
        if self._check is not None:
            self._check.look_ahead(replica)

    def build(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        """Build the root for a commit and its ring (inside a transaction). Raises SecretsError."""
        if self._check is not None:
            self._check.look(replica)
        with no_collection():
            return self._root(replica, head, keyring)

    def _root(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        raise NotImplementedError


class SealedLayout(Layout):
    """`keyring.json`, `head.ipm`, `s/`, `o/`: without a key only the ring's public part is readable."""

    def _root(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
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


class PlainLayout(Layout):
    """`memory/` in readable form, a similar base per scope, and in `memory/.ipfsmem/` the data that a device
    needs to join.

    `memories` are those of the default scope of the published replica; their caches make a publish cheap.
    """

    def __init__(self, memories: MemoryStore, check: SecretCheck | None = None) -> None:
        super().__init__(check)
        self._memories = memories

    def _root(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        db = replica.db
        scopes = self._memories.overview.scopes(keep=True)
        nameless = scopes.pop("", ([], {}))
        lost = objects_not_here(db)
        shown = {RAW_PREFIX + one.sha for one in nameless[0]}
        folders: list[RawLink] = []
        bases = Bases(replica, self._memories, lost)
        for scope, scope_view in scopes.items():
            base = bases.base(scope, scope_view)
            if base is not None:
                folders.append((scope.encode(), base.cid, base.size))
                shown.update([RAW_PREFIX + one.sha for one in scope_view[0]])
                shown.update(base.files)
        bases.forget_all_but({name.decode(): None for name, _, _ in folders})
        links = base_links(replica, self._memories, nameless, lost)
        shown.update(links.files)
        inner: list[RawLink] = [
            (b"commit.json", *add_file(db, head)),
            (b"keyring.json", *add_file(db, keyring)),
            (b"s", *state_folder(db, replica.codec.extension, ())),
        ]
        objects = _hidden_objects(db, shown)
        if objects:
            inner.append((b"o", *objects))
        own = (b".ipfsmem", *add_folder(db, inner))
        hashed = [*links.hashed, (name_hash(own[0]), own)]
        top: list[RawLink] = [(b"memory", *flat_folder(db, hashed))]
        if folders:
            top.append((b"scopes", *add_folder(db, folders)))
        return decode_cid(add_folder(db, top)[0])


def _hidden_objects(db: Database, shown: Iterable[bytes]) -> Folder | None:
    """Return the folder `o/` of all objects not equal to a file elsewhere (by CID: of one block each); None
    if empty."""
    above = set(shown)
    object_rows = ((name, RAW_PREFIX + digest, size) for name, digest, size in objects_held(db))
    rows = [row for row in object_rows if row[1] not in above]
    return _prefix_folder(db, rows, 0) if rows else None


def _prefix_folder(db: Database, rows: Sequence[tuple[str, bytes, int]], depth: int) -> Folder:
    """Build a folder by the prefix rule of format section 6.1, where each object has size 1."""
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
