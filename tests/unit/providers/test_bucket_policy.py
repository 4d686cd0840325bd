"""The least-rights policy of a bucket: it suffices, and each right is needed."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import access_policy
from ipfsmem.testing import MockClock
from tests.servers import s3
from tests.support.effort import THOROUGH
from tests.support.hints import Refused
from tests.unit.provider import test_contract as contract
from tests.unit.provider.test_contract import NAME, block, record
from tests.unit.providers.bucket_lab import Bucket, bucket
from tests.unit.providers.test_bucket_snapshot import device


def policy_of(at: Bucket) -> dict[str, Any]:
    return access_policy(f"bucket:s3://{s3.BUCKET}/{at.prefix}")


#: Prefixes: none, and one of several parts; a thorough run also has one of a single part.
PREFIXES = ("", "deep/er/mem", "mem") if THOROUGH else ("", "deep/er/mem")


@pytest.fixture(params=PREFIXES)
def at(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    with bucket() as made:
        made.prefix = request.param
        made.server.policy = policy_of(made)
        yield made


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def connect(at: Bucket, clock: MockClock) -> Any:
    return lambda: at.open(clock=clock)


for _name, _law in vars(contract).items():
    if _name.startswith("test_") and "connect" in _law.__annotations__:
        globals()[f"test_contract_with_least_rights_{_name.removeprefix('test_')}"] = _law


def test_vault_works_with_least_rights(at: Bucket, tmp_path: Path) -> None:
    with device(tmp_path / "a", at) as a, device(tmp_path / "b", at) as b:
        for turn in range(3):
            a.write("shared", f"a {turn}")
            asyncio.run(a.sync())
            asyncio.run(b.sync())
            assert b.files()["shared"] == a.files()["shared"]
        asyncio.run(a.maintenance.gc())
        [found] = asyncio.run(a.providers.check(full=True))
        assert found.state == "ok"


def test_key_with_least_rights_reads_only_its_prefix() -> None:
    with bucket() as at:
        at.server.policy = policy_of(at)
        for prefix in ("", "memo", "me", "other"):
            at.prefix = prefix
            provider = at.open()
            for call in (
                provider.pins("ipfsmem-0"),
                provider.get_name(NAME),
                provider.put_name(NAME, record(1)),
            ):
                with pytest.raises(ProviderRefused):
                    asyncio.run(call)


@pytest.mark.parametrize("right", ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"])
def test_each_right_is_needed(right: str) -> None:
    with bucket() as at:

        async def use() -> None:
            provider = at.open()
            try:
                new = block("new")
                await provider.put_car(new[0], [new], name="n")
                await provider.unpin(await provider.pin(new[0], "ipfsmem-0"))
                await provider.put_name(NAME, record(1))
                assert await provider.get_name(NAME) == record(1)
            finally:
                await provider.close()

        at.server.policy = copy.deepcopy(policy_of(at))
        asyncio.run(use())
        at.server.objects.clear()
        for statement in at.server.policy["Statement"]:
            statement["Action"] = [action for action in statement["Action"] if action != right]
        with pytest.raises(ProviderRefused, match="does not allow the key"):
            asyncio.run(use())


def test_policy_of_a_whole_bucket_has_no_condition() -> None:
    listing, objects = access_policy("bucket:s3://mine")["Statement"]
    assert "Condition" not in listing and listing["Resource"] == ["arn:aws:s3:::mine"]
    assert objects["Resource"] == ["arn:aws:s3:::mine/*"]


@pytest.mark.parametrize(
    ("spec", "resource"),
    [
        ("bucket:https://mine.s3.cn-north-1.amazonaws.com.cn/m", "arn:aws-cn:s3:::mine"),
        ("bucket:https://s3.us-gov-west-1.amazonaws.com/mine/m", "arn:aws-us-gov:s3:::mine"),
        ("bucket:https://s3.eu-central-1.amazonaws.com/mine/m", "arn:aws:s3:::mine"),
        ("bucket:http://192.168.1.2:9000/mine/m", "arn:aws:s3:::mine"),
    ],
)
def test_policy_names_the_partition_of_aws(spec: str, resource: str) -> None:
    listing, objects = access_policy(spec)["Statement"]
    assert listing["Resource"] == [resource] and objects["Resource"] == [f"{resource}/m/*"]


def test_services_without_policies_name_their_equivalent() -> None:
    with Refused("Create an API token of R2 with the permission Object Read & Write for this bucket only."):
        access_policy("bucket:https://account.r2.cloudflarestorage.com/mine/m")
    with Refused(
        "Create an application key of B2 for this bucket and the name prefix, with listFiles, readFiles, writeFiles, deleteFiles."
    ):
        access_policy("bucket:https://s3.us-west-004.backblazeb2.com/mine/m")
    with Refused("Grant the role Storage Object User (roles/storage.objectUser) on this bucket only."):
        access_policy("bucket:gs://mine/m")
    with Refused("Create a SAS token for this container only, with read, write, delete and list."):
        access_policy("bucket:az://mine/m")
    with Refused("Buckets have one: bucket:s3://my-bucket/memories."):
        access_policy("/media/stick")
    with pytest.raises(ConfigError, match="unknown provider"):
        access_policy("nonsense")


def test_policy_of_python_equals_that_of_the_command() -> None:
    with Memory.load(mode="none") as memory:
        assert memory.providers.policy("bucket:s3://mine/m") == access_policy("bucket:s3://mine/m")


def test_forbidden_object_is_not_reported_as_absent() -> None:
    with bucket() as at:
        provider = at.open()
        asyncio.run(provider.put_name(NAME, record(1)))
        at.server.faults.answer(
            "GET", ".*/names/.+", 403, "<Error><Code>AccessDenied</Code></Error>", times=-1
        )
        with pytest.raises(ProviderRefused, match="does not allow the key"):
            asyncio.run(provider.get_name(NAME))
