"""Versions found by names are read before pin lists, and a name that was set back causes a read of the lists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.content.cid import ipns_name
from ipfsmem.memory import Memory
from tests.support.device_lab import ROOT, Lab, all_texts


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


def members(memory: Memory) -> set[str]:
    assert memory.replica.ring is not None
    return set(memory.replica.ring.view.members)


def fork_behind_a_name_that_leads_back(lab: Lab) -> tuple[Memory, Memory, Memory]:
    """A's name leads to B's root, B's name to the earlier root of A; only a list shows B's later root."""
    a, b, c = lab.three()
    name = ipns_name(b.replica.device.sign_public)
    a.write("older", "of a")
    lab.sync(a)
    lab.sync(b)
    records = list(lab.cloud.names[name])
    b.write("newer", "of b")
    lab.sync(b)
    lab.sync(a)
    b.write("fork", "of b, behind its name")
    lab.sync(b)
    b.close()
    lab.cloud.names[name] = records
    return a, b, c


def test_fork_behind_a_name_that_was_set_back_is_found_at_once(lab: Lab) -> None:
    a, _, c = fork_behind_a_name_that_leads_back(lab)
    lab.sync(c)
    assert "of b, behind its name" in all_texts(c)
    lab.settle(a, c)
    assert all_texts(a) == all_texts(c) == all_texts(lab.restore("d"))


def test_fork_is_found_as_soon_as_a_lagging_list_shows_it(lab: Lab) -> None:
    _, _, c = fork_behind_a_name_that_leads_back(lab)
    provider = lab.provider("c")
    provider.faults.pins = sorted(lab.cloud.pins, key=lambda pin: pin.created)[:-1]
    lab.sync(c)
    assert "of b" in all_texts(c) and "of b, behind its name" not in all_texts(c)
    provider.faults.pins = None
    lab.sync(c)
    assert "of b, behind its name" in all_texts(c)


def test_name_with_a_newer_version_causes_no_list_read(lab: Lab) -> None:
    a, b, c = lab.three()
    provider = lab.provider("c")
    before = provider.calls.count("pins")
    for n in range(3):
        a.write("k", f"text {n}")
        b.write("k2", f"text {n}")
        lab.sync(a)
        lab.sync(b)
        lab.sync(c)
    assert provider.calls.count("pins") == before


@pytest.mark.parametrize("first", ["a", "b"], ids=["A first", "B first"])
@pytest.mark.parametrize("lists", [False, True], ids=["names", "lagging lists"])
def test_devices_that_revoke_each_other_converge_in_any_order(lab: Lab, first: str, lists: bool) -> None:
    """Each revokes the other while apart; C reads one of them first, D the other."""
    a, b, c = lab.three()
    d = lab.restore("d")
    lab.settle(a, b, c, d)
    b.unlock(ROOT)
    known = {name: len(records) - 1 for name, records in lab.cloud.names.items()}
    pins = list(lab.cloud.pins)
    for memory in (a, b):
        memory.write(f"by-{memory.replica.config.label}", f"of {memory.replica.config.label}")
    asyncio.run(a.members.revoke(b.device))
    behind = lab.provider("b")
    behind.faults.old_record, behind.faults.pins = known, pins
    asyncio.run(b.members.revoke(a.device))
    behind.faults.old_record, behind.faults.pins = {}, None
    others = {"a": a, "b": b}
    hidden = others["b" if first == "a" else "a"].replica.device.sign_public
    # C does not see the last record of one of them, D not that of the other one.
    for reader, public in (("c", hidden), ("d", others[first].replica.device.sign_public)):
        name = ipns_name(public)
        lab.provider(reader).faults.old_record = {name: known[name]}
        if lists:
            lab.provider(reader).faults.pins = pins
        lab.sync(lab.devices[reader])
    for reader in ("c", "d"):
        lab.provider(reader).faults.old_record, lab.provider(reader).faults.pins = {}, None
    lab.settle(c, d)
    fresh = lab.restore("e")
    lab.settle(c, d, fresh)
    assert members(c) == members(d) == members(fresh)
    assert all_texts(c) == all_texts(d) == all_texts(fresh)
    assert not {a.device, b.device} <= members(c)
