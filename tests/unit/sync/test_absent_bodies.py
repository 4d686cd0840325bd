"""Objects that a member names and nobody has cost a limited number of requests per sync and hide nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.causal.value import LIVE, Loc, Value, dot, sign_value
from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider
from ipfsmem.sync import join_step
from ipfsmem.testing.simulator import SimCloud, SimProvider
from tests.support.device_lab import Forger, Lab, all_texts

DAY = 86_400


def sign_values_without_objects(member: Memory, count: int) -> set[CID]:
    """A member signs `count` values whose objects nobody has."""
    # before others in their order
    return name_objects(member, [bytes(2) + sha256(b"never was %d" % n).digest()[2:] for n in range(count)])


def name_objects(member: Memory, digests: Sequence[bytes], size: int = 556) -> set[CID]:
    """A member signs values whose texts should be in these objects."""
    forger, device = Forger(member), member.replica.device
    ring = member.replica.ring
    assert ring is not None and ring.view.sealing is not None
    with member.replica.reading():
        before = member.replica.store.frame.ctx.get(device.id, 0)
    changes, count = {}, len(digests)
    for n, digest in enumerate(digests, before + 1):
        name, under = f"m/junk{n}", dot(device.id, n)
        loc = Loc(ring.view.sealing.id, digest.hex(), size)
        value = Value(b=(), body=f"{n:064x}", h="0" * 16, kind=LIVE, loc=loc)
        changes[name] = {under: sign_value(device.signer, name, under, value, forger.vault)}
    forger.put(
        changes, ctx={device.id: before + count}, seen={device.id: forger.seen(device.id, before + count)}
    )
    forger.publish()
    return {raw_cid(digest) for digest in digests}


def test_objects_that_nobody_has_are_requested_in_parts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_step, "ASK_AT_ONCE", 8)
    _, b, m = lab.three()
    objects = sign_values_without_objects(m, 40)
    provider = lab.provider("b")

    def asked() -> set[CID]:
        """Return the objects that this sync requests."""
        before = len(provider.wire)
        lab.sync(b)
        sent = [e.sent for e in provider.wire[before:] if e.call == "get_blocks"]
        return {cid for cid in objects if any(cid.encode() in text for text in sent)}

    assert asked() == objects, "the sync that joins them"
    assert asked() == objects, "the first after that asks for all"
    parts = [asked() for _ in range(5)]
    assert all(len(part) == 8 for part in parts) and set().union(*parts) == objects
    lab.clock.advance(DAY + 60)
    assert asked() == objects


def test_returned_objects_are_all_fetched_at_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_step, "ASK_AT_ONCE", 8)
    a, b, _ = lab.three()
    for n in range(40):
        a.write(f"memory{n}", f"text {n}")
    lab.sync(a)
    with a.replica.reading():
        texts = [raw_cid(digest) for digest in a.replica.store.object_digests()]
    away = {cid: lab.cloud.blocks.pop(cid) for cid in texts}
    assert len(away) == 40
    for _ in range(3):
        lab.sync(b)
    assert not all_texts(b)
    lab.cloud.blocks.update(away)
    lab.sync(b)
    assert len(all_texts(b)) == 40


@pytest.mark.parametrize("before", [True, False])
def test_object_name_with_a_shared_hash_prefix_hides_no_text(lab: Lab, before: bool) -> None:
    """Objects are named by the first forty digits of their hash."""
    a, b, m = lab.three()
    a.write("k", "the honest text")
    lab.sync(a)
    with a.replica.reading():
        texts = [raw_cid(digest) for digest in a.replica.store.object_digests()]
    lies = [cid.digest[:20] + bytes([n]) * 12 for cid in texts for n in (0, 255)]
    away = {cid: lab.cloud.blocks.pop(cid) for cid in texts}
    if not before:
        lab.sync(b)
    name_objects(m, lies, size=1)
    lab.sync(b)
    assert not all_texts(b)
    lab.cloud.blocks.update(away)
    lab.sync(b)
    assert all_texts(b) == {"the honest text"}
    # Nor does any other device miss it afterwards, also without the first holder.
    lab.sync(a)
    lab.sync(b)
    assert lab.record_root(a.replica.device.sign_public) is not None
    fresh = lab.restore("fresh")
    assert all_texts(fresh) == {"the honest text"}
    del lab.cloud.blocks[texts[0]]
    lab.clock.advance(8 * DAY)
    lab.sync(b)
    assert texts[0] in lab.cloud.blocks, "what is missing at the provider is sent again"


class _TwoPlaces(Lab):
    """Every device has a second provider of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.others: list[SimProvider] = []

    def channels(self, name: str) -> list[Provider]:
        self.others.append(SimProvider(SimCloud(), name="other", clock=self.clock))
        return [self.provider(name), self.others[-1]]


def test_outage_of_one_provider_delays_no_request_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_step, "ASK_AT_ONCE", 8)
    with contextlib.closing(_TwoPlaces(tmp_path)) as lab:
        a, b, m = lab.three()
        a.write("lost", "the honest text")
        lab.sync(a)
        with a.replica.reading():
            texts = [raw_cid(digest) for digest in a.replica.store.object_digests()]
        away = {cid: lab.cloud.blocks.pop(cid) for cid in texts}
        lab.sync(b)
        sign_values_without_objects(m, 40)
        lab.sync(b)
        assert not all_texts(b)
        lab.cloud.blocks.update(away)
        for other in lab.others:
            other.faults.offline = True
        for _ in range(7):
            lab.sync(b)
            lab.clock.advance(DAY + 60)
        assert all_texts(b) == {"the honest text"}
