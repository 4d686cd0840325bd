"""Snapshots of a bucket: an idle sync costs one list request, and no answer is older than allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from ipfsmem_providers.bucket import objects as bucket_objects
from ipfsmem_providers.packs import pins as packs_pins

from ipfsmem.content.cid import raw_cid
from ipfsmem.device.tables import meta
from ipfsmem.errors import ProviderError, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.small_objects import small_name
from ipfsmem.testing import MockClock
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.unit.provider.test_contract import NAME, block, record
from tests.unit.providers.bucket_lab import Bucket, bucket
from tests.unit.providers.test_bucket import QUICK

WALLET = Unlock(RawKeySigner(b"\x2a" * 32))
DAY = 86_400


@pytest.fixture
def at() -> Iterator[Bucket]:
    with bucket() as made:
        yield made


def device(home: Path, at: Bucket, **settings: Any) -> Memory:
    return Memory.load(
        "m", "encrypted-ipfs", provider=at.open(**settings), unlock=WALLET, passphrase=False, home=home, create=True
    )  # fmt: skip


def sync_by_a_new_process(home: Path, at: Bucket, **settings: Any) -> dict[str, int]:
    """Return the requests of one sync by kind."""
    provider = at.open(**settings)
    with Memory.load("m", provider=provider, home=home) as memory:
        asyncio.run(memory.sync())
    asyncio.run(provider.close())
    return dict(provider.objects.requests)


@pytest.fixture
def homes(at: Bucket, tmp_path: Path) -> tuple[Path, Path]:
    """Two devices that are in sync."""
    a, b = tmp_path / "a", tmp_path / "b"
    with device(a, at) as memory:
        memory.write("notes", "text of a")
        asyncio.run(memory.sync())
    with device(b, at) as memory:
        memory.write("more", "text of b")
        asyncio.run(memory.sync())
    for home in (a, b, a):
        sync_by_a_new_process(home, at)
    return a, b


def test_idle_sync_makes_one_list_request_and_no_get(at: Bucket, homes: tuple[Path, Path]) -> None:
    for home in (*homes, *homes):
        sync_by_a_new_process(home, at)
    assert [sync_by_a_new_process(home, at) for home in homes] == [{"LIST": 1}, {"LIST": 1}]


def test_idle_sync_at_a_whole_bucket_makes_one_list_request(tmp_path: Path) -> None:
    with bucket() as at:
        at.prefix = ""
        with device(tmp_path, at) as memory:
            memory.write("notes", "text")
            asyncio.run(memory.sync())
        sync_by_a_new_process(tmp_path, at)
        assert sync_by_a_new_process(tmp_path, at) == {"LIST": 1}


def test_change_of_another_device_is_seen_by_a_running_process(at: Bucket, homes: tuple[Path, Path]) -> None:
    with (
        Memory.load("m", provider=at.open(), home=homes[0]) as a,
        Memory.load("m", provider=at.open(), home=homes[1]) as b,
    ):
        for turn in range(3):
            a.write("shared", f"a {turn}")
            asyncio.run(a.sync())
            asyncio.run(b.sync())
            assert b.files()["shared"] == a.files()["shared"]
            b.write("shared", f"b {turn}")
            asyncio.run(b.sync())
            asyncio.run(a.sync())
            assert a.files()["shared"] == b.files()["shared"]


def test_changed_name_record_is_read_again(at: Bucket, homes: tuple[Path, Path]) -> None:
    for key in [key for key in at.server.objects if "/names/" in key]:
        _, when, about = at.server.objects[key]
        at.server.objects[key] = (b"not a record", when, about)
    with Memory.load("m", provider=at.open(), home=homes[0]) as a:
        report = asyncio.run(a.sync())
    assert {"record-unread"} <= {notice.kind for notice in report.notices}


def test_cached_record_is_read_again_after_a_day(at: Bucket, homes: tuple[Path, Path]) -> None:
    clock = MockClock()

    async def names(cache: bytes) -> tuple[bytes, dict[str, int]]:
        provider = at.open(clock=clock)
        provider.begin_snapshot(cache)
        assert await provider.get_name(NAME) == record(1)
        cache = provider.end_snapshot()
        await provider.close()
        return cache, provider.objects.requests

    async def body() -> None:
        await at.open().put_name(NAME, record(1))
        cache, requests = await names(b"")
        assert requests == {"LIST": 1, "GET": 1}
        clock.advance(DAY - 1)
        cache, requests = await names(cache)
        assert requests == {"LIST": 1}
        clock.advance(1)
        cache, requests = await names(cache)
        assert requests == {"LIST": 1, "GET": 1}

    asyncio.run(body())


@pytest.mark.parametrize(
    "cache",
    [
        b"garbage",
        b"[]",
        b'{"names":{"version":[1,2,"x"],"read":0,"record":"AAAA"}}',
        b'{"../x":{"version":[1,2,null],"read":9999999999999999,"record":""}}',
    ],
)
def test_garbage_in_the_cache_is_ignored(at: Bucket, cache: bytes) -> None:
    async def body() -> None:
        provider = at.open()
        await provider.put_name(NAME, record(1))
        provider.begin_snapshot(cache)
        assert await provider.get_name(NAME) == record(1)
        await provider.close()

    asyncio.run(body())


def test_forged_record_in_the_cache_is_not_returned(at: Bucket) -> None:
    async def body() -> None:
        one = at.open()
        await one.put_name(NAME, record(1))
        one.begin_snapshot(b"")
        await one.get_name(NAME)
        cached = msgspec.json.decode(one.end_snapshot())
        [entry] = cached.values()
        for forged in (record(2), record(1)[:-1] + bytes([record(1)[-1] ^ 1])):
            entry["record"] = msgspec.json.decode(msgspec.json.encode(forged))
            two = at.open()
            two.begin_snapshot(msgspec.json.encode(cached))
            assert await two.get_name(NAME) == record(1)
            assert two.objects.requests == {"LIST": 1, "GET": 1}
            await two.close()
        await one.close()

    asyncio.run(body())


def test_damaged_cache_of_a_device_does_not_stop_a_sync(at: Bucket, homes: tuple[Path, Path]) -> None:
    with Memory.load("m", provider=at.open(), home=homes[0]) as a:
        with a.replica.transaction():
            db = a.replica.db.connection
            db.execute("UPDATE meta SET value=? WHERE name=?", (b"x" * 40, meta.PROVIDER_CACHES))
        asyncio.run(a.sync())
        assert meta.get(db, meta.PROVIDER_CACHES)


def test_record_replaced_after_the_listing_is_read(at: Bucket) -> None:
    async def body() -> None:
        one, two = at.open(), at.open()
        await two.put_name(NAME, record(1))
        one.begin_snapshot(b"")
        await one.listing()
        await two.put_name(NAME, record(2))
        assert await one.get_name(NAME) == record(2)
        assert one.unread() == []
        await one.close()
        await two.close()

    asyncio.run(body())


def test_block_stored_after_the_listing_is_read(at: Bucket) -> None:
    async def body() -> None:
        one, two = at.open(), at.open()
        early, late = block("early"), block("late")
        await two.put_car(early[0], [early], name="n")
        one.begin_snapshot(b"")
        assert await one.get_blocks([early[0]]) == dict([early])
        await two.put_car(late[0], [late], name="n")
        assert await one.get_blocks([early[0], late[0]]) == dict([early, late])
        await one.close()
        await two.close()

    asyncio.run(body())


def test_calls_that_precede_a_write_list_again(at: Bucket) -> None:
    async def body() -> None:
        one, two = at.open(), at.open()
        new = block("new")
        for call in ("has", "pin"):
            one.begin_snapshot(b"")
            assert not [pin for pin in await one.pins("ipfsmem-0") if pin.cid == new[0]]
            await two.put_car(new[0], [new], name="n")
            pin = await two.pin(new[0], "ipfsmem-0")
            if call == "has":
                assert await one.has([new[0]]) == {new[0]}
            else:
                assert (await one.pin(new[0], "ipfsmem-0")).handle == pin.handle
            await two.unpin(pin)
        await one.put_name(NAME, record(1))
        assert await one.get_name(NAME) == record(1)
        await one.close()
        await two.close()

    asyncio.run(body())


def test_upload_sees_marks_made_after_the_listing(at: Bucket) -> None:
    clock = MockClock()

    async def body() -> None:
        one, two = at.open(clock=clock), at.open(clock=clock)
        new = block("new")
        await two.put_car(new[0], [new], name="n")
        [pack] = [key for key in at.server.objects if key.endswith(".car")]
        for ending in (".car", ".idx"):
            del at.server.objects[pack.replace(".car", ending)]
        one.begin_snapshot(b"")
        await one.listing()
        clock.advance(50)
        assert await one.get_blocks([]) == {}
        assert await one.listing() == {}
        at.server.objects[pack.replace(".car", ".going")] = (b"{}", "2026-11-01T00:00:00.000Z", {})
        clock.advance(30)
        await one.put_car(new[0], [new], name="n")
        assert pack not in at.server.objects
        await one.close()
        await two.close()

    asyncio.run(body())


def test_reads_outside_of_a_snapshot_list_again(at: Bucket) -> None:
    async def body() -> None:
        one, two = at.open(), at.open()
        one.begin_snapshot(b"")
        assert await one.get_name(NAME) is None
        one.end_snapshot()
        await two.put_name(NAME, record(1))
        assert await one.get_name(NAME) == record(1)
        await one.close()
        await two.close()

    asyncio.run(body())


@pytest.mark.parametrize("key", ["mem/photos//1.jpg", "mem/x/../y", "mem/\x01", f"mem/{'long/' * 300}"])
def test_invalid_foreign_key_hides_no_object(at: Bucket, homes: tuple[Path, Path], key: str) -> None:
    at.server.objects[key] = (b"of others", "2026-11-01T00:00:00.000Z", {})
    with Memory.load("m", provider=at.open(), home=homes[1]) as b:
        b.write("shared", "seen")
        asyncio.run(b.sync())
    with Memory.load("m", provider=at.open(), home=homes[0]) as a:
        asyncio.run(a.sync())
        assert "shared" in a.files()
    assert sync_by_a_new_process(homes[0], at)["LIST"] <= 4


def test_many_foreign_objects_cost_few_requests(
    at: Bucket, homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5_000):
        at.server.objects[f"mem/photos/{n}"] = (b"", "2026-11-01T00:00:00.000Z", {})
    assert sync_by_a_new_process(homes[0], at)["LIST"] <= 4
    monkeypatch.setattr(bucket_objects, "_SNAPSHOT_MAX", 0)  # nor any folder
    sync_by_a_new_process(homes[0], at)


def plant_small(at: Bucket, number: int) -> list[str]:
    """Return the names of small objects of one box, stored under the vault's prefix."""
    names = [small_name("b" * 32, f"{n:04}", b"x") for n in range(number)]
    for name in names:
        at.server.objects[f"{at.prefix}/small/{name}"] = (b"x", "2026-11-01T00:00:00.000Z", {})
    return names


def test_idle_sync_with_many_small_objects_makes_one_list_request(
    at: Bucket, homes: tuple[Path, Path]
) -> None:
    plant_small(at, 2_100)
    before = at.server.lists
    assert sync_by_a_new_process(homes[0], at) == {"LIST": 1}
    assert at.server.lists - before == 1


@pytest.mark.parametrize("number", [3, 2_100])
def test_snapshot_lists_every_small_object(at: Bucket, homes: tuple[Path, Path], number: int) -> None:
    names = plant_small(at, number)

    async def body() -> None:
        provider = at.open()
        pin = await provider.pin(block("x")[0], NAME)
        for _ in range(2):
            provider.begin_snapshot(b"")
            assert await provider.pins(NAME) == [pin]
            assert [*await provider.list_small(["b" * 32])] == names
            provider.end_snapshot()
        await provider.close()

    asyncio.run(body())


def test_snapshot_of_a_server_that_does_not_sort_misses_nothing(at: Bucket) -> None:
    plant_small(at, 2_100)

    async def body() -> None:
        provider = at.open()
        pin = await provider.pin(block("x")[0], NAME)
        at.server.sorts = False  # the pin is listed last
        for _ in range(2):
            provider.begin_snapshot(b"")
            assert await provider.pins(NAME) == [pin]
        await provider.close()

    asyncio.run(body())


def test_concurrent_reads_share_one_list_request_and_its_failure(at: Bucket) -> None:
    async def body() -> None:
        provider = at.open(retry=QUICK)
        provider.begin_snapshot(b"")
        names = [provider.get_name(NAME) for _ in range(8)]
        assert await asyncio.gather(*names) == [None] * 8
        assert provider.objects.requests == {"LIST": 1}
        at.server.faults.answer("*", ".*", 503, "", times=-1)
        provider.begin_snapshot(b"")
        failed = await asyncio.gather(*(provider.get_name(NAME) for _ in range(8)), return_exceptions=True)
        assert all(isinstance(one, ProviderUnavailable) for one in failed)
        at.server.faults.clear()
        assert await provider.get_name(NAME) is None  # the failure is not cached
        await provider.close()

    asyncio.run(body())


def test_pack_removed_after_the_listing_does_not_stop_a_read(at: Bucket) -> None:
    async def body() -> None:
        one, two = at.open(), at.open()
        moved, gone = block("moved"), raw_cid(bytes(32))
        await two.put_car(moved[0], [moved], name="n")
        one.begin_snapshot(b"")
        await one.listing()
        old = [key for key in at.server.objects if "/packs/" in key]
        await two.put_car(moved[0], [moved, block("beside")], name="n")
        for key in old:
            del at.server.objects[key]
        assert await one.get_blocks([moved[0], gone]) == dict([moved])
        await one.close()
        await two.close()

    asyncio.run(body())


def failing_after(at: Bucket, pages: int) -> None:
    """Make every list fail after this many pages."""

    async def fault(request: web.Request) -> web.StreamResponse:
        await request.read()
        if request.method == "GET" and "list-type" in request.query:
            token = int(request.query.get("continuation-token") or 0)
            if token >= pages * at.server.page:
                return web.Response(status=500, text="<Error><Code>InternalError</Code></Error>")
        return at.server.own(request, b"")

    at.server.faults.add("GET", ".*", fault, -1)


def test_failed_list_of_the_whole_bucket_is_not_repeated_per_folder(at: Bucket) -> None:
    provider = at.open(retry=QUICK)
    pin = asyncio.run(provider.pin(block(b"x")[0], "n"))
    at.server.page = 1_000
    for number in range(1_001):
        at.server.objects[f"mem/other/{number:04}"] = (b"", "2026-11-01T00:00:00.000Z", {})
    failing_after(at, 1)
    provider.objects.begin_snapshot()
    assert asyncio.run(provider.pins("n")) == [pin]


def test_failed_pin_list_raises_with_the_pins_of_its_first_pages(at: Bucket) -> None:
    provider = at.open(retry=QUICK)
    pins = [asyncio.run(provider.pin(block(bytes([number]))[0], "n")) for number in range(3)]
    tag = pins[0].handle.partition("/")[0]
    for number in range(1_000):
        at.server.objects[f"mem/pins/{tag}/zz{number:04}"] = (b"", "2026-11-01T00:00:00.000Z", {})
    failing_after(at, 1)
    with pytest.raises(ProviderUnavailable) as caught:
        asyncio.run(at.open(retry=QUICK).pins("n"))
    assert {pin.cid for pin in caught.value.pins} == {pin.cid for pin in pins}


def test_unreadable_pin_object_raises_with_the_other_pins(
    at: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs_pins, "MAX_FILES", 4)
    provider = at.open(retry=QUICK)
    pins = [asyncio.run(provider.pin(block(bytes([number]))[0], "n")) for number in range(9)]
    lists = [key for key in at.server.objects if key.endswith(".pins")]
    assert lists
    at.server.faults.answer("GET", f".*{lists[0]}", 403, "<Error><Code>AccessDenied</Code></Error>", times=-1)
    lost = at.server.objects[lists[0]][0].decode()
    with pytest.raises(ProviderError) as caught:
        asyncio.run(at.open(retry=QUICK).pins("n"))
    assert {pin.cid for pin in caught.value.pins} == {pin.cid for pin in pins if str(pin.cid) not in lost}
    assert len(caught.value.pins) == 9 - len(lost.splitlines()) > 0
