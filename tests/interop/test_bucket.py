"""The bucket provider at a real S3 server: the contract, devices that share a vault, and a server killed
in use."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.bucket.objects import Objects
from ipfsmem_providers.http.policy import ONCE

from ipfsmem.errors import ProviderError, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.testing import MockClock
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop import trees
from tests.interop.counterparts import after, meanwhile
from tests.interop.seaweed import SeaweedFS, seaweed
from tests.servers import s3 as account
from tests.support.effort import THOROUGH
from tests.unit.provider import test_contract as contract
from tests.unit.providers.bucket_lab import Bucket

pytestmark = pytest.mark.interop
WALLET = Unlock(RawKeySigner(b"\x2a" * 32))
#: Large enough to be interrupted even if half is compressed; in short lines, which the secret scan skips.
MANY = {f"large{n}": trees.chacha20(f"bucket killed {n}", 250_000).hex("\n", 4) for n in range(30)}
_prefixes = itertools.count()


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFS]:
    with seaweed(tmp_path_factory.mktemp("seaweed"), account.KEY, account.SECRET) as server:
        asyncio.run(server.make_bucket(account.BUCKET))
        yield server


@pytest.fixture
def at(s3: SeaweedFS) -> Bucket:
    """A separate prefix."""
    return Bucket(s3.url, s3, prefix=f"run{next(_prefixes)}")


# -- the contract ------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def connect(at: Bucket, clock: MockClock) -> Callable[[], Any]:
    return lambda: at.open(clock=clock)


for _name, _law in vars(contract).items():
    if _name.startswith("test_") and "connect" in _law.__annotations__:
        globals()[f"test_contract_{_name.removeprefix('test_')}"] = _law


# -- memories ----------------------------------------------------------------------------------------------------------


def device(home: Path, at: Bucket, **settings: object) -> Memory:
    return Memory.load("m", "encrypted-ipfs", provider=at.open(**settings), unlock=WALLET, passphrase=False, home=home, create=True)  # fmt: skip


def sync(memory: Memory) -> None:
    asyncio.run(memory.sync())


def again(s3: SeaweedFS, at: Bucket) -> None:
    """Restart the server and wait until its data can be read: old volumes come up after new objects are
    accepted."""
    s3.start()
    asyncio.run(s3.make_bucket(account.BUCKET))
    objects = at.open().objects
    for key in [f"{kind}/{name}" for kind in ("packs", "names") for name in objects.list(kind)]:
        for attempt in itertools.count():
            try:
                objects.head(key, 1)
                break
            except ProviderUnavailable:
                if attempt == 100:
                    raise
                time.sleep(0.3)


def test_two_devices_that_sync_concurrently_converge(at: Bucket, tmp_path: Path) -> None:
    a, b = device(tmp_path / "a", at), device(tmp_path / "b", at)
    sync(a), sync(b)

    async def both() -> None:
        await asyncio.gather(a.sync(), b.sync())

    for turn in range(4):
        a.write("shared", f"a {turn}")
        a.write(f"a{turn}", "own")
        b.write("shared", f"b {turn}")
        b.write(f"b{turn}", "own")
        asyncio.run(both())
    for memory in (a, b, a):
        sync(memory)
    c = device(tmp_path / "c", at)
    assert a.files() == b.files() == c.files() and {"a3", "b3", "shared"} <= set(a.files())
    assert a.status().root == b.status().root
    for memory in (a, b, c):
        memory.close()


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_one_change_makes_four_uploads(
    at: Bucket, tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pack, its index, a pin and a record. The size depends on random names, so the median of several is compared."""
    if count > 1_000 and not THOROUGH:
        pytest.skip("minutes; HYPOTHESIS_PROFILE=ci")
    with device(tmp_path / "a", at) as a:
        for n in range(count):
            a.write(f"key{n:05}", f"text {n} " * 20)
        sync(a)
    sizes: list[int] = []
    for turn in range(9):
        provider = at.open()
        sent: list[int] = []
        monkeypatch.setattr(
            Objects, "_count", lambda _, way, size, sent=sent: way == "sent" and sent.append(size)
        )
        with Memory.load("m", provider=provider, home=tmp_path / "a") as a:
            a.write(f"key{turn * count // 10:05}", f"changed {turn}")
            sync(a)
        assert provider.objects.requests["PUT"] == len(sent) == 4
        assert sum(provider.objects.requests.values()) <= 45
        sizes.append(sum(sent))
    assert statistics.median(sizes) < (36 if count > 1_000 else 24) * 1024, sizes


def test_idle_sync_is_one_list_request(at: Bucket, tmp_path: Path) -> None:
    for home in ("a", "b", "a", "b", "a", "b"):
        with device(tmp_path / home, at) as memory:
            memory.write(f"of-{home}", "text")
            sync(memory)
    for home in ("a", "b", "a"):
        with device(tmp_path / home, at) as memory:
            sync(memory)
    for home in ("a", "b"):
        provider = at.open()
        with Memory.load("m", provider=provider, home=tmp_path / home) as memory:
            sync(memory)
        assert provider.objects.requests == {"LIST": 1}


def test_lost_packs_are_named_and_sent_again(at: Bucket, tmp_path: Path) -> None:
    a = device(tmp_path / "a", at)
    for n in range(20):
        a.write(f"k{n}", trees.chacha20(f"lost {n}", 2_000).hex())
    sync(a)
    packs = at.open().objects
    cars = [name for name in packs.list("packs") if name.endswith(".car")]
    packs.delete([f"packs/{max(cars, key=lambda name: packs.list('packs')[name].size)}"])
    [found] = asyncio.run(a.providers.check(full=True))
    assert (found.state, found.missing > 20) == ("missing", True)
    [mended] = asyncio.run(a.providers.check(full=True, repair=True))
    assert (mended.state, mended.sent) == ("ok", found.missing)
    b = device(tmp_path / "b", at)
    assert b.files() == a.files()
    a.close(), b.close()


# -- the server is killed ----------------------------------------------------------------------------------------------


def roots(at: Bucket) -> set[str]:
    return {name for name in at.open().objects.list("pins") if name.endswith((".json", ".pins"))}


@pytest.mark.parametrize("moment", ["before", "in the middle", "after"] if THOROUGH else ["after"])
def test_server_killed_during_an_upload_loses_nothing(
    s3: SeaweedFS, at: Bucket, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the pack is sent, while it is, and between it and its index."""
    a = device(tmp_path / "a", at, retry=ONCE)
    a.write("small", "text")
    sync(a)
    b = device(tmp_path / "b", at, retry=ONCE)
    assert b.files() == a.files()
    before, root = roots(at), a.status().root
    for key, text in MANY.items():
        a.write(key, text)
    kept = a.files()
    put = Objects.put

    def killing(self: Objects, key: str, data: bytes) -> None:
        if len(data) < 1_000_000:
            put(self, key, data)
        elif moment == "after":
            put(self, key, data)
            s3.kill()
        elif moment == "before":
            s3.kill()
            put(self, key, data)
        else:
            with meanwhile(0.02, s3.kill):
                put(self, key, data)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "put", killing)
        with pytest.raises(ProviderUnavailable):
            sync(a)
    assert a.files() == kept and a.status().unpublished and a.status().root == root
    again(s3, at)
    assert roots(at) == before  # no part of the upload is visible
    sync(b)
    assert set(b.files()) == set(kept) - set(MANY)
    a.close()
    a = device(tmp_path / "a", at)
    sync(a)
    assert not a.status().unpublished and a.status().root != root
    b.close()
    b = device(tmp_path / "b", at)
    sync(b)
    assert a.files() == b.files() and set(b.files()) == set(kept)
    a.close(), b.close()


def test_server_killed_during_a_read_loses_nothing(s3: SeaweedFS, at: Bucket, tmp_path: Path) -> None:
    """For a device with unsent changes, and for a new one."""
    a, b = device(tmp_path / "a", at), device(tmp_path / "b", at)
    sync(a), sync(b)
    for key, text in MANY.items():
        a.write(key, text)
    sync(a)
    b.write("mine", "written meanwhile")
    own = b.files()
    b.close()
    b = device(tmp_path / "b", at, retry=ONCE, progress=after("received", 10_000, s3.kill))
    with pytest.raises(ProviderUnavailable):
        sync(b)
    assert b.status().unpublished and own["mine"] == b.files()["mine"]
    again(s3, at)
    with pytest.raises(ProviderError):
        device(tmp_path / "c", at, retry=ONCE, progress=after("received", 10_000, s3.kill))
    assert not list((tmp_path / "c").iterdir())
    again(s3, at)
    b.close()
    b = device(tmp_path / "b", at)
    a.close()
    a = device(tmp_path / "a", at)
    for memory in (b, a, b):
        sync(memory)
    c = device(tmp_path / "c", at)
    assert a.files() == b.files() == c.files() and set(a.files()) == {*MANY, "mine"}
    for memory in (a, b, c):
        memory.close()
