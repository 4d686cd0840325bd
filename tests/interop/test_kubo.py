"""The `kubo` provider with a real node: the whole contract, names of pins, records, a node killed during
an import."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.pinning_service import PinningServiceProvider

from ipfsmem.content.cid import parse_cid, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderError, ProviderUnavailable
from ipfsmem.http import psa
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block, Provider
from ipfsmem.provider.probe import probe
from ipfsmem.testing import MockClock, SimCloud, SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.kubo_lab import OWN_NODE, Node, Process, running
from tests.servers.threaded import serve
from tests.unit.provider.test_contract import (  # noqa: F401
    NAME,
    block,
    record,
    run,
    test_blocks_are_checked_by_digest_length_too,
    test_concurrent_devices_store_pins_names_and_blocks,
    test_empty_provider_returns_empty_answers,
    test_exception_of_a_block_iterator_reaches_the_caller,
    test_greatest_record_of_a_name_remains,
    test_invalid_or_foreign_name_record_is_refused,
    test_name_in_another_base_is_the_same_name,
    test_one_digest_under_two_codecs_is_two_blocks,
    test_only_new_blocks_need_to_be_sent,
    test_pins_are_kept_by_name_and_removed,
    test_provider_implements_the_contract,
    test_repeated_upload_stores_the_same_blocks,
    test_stored_blocks_are_read_on_another_device,
    test_trees_are_read_in_one_answer,
    test_wrong_block_is_refused,
)

pytestmark = pytest.mark.interop
TREE = build_tree({"a.md": b"one", "sub/b.md": b"two", "big.bin": bytes(range(256)) * 12_000})


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("jsipfs") / "repo") as node:
        yield node


@pytest.fixture
def node(started: Node) -> Iterator[Node]:
    pinned, stored = started.pinned(), started.stored()
    yield started
    started.clean(pinned, stored)


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def connect(node: Node, clock: MockClock) -> Callable[[], Provider]:
    return lambda: node.open(clock)


def test_blocks_are_read_on_the_callers_thread_here_too(connect: Callable[[], Provider]) -> None:
    threads = set()

    def blocks() -> Iterable[Block]:
        for number in range(40):
            threads.add(threading.get_ident())
            yield block(bytes([number]) * 200_000)

    root = block(bytes([0]) * 200_000)[0]  # a node pins the root, so it must exist
    assert asyncio.run(connect().put_car(root, blocks(), name="n")) == root
    assert threads == {threading.get_ident()}


def test_kubo_passes_every_provider_check(connect: Callable[[], Provider]) -> None:
    steps = asyncio.run(
        probe(connect(), now_ms=1_900_000_000_000, random=lambda n: bytes(range(n % 256)) or b"\1" * n)
    )
    assert {step.outcome for step in steps} == {"ok"}, steps


def test_tree_is_read_back_completely(node: Node) -> None:
    async def body() -> None:
        provider = node.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        got = [item async for item in node.open().get_dag(TREE.cid)]
        assert got[0][0] == TREE.cid and dict(got) == dict(TREE.blocks)
        assert [item async for item in provider.get_dag(block("missing")[0])] == []

    run(body())


def test_only_missing_blocks_are_sent(node: Node) -> None:
    async def body() -> None:
        provider = node.open()
        old = build_tree({"a.md": b"one", "b.md": b"two" * 1000})
        new = build_tree({"a.md": b"other", "b.md": b"two" * 1000})
        await provider.put_car(old.cid, old.blocks, name="n")
        lacking = set(dict(new.blocks)) - await provider.has([cid for cid, _ in new.blocks])
        assert lacking == set(dict(new.blocks)) - set(dict(old.blocks))
        await provider.put_car(new.cid, [item for item in new.blocks if item[0] in lacking], name="n")
        assert {str(old.cid), str(new.cid)} <= node.pinned()
        assert await provider.get_blocks([cid for cid, _ in new.blocks]) == dict(new.blocks)

    run(body())


def test_pin_of_the_user_is_kept(node: Node) -> None:
    async def body() -> None:
        provider = node.open()
        item = block("theirs")
        await provider.put_car(item[0], [item], name="n")
        params = {"metadata": '{"ipfsmem":"holiday"}'} if node.is_js else {"name": "holiday"}
        if node.is_js:
            node.rpc("pin/rm", arg=str(item[0]))
        node.rpc("pin/add", arg=str(item[0]), **params)
        other = node.open()
        pin = await other.pin(item[0], "ours")
        assert [found.cid for found in await provider.pins("ours")] == [item[0]]
        assert [found.created for found in await provider.pins("holiday")] == [0]
        await other.unpin(pin)
        assert await provider.pins("ours") == []
        assert [found.cid for found in await provider.pins("holiday")] == [item[0]]
        assert str(item[0]) in node.pinned()

    run(body())


def test_names_with_special_characters_are_pinned_and_removed(node: Node) -> None:
    async def body() -> None:
        provider = node.open()
        item, before = block("odd names"), node.pinned()
        names = ["a,b", "a", "b@1", "100%", "%2C", "a b", "ipfsmem-0", "ipfsmem-01", '"<&>']
        await provider.put_car(item[0], [item], name=names[0])
        for name in names:
            await provider.pin(item[0], name)
        for name in names:
            assert [pin.name for pin in await provider.pins(name)] == [name]
        assert await provider.pins("ipfsmem-") == []
        for name in names:
            [pin] = await provider.pins(name)
            await provider.unpin(pin)
            assert await provider.pins(name) == []
        assert node.pinned() == before  # nor a folder that held the root while its pin was renewed

    run(body())


def test_records_are_stored_as_blocks_and_forged_ones_ignored(node: Node) -> None:
    """Anybody who may pin at the node may pin a forged record."""

    async def body() -> None:
        provider = node.open()
        forged = record(99, b"\x09" * 32)
        cid = raw_cid(hashlib.sha256(forged).digest())
        await provider.put_car(cid, [(cid, forged)], name="n")
        await provider.pin(cid, f"ipns:{NAME}")
        assert await provider.get_name(NAME) is None
        await provider.put_name(NAME, record(1))
        assert await provider.get_name(NAME) == record(1)

    run(body())


def test_alias_of_the_nodes_own_key_is_updated(node: Node) -> None:
    async def body() -> None:
        provider = node.open(kubo_alias="ipfsmem-test-alias")
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        for _ in range(2):
            await provider.pin(TREE.cid, "n")
            assert await provider.settle() == []
        names = [key["Name"] for key in node.rpc("key/list")["Keys"]]
        assert "ipfsmem-test-alias" in names

    run(body())
    node.rpc("key/rm", arg="ipfsmem-test-alias")


def test_unknown_root_cannot_be_pinned_and_nothing_hangs(node: Node) -> None:
    async def body() -> None:
        provider = node.open(kubo_patience="1")
        with pytest.raises(ProviderError):
            await provider.pin(block("nobody has this")[0], "n")
        assert await provider.pins("n") == []
        network = node.open(kubo_patience="1", kubo_network="on")
        assert await network.get_blocks([block("nobody has this")[0]]) == {}

    run(body())


@pytest.mark.slow
def test_node_killed_during_an_import_can_be_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real program dies half-way. The same call succeeds afterwards, and every listed pin can be read."""
    monkeypatch.delenv(OWN_NODE, raising=False)
    process = Process(tmp_path / "repo")
    tree = build_tree({f"file{number}": bytes([number]) * 1_000_000 for number in range(40)})
    killed = []

    def progress(direction: str, size: int) -> None:
        sent[0] += size if direction == "sent" else 0
        if sent[0] > 12_000_000 and not killed:
            killed.append(1)
            process.kill()

    sent = [0]
    try:
        node = process.start()
        with pytest.raises(ProviderUnavailable):
            asyncio.run(node.open(progress=progress).put_car(tree.cid, tree.blocks, name="n"))
        assert killed
        node = process.start()

        async def again() -> None:
            provider = node.open()
            assert str(tree.cid) not in node.pinned()
            there = await provider.has([cid for cid, _ in tree.blocks])
            rest = [item for item in tree.blocks if item[0] not in there]
            assert await provider.put_car(tree.cid, rest, name="n") == tree.cid
            await provider.pin(tree.cid, "n")
            got = [item async for item in provider.get_dag(tree.cid)]
            assert dict(got) == dict(tree.blocks)

        run(again())
    finally:
        process.kill()


def test_vault_at_a_node_is_shared_by_two_devices(node: Node, tmp_path: Path) -> None:
    """Two devices that share only the wallet and the node."""
    wallet = Unlock(RawKeySigner(bytes(31) + b"\x21"))

    def device(name: str) -> Memory:
        return Memory.load("m", "encrypted-ipfs", provider=[node.open()], unlock=wallet, passphrase=False, home=tmp_path / name, create=True)  # fmt: skip

    one = device("one")
    for number in range(30):
        one.write(f"note_{number}", f"text {number}")
    asyncio.run(one.sync())
    two = device("two")
    assert two.read("note_7").file.body == "text 7"  # type: ignore[union-attr]
    two.write("note_7", "changed on two")
    one.write("note_8", "changed on one")
    asyncio.run(two.sync())
    asyncio.run(one.sync())
    asyncio.run(two.sync())
    for device_ in (one, two):
        assert device_.read("note_7").file.body == "changed on two"  # type: ignore[union-attr]
        assert device_.read("note_8").file.body == "changed on one"  # type: ignore[union-attr]


def test_tree_with_a_missing_block_is_not_listed(node: Node) -> None:
    """A block was removed after `has`."""

    async def body() -> None:
        provider = node.open(kubo_patience="1")
        holed = build_tree({"a.md": b"a block that goes", "b.md": b"a block that stays"})
        blocks = [item for item in holed.blocks if item[1] != b"a block that goes"]
        assert len(blocks) < len(holed.blocks)
        with pytest.raises(ProviderUnavailable):
            await provider.put_car(holed.cid, blocks, name="n")
        assert await provider.pins("n") == []
        assert str(holed.cid) not in node.pinned()
        assert await provider.put_car(holed.cid, holed.blocks, name="n") == holed.cid
        await provider.pin(holed.cid, "n")
        assert [pin.cid for pin in await provider.pins("n")] == [holed.cid]

    run(body())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that reached the node, in order."""
    commands: list[str] = []
    exchange = Http._exchange

    def counted(self: Http, request: Any) -> Any:
        commands.append(request.url.path.partition("/api/v0/")[2])
        return exchange(self, request)

    monkeypatch.setattr(Http, "_exchange", counted)
    return commands


def test_list_of_all_blocks_is_read_only_for_unreceived_ones(node: Node, asked: list[str]) -> None:
    """The list grows with the whole node."""

    async def body() -> None:
        provider = node.open()
        blocks = [block(f"listed {number}") for number in range(50)]
        cids = [cid for cid, _ in blocks]
        assert await provider.has(cids) == set()
        await provider.put_car(cids[0], blocks, name="n")
        assert await node.open().has(cids[:30]) == set(cids[:30])
        assert await node.open().get_blocks(cids) == dict(blocks)
        assert [item async for item in node.open().get_dag(cids[0])] == blocks[:1]
        assert "refs/local" not in asked
        missing = block("nobody has this")[0]
        assert await provider.has([missing, *cids]) == set(cids)
        assert await provider.get_blocks([*cids, missing]) == dict(blocks)
        assert asked.count("refs/local") == (2 if node.is_js else 0)

    run(body())


def test_requests_for_one_change_and_for_a_new_device(node: Node, asked: list[str], tmp_path: Path) -> None:
    """The requests for 20 memories; 300 need no more."""
    counts = []
    for size in (20, 300):
        wallet = Unlock(RawKeySigner(bytes(30) + size.to_bytes(2, "big")))

        def device(name: str, wallet: Unlock = wallet, home: Path = tmp_path / str(size)) -> Memory:
            return Memory.load("m", "encrypted-ipfs", provider=[node.open()], unlock=wallet, passphrase=False, home=home / name, create=True)  # fmt: skip

        one = device("one")
        for number in range(size):
            one.write(f"note_{number}", f"text {number}")
        asyncio.run(one.sync())
        one.write("note_7", "changed")
        asked.clear()
        report = asyncio.run(one.sync())
        change = Counter(asked)
        asked.clear()
        two = device("two")
        assert two.read("note_7").file.body == "changed"  # type: ignore[union-attr]
        fetch = Counter(asked)
        assert change["dag/import"] == 2 and fetch["dag/export"] == 1
        assert change["refs/local"] == fetch["refs/local"] == 0
        # The new blocks and those on the path to the changed text are read back once each: only here the
        # depth matters.
        assert two.restored is not None
        change["block/get"] -= report.blocks_sent
        fetch["block/get"] -= two.restored.blocks_sent
        counts.append((change, fetch))
    assert counts[0] == counts[1]
    assert (
        counts[0][0].total() == 20 and counts[0][1].total() == 47
    )  # two for the search for a vault of that name


def test_pinning_service_next_to_the_node_gets_each_root(node: Node, tmp_path: Path) -> None:
    """The service stores blocks where the node reads them."""
    cloud = SimCloud()
    token = "token-of-the-service"
    with serve(lambda: psa.app(SimProvider(cloud), token=token)) as url:
        settings = {"pinning_service_token": token, "pinning_service_patience": "0"}
        memory = Memory.load("m", "encrypted-ipfs", provider=[node.open(), PinningServiceProvider(url, settings)], unlock=Unlock(RawKeySigner(bytes(31) + b"\x22")), passphrase=False, home=tmp_path, create=True)  # fmt: skip
        memory.write("k", "text")
        report = asyncio.run(memory.sync())
        assert report.published and "still fetching" in " ".join(notice.text for notice in report.notices)

        async def arrive() -> None:
            """Simulate bitswap: the service gets the blocks from the node."""
            async for cid, data in node.open().get_dag(parse_cid(str(report.root))):
                cloud.blocks[cid] = data

        asyncio.run(arrive())
        again = asyncio.run(memory.sync())
        assert "still fetching" not in " ".join(notice.text for notice in again.notices)
        assert str(report.root) in {str(pin.cid) for pin in cloud.pins}
