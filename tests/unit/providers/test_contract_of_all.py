"""The contract of ipfsmem.provider.contract for every provider that can run here, by its declared
capabilities.

`test_contract.py` has more tests for providers with all capabilities; here each law applies to the
providers that promise its part, and other calls are refused. A short run tests git over HTTP only; tests
of repositories at a path are in test_git.py."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import tomllib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import build_tree
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import ProviderRefused
from ipfsmem.provider.contract import (
    Block,
    Capabilities,
    Collecting,
    Pin,
    Provider,
    SmallArea,
    lister,
    raw_reader,
    same_root,
    small_area,
)
from ipfsmem.provider.small_objects import SMALL_MAX, small_box, small_name
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from tests.support.effort import THOROUGH
from tests.unit.providers.sick_lab import KINDS, Bench, bench

FILES = {
    "keyring.json": b"{}",
    "head.ipm": b"head" * 99,
    "o/a.ipm": b"",
    "o/b/large.ipm": bytes(range(256)) * 5_000,
}
TREE = build_tree(FILES)
SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
NOWHERE = raw_cid(bytes(32))
OWN_LAYOUT = ("pinata-free", "pinata-legacy")


def record(sequence: int) -> bytes:
    return ipns_record.make_record(SEED, f"/ipfs/{TREE.cid}", sequence, 2_500_000_000_000_000_000)


@pytest.fixture(params=KINDS if THOROUGH else [kind for kind in KINDS if kind != "git"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with bench(request.param, tmp_path) as made:
        yield made


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


async def _all(blocks: AsyncIterator[Block]) -> list[Block]:
    return [block async for block in blocks]


async def filled(at: Bench, name: str = "n") -> CID:
    """Return the root of a tree that the server stores, and lists under a name."""
    filler = at.filler()
    root = same_root(TREE.cid, await filler.put_car(TREE.cid, iter(TREE.blocks), name=name), filler)
    if filler.capabilities.pin:
        await filler.pin(root, name)
    if at.open().capabilities.pin and not at.open().capabilities.put:
        await at.open().pin(root, name)
    await filler.close()
    return root


def test_every_provider_is_in_the_contract_test() -> None:
    """`web3storage` is tested with the service's own server (tests/interop/test_contract_w3up.py)."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    points = project["project"]["entry-points"]["ipfsmem.providers"]
    assert {kind.partition("-")[0] for kind in KINDS} | {"web3storage"} == set(points)


def test_provider_declares_name_and_capabilities_without_requests(at: Bench) -> None:
    async def body() -> None:
        provider = at.open()
        assert (
            isinstance(provider, Provider)
            and provider.name
            and isinstance(provider.capabilities, Capabilities)
        )
        assert provider.capabilities == at.open().capabilities
        await provider.close()
        await provider.close()

    run(body())
    assert at.faults.hits == 0


def test_method_without_capability_is_refused(at: Bench) -> None:
    async def body() -> None:
        provider = at.open()
        can = provider.capabilities
        calls: dict[str, tuple[bool, Callable[[], Coroutine[Any, Any, Any]]]] = {
            "put_car": (can.put, lambda: provider.put_car(TREE.cid, TREE.blocks, name="n")),
            "has": (can.has, lambda: provider.has([TREE.cid])),
            "get_blocks": (can.blocks, lambda: provider.get_blocks([TREE.cid])),
            "get_dag": (can.dag, lambda: _all(provider.get_dag(TREE.cid))),
            "pin": (can.pin, lambda: provider.pin(TREE.cid, "n")),
            "pins": (can.list, lambda: provider.pins("n")),
            "put_name": (can.names, lambda: provider.put_name(NAME, record(1))),
        }
        for what, (able, call) in calls.items():
            if not able:
                with pytest.raises(ProviderRefused):
                    await call()
                    pytest.fail(f"{at.kind}: {what} was not refused")
        assert (lister(provider) is not None, raw_reader(provider) is not None) == (can.listing, can.raw)
        assert (small_area(provider) is not None) == can.small

    run(body())


def test_empty_store_returns_empty_answers(at: Bench) -> None:
    async def body() -> None:
        provider = at.open()
        can = provider.capabilities
        if can.has:
            assert await provider.has([NOWHERE]) == await provider.has([]) == set()
        if can.blocks:
            assert await provider.get_blocks([NOWHERE]) == {} == await provider.get_blocks([])
        if can.list:
            assert await provider.pins("ipfsmem-0") == []
        if can.unpin:
            await provider.unpin(Pin(NOWHERE, "ipfsmem-0", "", 0))
        if can.names:
            assert await provider.get_name(NAME) is None

    run(body())


def test_stored_tree_is_read_on_another_device(at: Bench) -> None:
    async def body() -> None:
        root = await filled(at)
        assert (root == TREE.cid) == (at.kind not in OWN_LAYOUT)
        other = at.open()
        can = other.capabilities
        if can.has:
            cids = [cid for cid, _ in TREE.blocks]
            assert await other.has([*cids, NOWHERE]) == set(cids)
        if can.list:
            assert [pin.cid for pin in await other.pins("n")] == [root]
            assert await other.pins("other") == []
        if can.blocks:
            assert await drive_async(Reader().read_tree(root), other.get_blocks) == FILES
        if can.dag:
            got = await _all(other.get_dag(root))
            for block in got:
                verify_block(*block)
            assert got[0][0] == root and {cid for cid, _ in got} >= (
                {cid for cid, _ in TREE.blocks} if root == TREE.cid else set()
            )
        if can.raw and (reader := raw_reader(other)) is not None:
            assert root in await reader.read_stored([root, NOWHERE])
        if can.listing and (lists := lister(other)) is not None:
            assert await lists.listing()

    run(body())


def test_repeated_calls_change_nothing_and_removal_is_final(at: Bench) -> None:
    async def body() -> None:
        root = await filled(at)
        provider = at.open()
        can = provider.capabilities
        if can.put:
            for _ in range(2):
                assert await at.open().put_car(TREE.cid, iter(TREE.blocks), name="n") == root
        if can.pin:
            assert await provider.pin(root, "n") == await at.open().pin(root, "n")
        if can.list:
            [pin] = await at.open().pins("n")
            if can.unpin:
                for _ in range(2):
                    await provider.unpin(pin)
                assert await at.open().pins("n") == []

    run(body())


def test_blocks_are_read_on_the_callers_thread_and_wrong_ones_refused(at: Bench) -> None:
    threads: set[int] = set()

    def watched() -> Iterable[Block]:
        for block in TREE.blocks:
            threads.add(threading.get_ident())
            yield block

    def broken() -> Iterable[Block]:
        yield TREE.blocks[0]
        raise ZeroDivisionError

    async def body() -> None:
        provider = at.open()
        if not provider.capabilities.put:
            return
        with pytest.raises(ProviderRefused, match=str(NOWHERE)):
            await provider.put_car(NOWHERE, [(NOWHERE, b"wrong")], name="n")
        with pytest.raises(ZeroDivisionError):
            await provider.put_car(TREE.cid, broken(), name="n")
        if provider.capabilities.list:
            assert await provider.pins("n") == []
        await provider.put_car(TREE.cid, watched(), name="n")
        assert threads == {threading.get_ident()}

    run(body())


def test_newest_record_of_a_name_remains(at: Bench) -> None:
    async def body() -> None:
        one, two = at.open(), at.open()
        filler = at.filler()
        if not one.capabilities.names:
            return
        for provider, sequence in ((filler, 2), (filler, 10), (filler, 9)):
            await provider.put_name(NAME, record(sequence))
        assert await one.get_name(NAME) == await two.get_name(NAME) == record(10)
        for bad in (b"", b"noise", record(11)[:-1]):
            with pytest.raises(ProviderRefused):
                await one.put_name(NAME, bad)
        with pytest.raises(ProviderRefused):
            await one.get_name("../../etc/passwd")
        assert await one.get_name(NAME) == record(10)

    run(body())


def test_one_provider_works_in_successive_event_loops(at: Bench) -> None:
    provider = at.open()

    async def body() -> None:
        can = provider.capabilities
        if can.blocks:
            assert await provider.get_blocks([NOWHERE]) == {}
        if can.list:
            assert await provider.pins("nobody") == []
        if can.names:
            assert await provider.get_name(NAME) is None

    run(body())
    run(body())
    run(provider.close())


def test_concurrent_calls_return_the_same_answers(at: Bench) -> None:
    async def body() -> None:
        root = await filled(at)
        provider = at.open()
        can = provider.capabilities
        calls: list[Coroutine[Any, Any, Any]] = []
        for _ in range(8):
            calls += [provider.pins("n")] if can.list else []
            calls += [provider.get_blocks([root])] if can.blocks else []
            calls += [provider.pin(root, "n")] if can.pin else []
        answers = await asyncio.gather(*calls)
        for answer in answers:
            if isinstance(answer, dict):
                assert set(answer) == {root}
            else:
                assert (answer if isinstance(answer, Pin) else answer[0]).cid == root

    run(body())


# -- small objects -----------------------------------------------------------------------------------------------------

BOX, OTHER_BOX = small_box(b"a" * 32), small_box(b"b" * 32)


def small(label: str, data: bytes, box: str = BOX) -> tuple[str, bytes]:
    return small_name(box, label, data), data


def area_of(provider: Provider) -> SmallArea:
    area = small_area(provider)
    if area is None:
        pytest.skip("no small objects")
    return area


def test_small_objects_come_back_on_another_device(at: Bench) -> None:
    async def body() -> None:
        objects = dict([small("a.1", b"one"), small("a.2", bytes(SMALL_MAX)), small("b", b"two")])
        other = dict([small("a.1", b"one", OTHER_BOX)])
        one, two = at.open(), at.open()
        area = area_of(one)
        assert await area.list_small([BOX, OTHER_BOX]) == {} == await area.list_small([])
        assert await area.get_small([*objects]) == {} == await area.get_small([])
        for name, data in (*objects.items(), *other.items(), *objects.items()):
            await area.put_small(name, data)
        area = area_of(two)
        assert await area.list_small([BOX]) == {name: len(data) for name, data in objects.items()}
        everything = objects | other
        assert await area.list_small([OTHER_BOX, BOX]) == {
            name: len(data) for name, data in everything.items()
        }
        assert await area.get_small([*everything, small("none", b"none")[0]]) == everything
        first = min(objects)
        for _ in range(2):
            await area_of(one).remove_small([first, small("none", b"none")[0]])
        assert await area.get_small([first]) == {}
        assert (await area.list_small([BOX])).keys() == objects.keys() - {first}
        await one.close()
        await two.close()

    run(body())


def test_small_objects_with_wrong_names_are_refused(at: Bench) -> None:
    async def body() -> None:
        area = area_of(at.open())
        name, data = small("a", b"one")
        too_much = bytes(SMALL_MAX + 1)
        bad = f"{BOX}/a.{hashlib.sha256(too_much).hexdigest()}"
        for wrong, content in ((name, b"two"), ("../../a", data), (f"{BOX}/../a", data), (bad, too_much)):
            with pytest.raises(ProviderRefused):
                await area.put_small(wrong, content)
        with pytest.raises(ProviderRefused):
            await area.get_small([name, "../../etc/passwd"])
        with pytest.raises(ProviderRefused):
            await area.remove_small(["../../a"])
        with pytest.raises(ProviderRefused):
            await area.list_small(["../packs"])
        assert await area.list_small([BOX]) == {}

    run(body())


def test_small_objects_outlive_unpin_and_collection(at: Bench) -> None:
    async def body() -> None:
        provider = at.open()
        area, can = area_of(provider), provider.capabilities
        name, data = small("a", b"kept")
        await area.put_small(name, data)
        if can.put:
            await filled(at)
        if can.list and can.unpin:
            for pin in await provider.pins("n"):
                await provider.unpin(pin)
        if isinstance(provider, Collecting) and at.kind != "rclone":
            await provider.collect()
        fresh = at.open()
        assert await area_of(fresh).get_small([name]) == {name: data}
        assert await area_of(fresh).list_small([BOX]) == {name: len(data)}

    run(body())


def test_many_small_objects_are_put_at_once(at: Bench) -> None:
    async def body() -> None:
        objects = dict(small(f"n.{n}", b"%d" % n) for n in range(12))
        one, two = area_of(at.open()), area_of(at.open())
        await asyncio.gather(
            *((one, two)[n % 2].put_small(name, data) for n, (name, data) in enumerate(objects.items()))
        )
        assert await one.get_small([*objects]) == objects
        assert (await two.list_small([BOX])).keys() == objects.keys()

    run(body())
