"""Files that another program split or wrapped are reassembled from the blocks of one CAR."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from ipfsmem_providers.gateways import Gateways, foreign_layout
from ipfsmem_providers.gateways.foreign_layout import ForeignLayout, with_files

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.content.dagpb import TYPE_FILE, BlockLink, UnixFS, encode_unixfs
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import CHUNK
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.pinata import Pinata
from tests.support.content_lab import encode_node, pb_cid
from tests.unit.providers.services_lab import Account, account


def raw(data: bytes) -> Block:
    return raw_cid(hashlib.sha256(data).digest()), data


def node(links: Iterable[BlockLink], message: UnixFS) -> Block:
    block = encode_node(list(links), encode_unixfs(message))
    return pb_cid(hashlib.sha256(block).digest()), block


def leaf(data: bytes) -> Block:
    return node([], UnixFS(TYPE_FILE, data, len(data)))


def cut(chunks: list[Block], sizes: list[int]) -> Block:
    links = [BlockLink("", cid, len(data)) for cid, data in chunks]
    return node(links, UnixFS(TYPE_FILE, b"", sum(sizes), tuple(sizes)))


def given_for(blocks: Iterable[Block]) -> list[bytes]:
    """Return the files that are reassembled from the blocks."""
    layout = ForeignLayout()
    files = [layout.file(cid, data) for cid, data in blocks]
    assert all(raw(block[1]) == block for block in files if block)
    assert layout._held == 0 or layout._halves
    return [block[1] for block in files if block]


def tree(files: dict[str, bytes]) -> tuple[CID, list[Block]]:
    """Return files in the layout of Pinata's stand-in, parents first."""
    from tests.servers.gateway_of import below

    server = Pinata()
    root = server._layout([(f"folder/{name}", data) for name, data in files.items()])
    return root, list(below(server.blocks, root))


@settings(max_examples=30)
@given(st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.builds(lambda seed, size: hashlib.shake_128(bytes([seed])).digest(size),
              st.integers(0, 255), st.sampled_from([0, 1, 1_000, 262_144, 262_145, 700_000, CHUNK, CHUNK + 1])),
    min_size=1, max_size=5,
))  # fmt: skip
def test_split_files_are_reassembled(files: dict[str, bytes]) -> None:
    root, blocks = tree({f"o/{name}": data for name, data in files.items()})

    async def body() -> dict[CID, bytes]:
        async def come() -> AsyncIterator[Block]:
            for block in blocks:
                yield block

        seen = [block async for block in with_files(come())]
        assert [block for block in seen if block in blocks] == blocks and seen[0][0] == root
        return dict(seen)

    found = asyncio.run(body())
    different = set(files.values())
    pieces = [
        data[start : start + 262_144] for data in different for start in range(0, len(data) or 1, 262_144)
    ]
    shared = len(set(pieces)) < len(pieces)  # such a chunk comes once, so one of its files goes without
    for data in files.values():
        if len(data) <= CHUNK and not shared:
            assert found[raw(data)[0]] == data
    beside = [data for block, data in found.items() if (block, data) not in blocks]
    assert all(data in files.values() for data in beside)


def test_own_layout_yields_no_reassembled_files() -> None:
    made = build_tree({"a.ipm": b"a" * CHUNK, "o/b.ipm": b"b" * (3 * CHUNK), "c": b"", "d": b"short"})
    assert given_for(reversed(made.blocks)) == []


def test_chunks_are_reassembled_in_any_order() -> None:
    parts = [b"a" * 100, b"b" * 100, b"a" * 100]
    chunks = [raw(part) for part in parts]
    top = cut(chunks, [100] * 3)
    assert given_for([top, chunks[1], chunks[0]]) == [b"".join(parts)]
    assert given_for([top, chunks[0]]) == []
    wrapped = [leaf(part) for part in parts]
    assert given_for([cut(wrapped, [100] * 3), *wrapped[:2]]) == [b"".join(parts)]


def test_only_complete_consistent_and_flat_files_are_reassembled() -> None:
    one, two = leaf(b"one"), leaf(b"two")
    lies = cut([one, two], [3, 4])
    assert given_for([lies, one, two]) == []
    middle = cut([one, two], [3, 3])
    layered = cut([middle, raw(b"three")], [6, 5])
    assert given_for([layered, middle, one, two, raw(b"three")]) == []
    both = node([BlockLink("", one[0], 3)], UnixFS(TYPE_FILE, b"own", 6, (3,)))
    assert given_for([both, one]) == []
    shared = [cut([one, two], [3, 3]), cut([two, raw(b"x")], [3, 1])]
    assert given_for([*shared, one, two, raw(b"x")]) == [b"onetwo"]
    junk = encode_node([], b"\xff\xff")
    assert given_for([(pb_cid(hashlib.sha256(junk).digest()), junk)]) == []


def test_incomplete_files_use_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_layout, "_HELD_MAX", 1_000)
    monkeypatch.setattr(foreign_layout, "_CHUNKS_MAX", 100)
    layout = ForeignLayout()
    for number in range(60):
        halves = [raw(b"%03d" % number * 100), raw(b"%04d" % number * 50)]
        assert layout.file(*cut(halves, [300, 200])) is None
        assert layout.file(*halves[0]) is None
        assert layout._held <= 1_000 and len(layout._chunks) <= 101
    assert len(layout._halves) <= 60


# -- a vault on a plan without CARs -----------------------------------------------------------------------------------


def publish(at: Account, home: Path, count: int, mode: str) -> None:
    with memory(Memory.create, at, home, mode) as one:
        for number in range(count):
            one.write(f"key{number}", f"text {number} " * 40, name=f"Key {number}", type="user")
        asyncio.run(one.sync(public_ok=mode == "ipfs"))


def memory(make: Any, at: Account, home: Path, mode: str, **more: Any) -> Memory:
    opened: Memory = make("alex", mode, provider=at.open(**more), unlock=Unlock(RawKeySigner(b"\x21" * 32)), home=home, passphrase=False)  # fmt: skip
    return opened


def fetched(at: Account, home: Path, count: int, mode: str) -> list[str]:
    """Return the requests of a first fetch to the gateway; reads after its own first upload are not
    counted."""
    at.server.seen.clear()
    with memory(Memory.load, at, home, mode) as two:
        assert len(two.files()) == count
    before = takewhile(lambda line: not line.startswith("POST "), at.server.seen)
    return [line for line in before if line.startswith("GET /ipfs/")]


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
@pytest.mark.parametrize("kind", ["pinata-free", "pinata-legacy"])
def test_first_fetch_requests_one_car_for_any_number_of_memories(
    kind: str, mode: str, tmp_path: Path
) -> None:
    asked = []
    for count in (5, 60):
        with account(kind) as at:
            publish(at, tmp_path / f"a{count}", count, mode)
            asked.append(fetched(at, tmp_path / f"b{count}", count, mode))
    for lines in asked:
        assert sum("format=car" in line for line in lines) == 1
        assert all(
            line.endswith("format=raw") or "format=car" in line for line in lines
        )  # no file by its path
        assert not any("/o/" in line for line in lines)
    assert len(asked[0]) == len(asked[1]) < 20  # for any number of memories


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
def test_each_object_is_one_request_at_a_gateway_without_cars(mode: str, tmp_path: Path) -> None:
    with account("pinata-free") as at:
        publish(at, tmp_path / "a", 40, mode)

        async def no_cars(request: web.Request) -> web.StreamResponse:
            if request.query.get("format") == "car":
                return web.Response(status=406, text="no CARs here")
            handler: Callable[..., Any] = at.server.gateway
            answer: web.Response = await handler(request)
            return answer

        at.server.faults.add("GET", "/ipfs/", no_cars, times=-1)
        lines = fetched(at, tmp_path / "b", 40, mode)
    files = [line for line in lines if not line.endswith("format=raw")]
    assert len(files) == len(set(files)) == 40 + (mode == "ipfs")  # and MEMORY.md
    # Concurrent searches would each read the same folders. A root and what is right below it is read as a
    # head, for its names and its objects, and nothing more often.
    assert max(Counter(lines).values()) <= 3
    assert len(lines) < 40 + 26  # the folders that lead to them, and the head


def test_any_gateway_serves_split_files(tmp_path: Path) -> None:
    data = b"an object in another layout" * 50
    with account("pinata-free") as at:
        at.server.rooted = False
        root = at.server._layout([("x/o/1/a.ipm", data), ("x/head.ipm", b"head")])
        settings = {"gateway_token": "gateway-secret", "gateway_token_header": "x-pinata-gateway-token"}

        async def body() -> None:
            gateways = Gateways(at.url, settings)
            found = dict([block async for block in gateways.get_dag(root)])
            assert found[raw(data)[0]] == data and raw(b"head")[0] in found
            assert {cid for cid, _ in [block async for block in gateways.tree(root)]} == set(at.server.blocks)
            await gateways.close()

        asyncio.run(body())
