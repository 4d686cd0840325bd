"""`web3storage` with the w3up service's own server code, read back by the service's own client."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.web3storage import Web3Storage, ucan
from ipfsmem_providers.web3storage.rpc import Service
from ipfsmem_providers.web3storage.ucan import Signer
from ipfsmem_providers.web3storage.uploads import IndexKind, Upload

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block, Pin
from ipfsmem.testing import MockClock
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop import w3up_lab
from tests.interop.w3up_lab import Server, Space
from tests.support import ucan_lab
from tests.support.cli_lab import KEY, Cli
from tests.support.hints import hinted
from tests.unit.provider import test_contract as contract

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with w3up_lab.serving() as running:
        yield running


@pytest.fixture
def space(server: Server) -> Space:
    return server.space()


@pytest.fixture
def connect(space: Space) -> Callable[[], Web3Storage]:
    """Open the same space, each time with another key."""
    return space.open


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


# Pins have the service's own time; that part of the contract is tested below in another form.
test_empty_provider_returns_empty_answers = contract.test_empty_provider_returns_empty_answers
test_greatest_record_of_a_name_remains = contract.test_greatest_record_of_a_name_remains
test_name_in_another_base_is_the_same_name = contract.test_name_in_another_base_is_the_same_name
test_invalid_or_foreign_name_record_is_refused = contract.test_invalid_or_foreign_name_record_is_refused
test_provider_implements_the_contract = contract.test_provider_implements_the_contract
test_stored_blocks_are_read_on_another_device = contract.test_stored_blocks_are_read_on_another_device
test_only_new_blocks_need_to_be_sent = contract.test_only_new_blocks_need_to_be_sent
test_repeated_upload_stores_the_same_blocks = contract.test_repeated_upload_stores_the_same_blocks
test_wrong_block_is_refused = contract.test_wrong_block_is_refused
test_exception_of_a_block_iterator_reaches_the_caller = (
    contract.test_exception_of_a_block_iterator_reaches_the_caller
)
test_blocks_are_read_on_the_callers_thread = contract.test_blocks_are_read_on_the_callers_thread
test_one_digest_under_two_codecs_is_two_blocks = contract.test_one_digest_under_two_codecs_is_two_blocks
test_trees_are_read_in_one_answer = contract.test_trees_are_read_in_one_answer
test_blocks_are_checked_by_digest_length_too = contract.test_blocks_are_checked_by_digest_length_too


def block(text: str | bytes) -> Block:
    data = text.encode() if isinstance(text, str) else text
    return raw_cid(hashlib.sha256(data).digest()), data


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


def files(count: int, changed: str = "") -> dict[str, bytes]:
    """A tree of many small files in folders, one of them with another text."""
    made = {
        f"o/{n % 16:x}/{n:05d}.md": hashlib.sha256(b"%d" % n).hexdigest().encode() * 5 for n in range(count)
    }
    if changed:
        made["o/3/00003.md"] = changed.encode()
    return made


async def publish(
    provider: Web3Storage, tree: BuiltTree, before: Iterable[CID] = (), name: str = "mine"
) -> None:
    """Send a tree as a sync does: blocks of an older tree are omitted."""
    known = set(before)
    assert await provider.put_car(
        tree.cid, ((cid, data) for cid, data in tree.blocks if cid not in known), name=name
    ) == tree.cid  # fmt: skip
    await provider.pin(tree.cid, name)


def cids(tree: BuiltTree) -> list[CID]:
    return [cid for cid, _ in tree.blocks]


# -- the contract, where it differs --------------------------------------------------------------------------------


def test_pins_are_listed_by_name_and_removed(space: Space) -> None:
    async def body() -> None:
        one, two = space.open(), space.open()
        blocks = [block("a"), block("b"), block("c")]
        a, b, c = (cid for cid, _ in blocks)
        began = time.time() * 1000
        await one.put_car(a, blocks, name="mine")
        first = await one.pin(a, "mine")
        assert (first.cid, first.name) == (a, "mine")
        assert began - 2000 < first.created < time.time() * 1000 + 2000
        await asyncio.sleep(0.01)
        assert await two.pin(a, "mine") == first
        await two.pin(b, "mine")
        await asyncio.sleep(0.01)
        await one.pin(c, "mine")
        await one.pin(a, "another vault")
        assert [pin.cid for pin in await two.pins("mine")] == [c, b, a]
        assert [pin.cid for pin in await two.pins("another vault")] == [a]
        assert await two.pins("min") == []
        await two.unpin(first)
        await two.unpin(first)
        assert [pin.cid for pin in await one.pins("mine")] == [c, b]
        assert [pin.cid for pin in await one.pins("another vault")] == [a]
        assert await one.get_blocks([b, c]) == dict(blocks[1:])

    run(body())


def test_concurrent_devices_store_pins_and_names(space: Space) -> None:
    async def body() -> None:
        devices = [space.open() for _ in range(3)]
        blocks = [[block(f"{d} {i}") for i in range(3)] for d in range(3)]

        async def device(number: int) -> None:
            for sequence, item in enumerate(blocks[number]):
                await devices[number].put_car(item[0], [item], name="n")
                await devices[number].pin(item[0], "n")
                await devices[number].put_name(contract.NAME, contract.record(3 * sequence + number + 1))

        await asyncio.gather(*(device(number) for number in range(3)))
        everything = dict(item for own in blocks for item in own)
        assert await devices[0].get_blocks(list(everything)) == everything
        assert {pin.cid for pin in await devices[0].pins("n")} == set(everything)
        assert await devices[0].get_name(contract.NAME) == contract.record(9)

    run(body())


def test_older_records_are_removed_and_names_are_not_listed_as_pins(server: Server, space: Space) -> None:
    async def body() -> None:
        provider = space.open()
        tree = build_tree(files(30))
        await publish(provider, tree)
        for sequence in range(1, 5):
            await provider.put_name(contract.NAME, contract.record(sequence))
        stored = space.blobs()
        listed = await provider._uploads.refresh()
        assert len(listed) == 3  # the tree, its index, the record
        assert len(stored) == 2  # records use no blob
        await provider.unpin((await provider.pins("mine"))[0])  # and do not keep shards alive
        assert space.blobs() == {}
        assert await space.open().get_name(contract.NAME) == contract.record(4)
        adder = space.open(abilities=("space/blob/add", "upload/add", "upload/list"))
        await adder.put_name(contract.NAME, contract.record(7))
        await adder.put_name(contract.NAME, contract.record(6))
        assert await adder.get_name(contract.NAME) == contract.record(7)

    run(body())


def test_unpinned_root_can_be_pinned_again(space: Space) -> None:
    async def body() -> None:
        one, two = space.open(), space.open()
        cid, data = block("a")
        for unpinner in (one, two):
            await one.put_car(cid, [(cid, data)], name="mine")
            await unpinner.unpin(await two.pin(cid, "mine"))
            assert await two.pins("mine") == []
            # Its blob was removed too, so the root is listed again without the block: pin promises no more.
            await one.pin(cid, "mine")
            assert [pin.cid for pin in await two.pins("mine")] == [cid]
            await one.put_car(cid, [(cid, data)], name="mine")
            assert await two.get_blocks([cid]) == {cid: data}

    run(body())


# -- purpose of the provider ------------------------------------------------------------------------------------------


def test_publish_sends_only_new_blocks(server: Server, space: Space) -> None:
    async def body() -> None:
        first, second = build_tree(files(2000)), build_tree(files(2000, "changed"))
        provider = space.open()
        await publish(provider, first)
        before = server.stats()
        await publish(provider, second, cids(first))
        after = server.stats()
        new = sum(len(data) for cid, data in second.blocks if cid not in set(cids(first)))
        assert after["put_bytes"] - before["put_bytes"] < new + 2000
        assert after["puts"] - before["puts"] == 2
        assert after["receipts"] - before["receipts"] == 2
        assert after["rpc_bytes"] - before["rpc_bytes"] < 16_000
        assert after["rpc"] - before["rpc"] == 5
        other = space.open()
        assert await other.has(cids(second)) == set(cids(second))
        assert await other.get_blocks(cids(second)) == dict(second.blocks)

    run(body())


def test_official_client_reads_published_trees(server: Server, space: Space) -> None:
    first, second = build_tree(files(300)), build_tree(files(300, "changed"))

    async def body() -> None:
        provider = space.open(w3up_shard_bytes="20000")  # several shards
        await publish(provider, first)
        await publish(provider, second, cids(first))

    run(body())
    settings = space.settings()
    who = (server.url, server.did, settings["w3up_principal"], settings["w3up_proof"])
    listed = {row["root"]: row["shards"] for row in w3up_lab.official("list", *who)}
    assert str(first.cid) in listed and str(second.cid) in listed
    assert len(listed[str(first.cid)]) > 3
    for tree in (first, second):
        read = w3up_lab.official("read", *who, str(tree.cid))
        assert read == {str(cid): len(data) for cid, data in tree.blocks}


def test_delegations_of_the_official_tools(server: Server, space: Space) -> None:
    seed = os.urandom(32)
    device = Signer(seed)
    proof = w3up_lab.official("proof", ucan_lab.format_signer(space.key, space.seed), device.did)
    settings = space.settings(w3up_principal=ucan_lab.format_signer(device, seed), w3up_proof=proof)
    parsed = w3up_lab.official("parse", space.delegate(device.did))
    assert parsed["issuer"] == space.key.did and parsed["audience"] == device.did
    assert {row["can"] for row in parsed["capabilities"]} == set(w3up_lab.ALL)

    async def body() -> None:
        provider = Web3Storage(server.url, settings)
        await provider.put_car(block("x")[0], [block("x")], name="n")
        assert await space.open().get_blocks([block("x")[0]]) == dict([block("x")])

    run(body())


def test_uploads_of_others_in_the_space_are_unchanged(server: Server, space: Space) -> None:
    settings = space.settings()
    theirs = w3up_lab.official(
        "upload", server.url, server.did, settings["w3up_principal"], settings["w3up_proof"]
    )

    async def body() -> None:
        provider = space.open()
        kept = space.blobs()
        tree = build_tree(files(20))
        await publish(provider, tree)
        assert [pin.cid for pin in await provider.pins("mine")] == [tree.cid]
        await provider.unpin((await provider.pins("mine"))[0])
        assert space.blobs() == kept
        listed = await provider._uploads.refresh()
        assert [str(root) for root in listed] == [theirs]

    run(body())


def test_key_of_the_space_can_be_the_principal(server: Server, space: Space) -> None:
    async def body() -> None:
        key = ucan_lab.format_signer(space.key, space.seed)
        provider = Web3Storage(server.url, {"w3up_principal": key, "w3up_service_did": server.did})
        await provider.put_car(block("x")[0], [block("x")], name="n")
        assert [pin.cid for pin in await provider.pins("n")] == [block("x")[0]]

    run(body())


def test_shards_listed_separately_on_a_node_without_ranges_are_read(server: Server, space: Space) -> None:
    async def body() -> None:
        first, second = build_tree(files(200)), build_tree(files(200, "changed"))
        with server.fault(shards_apart=True, ranges=False):
            provider = space.open(w3up_shard_bytes="9000")
            await publish(provider, first)
            await publish(provider, second, cids(first))
            other = space.open()
            assert await other.get_blocks(cids(second)) == dict(second.blocks)
            assert [pin.cid for pin in await other.pins("mine")] == [second.cid, first.cid]
            await other.unpin((await other.pins("mine"))[1])
            assert await space.open().get_blocks(cids(second)) == dict(second.blocks)

    run(body())


def test_blocks_are_read_at_the_address_from_the_settings(server: Server, space: Space) -> None:
    async def body() -> None:
        provider = space.open()
        tree = build_tree(files(50))
        await publish(provider, tree)
        url = next(iter(provider._blobs._where.values()))
        base = url.rsplit("/", 2)[0]
        before = server.stats()["receipts"]
        other = space.open(w3up_blobs=f"{base}/{{digest}}/{{digest}}.blob")
        found = await other.get_blocks(cids(tree))  # the blobs may be on several nodes: some, or all
        assert found.items() <= dict(tree.blocks).items()
        assert server.stats()["receipts"] == before

    run(body())


def edited(count: int, changes: int) -> dict[str, bytes]:
    """Return the same tree after so many changes, each of another file."""
    made = files(count)
    for number in range(changes):
        made[sorted(made)[number * 7 % count]] = b"change %d" % number
    return made


async def dag(provider: Web3Storage, root: CID) -> list[Block]:
    return [item async for item in provider.get_dag(root)]


def check_whole(got: list[Block], tree: BuiltTree) -> None:
    """Check that every block occurs once, after one that links to it."""
    assert dict(got) == dict(tree.blocks) and len(got) == len(dict(got))
    seen = {tree.cid}
    for cid, data in got:
        assert cid in seen
        if cid.codec == 0x70:
            seen |= {link.cid for link in decode_node(data).links}


def test_tree_is_read_in_one_pass_over_its_shards(server: Server, space: Space) -> None:
    async def body() -> None:
        trees = [build_tree(edited(4000, number)) for number in range(4)]
        provider = space.open()
        known: set[CID] = set()
        for tree in trees:
            await publish(provider, tree, known)
            known |= set(cids(tree))
        assert len(space.blobs()) == 8
        for tree in trees:
            reader = space.open()
            before = server.stats()
            check_whole(await dag(reader, tree.cid), tree)
            after = server.stats()
            size = sum(len(data) + 45 for _, data in tree.blocks)
            index = 50 * len(tree.blocks)
            assert after["get_bytes"] - before["get_bytes"] < size + index + 80_000
            # Three small shards, the large one and its index; the end of the large one, and then the part
            # before it.
            assert after["gets"] - before["gets"] <= 6
            assert await reader.get_blocks(cids(tree)[::7]) == dict(tree.blocks[::7])
        assert await dag(space.open(), block("nowhere")[0]) == []

    run(body())


def test_read_of_a_tree_with_missing_shards_ends_early(server: Server, space: Space) -> None:
    async def body() -> None:
        first, second = build_tree(files(300)), build_tree(files(300, "two"))
        provider = space.open(w3up_shard_bytes="30000")
        await publish(provider, first)
        await publish(provider, second, cids(first))
        listed = await provider._uploads.refresh()
        await provider._blobs.remove([sorted(listed[first.cid].shards)[0]])
        reader = space.open()
        got = await dag(reader, second.cid)
        assert got[0][0] == second.cid and 0 < len(got) < len(second.blocks)
        assert dict(got).items() <= dict(second.blocks).items()
        left = [cid for cid in cids(second) if cid not in dict(got)]
        assert await reader.get_blocks(left) == {}
        await publish(provider, second)  # complete
        check_whole(await dag(space.open(), second.cid), second)

    run(body())


def test_index_of_the_requested_root_is_read_first(server: Server, space: Space) -> None:
    async def body() -> None:
        trees = [build_tree({"a": b"%d" % number}) for number in range(12)]
        for tree in trees:
            await publish(space.open(), tree)
            await asyncio.sleep(0.002)
        for tree in trees:
            reader = space.open()
            before = server.stats()
            assert await reader.get_blocks([tree.cid]) == dict([tree.blocks[-1]])
            assert await reader.get_blocks(cids(tree)) == dict(tree.blocks)
            after = server.stats()
            assert after["gets"] - before["gets"] == 1  # the small shard, which is cached then
            assert after["receipts"] - before["receipts"] == 2

    run(body())


def test_few_blocks_of_a_large_shard_need_one_request(server: Server, space: Space) -> None:
    async def body() -> None:
        items = [block(os.urandom(10_000)) for _ in range(400)]
        await space.open().put_car(items[0][0], items, name="n")
        reader = space.open()
        await reader.get_blocks([items[0][0]])
        for wanted in (items[::80], items[::40]):
            before = server.stats()
            assert await reader.get_blocks([cid for cid, _ in wanted]) == dict(wanted)
            after = server.stats()
            assert after["get_bytes"] - before["get_bytes"] == 10_000 * len(wanted)
            assert after["gets"] - before["gets"] == len(wanted)
        before = server.stats()
        wanted = items[:300:2] + items[1:200:2]
        assert await reader.get_blocks([cid for cid, _ in wanted]) == dict(wanted)
        assert server.stats()["gets"] - before["gets"] == 1

    run(body())


# -- many small publishes ------------------------------------------------------------------------------------------


def indexes(listed: Mapping[CID, Upload]) -> list[IndexKind | None]:
    return sorted((item.kind for item in listed.values() if item.is_index), key=str)


def test_many_small_publishes_leave_few_shards_to_ask_for(server: Server, space: Space) -> None:
    async def body() -> None:
        trees = [build_tree(edited(3000, number)) for number in range(21)]
        known: set[CID] = set()
        worst = 0
        for tree in trees:
            provider = space.open()  # a new process each time
            provider._many = 5
            await provider.pins("mine")  # as every sync has read the list
            before = server.stats()
            await publish(provider, tree, known)
            after = server.stats()
            known |= set(cids(tree))
            worst = max(
                worst, sum(after[what] - before[what] for what in ("rpc", "receipts", "gets", "puts"))
            )
            kinds = indexes(await provider._uploads.refresh())
            assert kinds.count(IndexKind.SMALL) <= 6 and kinds.count(IndexKind.LARGE) == 1
        assert kinds.count(IndexKind.MERGED) == 3
        # A merge: six shards are found and read (19), three blobs are sent (9), and so on; the service reads
        # two indexes.
        assert worst == 33
        for number, most in ((20, 8), (19, 8), (11, 21), (3, 21), (0, 21)):
            before = server.stats()
            check_whole(await dag(space.open(), trees[number].cid), trees[number])
            # At most six small shards (one of them merged), the large one and its index; more for older
            # roots.
            assert server.stats()["gets"] - before["gets"] <= most, number
        collector = space.open()
        for pin in (await collector.pins("mine"))[1:]:
            await collector.unpin(pin)
        # The large shard, at most six small ones, their indexes: shards of older roots only are gone.
        assert len(space.blobs()) <= 14
        kinds = indexes(await provider._uploads.refresh())
        assert IndexKind.MERGED not in kinds
        check_whole(await dag(space.open(), trees[20].cid), trees[20])

    run(body())


def test_next_publish_completes_an_interrupted_merge(server: Server, space: Space) -> None:
    async def body() -> None:
        trees = [build_tree(edited(1500, number)) for number in range(12)]
        known: set[CID] = set()
        for number, tree in enumerate(trees):
            provider = space.open()
            provider._many = 5
            await provider.pins("mine")
            denied = (
                {"upload/remove": {"name": "ServiceUnavailable", "message": "later"}} if number == 6 else {}
            )
            with server.fault(deny=denied):
                await publish(provider, tree, known)
            known |= set(cids(tree))
            kinds = indexes(await provider._uploads.refresh())
            assert kinds.count(IndexKind.SMALL) == [1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6][number], number
            assert kinds.count(IndexKind.MERGED) == (number >= 6)
        for tree in trees:
            check_whole(await dag(space.open(), tree.cid), tree)

    run(body())
    settings = space.settings()
    who = (server.url, server.did, settings["w3up_principal"], settings["w3up_proof"])
    for number in (0, 5, 11):  # and gateways find all of it
        tree = build_tree(edited(1500, number))
        assert w3up_lab.official("read", *who, str(tree.cid)) == {
            str(cid): len(data) for cid, data in tree.blocks
        }


def test_nothing_is_merged_without_the_right_to_remove(space: Space) -> None:
    async def body() -> None:
        trees = [build_tree(edited(300, number)) for number in range(9)]
        known: set[CID] = set()
        provider = space.open(abilities=("space/blob/*", "upload/add", "upload/list"))
        provider._many = 3
        for tree in trees:
            await publish(provider, tree, known)
            known |= set(cids(tree))
            await provider.pins("mine")
        assert indexes(await provider._uploads.refresh()) == [IndexKind.SMALL] * 9
        check_whole(await dag(space.open(), trees[-1].cid), trees[-1])

    run(body())


class CutOff(BaseException):
    """The process ends here."""


def cut(provider: Web3Storage, after: int) -> None:
    """Let the process end at one of its requests."""
    real, left = provider._http.stream, [after]

    def stream(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise CutOff
        return real(*args, **options)

    provider._http.stream = stream  # type: ignore[method-assign]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["publish", "publish", "publish", "publish", "unpin", "fork"]),
        st.integers(0, 1),
        st.one_of(st.none(), st.none(), st.integers(0, 40)),
    ),
    min_size=8,
    max_size=14,
)


@given(STEPS)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_pinned_tree_is_readable_after_any_interruption(
    server: Server, steps: list[tuple[str, int, int | None]]
) -> None:
    """Two devices publish, merge and unpin, and stop at any request."""
    space = server.space()
    trees: dict[CID, BuiltTree] = {}

    async def body() -> None:
        texts = [edited(60, 0), edited(60, 0)]
        for number, (what, who, end) in enumerate(steps):
            provider = space.open()
            provider._many = 2
            pins = await provider.pins("mine")
            if end is not None:
                cut(provider, end)
            with contextlib.suppress(CutOff):
                if what == "unpin":
                    if len(pins) > 2:
                        await provider.unpin(pins[number % len(pins)])
                else:
                    if what == "fork":  # the device has joined what the other one wrote
                        texts[who] = texts[who] | texts[1 - who]
                    texts[who] = texts[who] | {f"o/{number % 16:x}/{number * 7 % 60:05d}.md": b"%d" % number}
                    tree = build_tree(texts[who])
                    trees[tree.cid] = tree
                    there = {cid for pin in pins for cid in cids(trees[pin.cid])}
                    await publish(provider, tree, there)
            if what == "unpin" or number == len(steps) - 1:
                reader = space.open()
                for pin in await reader.pins("mine"):
                    check_whole(await dag(reader, pin.cid), trees[pin.cid])
        for pin in (await reader.pins("mine"))[:3]:
            assert await space.open().get_blocks(cids(trees[pin.cid])) == dict(trees[pin.cid].blocks)

    run(body())


# -- unpinning --------------------------------------------------------------------------------------------------------


def test_unpinning_keeps_what_others_need_and_frees_the_rest(space: Space) -> None:
    async def body() -> None:
        provider = space.open()
        trees = [build_tree(files(200)), build_tree(files(200, "two")), build_tree(files(200, "three"))]
        known: set[CID] = set()
        for tree in trees:
            await publish(provider, tree, known)
            known |= set(cids(tree))
            await asyncio.sleep(0.01)
        assert len(space.blobs()) == 6
        pins = {pin.cid: pin for pin in await provider.pins("mine")}
        other = space.open()  # a device that knows nothing yet
        await other.unpin(
            pins[trees[1].cid]
        )  # only its own changed blocks are removed: one shard and its index
        assert len(space.blobs()) == 4
        await other.unpin(pins[trees[0].cid])  # the last root needs nearly all of its blocks
        assert len(space.blobs()) == 4
        reader = space.open()
        assert [pin.cid for pin in await reader.pins("mine")] == [trees[2].cid]
        assert await reader.get_blocks(cids(trees[2])) == dict(trees[2].blocks)
        assert await reader.has(cids(trees[2])) == set(cids(trees[2]))
        gone = set(cids(trees[1])) - set(cids(trees[0])) - set(cids(trees[2]))
        assert gone and await reader.has(gone) == set()
        await reader.unpin(pins[trees[2].cid])
        assert space.blobs() == {}
        assert await space.open().has([trees[2].cid]) == set()
        assert await reader._uploads.refresh() == {}

    run(body())


def test_unpin_without_reading_removes_nothing(space: Space) -> None:
    async def body() -> None:
        blind = space.open(w3up_read="off")
        first, second = build_tree(files(100)), build_tree(files(100, "two"))
        await publish(blind, first)
        await publish(blind, second, cids(first))
        stored = space.blobs()
        await blind.unpin(next(pin for pin in await blind.pins("mine") if pin.cid == first.cid))
        assert space.blobs() == stored
        assert await space.open().get_blocks(cids(second)) == dict(second.blocks)

    run(body())


def test_unpin_of_an_unreadable_tree_removes_nothing(server: Server, space: Space) -> None:
    async def body() -> None:
        provider = space.open()
        tree, partial = build_tree(files(100)), build_tree(files(100, "two"))
        await publish(provider, tree)
        await publish(provider, partial, [*cids(tree), partial.cid])  # its top is missing
        stored = space.blobs()
        await provider.unpin(next(pin for pin in await provider.pins("mine") if pin.cid == tree.cid))
        assert space.blobs() == stored

    run(body())


# -- faults --------------------------------------------------------------------------------------------------------


def test_publish_after_a_crash_is_completed(server: Server, space: Space) -> None:
    async def body() -> None:
        tree = build_tree(files(1000))
        provider = space.open(w3up_shard_bytes="60000")

        def dies() -> Iterator[Block]:
            for number, item in enumerate(tree.blocks):
                if number == len(tree.blocks) * 2 // 3:
                    raise KeyboardInterrupt
                yield item

        before = server.stats()["put_bytes"]
        with pytest.raises(KeyboardInterrupt):
            await provider.put_car(tree.cid, dies(), name="mine")
        half = server.stats()["put_bytes"]
        assert half - before > 60_000
        other = space.open(w3up_shard_bytes="60000")
        assert await other.pins("mine") == [] and await other.has([tree.cid]) == set()
        await publish(other, tree)
        whole = sum(len(data) + 40 for _, data in tree.blocks)
        assert (
            server.stats()["put_bytes"] - half < whole - (half - before) + 80_000
        )  # present blocks were not sent
        assert await space.open().get_blocks(cids(tree)) == dict(tree.blocks)

    try:
        run(body())
    except KeyboardInterrupt:
        pytest.fail("the interruption came out")


def test_cancelled_publish_lists_nothing(space: Space) -> None:
    async def body() -> None:
        tree = build_tree(files(500))
        provider = space.open(w3up_shard_bytes="20000")
        task = asyncio.ensure_future(provider.put_car(tree.cid, tree.blocks, name="mine"))
        while not space.blobs():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await space.open().pins("mine") == []
        await publish(provider, tree)
        assert await space.open().get_blocks(cids(tree)) == dict(tree.blocks)

    run(body())


def test_connection_lost_during_an_upload_is_retried(server: Server, space: Space) -> None:
    async def body() -> None:
        items = [block(os.urandom(500_000))]
        with server.fault(put_fails=1, drop_put=100_000):
            await space.open().put_car(items[0][0], items, name="n")
        assert await space.open().get_blocks([items[0][0]]) == dict(items)
        more = [block(os.urandom(500_000))]
        with server.fault(put_fails=9, drop_put=100_000), pytest.raises(ProviderUnavailable):
            await space.open().put_car(more[0][0], more, name="n")
        assert await space.open().has([more[0][0]]) == set()
        await space.open().put_car(more[0][0], more, name="n")
        assert await space.open().get_blocks([more[0][0]]) == dict(more)

    run(body())


@pytest.mark.parametrize(("status", "error"), [(403, ProviderRefused), (503, ProviderUnavailable)])
def test_storage_node_failure_is_raised_with_its_status(
    server: Server, space: Space, status: int, error: type[ProviderError]
) -> None:
    async def body() -> None:
        item = block(os.urandom(100))
        with server.fault(put_fails=5, put_status=status), pytest.raises(error, match=str(status)):
            await space.open().put_car(item[0], [item], name="n")
        assert await space.open().pins("n") == []

    run(body())


def test_late_receipts_are_awaited(server: Server, space: Space) -> None:
    async def body() -> None:
        item = block("x")
        with server.fault(receipts_late=4):
            await space.open().put_car(item[0], [item], name="n")
        assert await space.open().get_blocks([item[0]]) == dict([item])

    run(body())


def test_service_with_disabled_writes_is_reported_and_read(server: Server, space: Space) -> None:
    async def body() -> None:
        provider = space.open()
        tree = build_tree(files(20))
        await publish(provider, tree)
        error = {"name": "ServiceUnavailable", "message": "writes are disabled"}
        paths = ("space/blob/add", "space/blob/remove", "space/index/add", "upload/add", "upload/remove")
        with server.fault(deny=dict.fromkeys(paths, error)):
            for call in (
                lambda: provider.put_car(block("x")[0], [block("x")], name="mine"),
                lambda: provider.pin(block("x")[0], "mine"),
                lambda: provider.unpin(Pin(tree.cid, "mine", "", 0)),
            ):
                with pytest.raises(
                    ProviderUnavailable, match="ServiceUnavailable: writes are disabled"
                ) as caught:
                    await call()
                assert "vault move" in caught.value.hint
            reader = space.open()
            assert await reader.get_blocks(cids(tree)) == dict(tree.blocks)
            assert [pin.cid for pin in await reader.pins("mine")] == [tree.cid]

    run(body())


def test_vault_moves_away_from_a_read_only_service(
    server: Server, space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the suggested command; another device reads the new place with the wallet alone."""
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    for name, value in space.settings().items():
        if name != "retry":
            monkeypatch.setenv(name.upper(), value)
    (tmp_path / "stick").mkdir()
    one, two = Cli(tmp_path / "one", monkeypatch), Cli(tmp_path / "two", monkeypatch)
    one.ok("init", "--unprotected-keys", "--provider", f"web3storage:{server.url}", key=KEY)
    one.ok("write", "tone", "--body", "x")
    one.ok("sync")
    one.ok("write", "tone", "--body", "y")
    error = {"name": "ServiceUnavailable", "message": "writes are disabled"}
    paths = ("space/blob/add", "space/blob/remove", "space/index/add", "upload/add", "upload/remove")
    with server.fault(deny=dict.fromkeys(paths, error)):
        hinted(
            "The service accepts no writes now, but may still serve reads. If it has ended, as the hosted ones did in 2026, move the vault to another provider: ipfsmem vault move.",
            one.fails(41, "sync").err,
        )
        assert (
            one("vault", "move", str(tmp_path / "stick")).code == 7
        )  # nobody can be informed at the old provider
        one.ok("sync")
        two.ok("init", "--unprotected-keys", "--provider", str(tmp_path / "stick"), key=KEY)
        assert two.ok("read", "tone", "--body").out == "y\n"


def test_unpaid_space_is_refused_and_can_be_used_later(server: Server) -> None:
    unpaid = Space(server)

    async def body() -> None:
        with pytest.raises(ProviderRefused, match=r"InsufficientStorage.*no storage provider") as caught:
            await unpaid.open().put_car(block("x")[0], [block("x")], name="n")
        hinted(
            "The space has no storage left, or no account pays for it. Give it a provider or a larger plan, or publish"
            " elsewhere too.",
            caught.value.hint,
        )
        server.control("provision", {"space": unpaid.key.did})
        await unpaid.open().put_car(block("x")[0], [block("x")], name="n")
        assert await unpaid.open().get_blocks([block("x")[0]]) == dict([block("x")])

    run(body())


def test_too_large_blob_is_refused_and_smaller_shards_are_stored(server: Server, space: Space) -> None:
    tree = build_tree(files(200))

    async def body() -> None:
        with server.fault(blob_most=40_000):
            with pytest.raises(ProviderRefused, match="more than 40000 bytes") as caught:
                await publish(space.open(), tree)
            hinted(
                "The service accepts only smaller blobs: set W3UP_SHARD_BYTES.",
                caught.value.hint,
            )
            await publish(space.open(w3up_shard_bytes="40000"), tree)
        assert await space.open().get_blocks(cids(tree)) == dict(tree.blocks)

    run(body())


def test_service_without_indexes_takes_uploads(server: Server, space: Space) -> None:
    async def body() -> None:
        with server.fault(deny={"space/index/add": {"name": "HandlerNotFound", "message": "no such"}}):
            await space.open().put_car(block("x")[0], [block("x")], name="n")
        assert await space.open().get_blocks([block("x")[0]]) == dict([block("x")])

    run(body())


def service(server: Server, space: str, signer: Signer, proof: str | None) -> Service:
    """The service below the provider, which checks its delegation before it sends anything."""
    return Service(
        Http("web3storage", trusted=[server.url]), server.url, server.did, signer, space,
        ucan.read_proof(proof) if proof else None, f"{server.url}/receipt/",
    )  # fmt: skip


def test_service_refuses_calls_outside_the_delegation(server: Server, space: Space) -> None:
    device, stranger = Signer(os.urandom(32)), Signer(os.urandom(32))
    cases = [
        (device, None),
        (device, space.delegate(stranger.did)),
        (device, space.delegate(device.did, ("upload/add",))),
        (device, server.space().delegate(device.did)),
    ]

    async def body() -> None:
        for signer, proof in cases:
            asked = service(server, space.key.did, signer, proof)
            with pytest.raises(ProviderRefused, match="Unauthorized") as caught:
                await asked.invoke([("upload/list", {})], what="list uploads")
            hinted(
                "The service does not accept this key and delegation for this space. Make a new delegation (space/blob/*,"
                " space/index/*, upload/*) for the key's DID and put it into W3UP_PROOF.",
                caught.value.hint,
            )
        told = ("space/blob/*", "space/index/*", "upload/*")
        good = service(server, space.key.did, device, space.delegate(device.did, told))
        assert (await good.invoke([("upload/list", {})], what="list"))[0].receipt.ok["size"] == 0

    run(body())


def test_delegation_that_expires_in_use_is_explained(space: Space) -> None:
    async def body() -> None:
        for lifetime in (8, 80):  # a loaded machine may need longer for the permitted part
            provider = space.open(lifetime=lifetime)
            ends = time.monotonic() + lifetime
            with contextlib.suppress(ProviderRefused):
                await provider.put_car(block("x")[0], [block("x")], name="n")
                break
        await asyncio.sleep(ends + 0.1 - time.monotonic())
        for call in (
            lambda: provider.pins("n"),
            lambda: provider.put_car(block("y")[0], [block("y")], name="n"),
        ):
            with pytest.raises(ProviderRefused, match="expired") as caught:
                await call()
            assert "W3UP_PROOF" in caught.value.hint
        assert [pin.cid for pin in await space.open().pins("n")] == [block("x")[0]]

    run(body())


def test_unreachable_service_is_reported(server: Server, space: Space, tmp_path: Path) -> None:
    async def body() -> None:
        provider = Web3Storage("http://127.0.0.1:9", space.settings())
        with pytest.raises(ProviderUnavailable):
            await provider.pins("n")
        lost = Web3Storage(f"{server.url}/elsewhere", space.settings())
        with pytest.raises(ProviderRefused, match="404"):
            await lost.pins("n")
        await provider.close()
        await lost.close()

    run(body())


def test_error_inside_the_service_is_retryable(server: Server, space: Space) -> None:
    async def body() -> None:
        cause = {"name": "TypeError", "message": "fetch failed"}
        error = {"name": "HandlerExecutionError", "message": "service handler threw", "cause": cause}
        with (
            server.fault(deny={"space/index/add": error}),
            pytest.raises(ProviderUnavailable, match="fetch failed"),
        ):
            await space.open().put_car(block("x")[0], [block("x")], name="n")
        assert await space.open().pins("n") == []

    run(body())


# -- a whole memory ------------------------------------------------------------------------------------------------


def test_requests_of_one_change_and_a_first_fetch_are_bounded(
    server: Server, space: Space, tmp_path: Path
) -> None:
    """Each with a newly opened provider, as in a command."""
    given: Any = {"unlock": Unlock(RawKeySigner(b"\x22" * 32)), "passphrase": False}

    def spent(work: Callable[[], None]) -> dict[str, int]:
        before = server.stats()
        work()
        return {what: count - before[what] for what, count in server.stats().items()}

    def change(text: str) -> None:
        with Memory.load("alex", provider=space.open(), home=tmp_path / "a") as memory:
            memory.write("k7", text)
            asyncio.run(memory.sync())

    def fetch() -> None:
        Memory.load("alex", "encrypted-ipfs", provider=space.open(), home=tmp_path / "b", **given).close()

    with Memory.create(
        "alex", "encrypted-ipfs", provider=space.open(), home=tmp_path / "a", **given
    ) as memory:
        for number in range(400):
            memory.write(f"k{number}", f"text {number} " * 150, name=f"K{number}", type="user")
        asyncio.run(memory.sync())
    stored = sum(space.blobs().values())
    for turn in range(3):
        cost = spent(functools.partial(change, f"text {turn}"))
        assert (cost["puts"], cost["receipts"]) == (2, 2)
        assert cost["rpc"] == 11
        # The service's own read of the index; and the new blocks are read back from the single shard that has
        # them.
        assert cost["gets"] == 2
    cost = spent(fetch)
    assert cost["get_bytes"] <= stored * 1.02 + 3 * 40_000
    assert cost["gets"] <= 9


def test_vault_is_restored_with_the_wallet_alone(server: Server, space: Space, tmp_path: Path) -> None:
    wallet = Unlock(RawKeySigner(b"\x21" * 32))

    def make(kind: Callable[..., Memory], home: str) -> Memory:
        return kind(
            "alex",
            "encrypted-ipfs",
            provider=space.open(),
            unlock=wallet,
            passphrase=False,
            home=tmp_path / home,
        )

    first = make(Memory.create, "a")
    for number in range(200):
        first.write(f"k{number}", f"text {number}", name=f"K{number}", type="user")
    asyncio.run(first.sync())
    first.write("k7", "changed")
    before = server.stats()
    report = asyncio.run(first.sync())
    after = server.stats()
    assert after["put_bytes"] - before["put_bytes"] < report.bytes_sent + 2000 < 34_000
    second = make(Memory.load, "b")
    assert second.files() == first.files()
    first.write("k8", "by one")
    second.write("k9", "by two")
    for memory in (first, second, first, second):
        asyncio.run(memory.sync())
    assert first.files() == second.files()
    assert first.status().root == second.status().root
    assert "by one" in str(second.read("k8")) and "by two" in str(first.read("k9"))
    for memory in (first, second):
        memory.close()
