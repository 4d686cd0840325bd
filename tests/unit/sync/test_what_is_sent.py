"""An update sends only what changed, re-seals texts under dropped keys, and never replaces an unread version."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.device.tables import meta
from ipfsmem.memory import Memory
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.presence import Checker, CopyNotes
from ipfsmem.sync.progress import no_progress
from ipfsmem.sync.publish import _blocked
from ipfsmem.sync.repair import _ProviderRepair
from ipfsmem.sync.report import Notices
from ipfsmem.sync.sending import new_blocks
from ipfsmem.sync.steps import Joined
from ipfsmem.testing import SeededRandom, SimProvider
from ipfsmem.testing.simulator import FULL
from tests.support.device_lab import Lab


def test_update_sends_only_blocks_that_the_former_version_lacks(lab: Lab) -> None:
    a = lab.create("a")
    roots = []
    for n in range(3):
        a.write(f"memory{n}", f"text {n}")
        lab.sync(a)
        root = a.status().root
        assert root is not None
        roots.append(parse_cid(root))
    db = a.replica.db
    before, after = (set(new_blocks(db, root, ())) for root in roots[-2:])
    assert set(new_blocks(db, roots[-1], [roots[-2]])) == after - before != after


def test_empty_vault_does_not_replace_an_unreadable_version(lab: Lab) -> None:
    a: Memory = lab.create("a")
    said: list[str] = []
    notices = SimpleNamespace(say=lambda kind, text: said.append(text))
    run = cast("SyncContext", cast(Any, SimpleNamespace(replica=a.replica, notices=notices)))
    assert _blocked(run, Joined()) is None
    refused = _blocked(run, Joined(refused=frozenset({raw_cid(b"\1" * 32)})))
    assert refused is not None and refused.blocked == "cannot-publish" and "is empty here" in said[0]


def test_publish_seals_texts_under_a_dropped_key_again(lab: Lab) -> None:
    a = lab.create("a")
    a.write("one", "text")
    with a.replica.transaction():
        a.replica.db.set_meta(meta.STRAY, b"1")
    lab.sync(a)
    assert a.replica.db.get_meta(meta.STRAY) == b"0"


@pytest.mark.parametrize("can_list", [True, False])
def test_incomplete_tree_is_unpinned_before_it_is_sent_whole(lab: Lab, can_list: bool) -> None:
    a = lab.create("a")
    a.write("one", "text")
    lab.sync(a)
    form = replace(FULL, has=False, partial_car=False, list=can_list)
    provider = SimProvider(lab.cloud, clock=lab.clock, random=SeededRandom("whole"), capabilities=form)
    run = SyncContext(a.replica, [provider], None, no_progress, Notices())
    root = a.status().root
    assert root is not None

    class Complete:
        async def look_again(self, cids: list[CID]) -> list[CID]:
            return cids

    checker = cast("Checker", cast(Any, Complete()))
    repair = _ProviderRepair(run, provider, parse_cid(root), checker, CopyNotes(), by_hand=False)
    assert asyncio.run(repair._send_tree([parse_cid(root)])) == 1
    calls = [e.call for e in provider.wire if e.call in ("pins", "unpin", "put_car")]
    assert calls == [*(("pins", "unpin") if can_list else ()), "put_car"]
