"""The folders `s/` and `o/`, updated path by path, equal the plain rule of format section 6.1."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.causal.value import encode_entry
from ipfsmem.content.cid import raw_cid
from ipfsmem.content.tree import StoredTree, build_tree
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import (
    add_arrived_objects,
    change_objects,
    drop_lost,
    objects_folder,
    objects_not_here,
    state_folder,
)
from ipfsmem.device.state import locations
from ipfsmem.device.writing import writing
from tests.unit.device.replica_lab import make, reopen


def leaf(count: int, size: int, depth: int) -> bool:
    """Return whether names are one leaf, in the words of format section 6.1."""
    return count == 1 or (count <= 64 and size <= 48 * 1024) or depth == 16


def plain_objects(objects: Mapping[str, int]) -> dict[str, StoredTree]:
    """Return path below `o/` -> object, for names of 40 hex digits; each has one byte."""
    paths: dict[str, StoredTree] = {}

    def place(names: list[str], prefix: str) -> None:
        if leaf(len(names), len(names), len(prefix)):
            for name in names:
                paths["/".join([*prefix, name])] = StoredTree(raw_cid(digest_of(name)), objects[name])
            return
        for digit in "0123456789abcdef":
            below = [name for name in names if name[len(prefix)] == digit]
            if below:
                place(below, prefix + digit)

    if objects:
        place(sorted(objects), "")
    return paths


def digest_of(name: str) -> bytes:
    return bytes.fromhex(name + "00" * 12)


def plain_state(replica: Replica, entries: Mapping[str, bytes]) -> tuple[dict[str, bytes], bytes]:
    """Return path below `s/` -> stored node, and the digest of the top node's JSON."""
    paths: dict[str, bytes] = {}

    def place(names: list[str], prefix: str) -> bytes:
        size = sum(len(f'"{name}":'.encode()) + len(entries[name]) for name in names)
        if not names or leaf(len(names), size, len(prefix)):
            inside = ",".join(f'"{name}":{entries[name].decode()}' for name in sorted(names))
            raw = f'{{"e":{{{inside}}}}}'.encode()
        else:
            children = {}
            for digit in "0123456789abcdef":
                below = [n for n in names if sha256(n.encode()).hexdigest()[len(prefix)] == digit]
                if below:
                    children[digit] = place(below, prefix + digit).hex()
            raw = ('{"n":{' + ",".join(f'"{d}":"{h}"' for d, h in sorted(children.items())) + "}}").encode()
        name = [*prefix[:-1], (prefix[-1] if prefix else "top") + replica.codec.extension]
        paths["/".join(name)] = replica.codec.seal_node(prefix, raw)
        return sha256(raw).digest()

    return paths, place(list(entries), "")


names = st.lists(
    st.one_of(
        st.text("01", min_size=40, max_size=40),
        st.integers(0, 80).map(lambda i: f"{i:02x}" + "ab" * 19),
        st.integers(0, 99).map(lambda i: "0" * 17 + f"{i:023x}"),
        st.integers(0, 99).map(lambda i: "0" * 9 + f"{i:02x}" + "0" * 29),
    ),
    min_size=1,
    max_size=110,
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(names, st.sampled_from([1, 1, 1, -1])), min_size=1, max_size=6))
def test_object_folders_equal_the_plain_rule(batches: list[tuple[list[str], int]]) -> None:
    """After each batch of added and removed names with long common prefixes."""
    db = Database(None)
    refs: dict[str, int] = {}
    with db.transaction():
        for batch, delta in batches:
            counts: dict[str, int] = {}
            for name in batch:
                step = delta if delta > 0 or refs.get(name, 0) + counts.get(name, 0) > 0 else 0
                counts[name] = counts.get(name, 0) + step
            db.add_blocks((digest_of(name), b"1234567") for name in counts)
            change_objects(db, {digest_of(name): (7, change) for name, change in counts.items()})
            for name, change in counts.items():
                refs[name] = refs.get(name, 0) + change
            alive = {name: 7 for name, count in refs.items() if count > 0}
            made = objects_folder(db)
            if not alive:
                assert made is None
                continue
            wanted = build_tree(plain_objects(alive))
            assert made is not None
            assert made[0] == wanted.cid.encode()
            assert made[1] == wanted.tsize
            rows = db.connection.execute("SELECT count(*) FROM folders").fetchone()
            assert rows == (len(wanted.folders),)
            for cid, data in wanted.blocks:
                assert db.block(cid.digest) == data
    db.close()


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
@pytest.mark.parametrize("seed", [1, 2])
def test_folders_of_a_vault_equal_the_plain_rule(mode: str, seed: int) -> None:
    """Random batches of writes and removals, up to 500 memories and back to none, with restarts between."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as top:
        replica = make(Path(top) / "n", mode)
        alive: set[str] = set()
        for step, target in enumerate((3, 64, 65, 70, 300, 500, 490, 66, 64, 20, 0, 5)):
            with writing(replica) as change:
                for key in draw.sample(sorted(alive), min(len(alive), 5)):
                    change.put(f"m/{key}", draw.randbytes(20), tuple(change.entry(f"m/{key}")))
                while len(alive) < target:
                    key = f"k{draw.randrange(10**6)}"
                    change.put(f"m/{key}", b"same for all" if draw.random() < 0.3 else draw.randbytes(30), ())
                    alive.add(key)
                for key in draw.sample(sorted(alive), max(0, len(alive) - target)):
                    change.remove(f"m/{key}", tuple(change.entry(f"m/{key}")))
                    alive.discard(key)
            if step % 4 == 3:
                replica = reopen(replica)
            with replica.transaction():
                tree = replica.store.checkpoint(folders=True)
                entries = {name: encode_entry(entry) for name, entry in replica.store.entries()}
                assert len(entries) == target
                stored, digest = plain_state(replica, entries)
                assert tree.digest == digest
                wanted = build_tree(stored)
                made = state_folder(replica.db, replica.codec.extension, ())
                assert (made[0], made[1]) == (wanted.cid.encode(), wanted.tsize)
                for cid, data in wanted.blocks:
                    assert replica.db.block(cid.digest) == data
                found = {
                    loc.sha: loc.size for _, entry in replica.store.entries() for loc in locations(entry)
                }
                objects = objects_folder(replica.db)
                if not found:
                    assert objects is None
                    continue
                paths = plain_objects({sha[:40]: size for sha, size in found.items()})
                full = {sha[:40]: bytes.fromhex(sha) for sha in found}
                shape = {
                    path: StoredTree(raw_cid(full[path.rsplit("/", 1)[-1]]), known.tsize)
                    for path, known in paths.items()
                }
                tree_o = build_tree(shape)
                assert objects is not None
                assert (objects[0], objects[1]) == (tree_o.cid.encode(), tree_o.tsize)
        replica.close()


def test_forged_location_neither_displaces_nor_hides_a_real_object() -> None:
    """Names are 160 bits of a hash: a member may claim a location with the name of a real object (no block
    has it). Both are requested and counted separately, and the name belongs to the available one."""
    good = sha256(b"real").digest()
    lie = good[:20] + bytes(12)
    alone = Database(None)
    with alone.transaction():
        alone.add_blocks([(good, b"real")])
        change_objects(alone, {good: (4, 1)})
    wanted = objects_folder(alone)
    for order in (
        [{lie: (9, 1)}, {good: (4, 1)}],
        [{good: (9, 1)}, {lie: (4, 1)}],
        [{lie: (9, 1), good: (9, 1)}],
    ):
        db = Database(None)
        with db.transaction():
            for deltas in order:
                change_objects(db, deltas)
            assert objects_not_here(db) == {lie, good}
            assert objects_folder(db) is None
            db.add_blocks([(good, b"real")])
            assert add_arrived_objects(db) and not add_arrived_objects(db)
            assert objects_not_here(db) == {lie}
            assert objects_folder(db) == wanted, "with the size of what is here, whatever a location says"
            change_objects(db, {lie: (4, -1)})
            assert objects_not_here(db) == set() and objects_folder(db) == wanted
            assert drop_lost(db, [good, lie]) and objects_not_here(db) == {good}
            change_objects(db, {good: (4, -1)})
            assert db.connection.execute("SELECT count(*) FROM objects").fetchone() == (0,)
        db.close()
    alone.close()
