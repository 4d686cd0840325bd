"""Late values of a revoked member are listed until they are overwritten (format section 4)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ipfsmem.errors import NotFoundError
from ipfsmem.memories.after_revoke import Late
from ipfsmem.memory import Memory
from ipfsmem.ring import operations
from tests.support.cli_lab import Cli
from tests.support.device_lab import ROOT, Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_late_values_of_a_revoked_member_are_listed_until_overwritten(lab: Lab) -> None:
    a, b, c = lab.three()
    b.write("early", "before")
    lab.settle(a, b, c)
    # B continues to write and C joins it, before either knows that A has revoked B.
    asyncio.run(a.sync())
    with a.replica.transaction():
        ring = a.replica.ring
        assert ring is not None
        frame = a.replica.store.frame
        revoked = operations.revoke(
            ring, ROOT.admin, b.device, at=frame.hlc, counters=frame.ctx, ek=a.replica.environment.random(32)
        )
    b.write("late", "after")
    b.note("late_event")
    lab.sync(b)
    lab.sync(c)
    with a.replica.transaction():
        a.replica.set_ring(revoked)
    lab.sync(a)
    lab.settle(a, c)
    for device in (a, c):
        found = device.members.late_writes()
        assert [(value.place, value.member) for value in found] == [
            ("late", b.device), (f"timeline/{device.timeline.read()[-1]['ts'][:10]}", b.device),
        ]  # fmt: skip
        assert all(isinstance(value, Late) and value.dot.startswith(b.device) for value in found)
        assert any("arrived after the revocation" in notice for notice in device.status().notices)
        assert device.read("early") is not None
    a.write("late", "looked at, and kept")
    lab.settle(a, c)
    assert [value.place[:8] for value in c.members.late_writes()] == ["timeline"]
    lab.close()


def test_vault_without_revoked_members_lists_no_late_values(lab: Lab) -> None:
    a, b, _ = lab.three()
    b.write("k", "text")
    lab.settle(a, b)
    assert a.members.late_writes() == [] and a.status().notices == []
    lab.close()


def test_command_line_lists_late_values(sealed_home: Cli, monkeypatch: pytest.MonkeyPatch) -> None:

    late = [Late(place="tone", scope="", member="ab" * 8, dot="ab" * 8 + "-7")]
    monkeypatch.setattr("ipfsmem.operations.vault_status.late_writes", lambda replica: late)
    monkeypatch.setattr("ipfsmem.operations.conflicts.late_writes", lambda replica: late)
    assert "after it was revoked" in sealed_home.ok("conflicts").out
    assert sealed_home.ok("conflicts", "--json").json["late"] == [
        {"key": "tone", "scope": "", "revoked": "ab" * 8, "dot": late[0].dot}
    ]
    assert "arrived after the revocation" in sealed_home.ok("status").out
    assert "tone" in sealed_home.ok("conflicts", "tone").out
    sealed_home.fails(4, "conflicts", "other")


def test_conflicts_of_one_scope_have_no_late_values_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    late = [
        Late(place=place, scope=scope, member="ab" * 8, dot="ab" * 8 + "-7")
        for place, scope in (("tone", ""), ("work/tone", "work"), ("work/timeline/2026-11-29", "work"))
    ]
    monkeypatch.setattr("ipfsmem.operations.conflicts.late_writes", lambda replica: late)
    with Memory.load("alex", "none") as memory:
        work = memory.scope("work")
        assert [*memory.conflicts().late] == late[:1] and [*work.conflicts().late] == late[1:]
        assert [*work.conflicts("tone").late] == [late[1]]
        assert [*memory.conflicts(everywhere=True).late] == late
        with pytest.raises(NotFoundError, match="other has no conflict"):
            work.conflicts("other")


@pytest.fixture
def sealed_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    cli = Cli(tmp_path / "home", monkeypatch)
    cli.ok("init", "--mode", "local")
    return cli
