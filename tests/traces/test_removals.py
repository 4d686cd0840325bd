"""Removed members: a lost laptop stays removed, and one command cancels removals by a finder of recovery
words.

A removal by words, or by another wallet, ends with them. Only a user who names the device makes it the
wallet's own statement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256

import pytest
from nacl.bindings import crypto_scalarmult_base as curve

from ipfsmem.errors import ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.ring import operations
from ipfsmem.ring.statements import member_id
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.sync.report import MOST_NAMED, SyncReport
from ipfsmem.vault.recovery import NewWords
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import ROOT, Lab, all_texts, kinds, new_words, says


def unlocked(memory: Memory, work: Callable[[Memory], object]) -> SyncReport:
    """Run a command with the wallet on this device; return its report."""
    memory.unlock(ROOT)
    try:
        done = asyncio.run(work(memory))  # type: ignore[arg-type]
    finally:
        memory.lock()
    report = done.report if isinstance(done, NewWords) else done
    assert isinstance(report, SyncReport)
    return report


def three(lab: Lab) -> tuple[Memory, Memory, Memory]:
    """Three devices with a text."""
    a, b, c = lab.three()
    a.write("k", "what all have")
    lab.settle(a, b, c)
    return a, b, c


def removes(lab: Lab, name: str, words: RootKeys, *targets: Memory) -> Memory:
    """Somebody with only words restores the vault on a device of theirs, and removes others with it."""
    memory = lab.restore(name, unlock=words, hold=True)
    for one in targets:
        asyncio.run(memory.members.revoke(one.device))
    memory.lock()
    return memory


def is_in(lab: Lab, memory: Memory, other: Memory) -> bool:
    """Return whether each of two devices receives the other's writes."""
    mine, theirs = f"by {memory.device} at {lab.clock.ms}", f"for {memory.device} at {lab.clock.ms}"
    memory.write("from", mine)
    other.write("to", theirs)
    for one in (memory, other, memory, other, memory):
        lab.sync(one)
    arrived, read = mine in all_texts(other), theirs in all_texts(memory)
    assert arrived == read
    return arrived


STEPS: dict[str, Callable[[Memory, Memory], Callable[[Memory], object]]] = {
    "unlock": lambda b, m: lambda a: a.sync(),
    "revoke the stranger's device": lambda b, m: lambda a: a.members.revoke(m.device),
    "rotate": lambda b, m: lambda a: a.members.rotate(),
    "new words": lambda b, m: lambda a: a.members.new_words(),
    "another label": lambda b, m: lambda a: a.members.rename(a.device, "desk"),
}


@pytest.mark.parametrize("step", ["nothing", *STEPS])
def test_removal_by_stolen_words_is_reverted_by_one_command_on_new_device(lab: Lab, step: str) -> None:
    a, b, c = three(lab)
    made, words = new_words(a)
    lab.settle(a, b, c)
    m = removes(lab, "m", words, b, c)
    if step in STEPS:
        told = unlocked(a, STEPS[step](b, m))
        # Notices of the sync inside the command are in the command's report.
        assert all(one.device in says(told, "removed") and made.id in says(told, "removed") for one in (b, c))
    lab.sync(b)
    assert "removed" not in kinds(lab.sync(b)) and made.id in says(lab.sync(b), "revoked")
    # Only the wallet is available: a new device reports what to do.
    n = lab.restore("n")
    assert n.restored is not None
    said = says(n.restored, "removed")
    assert b.device in said and c.device in said
    assert f"ipfsmem member revoke {made.id} --cascade" in said
    assert any(made.id in notice for notice in n.status().notices)
    report = unlocked(n, lambda n: n.members.revoke(made.id, cascade=True))
    assert b.device in says(report, "back") and c.device in says(report, "back")
    for one in (b, c):
        assert is_in(lab, one, n) and is_in(lab, one, a)
        assert one.device in {person.id for person in a.members.list()}
    assert not is_in(lab, m, a)
    assert not any(made.id in notice for notice in n.status().notices)


def test_lost_laptop_stays_revoked_when_the_revoking_words_are_revoked(lab: Lab) -> None:
    """Only `--cascade` ends it, unless the person named the laptop too."""
    a, laptop, c = three(lab)
    made, words = new_words(a)
    lab.settle(a, laptop, c)
    d = removes(lab, "d", words, laptop)
    for one in (a, c):
        said = says(lab.sync(one), "removed")
        assert laptop.device in said and made.id in said and f"ipfsmem member revoke {laptop.device}" in said
        assert "removed" not in kinds(lab.sync(one))  # once
    report = unlocked(a, lambda a: a.members.revoke(made.id))
    assert laptop.device in says(report, "stands") and "still removed" in says(report, "stands")
    assert d.device in says(report, "stands")
    for work in (lambda a: a.sync(), lambda a: a.members.rotate(), lambda a: a.members.new_words()):
        unlocked(a, work)
        assert not is_in(lab, laptop, a)
    n = lab.restore("n")
    assert laptop.device not in {person.id for person in n.members.list()} and is_in(lab, d, n)
    # A user confirms it, and then it is the wallet's own statement.
    report = unlocked(n, lambda n: n.members.revoke(laptop.device))
    assert laptop.device in says(report, "revoked")
    lab.settle(a, c, d, n)
    report = unlocked(a, lambda a: a.members.revoke(made.id, cascade=True))
    assert "back" not in kinds(report) and d.device in says(report, "fell")
    assert not is_in(lab, laptop, a) and not is_in(lab, laptop, n)
    assert not is_in(lab, d, a)


def test_lasting_removal_is_ended_later(lab: Lab) -> None:
    a, b, c = three(lab)
    made, words = new_words(a)
    lab.settle(a, b, c)
    removes(lab, "m", words, b)
    unlocked(a, lambda a: a.members.revoke(made.id))
    unlocked(a, lambda a: a.members.rotate())
    assert not is_in(lab, b, a)
    assert b.device in says(unlocked(c, lambda c: c.members.revoke(made.id, cascade=True)), "back")
    assert is_in(lab, b, a) and is_in(lab, b, c)


def test_removed_device_with_the_wallet_reverts_its_removal(lab: Lab) -> None:
    a, b, c = three(lab)
    made, words = new_words(a)
    lab.settle(a, b, c)
    removes(lab, "m", words, a, b, c)
    lab.sync(b)
    assert f"ipfsmem member revoke {made.id} --cascade" in says(lab.sync(b), "revoked")
    report = unlocked(b, lambda b: b.members.revoke(made.id, cascade=True))
    assert not report.blocked and a.device in says(report, "back")
    assert is_in(lab, a, b) and is_in(lab, c, b) and is_in(lab, a, c)


@pytest.mark.parametrize("first", [0, 1])
def test_removals_by_two_found_phrases_are_reverted_in_either_order(lab: Lab, first: int) -> None:
    a, b, c = three(lab)
    found = [new_words(a), new_words(a)]
    lab.settle(a, b, c)
    for n, (_, words) in enumerate(found):
        removes(lab, f"m{n}", words, *((b, c) if n else (b,)))
    said = says(lab.sync(a), "removed")
    assert all(made.id in said for made, _ in found)
    one, other = found[first][0], found[1 - first][0]
    unlocked(a, lambda a: a.members.revoke(one.id, cascade=True))
    assert not is_in(lab, b, a)
    unlocked(a, lambda a: a.members.revoke(other.id, cascade=True))
    assert is_in(lab, b, a) and is_in(lab, c, a)


def test_removal_by_the_wallet_is_reported_once_per_other_device(lab: Lab) -> None:
    a, b, c = three(lab)
    report = unlocked(a, lambda a: a.members.revoke(b.device))
    assert "removed" not in kinds(report) and b.device in says(report, "revoked")
    said = says(lab.sync(c), "removed")
    assert f"b ({b.device})" in said and "the first key of this vault, permanently" in said
    # Once; not on the device that did it, and not on one that did not exist.
    n = lab.restore("n")
    assert n.restored is not None and "removed" not in kinds(n.restored)
    assert not any("removed" in kinds(lab.sync(one)) for one in (a, c, n))
    assert [(one.id, one.lasting) for one in c.members.removed()] == [(b.device, True)]


def test_notice_of_a_failed_sync_is_repeated_by_the_next(lab: Lab) -> None:
    """A notice that is shown once must be in a report that arrives."""
    a, b, c = three(lab)
    made, words = new_words(a)
    lab.settle(a, b, c)
    removes(lab, "m", words, b)
    c.write("k", "waits")
    provider = lab.provider("c")
    puts = provider.put_car

    async def full(*args: object, **more: object) -> None:
        raise ProviderUnavailable("down")

    provider.put_car = full  # type: ignore[assignment, method-assign]
    with pytest.raises(ProviderUnavailable):
        lab.sync(c)
    provider.put_car = puts  # type: ignore[method-assign]
    said = says(lab.sync(c), "removed")
    assert b.device in said and made.id in said


def test_crowd_of_removed_devices_hides_no_honest_one(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    _, words = new_words(a)
    made, found = new_words(a)
    lab.sync(a)
    b, m = lab.restore("b", unlock=words), lab.restore("m", unlock=found)
    lab.settle(a, b, m)
    ring = m.replica.ring
    assert ring is not None
    after, seen = m.replica.store.frame.hlc, m.replica.store.frame.ctx
    crowd = [Signer25519(sha256(b"crowd %d" % n).digest()) for n in range(60)]
    for signer in [one for one in crowd if member_id(one.public) < b.device][:MOST_NAMED]:
        device = operations.enrollee_of(
            signer, curve(sha256(signer.public).digest()), "old phone", ring.vault
        )
        ring = operations.enrol(ring, found.admin, device, "writer", since=f"{int(after, 16) + 1:016x}")
        ring = operations.revoke(
            ring, found.admin, device.id, at=after, counters=seen, ek=sha256(device.sign).digest()
        )
    ring = operations.revoke(ring, found.admin, b.device, at=after, counters=seen, ek=bytes(32))
    with m.replica.transaction():
        m.replica.set_ring(ring)
    lab.sync(m)
    said = says(lab.sync(a), "removed")
    assert b.device in said and made.id in said and f"{len(ring.view.revoked_by) - MOST_NAMED} more" in said


@pytest.mark.parametrize("later", [0, 30], ids=["at once", "after a month"])
def test_empty_vault_with_a_revoked_device_is_restored(lab: Lab, later: int) -> None:
    a, b, _ = lab.three()
    unlocked(a, lambda memory: memory.members.revoke(b.device))
    lab.clock.advance(later * 86_400)
    assert not unlocked(a, lambda memory: memory.sync()).blocked
    back = lab.restore("d")
    assert not unlocked(back, lambda memory: memory.sync()).blocked
    assert back.status().root is not None
    back.write("k", "the first text")
    lab.settle(back, a)
    assert all_texts(a) == all_texts(back) == {"the first text"}
