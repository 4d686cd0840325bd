"""Group commit: one publish is one write at a provider, or none."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest

from ipfsmem.content.cid import CID, DAG_PB, parse_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.provider.contract import Block, GroupCommit, Provider, Snapshots
from ipfsmem.published.ipns_record import verify_record
from ipfsmem.sync.company import Company
from ipfsmem.sync.progress import no_progress
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import load

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x08"))
device = partial(load, wallet=WALLET)
WRITES = ("put_car", "pin", "unpin", "put_name")


class GroupingProvider(SimProvider):
    """A simulated provider whose writes of a group reach the cloud when the group is committed."""

    def __init__(self, cloud: SimCloud, *, name: str = "grouping") -> None:
        super().__init__(cloud, name=name)
        self.remote: SimCloud | None = None
        self.snapshots: list[str] = []

    def begin_group(self) -> None:
        assert self.remote is None, "groups do not nest"
        self.calls.append("begin_group")
        self.remote, self.cloud = self.cloud, copy.deepcopy(self.cloud)

    async def commit_group(self) -> None:
        await self._enter("commit_group")
        assert self.remote is not None
        self.remote.__dict__.update(self.cloud.__dict__)
        self.cloud, self.remote = self.remote, None

    def discard_group(self) -> None:
        if self.remote is not None:
            self.cloud, self.remote = self.remote, None

    def begin_snapshot(self, cache: bytes) -> None:
        self.snapshots.append("begin")

    def end_snapshot(self) -> bytes:
        self.snapshots.append("end")
        return b""


def groups(calls: Sequence[str]) -> list[list[str]]:
    """Return the writes of each group, in order."""
    found: list[list[str]] = []
    inside = False
    for call in calls:
        if call in ("begin_group", "commit_group"):
            inside = call == "begin_group"
            found += [[]] if inside else []
        elif call in WRITES:
            assert inside, f"{call} outside of a group"
            found[-1].append(call)
    return found


def test_publish_of_a_change_is_one_commit(tmp_path: Path) -> None:
    provider = GroupingProvider(SimCloud())
    a = device(tmp_path, "a", [provider])
    asyncio.run(a.sync())
    provider.calls.clear()
    a.write("k", "text")
    assert asyncio.run(a.sync()).published
    assert groups(provider.calls) == [["put_car", "pin", "put_name"]]


def test_failed_commit_is_published_by_the_next_sync(tmp_path: Path) -> None:
    cloud = SimCloud()
    provider = GroupingProvider(cloud)
    a = device(tmp_path, "a", [provider])
    asyncio.run(a.sync())
    before = copy.deepcopy(cloud.__dict__)
    a.write("k", "text")
    at = SimProvider(cloud)
    commit, provider.commit_group = provider.commit_group, _refuse  # type: ignore[method-assign]
    with pytest.raises(ProviderUnavailable, match="commit failed"):
        asyncio.run(a.sync())
    assert a.status().unpublished and cloud.pins == before["pins"] and cloud.names == before["names"]
    provider.commit_group = commit  # type: ignore[method-assign]
    assert asyncio.run(a.sync()).blocks_sent and not a.status().unpublished
    b = device(tmp_path, "b", [at])
    assert b.read("k").file.body == "text"  # type: ignore[union-attr]


async def _refuse() -> None:
    raise ProviderUnavailable("commit failed")


def test_failed_commit_at_one_of_two_is_reported_and_repeated(tmp_path: Path) -> None:
    first, second = SimCloud(), SimCloud()
    grouping = GroupingProvider(second)
    a = device(tmp_path, "a", [SimProvider(first, name="one"), grouping])
    asyncio.run(a.sync())
    commit, grouping.commit_group = grouping.commit_group, _refuse  # type: ignore[method-assign]
    a.write("k", "text")
    report = asyncio.run(a.sync())
    assert report.published and report.not_placed == ["grouping"]
    grouping.commit_group = commit  # type: ignore[method-assign]
    assert asyncio.run(a.sync()).not_placed == []
    b = device(tmp_path, "b", [SimProvider(second, name="two")])
    assert b.read("k").file.body == "text"  # type: ignore[union-attr]


def test_restore_reads_one_snapshot(tmp_path: Path) -> None:
    cloud = SimCloud()
    a = device(tmp_path, "a", [SimProvider(cloud)])
    a.write("k", "text")
    asyncio.run(a.sync())
    provider = GroupingProvider(cloud)
    b = device(tmp_path, "b", [provider])
    assert b.read("k").file.body == "text"  # type: ignore[union-attr]
    assert provider.snapshots[:2] == ["begin", "end"] and provider.snapshots.count("begin") == 1


def test_provider_wrapper_has_the_capabilities_of_its_provider(tmp_path: Path) -> None:
    a = device(tmp_path, "a", [SimProvider(SimCloud())])
    plain: Provider = SimProvider(SimCloud())
    members = Company(a.replica, [plain, GroupingProvider(SimCloud())], no_progress).members
    assert [isinstance(one, GroupCommit) for one in members] == [False, True]
    assert [isinstance(one, Snapshots) for one in members] == [False, True]


class DroppingProvider(GroupingProvider):
    """Accepts an upload and drops one of its folders; records whether a committed name leads to an
    incomplete tree."""

    drops = False
    incomplete = False

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        sent = list(blocks)
        if self.drops:
            self.drops = False
            sent.remove(next(block for block in sent if block[0].codec == DAG_PB and block[0] != root))
        return await super().put_car(root, sent, name=name)

    async def commit_group(self) -> None:
        named = self.cloud.names != self.remote.names if self.remote is not None else False
        await super().commit_group()
        if named:
            self.incomplete |= bool(absent_below_names(self.cloud))


def absent_below_names(cloud: SimCloud) -> set[CID]:
    """Return the blocks that named trees need and the cloud lacks."""
    absent: set[CID] = set()
    values = [verify_record(name, records[-1]).value for name, records in cloud.names.items()]
    level = [parse_cid(value.removeprefix("/ipfs/")) for value in values if value.startswith("/ipfs/")]
    while level:
        cid = level.pop()
        data = cloud.blocks.get(cid)
        if data is None:
            absent.add(cid)
        elif cid.codec == DAG_PB:
            level += [link.cid for link in decode_node(data).links]
    return absent


def test_names_are_updated_only_after_a_check_of_their_version(tmp_path: Path) -> None:
    cloud = SimCloud()
    provider = DroppingProvider(cloud)
    a = device(tmp_path, "a", [provider])
    asyncio.run(a.sync())
    provider.drops = True
    a.write("k", "text")
    report = asyncio.run(a.sync())
    assert not provider.drops and not provider.incomplete
    assert report.published and absent_below_names(cloud) == set()
    b = device(tmp_path, "b", [SimProvider(cloud)])
    assert b.read("k").file.body == "text"  # type: ignore[union-attr]
