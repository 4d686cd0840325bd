"""The `kubo` provider with a stand-in for current and older versions of Kubo, and with faulty servers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.http.body import Multipart
from ipfsmem_providers.http.policy import Retry, Timeouts, Timing
from ipfsmem_providers.kubo import KuboProvider
from ipfsmem_providers.kubo.rpc import CommandFailed, KuboRpc, node_authorization

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import ipns_name, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block, Pin, Provider, open_provider
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing import MockClock
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.kubo import FakeKubo
from tests.servers.rude import rude
from tests.servers.threaded import serve, serve_here
from tests.support import virtual_time
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

QUICK = Retry(attempts=2, first=0.01, most=0.02)
TREE = build_tree({"a.md": b"one", "sub/b.md": b"two", "big.bin": bytes(3 << 20)})
TOKEN = "Bearer a secret of the node"


def opened(url: str, **settings: Any) -> KuboProvider:
    return KuboProvider(url, {"retry": QUICK, "kubo_patience": "2", **settings})


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture(params=["0.43.1", "0.39.0", "0.30.0"])
def kubo(request: pytest.FixtureRequest) -> FakeKubo:
    return FakeKubo(request.param)


@pytest.fixture
def url(kubo: FakeKubo) -> Iterator[str]:
    with serve(kubo.app) as url:
        yield url


@pytest.fixture
def connect(url: str, clock: MockClock) -> Callable[[], Provider]:
    return lambda: opened(url, timing=Timing(wall=lambda: clock.ms / 1000))


# -- versions ---------------------------------------------------------------------------------------------------------


def test_node_without_pin_names_is_refused_with_a_hint() -> None:
    with serve(FakeKubo("0.28.0").app) as url:

        async def body() -> None:
            provider = opened(url)
            await provider.put_car(TREE.cid, TREE.blocks, name="n")
            with pytest.raises(ProviderRefused, match=r"Kubo 0\.28\.0 does not keep the names") as caught:
                await provider.pin(TREE.cid, "n")
            assert "0.29" in (caught.value.hint or "")

        run(body())


@pytest.mark.parametrize("version", ["9" * 20_000, "0." + "1" * 5_000, "\u0664", "\x1b[2J", ""])
def test_node_with_an_invalid_version_is_used_or_refused(version: str) -> None:
    kubo = FakeKubo("0.43.1")
    kubo.faults.answer("POST", "version$", 200, json.dumps({"Version": version}), times=-1)
    with serve(kubo.app) as url:

        async def body() -> None:
            provider = opened(url)
            assert len(await provider._rpc.version()) < 1_000
            assert "\x1b" not in await provider._rpc.version()
            await provider.put_car(TREE.cid, TREE.blocks, name="n")
            assert (await provider.pin(TREE.cid, "n")).cid == TREE.cid

        run(body())


def test_current_kubo_publishes_records_to_the_network(url: str, kubo: FakeKubo) -> None:
    async def body() -> None:
        provider = opened(url, kubo_network="on")
        await provider.put_name(NAME, record(5))
        assert await provider.settle() == []
        assert ("name/put" in kubo.requests) == (kubo.number >= (0, 40))
        if kubo.number < (0, 40):
            return
        assert kubo.network == {NAME: record(5)}
        kubo.network[NAME] = record(8)  # somebody else's
        assert await provider.get_name(NAME) == record(8)
        await provider.put_name(NAME, record(6))  # refused there as not greater: no error
        assert await provider.settle() == []
        assert kubo.network == {NAME: record(8)}
        kubo.network[NAME] = record(9, b"\x09" * 32)  # a lie
        assert await opened(url, kubo_network="on").get_name(NAME) == record(6)
        kubo.faults.answer("POST", "name/put", 500, '{"Message":"failed to find any peer in table"}')
        await provider.put_name(NAME, record(7))
        [told] = await provider.settle()
        assert "any peer" in told
        assert await opened(url).get_name(NAME) == record(7)  # it was stored nevertheless
        assert await provider.settle() == []

    run(body())


def test_sync_waits_for_the_dht_at_most_once(tmp_path: Path) -> None:
    """Once for all changed names together, and not at all without a change."""
    kubo = FakeKubo("0.43.1")
    with serve(kubo.app) as url, _memory(tmp_path / "one", url) as one:
        one.write("note", "text")
        asyncio.run(one.sync())
        assert kubo.network == kubo.records != {}
        kubo.delay = 0.5
        one.write("note", "another")
        kubo.waited()
        asyncio.run(one.sync())
        assert kubo.waited() == 2  # the lookup of `name/put`, and the put
        assert kubo.network == kubo.records
        kubo.delay = 30.0
        asyncio.run(one.sync())
        assert kubo.waited() == 0
        with _memory(tmp_path / "two", url) as two:  # its names and its first root are new
            assert two.read("note").file.body == "another"  # type: ignore[union-attr]
        report = asyncio.run(_written(one))
    told = [notice.text for notice in report.notices if notice.kind == "channel-down"]
    assert len(told) == 1 and "stored the upload, but the network" in told[0]


async def _written(memory: Memory) -> SyncReport:
    memory.write("note", "a third")
    return await memory.sync()


def test_slow_network_publish_is_awaited_within_one_timeout(kubo: FakeKubo) -> None:
    """All names of a sync share the timeout."""
    if kubo.number < (0, 40):
        return
    names = [ipns_name(bytes([number]) * 32) for number in range(1, 6)]

    async def body() -> None:
        now = asyncio.get_running_loop().time
        async with serve_here(kubo.app()) as url:
            provider = opened(url, kubo_network="on", kubo_patience="1", timing=Timing(now=now))
            await provider.put_name(NAME, record(5))
            await provider.settle()
            kubo.network[NAME] = record(8)
            kubo.delay = 1.5
            started = now()
            assert await provider.get_name(NAME) == record(5)
            for name in names:
                assert await provider.get_name(name) is None
            assert now() - started == pytest.approx(1.0)
            assert kubo.requests.count("name/put") == 1
            await provider.close()

    virtual_time.run(body())


def test_late_answer_of_the_network_is_used_the_next_time(kubo: FakeKubo) -> None:
    if kubo.number < (0, 40):
        return

    async def body() -> None:
        now = asyncio.get_running_loop().time
        async with serve_here(kubo.app()) as url:
            provider = opened(url, kubo_network="on", kubo_patience="30", timing=Timing(now=now))
            kubo.network[NAME] = record(8)
            kubo.delay = 0.3
            assert await provider.get_name(NAME) == record(8)
            await asyncio.sleep(700)
            looking = asyncio.create_task(provider.get_name(NAME))
            await asyncio.sleep(0.1)
            looking.cancel()  # the caller does not wait; the lookup continues
            await asyncio.sleep(0.5)
            asked = kubo.requests.count("name/get")
            assert await provider.get_name(NAME) == record(8)
            # The node's own store; the network was asked before.
            assert kubo.requests.count("name/get") == asked + 1
            assert await provider.get_name(NAME) is None  # and is not asked again at once
            await provider.close()

    virtual_time.run(body())


def test_long_pin_list_is_filtered_by_name_while_reading() -> None:
    kubo = FakeKubo()
    mine, others = raw_cid(b"\x01" * 32), [raw_cid(number.to_bytes(32)) for number in range(2_000)]
    lines = [{"Cid": str(cid), "Name": f"x@{number}"} for number, cid in enumerate(others)]
    lines.insert(1_000, {"Cid": str(mine), "Name": "n@7"})
    kubo.faults.answer("POST", "pin/ls", 200, "".join(json.dumps(line) + "\n" for line in lines), times=-1)
    with serve(kubo.app) as url:

        async def body() -> None:
            provider = opened(url)
            assert await provider._pins._all("n") == {mine: "n@7"}
            assert [(pin.cid, pin.created) for pin in await provider.pins("n")] == [(mine, 7)]

        run(body())


def test_failure_in_last_line_of_list_of_pins_is_an_error() -> None:
    """A list that breaks off would look complete."""
    kubo = FakeKubo()
    mine = raw_cid(b"\x01" * 32)
    lines = [
        {"Cid": str(mine), "Name": "n@7"},
        {"Message": "pin: datastore closed", "Code": 0, "Type": "error"},
    ]
    kubo.faults.answer("POST", "pin/ls", 200, "".join(json.dumps(line) + "\n" for line in lines), times=-1)
    with serve(kubo.app) as url:

        async def body() -> None:
            with pytest.raises(CommandFailed, match="could not list pins: pin: datastore closed"):
                await opened(url).pins("n")

        run(body())


def test_pin_list_failing_in_a_trailer_raises_with_the_pins_read() -> None:
    """A streamed list that a node breaks off ends like a complete one: its failure is in an HTTP trailer."""
    kubo = FakeKubo()
    first, second = raw_cid(b"\x01" * 32), raw_cid(b"\x02" * 32)
    kubo.pins, kubo.breaks_after = {first: "n@7", second: "n@8"}, 1
    with serve(kubo.app) as url:

        async def body() -> None:
            provider = opened(url, retry=QUICK)
            with pytest.raises(CommandFailed, match=r"could not list pins: .*datastore closed") as caught:
                await provider.pins("n")
            assert [pin.cid for pin in caught.value.pins] == [first]
            kubo.breaks_after = None
            assert [pin.cid for pin in await provider.pins("n")] == [second, first]
            await provider.close()

        run(body())


def test_overlong_pin_list_is_streamed_and_marked_incomplete() -> None:
    kubo = FakeKubo()
    mine = raw_cid(b"\x01" * 32)
    rows = {str(raw_cid(number.to_bytes(32))): {"Name": "x" * 250} for number in range(30_000)}
    whole = json.dumps({"Keys": {**rows, str(mine): {"Name": "n@7"}}})
    lines = "".join(json.dumps({"Cid": cid, **row}) + "\n" for cid, row in rows.items())
    kubo.faults.answer("POST", "pin/ls", 200, whole)
    streamed = lines + json.dumps({"Cid": str(mine), "Name": "n@7"}) + "\n"
    kubo.faults.answer("POST", "pin/ls", 200, streamed)
    with serve(kubo.app) as url:

        async def body() -> None:
            provider = opened(url)
            assert [pin.cid for pin in await provider.pins("n")] == [mine]
            assert provider.unread() == ["perhaps more pins than its list showed"]
            assert await provider.pins("n") == [] and provider.unread() == []
            await provider.close()

        run(body())


def test_pin_named_like_a_failure_is_listed() -> None:
    kubo = FakeKubo()
    mine, other = raw_cid(b"\x01" * 32), raw_cid(b"\x02" * 32)
    lines = [
        {"Cid": str(other), "Name": json.dumps({"Message": "no", "Type": "error"})},
        {"Cid": str(mine), "Name": "n@7", "Message": "no"},
    ]
    kubo.faults.answer("POST", "pin/ls", 200, "".join(json.dumps(line) + "\n" for line in lines), times=-1)
    with serve(kubo.app) as url:

        async def body() -> None:
            assert [pin.cid for pin in await opened(url).pins("n")] == [mine]

        run(body())


@pytest.mark.parametrize("before", ["", '{"Progress":3}\n'])
def test_failure_in_last_line_of_pinning_is_an_error(url: str, kubo: FakeKubo, before: str) -> None:
    failure = json.dumps({"Message": "pin: block was not found", "Code": 0, "Type": "error"})
    kubo.faults.answer("POST", "pin/add", 200, f"{before}{failure}\n", times=-1)

    async def body() -> None:
        provider = opened(url)
        with pytest.raises(CommandFailed, match="could not pin: pin: block was not found"):
            await provider.pin(TREE.cid, "n")
        await provider.close()

    run(body())


def test_list_of_pins_in_one_endless_line_is_refused() -> None:
    kubo = FakeKubo()
    row = f'"{raw_cid(bytes(32))}":{{"Type":"recursive","Name":"n"}},'
    kubo.faults.answer("POST", "pin/ls", 200, '{"Keys":{' + row * 100_000, times=-1)
    with serve(kubo.app) as url:

        async def body() -> None:
            with pytest.raises(ProviderRefused, match="more than the 8,388,608 bytes"):
                await opened(url).pins("n")

        run(body())


# -- pins of others ---------------------------------------------------------------------------------------------------


def test_import_keeps_every_name_of_a_pinned_root(url: str, kubo: FakeKubo) -> None:
    async def body() -> None:
        provider = opened(url)
        await provider.put_car(TREE.cid, TREE.blocks, name="vault one")
        await provider.pin(TREE.cid, "vault one")
        kubo.pins[TREE.cid] += ",my own, with a comma"
        for _ in range(2):
            other = opened(url)
            await other.put_car(TREE.cid, TREE.blocks, name="vault two")
            pin = await other.pin(TREE.cid, "vault two")
            for name in ("vault one", "vault two"):
                assert [found.cid for found in await provider.pins(name)] == [TREE.cid]
            assert "my own, with a comma" in kubo.pins[TREE.cid]
        await other.unpin(pin)
        assert await provider.pins("vault two") == []
        [pin] = await provider.pins("vault one")
        await provider.unpin(pin)
        assert kubo.pins == {TREE.cid: "my own, with a comma"}
        assert TREE.cid not in kubo.let_go  # a node that collects garbage at any moment keeps the tree

    run(body())


@pytest.mark.parametrize("version", ["0.30.0", "0.34.1"])
@pytest.mark.parametrize("again", ["upload", "pin", "unpin"])
def test_interrupted_rename_of_pin_keeps_the_tree_and_other_names(version: str, again: str) -> None:
    """Nodes before 0.35 accept no second name."""
    kubo = FakeKubo(version)
    kubo.cloud.blocks.update(TREE.blocks)
    kubo.pins[TREE.cid] = "my own, with a comma@7"

    async def broken(request: web.Request) -> web.StreamResponse:
        return web.json_response({"Message": "disk is full", "Code": 0, "Type": "error"}, status=500)

    async def body(url: str) -> None:
        remove = kubo._pin_rm

        async def remove_and_break(request: web.Request) -> web.StreamResponse:
            kubo.faults.add("POST", "pin/add", broken, -1)
            return await remove(request)

        kubo._pin_rm = remove_and_break  # type: ignore[method-assign]
        with pytest.raises(ProviderUnavailable):
            await opened(url).pin(TREE.cid, "n")
        assert TREE.cid not in kubo.pins and kubo.is_held(TREE.cid)
        assert await opened(url).pins("n") == [] == await opened(url).pins("my own, with a comma")
        kubo.faults.clear()
        kubo._pin_rm = remove  # type: ignore[method-assign]
        provider = opened(url)
        if again == "unpin":  # of the pin that is missing, except for its holder: then the other name is back
            await provider.unpin(Pin(TREE.cid, "n", str(TREE.cid), 0))
            assert kubo.pins == {TREE.cid: "my own, with a comma@7"}
            return
        if again == "upload":
            await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pin = await provider.pin(TREE.cid, "n")
        assert list(kubo.pins) == [TREE.cid] and kubo.pins[TREE.cid].startswith("my own, with a comma@7,n@")
        await provider.unpin(pin)
        assert kubo.pins == {TREE.cid: "my own, with a comma@7"} and TREE.cid not in kubo.let_go

    with serve(kubo.app) as url:
        run(body(url))


def test_unnamed_pin_of_the_user_is_kept(url: str, kubo: FakeKubo) -> None:
    async def body() -> None:
        provider = opened(url)
        kubo.cloud.blocks.update(TREE.blocks)
        kubo.pins[TREE.cid] = ""
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pin = await provider.pin(TREE.cid, "n")
        await provider.unpin(pin)
        assert kubo.pins == {TREE.cid: ""}

    run(body())


def test_simulated_import_that_pins_removes_the_name(url: str, kubo: FakeKubo) -> None:
    """As Kubo since 0.35; the tests above depend on it."""
    kubo.cloud.blocks.update(TREE.blocks)
    kubo.pins[TREE.cid] = "somebody's"

    async def body() -> None:
        rpc = KuboRpc(url)
        form = Multipart().file(
            "file", "x.car", car_bytes([TREE.cid], TREE.blocks), "application/vnd.ipld.car"
        )
        await rpc.call("dag/import", {"stats": "false"}, body=form)
        await rpc.close()

    run(body())
    assert kubo.pins[TREE.cid] == ("" if kubo.number >= (0, 35) else "somebody's")


def test_node_that_omits_pin_names_is_named_in_the_error(url: str, kubo: FakeKubo) -> None:
    """As the proxy of IPFS Cluster does."""
    kubo.nameless = True

    async def body() -> None:
        provider = opened(url)
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        with pytest.raises(ProviderRefused, match="without telling the pin's name") as caught:
            await provider.pin(TREE.cid, "n")
        assert "IPFS Cluster" in (caught.value.hint or "")

    run(body())


def test_only_the_newest_record_stays_pinned(url: str, kubo: FakeKubo) -> None:
    async def body() -> None:
        for sequence in range(1, 6):
            await opened(url).put_name(NAME, record(sequence))
        assert list(kubo.pins) == [raw_cid(hashlib.sha256(record(5)).digest())]

    run(body())


# -- requests --------------------------------------------------------------------------------------------------------


def test_publish_has_few_requests(url: str, kubo: FakeKubo) -> None:
    async def body() -> None:
        provider = opened(url)
        await provider.has([cid for cid, _ in TREE.blocks])
        kubo.requests.clear()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.pin(TREE.cid, "n")

    run(body())
    assert kubo.requests == ["dag/import", "pin/ls", "pin/add", "pin/ls"]


def test_publishing_a_record_has_few_requests(url: str, kubo: FakeKubo) -> None:
    """The pins of a name are listed twice: before, and to verify the new one. No record is read twice."""
    network = int(kubo.number >= (0, 40))

    async def body() -> None:
        first = opened(url)
        await first.put_name(NAME, record(1))
        await first.settle()
        provider = opened(url)
        kubo.requests.clear()
        assert await provider.get_name(NAME) == record(1)
        assert await provider.get_name(NAME) == record(1)
        assert Counter(kubo.requests) == +Counter(
            {"version": 1, "pin/ls": 2, "block/get": 1, "name/get": 2 * network}
        )
        kubo.requests.clear()
        await provider.put_name(NAME, record(2))
        assert await provider.settle() == []
        expected = ["pin/ls", "dag/import", "pin/ls", "pin/add", "pin/ls", "pin/rm"]
        assert kubo.requests == [*expected, *["name/put"] * network]

    run(body())
    assert list(kubo.pins) == [raw_cid(hashlib.sha256(record(2)).digest())]


def test_record_verified_for_one_name_is_not_used_for_another(url: str) -> None:
    """A verified record is not read again, for that name only."""

    async def body() -> None:
        provider = opened(url)
        await provider.put_name(NAME, record(1))
        cid = raw_cid(hashlib.sha256(record(1)).digest())
        other = ipns_name(b"\x05" * 32)
        await provider.pin(cid, f"ipns:{other}")
        assert await provider.get_name(NAME) == record(1)
        assert await provider.get_name(other) is None

    run(body())


def _memory(home: Path, url: str) -> Memory:
    return Memory.load("m", "encrypted-ipfs", provider=[opened(url)], unlock=Unlock(RawKeySigner(bytes(31) + b"\x21")), passphrase=False, home=home, create=True)  # fmt: skip


def test_requests_do_not_grow_with_the_size_of_the_vault(tmp_path: Path) -> None:
    """One change, and a first fetch: the requests for 20 memories; 400 need only those of a deeper path
    more, which is read back after the upload."""
    counts = []
    for size in (20, 400):
        kubo = FakeKubo()
        with serve(kubo.app) as url, _memory(tmp_path / f"one{size}", url) as one:
            for number in range(size):
                one.write(f"note_{number}", f"text {number}")
            asyncio.run(one.sync())
            one.write("note_7", "changed")
            kubo.requests.clear()
            asyncio.run(one.sync())
            change = Counter(kubo.requests)
            kubo.requests.clear()
            with _memory(tmp_path / f"two{size}", url) as two:
                assert two.read("note_7").file.body == "changed"  # type: ignore[union-attr]
                assert len(two.list()) == size
            fetch = Counter(kubo.requests)
        assert change["dag/import"] == 2  # the change, and the record
        assert fetch["dag/export"] == 1
        counts.append((change.total(), fetch.total()))
    assert all(large - small <= 6 for small, large in zip(*counts, strict=True))
    assert counts[0][0] <= 42 and counts[0][1] <= 64


def test_first_publish_does_not_query_every_block(url: str, kubo: FakeKubo) -> None:
    cids = [block(f"{number}")[0] for number in range(400)]

    async def body() -> None:
        provider = opened(url)
        assert await provider.has(cids) == set()
        assert kubo.requests.count("block/stat") == 32
        item = block("7")
        await provider.put_car(item[0], [item], name="n")
        assert await provider.has(cids) == {item[0]}
        assert kubo.requests.count("block/stat") == 32 + 400

    run(body())


def test_alias_follows_the_newest_root(url: str, kubo: FakeKubo) -> None:
    async def body() -> None:
        provider = opened(url, kubo_alias="me")
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        for _ in range(2):
            await provider.pin(TREE.cid, "n")
            assert await provider.settle() == []
        assert kubo.keys == ["self", "me"]
        assert kubo.published == [("me", f"/ipfs/{TREE.cid}")] * 2
        kubo.faults.answer("POST", "name/publish", 500, '{"Message":"no peers"}')
        await provider.pin(TREE.cid, "n")  # nothing depends on it
        assert await provider.settle() == ["the alias: kubo could not move the alias: no peers"]

    run(body())


def test_long_pin_names_are_refused(url: str) -> None:
    async def body() -> None:
        provider = opened(url)
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.pin(TREE.cid, "a" * 100)
        await provider.pin(TREE.cid, "b" * 100)
        with pytest.raises(ProviderRefused, match="too many names"):
            await provider.pin(TREE.cid, "c" * 100)
        assert [len(await provider.pins(letter * 100)) for letter in "abc"] == [1, 1, 0]

    run(body())


# -- authorization ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "header"),
    [
        ("bearer:token of mine", "Bearer token of mine"),
        ("Bearer abcdef", "Bearer abcdef"),
        ("basic:me:pass:word", "Basic " + base64.b64encode(b"me:pass:word").decode()),
        ("basic:bWU6cGFzcw==", "Basic bWU6cGFzcw=="),
        ("me:pass", "Basic " + base64.b64encode(b"me:pass").decode()),
        ("", ""),
    ],
)
def test_authorization_setting_becomes_a_header(given: str, header: str) -> None:
    assert node_authorization(given) == header


@pytest.mark.parametrize("given", ["token", "bearer:", ":", "a:b\r\nX: y"])
def test_invalid_authorization_setting_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="KUBO_RPC_AUTH") as caught:
        node_authorization(given)
    assert "token" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://127.0.0.1:5001"),
        ("http://127.0.0.1:5001/api/v0/", "http://127.0.0.1:5001"),
        ("/ip4/127.0.0.1/tcp/5002", "http://127.0.0.1:5002"),
        ("/dns4/node.example/tcp/443/https", "https://node.example:443"),
        ("/ip6/::1/tcp/5001", "http://[::1]:5001"),
        ("https://node.example/kubo/api/v0", "https://node.example/kubo"),
        ("http://me:secret@127.0.0.1:5001", "http://127.0.0.1:5001"),
    ],
)
def test_node_url_is_normalised(given: str, url: str) -> None:
    assert KuboRpc(given).url == url


@pytest.mark.parametrize(
    "given", ["ftp://x", "nonsense", "/ip4/1.2.3.4/udp/9/quic", "http://[", "http://x?y"]
)
def test_invalid_node_url_is_refused(given: str) -> None:
    with pytest.raises(ConfigError):
        KuboProvider(given)


def test_kubo_provider_is_opened_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBO_RPC_URL", "http://127.0.0.1:5999")
    assert open_provider("kubo").name == "kubo:http://127.0.0.1:5999"
    assert open_provider("kubo:http://127.0.0.1:5001").name == "kubo:http://127.0.0.1:5001"
    with pytest.raises(ConfigError, match="KUBO_NETWORK"):
        open_provider("kubo", {"kubo_network": "maybe"})


def test_node_token_is_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with serve(FakeKubo(authorization=TOKEN).app) as url:

        async def body() -> None:
            provider = opened(url, kubo_rpc_auth=TOKEN)
            await provider.put_car(TREE.cid, TREE.blocks, name="n")
            with pytest.raises(ProviderRefused, match="403"):
                await opened(url, kubo_rpc_auth="bearer:another secret").has([TREE.cid])
            assert "secret" not in repr(provider.name)

        run(body())
    assert "a secret" not in caplog.text and "another secret" not in caplog.text


# -- faults ----------------------------------------------------------------------------------------------------------


def test_full_disk_of_a_node_is_a_temporary_error(url: str, kubo: FakeKubo) -> None:
    kubo.faults.answer(
        "POST", "dag/import", 500, '{"Message":"write: no space left on device","Code":0,"Type":"error"}'
    )

    async def body() -> None:
        with pytest.raises(ProviderUnavailable, match="no space left"):
            await opened(url).put_car(TREE.cid, TREE.blocks, name="n")
        assert await opened(url).put_car(TREE.cid, TREE.blocks, name="n") == TREE.cid

    run(body())


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (401, "", ProviderRefused),
        (403, "403 - Forbidden", ProviderRefused),
        (404, "404 page not found", ProviderRefused),
        (405, "405 - Method Not Allowed", ProviderRefused),
        (413, "<html><title>413</title></html>", ProviderRefused),
        (429, "", ProviderUnavailable),
        (500, "<html>", ProviderUnavailable),
        (502, "<html>", ProviderUnavailable),
        (504, "", ProviderUnavailable),
        (200, "<html>a portal</html>", ProviderUnavailable),
        (200, '{"Root":7}', ProviderUnavailable),
    ],
)
def test_each_error_status_has_its_error_class(
    url: str, kubo: FakeKubo, status: int, text: str, error: type[ProviderError]
) -> None:
    async def body() -> None:
        provider = opened(url)
        await provider.has([block("x")[0]])
        kubo.faults.answer("POST", "dag/import|pin/add|pin/ls", status, text, times=-1, kind="text/html")
        with pytest.raises(error):
            await provider.put_car(TREE.cid, TREE.blocks, name="n")
        with pytest.raises(error):
            await provider.pin(TREE.cid, "n")
        with pytest.raises(error):
            await provider.pins("n")

    if status != 200 or "portal" in text:
        run(body())
    else:

        async def import_only() -> None:
            kubo.faults.answer("POST", "dag/import", status, text, times=-1)
            with pytest.raises(error):
                await opened(url).put_car(TREE.cid, TREE.blocks, name="n")

        run(import_only())


@pytest.mark.parametrize("command", ["block/stat", "block/get", "dag/export"])
def test_unavailable_block_is_an_error_and_not_absent(url: str, kubo: FakeKubo, command: str) -> None:
    kubo.faults.answer(
        "POST", command, 500, '{"Message":"datastore is closed","Code":0,"Type":"error"}', times=-1
    )

    async def body() -> None:
        provider = opened(url)
        with pytest.raises(ProviderUnavailable, match="datastore is closed"):
            if command == "block/stat":
                await provider.has([TREE.cid])
            elif command == "block/get":
                await provider.get_blocks([TREE.cid])
            else:
                [item async for item in provider.get_dag(TREE.cid)]

    run(body())


def test_blocks_collected_before_the_import_fail_the_upload(url: str, kubo: FakeKubo) -> None:
    """The node collected a block between `has` and the import: the pin fails, and succeeds the next time."""

    async def body() -> None:
        provider = opened(url)
        part = [item for item in TREE.blocks if item[0] == TREE.cid]
        with pytest.raises(ProviderUnavailable, match="could not find"):
            await provider.put_car(TREE.cid, part, name="n")
        assert kubo.pins == {}
        assert await provider.put_car(TREE.cid, TREE.blocks, name="n") == TREE.cid

    run(body())


def test_interrupted_upload_is_repeated(url: str, kubo: FakeKubo) -> None:
    kubo.faults.reset("POST", "dag/import", after=1 << 20, times=-1)

    async def body() -> None:
        with pytest.raises(ProviderUnavailable):
            await opened(url).put_car(TREE.cid, TREE.blocks, name="n")
        kubo.faults.clear()
        assert await opened(url).put_car(TREE.cid, TREE.blocks, name="n") == TREE.cid

    run(body())


def test_import_of_another_tree_fails_the_upload(url: str, kubo: FakeKubo) -> None:
    kubo.faults.answer("POST", "dag/import", 200, '{"Stats":{"BlockCount":1,"BlockBytesCount":1}}\n')

    async def body() -> None:
        with pytest.raises(ProviderUnavailable, match="could not find"):
            await opened(url).put_car(TREE.cid, TREE.blocks, name="n")

    run(body())


def test_wrong_block_bytes_are_refused(url: str, kubo: FakeKubo) -> None:
    kubo.cloud.blocks[TREE.cid] = b"not what the CID says"

    async def body() -> None:
        with pytest.raises(ProviderRefused, match="other bytes"):
            await opened(url).get_blocks([TREE.cid])

    run(body())


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTrailer: X-Stream-Error\r\nTransfer-Encoding: chunked\r\n\r\n"


def _late(*pieces: bytes) -> bytes:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return HEAD + chunks + b"0\r\nX-Stream-Error: the datastore broke\r\n\r\n"


def _answers(import_: bytes, export: bytes) -> Any:
    """A node that ends its answers with an error in the trailer, as Kubo does when a command fails late."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # rude() has read the head of the first request; the rest shows which one it was.
        writer.write(import_)
        await writer.drain()
        await asyncio.sleep(0.05)

    return talk


@pytest.mark.parametrize("body", [b"", b'{"Stats":{"BlockCount":3,"BlockBytesCount":9}}\n', b'{"Root":'])
def test_import_that_fails_in_a_trailer_fails_the_upload(body: bytes) -> None:
    async def attempt(url: str) -> None:
        provider = opened(url, retry=Retry(attempts=1))
        provider._rpc._version = (False, (0, 43, 1), "Kubo 0.43.1")
        with pytest.raises(ProviderUnavailable):
            await provider.put_car(block("x")[0], [block("x")], name="n")

    with rude(_answers(_late(body) if body else HEAD + b"0\r\nX-Stream-Error: broke\r\n\r\n", b"")) as url:
        run(attempt(url))


def test_tree_that_ends_within_a_block_is_an_error() -> None:
    from ipfsmem.content.car import car_bytes

    whole = car_bytes([TREE.cid], TREE.blocks)

    async def attempt(url: str) -> None:
        provider = opened(url, retry=Retry(attempts=1))
        provider._rpc._version = (False, (0, 43, 1), "Kubo 0.43.1")
        got: list[Block] = []
        with pytest.raises(ProviderUnavailable, match="broke off"):
            async for item in provider.get_dag(TREE.cid):
                got.append(item)
        assert 0 < len(got) < len(TREE.blocks)

    with rude(_answers(_late(whole[: len(whole) // 2]), b"")) as url:
        run(attempt(url))


def test_silent_node_times_out() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async def attempt(url: str) -> None:
        provider = opened(url, retry=Retry(attempts=1), timeouts=Timeouts(stall=0.2))
        with pytest.raises(ProviderUnavailable, match="no progress"):
            await provider.has([block("x")[0]])

    with rude(silent) as url:
        run(attempt(url))


def test_endless_pin_list_is_read_once_for_all_names() -> None:
    """A sync looks for several names, and received bytes do not extend the timeout of a list."""
    asked: list[int] = []

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(1)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b" " * 1024 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)  # so slow that the time limit is reached before the length limit

    async def attempt(url: str) -> None:
        provider = opened(url, company=True, timeouts=Timeouts(stall=0.2))
        for look in (provider.pins("n"), provider.get_name(NAME), provider.pins("n")):
            with pytest.raises(ProviderUnavailable, match="did not end within 1 s"):
                await look
        await provider.close()

    with rude(endless) as url:
        run(attempt(url))
    assert len(asked) == 1


def test_blocks_are_read_in_order_and_once(url: str) -> None:
    def blocks() -> Iterable[Block]:
        yield from TREE.blocks
        raise ZeroDivisionError

    async def body() -> None:
        with pytest.raises(ZeroDivisionError):
            await opened(url).put_car(TREE.cid, blocks(), name="n")

    run(body())
