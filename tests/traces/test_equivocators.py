"""A writer that signs two states, with missing or crowding texts, does not keep honest devices apart.

Statements of a revoked writer, or under a dropped key, are taken over entry by entry (format section 5)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from hashlib import sha256

import pytest

from ipfsmem.causal.authorship import is_own
from ipfsmem.causal.value import MAX_DOTS, Entry, Loc, dot, sign_seen
from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import StorageError
from ipfsmem.memory import Memory
from ipfsmem.sync.identity import adopt_orphans
from ipfsmem.sync.unjoined_heads import HELD_AT_ONCE, held_heads
from ipfsmem.testing.simulator import Faults
from tests.support.device_lab import (
    ROOT,
    Forger,
    Lab,
    all_texts,
    body,
    events,
    kinds,
    new_words,
    of_another,
    same,
    says,
    text_of,
)

KEY = "m/k"


class Liar(Forger):
    """A writer that returns to an earlier state and signs something else under the same counters."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        with self.replica.reading():
            self.first = self.replica.store.frame.ctx.get(self.me, 0)
        self.states = 0

    @property
    def me(self) -> str:
        return self.replica.device.id

    def segment(self, day: str = "2026-01-01") -> str:
        return f"t/{day}/{self.me}/0"

    def nowhere(self) -> Loc:
        """Return a location of an object that never existed."""
        assert self.replica.ring is not None and self.replica.ring.view.sealing is not None
        return Loc(self.replica.ring.view.sealing.id, os.urandom(32).hex(), 556)

    def state(self, name: str, *said: str, loc: Loc | None = None) -> CID:
        """Publish a state in which this writer's first counters are these texts under one name."""
        entry: Entry = {}
        blocks = []
        for n, text in enumerate(said, self.first + 1):
            under = dot(self.me, n)
            entry[under], block = self.value(name, under, text, loc=loc)
            blocks += [block] if loc is None else []
        n = self.first + len(said)
        self.states += 1
        seen = sign_seen(self.replica.device.signer, self.vault, self.me, n, f"{self.states:016x}")
        self.put({name: entry}, ctx={self.me: n}, seen={self.me: seen}, blocks=blocks)
        return self.publish()


def _show_each_another(
    lab: Lab, a: Memory, b: Memory, liar: Liar, name: str, *said: tuple[str, ...], nowhere: bool = False
) -> None:
    """B joins the first of two states, A the second; then each writes, and sees the other's state."""
    liar.state(name, *said[0], loc=liar.nowhere() if nowhere else None)
    lab.sync(b)
    liar.state(name, *said[1], loc=liar.nowhere() if nowhere else None)
    faults = lab.provider("a").faults
    faults.old_record, faults.pins = {ipns_name(b.replica.device.sign_public): 0}, []
    lab.sync(a)
    faults.old_record, faults.pins = {}, None
    a.write("of_a", "honest a")
    b.write("of_b", "honest b")
    for memory in (a, b, a, b):
        lab.sync(memory)
    assert {"honest a", "honest b"} - all_texts(a) and {"honest a", "honest b"} - all_texts(b)


def _revoke(a: Memory, member: str, *, cascade: bool = False) -> None:
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(member, cascade=cascade))
    a.lock()


def _met(lab: Lab, *memories: Memory) -> set[str]:
    """Return all texts, after checking that all devices and a new one have the same root."""
    lab.settle(*memories)
    same(*memories)
    for memory in memories:
        assert not kinds(lab.sync(memory)) & {"equivocation", "fork-joined", "orphan", "in-part", "missing"}
    fresh = lab.restore("fresh")
    assert all_texts(fresh) == all_texts(memories[0])
    return all_texts(fresh)


@pytest.mark.parametrize("many", [2, 3, MAX_DOTS])
def test_crowded_key_does_not_keep_honest_devices_apart(lab: Lab, many: int) -> None:
    """Texts over the limit of a device become alternatives."""
    a, b, m = lab.three()
    one, two = (tuple(f"---\n---\n\n{tag} {n}\n" for n in range(many)) for tag in ("one", "two"))
    _show_each_another(lab, a, b, Liar(m), KEY, one, two)
    _revoke(a, m.device)
    met = _met(lab, a, b)
    assert met == {"honest a", "honest b", *(f"{tag} {n}" for tag in ("one", "two") for n in range(many))}
    # There is room for a user's text.
    for memory in (a, b):
        memory.write("k", "settled")
    assert body(lab.restore("later"), "of_a") == "honest a"


def test_absent_segment_does_not_keep_honest_devices_apart(lab: Lab) -> None:
    """Two hashes of one segment that never existed."""
    a, b, m = lab.three()
    liar = Liar(m)
    _show_each_another(lab, a, b, liar, liar.segment(), ("one",), ("two",), nowhere=True)
    _revoke(a, m.device)
    assert "timeline/2026-01-01" in says(lab.sync(b), "fork-joined")
    assert _met(lab, a, b) == {"honest a", "honest b"}


def test_invalid_lines_do_not_keep_honest_devices_apart(lab: Lab) -> None:
    a, b, m = lab.three()
    liar = Liar(m)
    kept = '{"ts":"2026-01-01T00:00:00.000Z","type":"kept","id":"x-1"}'
    one, two = f"[1]\n{kept}\n", "\0\n[1]\n\r\n" + "{" * 600
    _show_each_another(lab, a, b, liar, liar.segment(), (one,), (two,))
    _revoke(a, m.device)
    assert _met(lab, a, b) == {"honest a", "honest b"}
    assert "kept" in events(a)


def test_overlong_line_does_not_keep_honest_devices_apart(lab: Lab) -> None:
    a, b, m = lab.three()
    liar = Liar(m)
    _show_each_another(lab, a, b, liar, liar.segment(), ("x" * 70_000 + "\n",), ("y" * 70_000 + "\n",))
    _revoke(a, m.device)
    lab.settle(a, b)
    assert all_texts(a) == all_texts(b) == {"honest a", "honest b"}
    assert a.status().root == b.status().root


def test_withheld_segment_does_not_keep_a_rolled_back_device_apart(lab: Lab) -> None:
    """Without a dishonest member."""
    a, b, c = lab.three()
    b.note("first")
    lab.settle(a, b, c)
    lab.save("b", "snap")
    lab.provider("a").faults.offline = True
    b.note("second")
    b.write("one", "honest one")
    lab.sync(b)
    lab.sync(c)
    lab.provider("a").faults.offline = False
    b = lab.put_back("b", "snap")
    own, faults = ipns_name(b.replica.device.sign_public), lab.provider("b").faults
    faults.old_record = {name: len(records) - 1 for name, records in lab.cloud.names.items()}
    faults.old_record |= {ipns_name(c.replica.device.sign_public): 0, own: len(lab.cloud.names[own]) - 2}
    faults.pins = []
    b.note("third")
    b.write("two", "honest two")
    lab.sync(b)
    faults = lab.provider("a").faults
    faults.old_record = {ipns_name(c.replica.device.sign_public): 0}
    faults.pins = [pin for pin in lab.cloud.pins if str(pin.cid) == b.status().root]
    lab.sync(a)
    hidden = {raw_cid(bytes.fromhex(sha)) for sha in _segments(a) ^ _segments(c)}
    assert hidden
    for name in "abc":
        lab.provider(name).faults = Faults()
        lab.provider(name).faults.drop = hidden
    a.write("of_a", "honest a")
    c.write("of_c", "honest c")
    for _ in range(3):
        lab.clock.advance(4_000_000)
        for memory in (a, b, c):
            lab.sync(memory)
    assert _met(lab, a, b, c) == {"honest a", "honest c", "honest one", "honest two"}
    assert events(a) == ["first", "second", "third"]


def _segments(memory: Memory) -> set[str]:
    with memory.replica.reading():
        found = [value for _, entry in memory.replica.store.segments("") for value in entry.values()]
    return {value.loc.sha for value in found if value.loc is not None}


@pytest.mark.parametrize("crowd", [False, True])
def test_entry_that_cannot_be_taken_over_blocks_no_other(lab: Lab, crowd: bool) -> None:
    a, b, m = lab.three()
    made, words = new_words(a)
    lab.settle(a, b, m)
    h, p = lab.restore("h", unlock=words), lab.restore("p", unlock=words)
    h.write("of_h", "honest text of h")
    h.note("by_h")
    lab.sync(h)
    lab.settle(a, b, h)
    lab.sync(p)
    puppet = Liar(p)
    if crowd:
        for n in range(MAX_DOTS):
            a.bundles.import_(
                f'{{"version":"memory/0.1","index":"","files":{{"k.md":"of a {n}"}},"timeline":[]}}'
            )
        puppet.state(KEY, "---\n---\n\ntoo many")
    else:
        puppet.state(puppet.segment(), "", loc=puppet.nowhere())
    lab.sync(a)
    lab.sync(b)
    _revoke(a, made.id, cascade=True)
    met = _met(lab, a, b)
    assert "honest text of h" in met and "by_h" in events(a)
    if crowd:
        assert "too many" in met


def test_missing_segment_is_requested_and_awaited_before_it_is_left_out(lab: Lab) -> None:
    a, b, m = lab.three()
    made, words = new_words(a)
    lab.settle(a, b, m)
    h = lab.restore("h", unlock=words)
    before = _segments(h)
    h.write("of_h", "honest text of h")
    h.note("by_h")
    lab.sync(h)
    for memory, name in ((a, "a"), (b, "b")):
        lab.provider(name).faults.drop = {raw_cid(bytes.fromhex(sha)) for sha in _segments(h) - before}
        lab.sync(memory)
        assert not events(memory)
    with contextlib.suppress(RuntimeError), a.replica.transaction():
        (segment,) = [name for name in a.replica.store.names() if name.startswith("t/")]
        adopt_orphans(a.replica, {h.device}, unsure=True)
        assert not any(dot.startswith(h.device) for dot in a.replica.store.entry("m/of_h"))
        assert a.replica.store.entry(segment) and h.device in a.replica.store.frame.ctx
        raise RuntimeError("nothing of this is kept")
    _revoke(a, made.id, cascade=True)
    for name in "ab":
        lab.provider(name).faults.drop = set()
    assert "honest text of h" in _met(lab, a, b) and events(a) == ["by_h"]


def test_held_heads_have_a_bound_and_one_notice(lab: Lab) -> None:
    """One writer signs thirty states under one number; none remains after its revoke."""
    a, b, m = lab.three()
    liar = Liar(m)
    for n in range(30):
        liar.state(KEY, f"---\n---\n\nversion {n}")
    for _ in range(3):
        report = lab.sync(b)
        said = [notice for notice in report.notices if notice.kind == "equivocation"]
        assert len(said) <= 2 and len(held_heads(b.replica)) <= HELD_AT_ONCE
        lab.clock.advance(3_700_000)
    assert held_heads(b.replica)
    b.write("of_b", "honest b")
    _revoke(a, m.device)
    for memory in (b, a, b, a):
        lab.sync(memory)
    assert not held_heads(a.replica) and not held_heads(b.replica)
    assert "honest b" in _met(lab, a, b)
    b.write("k", "there is room")


def test_alternative_keeps_its_author(lab: Lab) -> None:
    """Format 5; also if another member wrote the same text."""
    a, b, m = lab.three()
    of_another(a, b)
    lab.settle(a, b, m)
    one, two = (tuple(f"---\n---\n\n{tag} {n}\n" for n in range(MAX_DOTS)) for tag in ("one", "two"))
    with writing(b.replica) as change:
        for n, text in enumerate((*one, *two)):
            change.put(f"m/of_b_{n}", text.encode(), ())
    lab.settle(a, b, m)
    _show_each_another(lab, a, b, Liar(m), KEY, one, two)
    _revoke(a, m.device)
    lab.sync(a)
    with a.replica.reading():
        mine = a.replica.is_mine
        own = {
            value.body
            for _, entry in a.replica.store.memories("")
            for under, value in entry.items()
            if is_own(under, value.author, mine)
        }
    assert {sha256(text.encode()).hexdigest() for text in (*one, *two)} <= own


def test_failing_disk_during_a_takeover_omits_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sync fails completely instead."""
    a, b, m = lab.three()
    one, two = (tuple(f"---\n---\n\n{tag} {n}\n" for n in range(MAX_DOTS)) for tag in ("one", "two"))
    _show_each_another(lab, a, b, Liar(m), KEY, one, two)
    _revoke(a, m.device)

    def full(*args: object, **more: object) -> str:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Writing, "write_alternative", full)
        with pytest.raises(StorageError):
            lab.settle(a, b)
    met = _met(lab, a, b)
    assert {text_of(text.encode()) for text in (*one, *two)} <= met
