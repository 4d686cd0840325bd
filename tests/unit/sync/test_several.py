"""Several providers: publish to all, read from any, and an outage of one blocks nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import IpfsmemError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Block, Capabilities, Provider
from ipfsmem.provider.opening import NotOpened, Providers
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import load

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x08"))
device = partial(load, wallet=WALLET)


def test_publish_goes_to_all_and_reads_come_from_any_provider(tmp_path: Path) -> None:
    first, second = SimCloud(), SimCloud()
    a = device(tmp_path, "a", [SimProvider(first, name="one"), SimProvider(second, name="two")])
    a.write("k", "text")
    root = asyncio.run(a.sync()).root
    for number, cloud in enumerate((first, second)):
        b = device(tmp_path, f"b{number}", [SimProvider(cloud, name="only")])
        assert b.read("k").file.body == "text"  # type: ignore[union-attr]
        assert root in {entry.root for entry in b.versions.list()}


def test_provider_that_is_down_blocks_nothing_and_is_updated_later(tmp_path: Path) -> None:
    first, second = SimProvider(SimCloud(), name="one"), SimProvider(SimCloud(), name="two")
    a = device(tmp_path, "a", [first, second])
    a.write("k", "text")
    asyncio.run(a.sync())
    second.faults.offline = True
    a.write("k", "changed while two was down")
    report = asyncio.run(a.sync())
    assert report.published
    assert {notice.kind for notice in report.notices} >= {"channel-down", "provider-down"}
    first.faults.offline = True
    a.write("k", "changed while both were down")
    with pytest.raises(ProviderUnavailable):
        asyncio.run(a.sync())
    assert a.status().unpublished
    second.faults.offline = False
    asyncio.run(a.sync())
    b = device(tmp_path, "b", [second])
    assert b.read("k").file.body == "changed while both were down"  # type: ignore[union-attr]


def test_block_damaged_at_one_provider_is_read_from_the_other(tmp_path: Path) -> None:
    first, second = SimCloud(), SimCloud()
    a = device(tmp_path, "a", [SimProvider(first, name="one"), SimProvider(second, name="two")])
    a.write("k", "text")
    asyncio.run(a.sync())
    spoilt = SimProvider(first, name="one")
    for cid in list(first.blocks):
        spoilt.faults.flip[cid] = 3
    b = device(tmp_path, "b", [spoilt, SimProvider(second, name="two")])
    assert b.read("k").file.body == "text"  # type: ignore[union-attr]


def test_pin_only_provider_gets_every_root_of_the_others(tmp_path: Path) -> None:
    """A pinning service takes no uploads."""
    cloud = SimCloud()
    holder = SimProvider(cloud, name="node")
    pinner = SimProvider(
        cloud, name="service", capabilities=Capabilities(put=False, pin=True, list=True, unpin=True)
    )
    a = device(tmp_path, "a", [holder, pinner])

    a.write("k", "text")
    root = asyncio.run(a.sync()).root
    assert pinner.calls.count("pin") >= 1 and "put_car" not in pinner.calls
    assert root in {str(pin.cid) for pin in cloud.pins}
    pinner.faults.offline = True
    a.write("k", "changed")
    report = asyncio.run(a.sync())
    assert report.published and "provider-down" in {notice.kind for notice in report.notices}
    pinner.faults.offline = False
    before = pinner.calls.count("pin")
    asyncio.run(a.sync())
    assert pinner.calls.count("pin") > before


def test_pin_only_provider_cannot_be_the_only_one(tmp_path: Path) -> None:
    pinner = SimProvider(
        SimCloud(), name="service", capabilities=Capabilities(put=False, pin=True, list=True)
    )
    a = device(tmp_path, "a", [pinner])
    a.write("k", "text")
    with pytest.raises(IpfsmemError):
        asyncio.run(a.sync())
    assert pinner.calls.count("pin") == 0


def test_committed_version_that_was_not_uploaded_stays_pending(tmp_path: Path) -> None:
    """The commit is on disk before the upload: neither `status` nor `flush` may treat it as published."""
    provider = SimProvider(SimCloud(), name="one")
    a = device(tmp_path, "a", [provider])
    a.write("k", "text")
    asyncio.run(a.sync())
    assert not a.status().unpublished
    a.write("k", "changed")
    for cut in ("reset_after", "put_name"):
        real = provider.put_name
        if cut == "reset_after":
            provider.faults.reset_after = 0
        else:
            provider.put_name = _fails  # type: ignore[method-assign]
        with pytest.raises(ProviderUnavailable):
            asyncio.run(a.sync())
        assert a.status().unpublished, cut
        provider.faults.reset_after = None
        provider.put_name = real  # type: ignore[method-assign]
    assert asyncio.run(a.flush()) is not None
    assert not a.status().unpublished and asyncio.run(a.flush()) is None
    b = device(tmp_path, "b", [provider])
    assert b.read("k").file.body == "changed"  # type: ignore[union-attr]


async def _fails(name: str, record: bytes) -> None:
    raise ProviderUnavailable("not now")


LISTS = msgspec.structs.replace(FULL, names=False, dag=False)


def test_unreadable_list_hides_no_newer_root_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two providers without names; the second has only the newest root."""
    first, second = SimCloud(), SimCloud()
    a = device(tmp_path, "a", [SimProvider(first, name="one", capabilities=LISTS)])
    a.write("k", "old")
    asyncio.run(a.sync())
    both: list[str | Provider] = [
        SimProvider(cloud, name=name, capabilities=LISTS) for cloud, name in ((first, "one"), (second, "two"))
    ]
    a.write("k", "new")
    asyncio.run(a.sync(provider=both))

    async def down(cids: object) -> dict[CID, bytes]:
        raise ProviderUnavailable("the gateway of one is down")

    half = SimProvider(first, name="one", capabilities=LISTS)
    monkeypatch.setattr(half, "get_blocks", down)
    b = device(tmp_path, "b", [half, SimProvider(second, name="two", capabilities=LISTS)])
    assert b.read("k").file.body == "new"  # type: ignore[union-attr]
    assert b.restored is not None and "channel-down" in {notice.kind for notice in b.restored.notices}
    # With that one alone nothing can be known, and no second vault is created.
    with pytest.raises(ProviderUnavailable):
        device(tmp_path, "c", [half])


def test_gc_with_one_unavailable_provider_continues_at_the_other(tmp_path: Path) -> None:
    first, second = SimProvider(SimCloud(), name="one"), SimProvider(SimCloud(), name="two")
    a = device(tmp_path, "a", [first, second])
    a.write("k", "text")
    asyncio.run(a.sync())
    first.faults.offline = True
    done = asyncio.run(a.maintenance.gc(dry_run=True))
    assert list(done.providers) == ["two"] and list(done.problems) == ["one"]
    second.faults.offline = True
    with pytest.raises(ProviderUnavailable):
        asyncio.run(a.maintenance.gc(dry_run=True))


def test_permanent_refusal_by_one_of_two_providers_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = SimProvider(SimCloud(), name="one"), SimProvider(SimCloud(), name="two")
    a = device(tmp_path, "a", [first, second])
    a.write("k", "text")
    asyncio.run(a.sync())

    async def full(*args: object, **named: object) -> CID:
        raise ProviderRefused("402: the plan is full", hint="Take a larger plan.")

    monkeypatch.setattr(second, "put_car", full)
    a.write("k", "changed")
    report = asyncio.run(a.sync())
    assert report.published
    (told,) = [notice.text for notice in report.notices if notice.kind == "provider-refused"]
    assert told == "not published at two: 402: the plan is full. Take a larger plan."
    assert "provider-down" not in {notice.kind for notice in report.notices}
    # The only remaining provider: the sync fails instead of a notice.
    monkeypatch.setattr(first, "put_car", full)
    a.write("k", "changed again")
    with pytest.raises(ProviderRefused) as refused:
        asyncio.run(a.sync())
    assert refused.value.hint == "Take a larger plan."


def test_notice_about_a_provider_names_it_in_a_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = (SimProvider(SimCloud(), name=name) for name in ("one", "two", "three"))
    a = device(tmp_path, "a", [one, two, three])
    a.write("k", "text")
    asyncio.run(a.sync())

    async def full(*args: object, **named: object) -> CID:
        raise ProviderRefused("402: the plan is full")

    monkeypatch.setattr(two, "put_car", full)
    three.faults.offline = True
    a._syncing.places = Providers((one, two, three, NotOpened("pinata", "PINATA_JWT is not set")))
    a.write("k", "changed")
    report = msgspec.json.decode(msgspec.json.encode(asyncio.run(a.sync())))
    named = {(notice["kind"], notice["provider"]) for notice in report["notices"]}
    assert named >= {("provider-refused", "two"), ("provider-down", "three"), ("not-opened", "pinata")}
    assert {provider for kind, provider in named if kind == "channel-down"} <= {"three"}


@pytest.mark.parametrize("hint", ["Check the token.", ""])
def test_provider_that_refuses_every_request_is_reported_once(
    hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = SimProvider(SimCloud(), name="one"), SimProvider(SimCloud(), name="two")
    a = device(tmp_path, "a", [first, second])
    a.write("k", "text")
    asyncio.run(a.sync())

    def refuse(purpose: str) -> Callable[..., Awaitable[None]]:
        async def request(*args: object, **named: object) -> None:
            raise ProviderRefused(f"403 to {purpose}", hint=hint)

        return request

    for purpose in ("pins", "get_name", "put_name", "put_car", "has_blocks", "get_blocks"):
        if hasattr(second, purpose):
            monkeypatch.setattr(second, purpose, refuse(purpose))
    a.write("k", "changed")
    report = asyncio.run(a.sync())
    (told,) = report.notices
    assert told.kind == "provider-refused" and told.text.startswith("not published at two: 403 to ")
    assert told.text.endswith(f". {hint} New texts there were not read.".replace("  ", " "))
    assert report.published and report.exit_code == 7


def test_refusal_by_a_pin_only_provider_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = SimCloud()
    pins = Capabilities(put=False, pin=True, list=True, unpin=True)
    pinner = SimProvider(cloud, name="service", capabilities=pins)

    async def full(root: CID, name: str) -> object:
        raise ProviderRefused("403: too many pins", hint="Unpin some.")

    monkeypatch.setattr(pinner, "pin", full)
    a = device(tmp_path, "a", [SimProvider(cloud, name="node"), pinner])
    a.write("k", "text")
    report = asyncio.run(a.sync())
    told = [notice.text for notice in report.notices if notice.kind == "provider-refused"]
    assert "not published at service: 403: too many pins. Unpin some." in told


class Noticing(SimProvider):
    """A provider that found a block damaged, and may fail to name it, or accept it again."""

    lacking: list[CID] | None = None

    async def missing_blocks(self) -> list[CID]:
        if self.lacking is None:
            raise ProviderUnavailable("not now")
        return self.lacking

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        if self.lacking:
            raise ProviderUnavailable("full")
        return await super().put_car(root, blocks, name=name)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (False, "the list of damaged parts at one could not be read: not now"),
        (True, "damaged parts at one could not be sent again: full"),
    ],
    ids=["asking", "sending"],
)
def test_failed_repair_is_reported_as_provider_down_not_as_unpublished(
    tmp_path: Path, known: bool, said: str
) -> None:
    provider = Noticing(SimCloud(), name="one")
    a = device(tmp_path, "a", [provider])
    provider.lacking = []
    a.write("k", "text")
    root = asyncio.run(a.sync()).root
    provider.lacking = [parse_cid(root)] if known else None
    report = asyncio.run(a.sync())
    told = [notice.text for notice in report.notices if notice.kind == "provider-down"]
    assert told == [f"{said}; the next sync tries again"]
    assert not a.status().unpublished


def test_sync_of_separately_created_devices_names_member_admit(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = device(tmp_path, "a", [SimProvider(cloud, name="one")])
    b = device(tmp_path, "b", [SimProvider(cloud, name="one")])
    a.lock()
    b.lock()
    a.write("from-a", "text")
    b.write("from-b", "text")
    asyncio.run(a.sync())
    said: list[str] = []
    for memory in (b, a, b):
        report = asyncio.run(memory.sync())
        said += [notice.text for notice in report.notices if not report.published]
    assert any("ipfsmem member admit --wallet" in text for text in said), said
    a.unlock(WALLET)
    for memory in (a, b, a, b):
        asyncio.run(memory.sync())
    assert a.files() == b.files() and {"from-a", "from-b"} <= a.files().keys()
