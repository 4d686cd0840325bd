"""The promises of ipfsmem.provider.contract, for every provider that runs here without a network."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Coroutine, Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.http import blocks as blocks_app
from ipfsmem.provider import contract
from ipfsmem.provider.contract import Block, Capabilities, Pin, Provider, open_provider, same_root
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.testing import MockClock, SimCloud, SimProvider
from tests.servers.threaded import serve
from tests.support.content_lab import pb_cid
from tests.unit.providers.bucket_lab import bucket

SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
UNTIL = datetime(2036, 1, 1, tzinfo=UTC)

Open = Callable[[], Provider]


def block(text: str | bytes) -> Block:
    data = text.encode() if isinstance(text, str) else text
    return raw_cid(hashlib.sha256(data).digest()), data


def record(sequence: int, seed: bytes = SEED) -> bytes:
    return ipns_record.make_record(seed, "/ipfs/bafkqaaa", sequence, UNTIL)


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture(params=["directory", "bucket", "simulator", "peer"])
def connect(request: pytest.FixtureRequest, tmp_path: Path, clock: MockClock) -> Iterator[Open]:
    """Open the same store again, as another device would."""
    if request.param == "directory":
        yield lambda: DirectoryProvider(tmp_path, clock=clock)
    elif request.param == "bucket":
        with bucket() as at:
            yield lambda: at.open(clock=clock)
    elif request.param == "simulator":
        cloud = SimCloud()
        yield lambda: SimProvider(cloud, clock=clock)
    else:
        with serve(
            lambda: blocks_app.app(DirectoryProvider(tmp_path, clock=clock), token="open sesame")
        ) as url:
            yield lambda: PeerProvider(url, {"peer_token": "open sesame"})


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


def test_provider_implements_the_contract(connect: Open) -> None:
    provider = connect()
    assert isinstance(provider, Provider)
    assert provider.name
    assert isinstance(provider.capabilities, Capabilities)


def test_empty_provider_returns_empty_answers(connect: Open) -> None:
    async def body() -> None:
        provider = connect()
        cid, _ = block("x")
        assert await provider.has([cid]) == set()
        assert await provider.has([]) == set()
        assert await provider.get_blocks([cid]) == {}
        assert await provider.pins("ipfsmem-0") == []
        assert await provider.get_name(NAME) is None
        await provider.unpin(Pin(cid, "ipfsmem-0", "nothing", 0))
        await provider.close()
        await provider.close()

    run(body())


def test_stored_blocks_are_read_on_another_device(connect: Open) -> None:
    async def body() -> None:
        blocks = [block(f"block {i}" * i) for i in range(300)] + [block(b""), block(b"\0" * (1 << 20))]
        one = connect()
        assert await one.put_car(blocks[0][0], blocks, name="n") == blocks[0][0]
        missing, _ = block("missing")
        for provider in (one, connect()):
            cids = [cid for cid, _ in blocks]
            assert await provider.has([*cids, missing]) == set(cids)
            assert await provider.get_blocks([missing, *cids]) == dict(blocks)
            assert await provider.get_blocks([cids[7], cids[7]]) == {cids[7]: blocks[7][1]}

    run(body())


def test_only_new_blocks_need_to_be_sent(connect: Open) -> None:
    async def body() -> None:
        provider = connect()
        first, second = [block("a"), block("b")], [block("c")]
        await provider.put_car(first[0][0], first, name="n")
        await provider.put_car(second[0][0], second, name="n")
        await provider.put_car(second[0][0], [], name="n")
        assert await connect().get_blocks([cid for cid, _ in first + second]) == dict(first + second)

    run(body())


def test_repeated_upload_stores_the_same_blocks(connect: Open) -> None:
    async def body() -> None:
        blocks = [block("a"), block("b"), block("a")]
        for _ in range(3):
            provider = connect()
            await provider.put_car(blocks[0][0], iter(blocks), name="n")
            assert await provider.get_blocks([cid for cid, _ in blocks]) == dict(blocks)

    run(body())


def test_wrong_block_is_refused(connect: Open) -> None:
    async def body() -> None:
        provider = connect()
        cid, _ = block("right")
        with pytest.raises(ProviderRefused, match=str(cid)):
            await provider.put_car(cid, [(cid, b"wrong")], name="n")
        assert await provider.has([cid]) == set()

    run(body())


def test_exception_of_a_block_iterator_reaches_the_caller(connect: Open) -> None:
    def broken() -> Iterable[Block]:
        yield block("a")
        raise ZeroDivisionError

    async def body() -> None:
        provider = connect()
        with pytest.raises(ZeroDivisionError):
            await provider.put_car(block("a")[0], broken(), name="n")
        await provider.put_car(block("a")[0], [block("a")], name="n")

    run(body())


def test_blocks_are_read_on_the_callers_thread(connect: Open) -> None:
    import threading

    threads = set()

    def blocks() -> Iterable[Block]:
        for i in range(40):
            threads.add(threading.get_ident())
            yield block(bytes([i]) * 200_000)

    run(_put(connect(), blocks()))
    assert threads == {threading.get_ident()}


async def _put(provider: Provider, blocks: Iterable[Block]) -> None:
    await provider.put_car(block("root")[0], blocks, name="n")


def test_one_digest_under_two_codecs_is_two_blocks(connect: Open) -> None:
    async def body() -> None:
        data = b"\x0a\x02\x08\x01"
        digest = hashlib.sha256(data).digest()
        raw, node = raw_cid(digest), pb_cid(digest)
        provider = connect()
        await provider.put_car(raw, [(raw, data), (node, data)], name="n")
        assert await provider.get_blocks([raw, node]) == {raw: data, node: data}

    run(body())


def test_pins_are_kept_by_name_and_removed(connect: Open, clock: MockClock) -> None:
    async def body() -> None:
        one, two = connect(), connect()
        blocks = [block("a"), block("b"), block("c")]
        a, b, c = (cid for cid, _ in blocks)
        await one.put_car(a, blocks, name="mine")
        first = await one.pin(a, "mine")
        assert (first.cid, first.name, first.created) == (a, "mine", clock.ms)
        clock.advance(60)
        assert await two.pin(a, "mine") == first
        await two.pin(b, "mine")
        clock.advance(60)
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


def test_greatest_record_of_a_name_remains(connect: Open) -> None:
    async def body() -> None:
        one, two = connect(), connect()
        await one.put_name(NAME, record(2))
        await two.put_name(NAME, record(10))
        await one.put_name(NAME, record(9))
        assert await one.get_name(NAME) == await two.get_name(NAME) == record(10)
        other = b"\x08" * 32
        await one.put_name(ipns_name(Signer25519(other).public), record(1, other))
        assert await two.get_name(ipns_name(Signer25519(other).public)) == record(1, other)
        assert await two.get_name(NAME) == record(10)

    run(body())


def test_name_in_another_base_is_the_same_name(connect: Open) -> None:
    async def body() -> None:
        provider = connect()
        base32 = "b" + base64.b32encode(parse_cid(NAME).encode()).decode().rstrip("=").lower()
        await provider.put_name(base32, record(1))
        await provider.put_name(NAME, record(2))
        assert await provider.get_name(base32) == await provider.get_name(NAME) == record(2)
        for bad in ("", "../../etc/passwd", "bafkqaaa", "k51"):
            with pytest.raises(ProviderRefused):
                await provider.get_name(bad)
            with pytest.raises(ProviderRefused):
                await provider.put_name(bad, record(3))

    run(body())


@pytest.mark.parametrize("bad", [b"", b"noise", record(3, b"\x09" * 32), record(3)[:-1]])
def test_invalid_or_foreign_name_record_is_refused(connect: Open, bad: bytes) -> None:
    async def body() -> None:
        provider = connect()
        await provider.put_name(NAME, record(1))
        with pytest.raises(ProviderRefused):
            await provider.put_name(NAME, bad)
        assert await provider.get_name(NAME) == record(1)

    run(body())


def test_concurrent_devices_store_pins_names_and_blocks(connect: Open) -> None:
    async def body() -> None:
        devices = [connect() for _ in range(4)]
        blocks = [[block(f"{d} {i}") for i in range(20)] for d in range(4)]

        async def device(number: int) -> None:
            provider = devices[number]
            for item in blocks[number]:
                await provider.put_car(item[0], [item], name="n")
                await provider.pin(item[0], "n")
                await provider.put_name(NAME, record(item[1][-1]))

        await asyncio.gather(*(device(number) for number in range(4)))
        everything = dict(item for own in blocks for item in own)
        assert await devices[0].get_blocks(list(everything)) == everything
        assert {pin.cid for pin in await devices[0].pins("n")} == set(everything)
        assert await devices[0].get_name(NAME) == record(ord("9"))

    run(body())


def test_trees_are_read_in_one_answer(connect: Open) -> None:
    async def body() -> None:
        provider = connect()
        leaf = block("leaf")
        await provider.put_car(leaf[0], [leaf], name="n")
        if provider.capabilities.dag:
            assert [item async for item in provider.get_dag(leaf[0])] == [leaf]
        else:
            with pytest.raises(ProviderRefused):
                [item async for item in provider.get_dag(leaf[0])]

    run(body())


def test_another_root_is_an_error_that_shows_both() -> None:
    ours, other = block("ours")[0], block("other")[0]
    honest = SimProvider()
    assert same_root(ours, ours, honest) == ours
    with pytest.raises(ProviderRefused) as caught:
        same_root(ours, other, honest)
    assert str(ours) in str(caught.value) and str(other) in str(caught.value)
    own_layout = SimProvider(capabilities=Capabilities(keeps_root=False))
    assert same_root(ours, other, own_layout) == other


def test_provider_is_opened_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stick").mkdir()
    expected = f"directory:{tmp_path / 'stick'}"
    for spec in (f"directory:{tmp_path}/stick", f"{tmp_path}/stick", "./stick", "stick", "directory:stick"):
        assert open_provider(spec).name == expected
    assert open_provider(f"{tmp_path}/new/deep", {"create": True}).name.endswith("/new/deep")
    assert (tmp_path / "new" / "deep").is_dir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_provider("directory:~/stick").name == expected


@pytest.mark.parametrize("spec", ["", "nonsense", "nonsense:x", "directory:", "no/such", "\0"])
def test_unknown_provider_spec_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError):
        open_provider(spec)


def test_blocks_are_checked_by_digest_length_too(connect: Open) -> None:
    async def body() -> None:
        provider = connect()
        odd = CID(1, 0x55, b"\x13\x40" + b"\0" * 64)  # SHA-512
        assert await provider.has([odd]) == set()
        assert await provider.get_blocks([odd]) == {}
        with pytest.raises(ProviderRefused):
            await provider.put_car(odd, [(odd, b"x")], name="n")

    run(body())


def test_every_kind_with_functions_about_an_address_is_listed() -> None:
    """A kind that is missing there would be stored with a relative address."""
    names = ("lasting", "require_address", "warning")
    ours = [
        one for one in entry_points(group="ipfsmem.providers") if one.value.startswith("ipfsmem_providers.")
    ]
    having = {one.name for one in ours if any(hasattr(one.load(), name) for name in names)}
    assert len(ours) > 10 and having == contract._WITH_FUNCTIONS
