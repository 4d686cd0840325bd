"""Heads have no total limit, because a new device joins them all at once; each read is limited (format section 8)."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ipfsmem.causal.value import Loc, dot
from ipfsmem.content.limits import OWN_LIMITS, Limits
from ipfsmem.content.reader import Reader
from ipfsmem.published import root_reader
from ipfsmem.seal.objects import MAX_OBJECT
from ipfsmem.sync import fetch, join_head
from tests.support.device_lab import Forger, Lab, all_texts, body, kinds


def test_claimed_sizes_do_not_limit_a_restore(lab: Lab) -> None:
    """Other devices receive these texts in portions; a new one receives all of them."""
    a, b, m = lab.three()
    b.write("precious", "honest")
    lab.settle(a, b, m)
    forger = Forger(m)
    assert m.replica.ring is not None
    key = m.replica.ring.view.sealing.id
    with m.replica.reading():
        n = m.replica.store.frame.ctx.get(m.replica.device.id, 0)
    for start in range(0, 540, 180):
        changes = {}
        for at in range(start, start + 180):
            n += 1
            name, text_dot = f"m/junk{at}", dot(m.replica.device.id, n)
            where = Loc(key, sha256(b"%d" % at).hexdigest(), MAX_OBJECT)
            changes[name] = {text_dot: forger.value(name, text_dot, "j", loc=where)[0]}
        forger.put(changes, ctx={m.replica.device.id: n})
        forger.publish()
        lab.sync(a)
        lab.sync(b)
    assert OWN_LIMITS.total_bytes < 540 * MAX_OBJECT
    for at in range(9):
        b.write("precious", f"honest {at}")
        lab.sync(b)
        lab.sync(a)
    d = lab.restore("d")
    assert all_texts(d) == all_texts(a) == {"honest 8"}
    assert d.restored is not None and not kinds(d.restored) & {"head-refused", "damaged"}


def test_vault_over_every_single_limit_is_restored(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small limits represent those of a huge vault here."""
    a = lab.create("a")
    for n in range(90):
        a.write(f"memory{n}", f"text {n}")
    lab.sync(a)
    monkeypatch.setattr(fetch, "WHOLE_MAX", 20_000)
    monkeypatch.setattr(join_head, "_PORTION", 7)
    monkeypatch.setattr(root_reader, "AT_ONCE", 4)
    monkeypatch.setattr(root_reader, "Reader", lambda: Reader(Limits(blocks=12, total_bytes=60_000)))
    assert all_texts(lab.restore("b")) == {f"text {n}" for n in range(90)}


def test_texts_are_requested_in_portions(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claimed size makes portions smaller but omits no text."""
    a, b, _ = lab.three()
    for n in range(6):
        a.write(f"k{n}", f"text {n}")
    lab.sync(a)
    monkeypatch.setattr(join_head, "HELD_MAX", 1_200)
    asked: list[int] = []
    whole = fetch.Fetcher.get

    async def get(self, cids):  # type: ignore[no-untyped-def]
        wanted = list(cids)
        asked.append(len(wanted))
        return await whole(self, wanted)

    monkeypatch.setattr(fetch.Fetcher, "get", get)
    lab.sync(b)
    assert asked[-3:] == [2, 2, 2]
    assert [body(b, f"k{n}") for n in range(6)] == [f"text {n}" for n in range(6)]


def test_large_tree_is_stored_in_parts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answer could have gibibytes of texts."""
    a = lab.create("a")
    for n in range(40):
        a.write(f"k{n}", f"text {n}")
    lab.sync(a)
    monkeypatch.setattr(fetch, "HELD_MAX", 4_000)
    held: list[int] = []
    keep = fetch.Fetcher.keep

    def counted(self: fetch.Fetcher) -> None:
        held.append(sum(map(len, self.fetched.values())))
        keep(self)

    monkeypatch.setattr(fetch.Fetcher, "keep", counted)
    assert all_texts(lab.restore("b")) == {f"text {n}" for n in range(40)}
    assert len([size for size in held if 4_000 < size < 8_000]) > 5
