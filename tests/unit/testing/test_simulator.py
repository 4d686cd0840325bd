"""The simulator fails exactly as requested, records every byte, and is deterministic."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.content.dagpb import BlockLink
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Block, Capabilities, Pin
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.testing import Faults, MockClock, SeededRandom, SimCloud, SimProvider
from tests.support.content_lab import encode_node, pb_cid

T = TypeVar("T")
SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def leaf(text: str) -> Block:
    return raw_cid(hashlib.sha256(text.encode()).digest()), text.encode()


def node(*children: Block) -> Block:
    data = encode_node(
        [BlockLink(str(i), cid, len(data)) for i, (cid, data) in enumerate(children)], b"\x08\x01"
    )
    return pb_cid(hashlib.sha256(data).digest()), data


LEAVES = [leaf(f"leaf {i}") for i in range(6)]
LEFT, RIGHT = node(*LEAVES[:3]), node(*LEAVES[3:])
ROOT = node(LEFT, RIGHT)
TREE = [ROOT, LEFT, *LEAVES[:3], RIGHT, *LEAVES[3:]]
CIDS = [cid for cid, _ in TREE]


@pytest.fixture
def sim() -> SimProvider:
    provider = SimProvider()
    run(provider.put_car(ROOT[0], TREE, name="n"))
    return provider


def fetch(sim: SimProvider, *cids: CID) -> dict[CID, bytes]:
    return run(sim.get_blocks(cids or CIDS))


def dag(sim: SimProvider) -> list[Block]:
    async def collect() -> list[Block]:
        return [block async for block in sim.get_dag(ROOT[0])]

    return run(collect())


def test_simulated_provider_can_be_offline_or_refuse(sim: SimProvider) -> None:
    sim.faults.offline = True
    with pytest.raises(ProviderUnavailable):
        fetch(sim)
    with pytest.raises(ProviderUnavailable):
        run(sim.pin(ROOT[0], "n"))
    sim.faults = Faults()
    sim.faults.refuse = True
    with pytest.raises(ProviderRefused):
        run(sim.pins("n"))
    sim.faults = Faults()
    assert fetch(sim) == dict(TREE)
    assert sim.cloud.pins == []


def test_chosen_call_fails(sim: SimProvider) -> None:
    sim.fail_call(2)
    sim.fail_call(3, ProviderRefused("quota"))
    assert fetch(sim)
    with pytest.raises(ProviderUnavailable):
        run(sim.pin(ROOT[0], "n"))
    with pytest.raises(ProviderRefused, match="quota"):
        run(sim.pin(ROOT[0], "n"))
    assert sim.cloud.pins == []
    run(sim.pin(ROOT[0], "n"))
    assert [pin.cid for pin in sim.cloud.pins] == [ROOT[0]]
    assert sim.calls == ["put_car", "get_blocks", "pin", "pin", "pin"]


def test_answer_is_lost_after_the_work(sim: SimProvider) -> None:
    sim.lose_answer(1)
    with pytest.raises(ProviderUnavailable):
        run(sim.pin(ROOT[0], "n"))
    assert len(sim.cloud.pins) == 1
    run(sim.pin(ROOT[0], "n"))
    assert len(sim.cloud.pins) == 1


def test_delay_moves_the_clock_only(sim: SimProvider) -> None:
    before = sim.clock.now
    sim.faults.delay = 3600
    fetch(sim)
    assert sim.clock.now - before == timedelta(hours=1)


def test_blocks_can_be_dropped_truncated_or_changed(sim: SimProvider) -> None:
    a, b, c, d, e, f = (cid for cid, _ in LEAVES)
    sim.faults.drop = {a}
    sim.faults.instead = {b: b"something else", raw_cid(bytes(32)): b"from nowhere"}
    sim.faults.cut = {c: 4}
    sim.faults.flip = {d: 9}
    assert fetch(sim, a, b, c, d, e, raw_cid(bytes(32))) == {
        b: b"something else",
        c: b"leaf",
        d: b"lgaf 3",
        e: b"leaf 4",
        raw_cid(bytes(32)): b"from nowhere",
    }
    assert run(sim.has([a, f])) == {f}
    sim.faults = Faults()
    assert fetch(sim) == dict(TREE)


def test_simulated_provider_can_answer_has_falsely(sim: SimProvider) -> None:
    nowhere = raw_cid(bytes(32))
    sim.faults.has = "all"
    assert run(sim.has([nowhere, ROOT[0]])) == {nowhere, ROOT[0]}
    sim.faults.has = "none"
    assert run(sim.has([nowhere, ROOT[0]])) == set()


def test_trees_can_end_early_or_miss_blocks(sim: SimProvider) -> None:
    assert dag(sim) == TREE
    sim.faults.end_dag_after = 4
    assert dag(sim) == TREE[:4]
    sim.faults.end_dag_after = None
    sim.faults.drop = {LEAVES[0][0]}
    assert dag(sim) == [block for block in TREE if block != LEAVES[0]]


def test_order_of_blocks_is_shuffled_reproducibly() -> None:
    def once() -> tuple[list[CID], list[Block], list[CID]]:
        sim = SimProvider(random=SeededRandom("x"))
        run(sim.put_car(ROOT[0], TREE, name="n"))
        for cid in CIDS:
            run(sim.pin(cid, "n"))
        sim.faults.reorder = True
        return list(fetch(sim)), dag(sim), [pin.cid for pin in run(sim.pins("n"))]

    blocks, tree, pins = once()
    assert (blocks, tree, pins) == once()
    assert blocks != CIDS and sorted(blocks) == sorted(CIDS)
    assert tree != TREE and sorted(tree) == sorted(TREE)
    assert pins != CIDS[::-1] and sorted(pins) == sorted(CIDS)


def test_upload_can_return_another_root(sim: SimProvider) -> None:
    sim.faults.other_root = LEFT[0]
    assert run(sim.put_car(ROOT[0], TREE, name="n")) == LEFT[0]


def test_upload_can_break_off_half_way() -> None:
    sim = SimProvider()
    sim.faults.reset_after = 4
    with pytest.raises(ProviderUnavailable):
        run(sim.put_car(ROOT[0], TREE, name="n"))
    assert list(sim.cloud.blocks) == CIDS[:4]
    assert sim.saw(LEAVES[1][1]) == ["put_car"]
    assert sim.saw(LEAVES[5][1]) == []


def test_name_can_be_set_back(sim: SimProvider) -> None:
    records = [
        ipns_record.make_record(SEED, "/ipfs/bafkqaaa", n, datetime(2036, 1, 1, tzinfo=UTC)) for n in range(3)
    ]
    for record in records:
        run(sim.put_name(NAME, record))
    assert run(sim.get_name(NAME)) == records[2]
    other_device = SimProvider(sim.cloud)
    sim.faults.old_record[NAME] = 0
    assert run(sim.get_name(NAME)) == records[0]
    assert run(other_device.get_name(NAME)) == records[2]
    sim.faults.old_record[NAME] = 7
    assert run(sim.get_name(NAME)) is None


def test_pin_list_can_be_outdated(sim: SimProvider) -> None:
    run(sim.pin(LEFT[0], "n"))
    sim.freeze_pins()
    sim.clock.advance(1)
    run(sim.pin(RIGHT[0], "n"))
    assert [pin.cid for pin in run(sim.pins("n"))] == [LEFT[0]]
    assert [pin.cid for pin in run(SimProvider(sim.cloud).pins("n"))] == [RIGHT[0], LEFT[0]]
    sim.faults.pins = [Pin(ROOT[0], "n", "invented", 0)]
    assert [pin.cid for pin in run(sim.pins("n"))] == [ROOT[0]]
    sim.faults.pins = None
    assert len(run(sim.pins("n"))) == 2


def test_blocks_without_a_pin_are_collected(sim: SimProvider) -> None:
    pin = run(sim.pin(LEFT[0], "n"))
    assert sim.cloud.collect() == 5
    assert set(sim.cloud.blocks) == {LEFT[0], *(cid for cid, _ in LEAVES[:3])}
    run(sim.unpin(pin))
    assert sim.cloud.collect() == 4
    assert sim.cloud.blocks == {}


def test_every_byte_is_recorded(sim: SimProvider) -> None:
    sent = sim.wire[0].sent
    assert all(data in sent and cid.encode() in sent for cid, data in TREE)
    start = sim.received_bytes()
    fetch(sim, LEAVES[0][0])
    assert sim.wire[-1].received == LEAVES[0][1]
    assert sim.received_bytes() - start == len(LEAVES[0][1])
    assert sim.sent_bytes() == sum(len(exchange.sent) for exchange in sim.wire)
    run(sim.pin(ROOT[0], "a telling name"))
    run(sim.pins("another name"))
    record = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 1, datetime(2036, 1, 1, tzinfo=UTC))
    run(sim.put_name(NAME, record))
    assert sim.saw(b"a telling name") == ["pin"]
    assert sim.saw(b"another name") == ["pins"]
    assert sim.saw(record) == ["put_name"]
    with pytest.raises(ProviderRefused):
        run(sim.put_name(NAME, b"a secret by mistake"))
    assert sim.saw(b"a secret by mistake") == ["put_name"]


def test_missing_capabilities_and_closed_providers_are_refused() -> None:
    sim = SimProvider(SimCloud(), capabilities=Capabilities())
    for work in (sim.has([]), sim.get_blocks([]), sim.pin(ROOT[0], "n"), sim.pins("n"), sim.get_name(NAME)):
        with pytest.raises(ProviderRefused, match="cannot"):
            run(work)
    run(sim.close())
    with pytest.raises(AssertionError):
        run(sim.put_car(ROOT[0], TREE, name="n"))


def test_mock_clock_advances_and_sleeps() -> None:
    clock = MockClock()
    assert clock.now == datetime(2026, 1, 1, tzinfo=UTC)
    clock.advance(0.001)
    assert (clock(), clock.ms) == (1_767_225_600_001_000_000, 1_767_225_600_001)
    clock.advance(-1)
    assert clock.now == datetime(2025, 12, 31, 23, 59, 59, 1000, tzinfo=UTC)

    async def body() -> None:
        await asyncio.gather(clock.sleep(10**6), clock.sleep(1))

    run(body())
    assert clock.ms == 1_767_225_599_001 + 1_000_001_000


def test_seeded_random_is_reproducible() -> None:
    random = SeededRandom(1)
    assert random(3) + random(5) + random(40) == SeededRandom(1)(48)
    assert SeededRandom(1)(8).hex() == hashlib.sha256(b"1/0").hexdigest()[:16]
    assert SeededRandom(2)(8) != SeededRandom(1)(8)
    assert {SeededRandom(seed).below(3) for seed in range(40)} == {0, 1, 2}
    assert sorted(SeededRandom(0).shuffled(range(50))) == list(range(50))


def test_stopped_failures_do_not_happen_later() -> None:
    provider = SimProvider()
    provider.fail_call(1)
    provider.lose_answer(3)
    with pytest.raises(ProviderUnavailable):
        run(provider.has([]))
    assert provider.stop_failing() and not provider.stop_failing()
    for _ in range(3):
        run(provider.has([]))


def test_capabilities_can_be_changed() -> None:
    provider = SimProvider()
    provider.change(has=False)
    assert not provider.capabilities.has and provider.capabilities.blocks
    with pytest.raises(ProviderRefused):
        run(provider.has([]))
    provider.change(has=True)
    assert run(provider.has([])) == set()
