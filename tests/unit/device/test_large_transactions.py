"""Transactions with more entries than are held in memory: atomic, and unchanged after reopening."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ipfsmem.content.cid import CID, PB_PREFIX, parse_cid
from ipfsmem.content.dagpb import decode_link, decode_node, link_fields
from ipfsmem.device import state
from ipfsmem.device.writing import writing
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.memory import Memory
from ipfsmem.sync.sending import new_blocks
from ipfsmem.testing import SimProvider
from ipfsmem.wallet.root_keys import RootKeys

COUNT = 2_345


def _blob(count: int, text: str = "text") -> bytes:
    files = {f"k{i:05d}.md": f"---\nname: N{i}\n---\n\n{text} {i}\n" for i in range(count)}
    return json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": []}).encode()


def _memory(tmp_path: Path) -> Memory:
    root = RootKeys.from_random(b"\x07" * 64, "default", 1)
    return Memory.create(
        "m", "encrypted-ipfs", provider=SimProvider(), unlock=root, passphrase=False, home=tmp_path
    )


@pytest.mark.slow
def test_large_import_survives_reopening_and_repeats_without_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_LONG_BYTES", 1 << 30)  # the journal before it moves into the tree
    with _memory(tmp_path) as memory:
        assert memory.bundles.import_(_blob(COUNT)).added == COUNT
        rows = memory.replica.db.connection.execute(
            "SELECT count(*), max(length(row)) FROM journal"
        ).fetchone()
        assert rows[0] > 1 and rows[1] < 1_500_000
        before = memory.bundles.export()
    monkeypatch.undo()
    with Memory.load("m", home=tmp_path) as memory:
        assert memory.bundles.export() == before
        assert memory.bundles.import_(_blob(COUNT)).unchanged == COUNT
        assert memory.bundles.import_(_blob(COUNT, "other"), strategy="replace").replaced == COUNT
        left = memory.replica.db.connection.execute("SELECT count(*) FROM journal").fetchone()
        assert left == (0,), "the next process would read all of it to open the memory"
        assert len(memory.conflicts()) == 0


def test_failed_large_transaction_leaves_nothing(tmp_path: Path) -> None:
    with _memory(tmp_path) as memory:
        memory.write("kept", "as it was")
        before = memory.bundles.export()
        with pytest.raises(RuntimeError), writing(memory.replica) as change:
            for i in range(COUNT):
                change.put(f"m/k{i:05d}", b"text %d\n" % i, ())
            (value,) = change.entry("m/k00000").values()
            assert change.body("m/k00000", value) == b"text 0\n"
            raise RuntimeError
        assert memory.bundles.export() == before
        assert memory.write("after", "counted on").key == "after"
    with Memory.load("m", home=tmp_path) as memory:
        assert memory.read("k00000") is None and memory.read("after") is not None


def test_entry_changed_before_and_after_hand_over_keeps_write_order(tmp_path: Path) -> None:
    with _memory(tmp_path) as memory:
        with writing(memory.replica) as change:
            change.put("m/twice", b"first\n", ())
            for i in range(COUNT):
                change.put(f"m/k{i:05d}", b"text %d\n" % i, ())
            change.put("m/twice", b"second\n", tuple(change.entry("m/twice")))
        reading = memory.read("twice")
        assert reading is not None and reading.data == b"second\n" and not reading.conflicts
        assert memory.replica.store.frame.ctx[memory.device] == COUNT + 2


def _below(memory: Memory, root: CID) -> set[CID]:
    found: set[CID] = set()
    stack = [root]
    while stack:
        cid = stack.pop()
        if cid not in found:
            found.add(cid)
            block = memory.replica.db.block(cid.digest)
            if cid.encode()[:4] == PB_PREFIX and block is not None:
                stack += [link.cid for link in decode_node(block).links]
    return found


def test_new_blocks_are_all_that_the_known_roots_lack(tmp_path: Path) -> None:
    with _memory(tmp_path) as memory:
        memory.bundles.import_(_blob(600))
        roots = [asyncio.run(memory.sync()).root]
        for i in (3, 70, 71):
            memory.write(f"k{i:05d}", "changed")
        memory.forget("k00100")
        roots.append(asyncio.run(memory.sync()).root)
        memory.write("new", "one more")
        roots.append(asyncio.run(memory.sync()).root)
        cids = [parse_cid(root) for root in roots if root]
        everything = [_below(memory, cid) for cid in cids]
        db = memory.replica.db
        for known in ([], [0], [1], [0, 1]):
            sent = set(new_blocks(db, cids[2], [cids[i] for i in known]))
            there = set().union(*(everything[i] for i in known))
            assert sent | there >= everything[2], "a block would be missing at the provider"
            assert sent <= everything[2]
        assert len(set(new_blocks(db, cids[2], [cids[1]]))) < 20
        for cid in everything[2]:
            block = db.block(cid.digest)
            if cid.encode()[:4] == PB_PREFIX and block is not None:
                assert tuple(map(decode_link, link_fields(block))) == decode_node(block).links


@pytest.mark.parametrize("block", [b"\x12", b"\x12\x05abc", b"\x12\x80", b"\x0a\x02\x08\x01\x12\xff\x01"])
def test_links_of_a_block_that_breaks_off_are_refused(block: bytes) -> None:
    with pytest.raises(FormatError):
        link_fields(block)


def test_row_sealed_ahead_equals_a_row_sealed_at_the_write(tmp_path: Path) -> None:
    texts = {f"m/k{i:03d}": b"some words, and the same words again\n" * (i + 1) for i in range(300)}
    texts["m/k001"] = b"password = correct-horse-9\n" + b"the same words\n" * 90
    with _memory(tmp_path) as memory:
        codec = memory.replica.codec
        expected = {name: codec.seal_body(name, body) for name, body in texts.items()}
        with writing(memory.replica) as change:
            change.seal_ahead([*texts.items(), ("no entry", b"x"), ("m/long", b"x" * 2_000_000)])
            texts["m/k002"] = b"changed meanwhile"
            expected["m/k002"] = codec.seal_body("m/k002", b"changed meanwhile")
            for name, body in texts.items():
                change.put(name, body, ())
            with pytest.raises(FormatError):
                change.put("no entry", b"x", ())
            with pytest.raises(LimitError):
                change.put("m/long", b"x" * 2_000_000, ())
        for name, body in texts.items():
            (value,) = memory.replica.store.entry(name).values()
            assert value.loc is not None and memory.replica.store.body(name, value) == body
            ek, stored = expected[name]
            assert (value.loc.ek, memory.replica.db.block(bytes.fromhex(value.loc.sha))) == (ek, stored)
