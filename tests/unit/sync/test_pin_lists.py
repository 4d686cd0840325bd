"""Long pin lists on a new device at providers without names: every root is examined with few requests."""

from __future__ import annotations

import asyncio
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from ipfsmem.causal.value import DeviceCounter
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin
from ipfsmem.published.commit import Commit, SignedCommit
from ipfsmem.published.root_verification import Head, maximal_heads
from ipfsmem.sync import discovery
from ipfsmem.sync.names import pin_name
from ipfsmem.sync.publish import MAX_PREV, _newest
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import load

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0a"))
device = partial(load, wallet=WALLET)
LISTS = msgspec.structs.replace(FULL, names=False, dag=False)


def connection(cloud: SimCloud) -> SimProvider:
    return SimProvider(cloud, name="account", capabilities=LISTS)


def publish(memory: Memory, name: str, times: int) -> None:
    for n in range(times):
        memory.write(f"{name}{n % 7}", f"text {n} of {name}")
        asyncio.run(memory.sync())


def name_of(memory: Memory) -> str:
    vault = memory.replica.config.vault
    assert vault is not None
    return pin_name(bytes.fromhex(vault.anchor))


def invented(name: str, count: int) -> list[Pin]:
    return [
        Pin(CID(1, 0x70, b"\x12\x20" + sha256(b"%d" % n).digest()), name, f"x{n}", 4_000_000_000_000 + n)
        for n in range(count)
    ]


def test_sixty_roots_need_few_requests(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = device(tmp_path, "a", connection(cloud))
    publish(a, "k", 60)
    assert len(cloud.pins) >= 60
    fresh = connection(cloud)
    b = device(tmp_path, "b", fresh)
    assert b.files() == a.files()
    assert fresh.calls.count("get_blocks") <= 9
    # All of them are known from now on, and checked again without a request.
    assert {entry.root for entry in a.versions.list()} <= {entry.root for entry in b.versions.list()}
    calls = fresh.calls.count("get_blocks")
    asyncio.run(b.sync())
    assert fresh.calls.count("get_blocks") == calls


def test_three_thousand_forged_roots_cost_bounded_requests_and_one_notice(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = device(tmp_path, "a", connection(cloud))
    publish(a, "k", 3)
    fresh = connection(cloud)
    fresh.faults.pins = [*invented(name_of(a), 3_000), *cloud.pins]
    b = device(tmp_path, "b", fresh)
    assert b.files() == a.files()
    assert fresh.calls.count("get_blocks") <= 2 * (3_000 // discovery.PINS_AT_ONCE) + 14
    assert b.restored is not None
    (notice,) = [notice for notice in b.restored.notices if notice.kind == "head-refused"]
    assert "3000 versions in the pin list of account" in notice.text


def test_pin_list_over_limit_is_reported_with_its_number_of_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MAX_PINS", 4)
    cloud = SimCloud()
    a = device(tmp_path, "a", connection(cloud))
    publish(a, "k", 6)
    listed = len([pin for pin in cloud.pins if pin.name == name_of(a)])
    report = asyncio.run(a.sync())
    (notice,) = [notice for notice in report.notices if notice.kind == "pins"]
    assert "ipfsmem vault compact" in notice.text and f"keeps {listed} versions" in notice.text


def test_head_of_device_offline_for_long_is_found_among_old_pins(tmp_path: Path) -> None:
    cloud = SimCloud()
    behind = connection(cloud)
    a = device(tmp_path, "a", connection(cloud))
    publish(a, "k", 3)
    b = device(tmp_path, "b", connection(cloud))
    asyncio.run(a.sync())
    behind.faults.pins = list(cloud.pins)
    b.write("from-b", "only in an old root")
    asyncio.run(b.sync())
    b.close()
    asyncio.run(a.sync(provider=behind))
    publish(a, "k", 20)
    assert a.read("from-b") is None
    c = device(tmp_path, "c", connection(cloud))
    assert c.read("from-b").file.body == "only in an old root"  # type: ignore[union-attr]
    assert c.files().items() >= a.files().items()


def test_text_at_service_without_names_is_found_next_to_one_with_names(tmp_path: Path) -> None:
    own, cloud = SimCloud(), SimCloud()
    both = [SimProvider(own, name="folder"), connection(cloud)]
    a = device(tmp_path, "a", both)
    publish(a, "k", 1)
    b = device(tmp_path, "b", connection(cloud))
    for text in ("first", "second", "third"):
        b.write("from-b", text)
        asyncio.run(b.sync())
        report = asyncio.run(a.sync())
        entry = a.read("from-b")
        assert entry is not None and text in entry.text
        assert report.exit_code == 0
        publish(a, "k", 1)
    asyncio.run(b.sync())
    assert b.files() == a.files()


def test_unreadable_newest_version_is_joined_from_older_ones(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = device(tmp_path, "a", connection(cloud))
    publish(a, "k", 5)
    before = set(cloud.blocks)
    a.write("newest", "text")
    root = asyncio.run(a.sync()).root
    assert root is not None
    fresh = connection(cloud)
    # Its root, ring and commit exist, its state does not.
    top = {parse_cid(root)} | {cid for cid in cloud.blocks if cid.codec == 0x55}
    fresh.faults.drop = (set(cloud.blocks) - before) - top
    b = device(tmp_path, "b", fresh)
    assert b.files() == {key: text for key, text in a.files().items() if key != "newest"}
    assert b.restored is not None
    assert any(root in n.detail and "was not joined" in n.detail for n in b.restored.notices)


def test_provider_without_answers_is_not_asked_for_every_root(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = device(tmp_path, "a", connection(cloud))
    publish(a, "k", 2)
    other = connection(cloud)
    other.faults.pins = invented(name_of(a), 1_000)

    async def down(cids: object) -> dict[CID, bytes]:
        other.calls.append("get_blocks")
        raise ProviderUnavailable("the gateway is down")

    other.get_blocks = down  # type: ignore[method-assign]
    with pytest.raises(ProviderUnavailable):
        asyncio.run(a.sync(provider=other))
    assert other.calls.count("get_blocks") == 1


def head(name: str, ctx: dict[str, tuple[int, str]], *prev: Head, h: int = 0) -> Head:
    seen = {device: DeviceCounter(n, r, "") for device, (n, r) in ctx.items()}
    before = [p.commit.digest for p in prev]
    commit = Commit(c=1, ctx=seen, dev=name, ek="", h=f"{h:016x}", prev=before, ring="", state="", vault="")
    cid = CID(1, 0x70, b"\x12\x20" + sha256(name.encode()).digest())
    return Head(cid, SignedCommit(commit, name.encode(), b""), cid, seen)


def shape(*heads: Head) -> dict[str, set[str]]:
    return {
        top.commit.commit.dev: {low.commit.commit.dev for low in below} for top, below in maximal_heads(heads)
    }


def test_covering_heads_follow_from_their_contexts() -> None:
    one = head("one", {"a": (1, "x")})
    two = head("two", {"a": (2, "y")}, one, h=1)
    three = head("three", {"a": (2, "y"), "b": (1, "z")}, two, h=2)
    assert shape(one, two, three) == {"three": {"two", "one"}}
    assert shape(one, three) == {"one": set(), "three": set()}, "a gap in the chain proves nothing"
    aside = head("aside", {"c": (1, "w")}, one, h=3)
    assert shape(one, two, aside) == {"two": {"one"}, "aside": set()}, (
        "it names one, but does not know its write"
    )
    other = head("other", {"a": (1, "x"), "c": (2, "v")}, one, h=4)
    assert shape(one, two, other) == {"two": {"one"}, "other": {"one"}}, (
        "two hold it, and one of them may be damaged"
    )
    forked = head("forked", {"a": (1, "other")}, one)
    assert shape(one, forked) == {"one": set(), "forked": set()}, "another write under the same number"


def test_commit_names_only_the_newest_of_many_heads() -> None:
    many = [head(f"{n}", {"a": (n, "x")}, h=n) for n in range(400)]
    assert set(_newest(reversed(many))) == {one.commit.digest for one in many[-MAX_PREV:]}
