"""The provider contract with object storage of Google (a stand-in) and Azure (Azurite)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.bucket import BucketProvider

from ipfsmem.errors import ProviderRefused
from ipfsmem.memory import Memory
from ipfsmem.testing import MockClock
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.cloud_lab import Cloud, azure, google
from tests.unit.provider import test_contract as contract

pytestmark = pytest.mark.interop
_prefixes = itertools.count()


@pytest.fixture(scope="module", params=[google, azure], ids=["google", "azure"])
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with request.param(tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def connect(cloud: Cloud, clock: MockClock) -> Callable[[], BucketProvider]:
    spec = cloud.spec(f"run{next(_prefixes)}")
    return lambda: BucketProvider(spec, cloud.settings, clock=clock)


for _name, _law in vars(contract).items():
    if _name.startswith("test_") and "connect" in _law.__annotations__:
        globals()[f"test_contract_{_name.removeprefix('test_')}"] = _law


def test_two_devices_share_a_vault_in_a_cloud_bucket(cloud: Cloud, tmp_path: Path) -> None:
    spec = cloud.spec(f"run{next(_prefixes)}")

    def device(name: str) -> Memory:
        return Memory.load("m", "encrypted-ipfs", provider=BucketProvider(spec, cloud.settings), unlock=Unlock(RawKeySigner(b"\x2b" * 32)), passphrase=False, home=tmp_path / name, create=True)  # fmt: skip

    with device("a") as a, device("b") as b:
        a.write("from_a", "x" * 5_000)
        b.write("from_b", "y" * 5_000)
        for memory in (a, b, a):
            asyncio.run(memory.sync())
        assert a.files() == b.files() and {"from_a", "from_b"} <= set(a.files())


def test_missing_bucket_is_reported(cloud: Cloud) -> None:
    provider = BucketProvider(cloud.spec("x").replace("memories", "nobody-made-this"), cloud.settings)
    with pytest.raises(ProviderRefused, match="unknown bucket"):
        asyncio.run(provider.pins("n"))
