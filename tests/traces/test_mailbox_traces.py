"""Traces of mailbox entries, by the numbers of the sharing design: 1 to 9, 14, 16, 17 and 19, as far as
pure rules decide them."""

from __future__ import annotations

from typing import Any

import msgspec

from ipfsmem.causal.clock import ZERO
from ipfsmem.causal.mailbox_admission import WRITER, Admitting, AgentRights
from ipfsmem.causal.mailbox_entry import EntryName, StoredEntry, names_to_read, ops_of
from ipfsmem.causal.mailbox_markers import read_marks
from ipfsmem.causal.mailbox_view import entry_with_ops, replacing_op
from ipfsmem.causal.state import State
from ipfsmem.causal.value import Entry
from ipfsmem.causal.view import view_entry
from tests.support.causal_lab import deleted, join, written
from tests.support.mailbox_state import AdmittedOps, admit
from tests.unit.causal.make_mailbox_vectors import (
    AGENT,
    DEV,
    NOW,
    OTHER,
    E,
    hashed,
    later,
    live,
    stored,
    text,
    value,
)

MAY = {AGENT: AgentRights(role=WRITER)}
REVOKED = {AGENT: AgentRights(role=WRITER, revoked=True)}
TEXTS: dict[str, bytes] = {}


def _admitted(state: State, *entries: StoredEntry, **more: Any) -> AdmittedOps:
    given = {"dev": DEV, "now_ms": NOW, "mine": lambda dev: True, "rights": MAY, **more}
    marks = read_marks(state.entries, lambda name, value: TEXTS.get(value.body or ""), lambda dev: True)
    done = admit(state, entries, marks, Admitting(**given), TEXTS)
    TEXTS.update(done.texts)
    return done


def _texts(state: State, name: str = E) -> set[str | None]:
    return {one.body for one in state.entries.get(name, {}).values()}


def _start(n: int) -> str:
    return f"{n:032x}"


def test_sharing_trace_01_thousand_starts_add_no_id() -> None:
    """1,000 starts of one agent key: enrolled ones fill the ring at 61. -> entries, admitted under one device."""
    starts = [stored(live(f"text {n}", n, e=f"m/k{n}"), start=_start(n)) for n in range(1000)]
    state = _admitted(State(), *starts).state
    assert set(state.ctx) == {DEV}
    assert all(_texts(state, f"m/k{n}") == {hashed(f"text {n}")} for n in range(1000))


def test_sharing_trace_02_two_containers_write_one_key() -> None:
    """Two containers write one key: the later replaced the earlier. -> siblings."""
    state = _admitted(State(), stored(live("a")), stored(live("b", 2), start=_start(2))).state
    assert _texts(state) == {hashed("a"), hashed("b")}


def test_sharing_trace_03_snapshot_resumes_twice() -> None:
    """A VM resumes twice: same start, same number. -> identity by content."""
    first = stored(live("before"))
    op = next(ops_of(first)).as_seen()
    twins = [stored(live(said, 2 + n, sees=(op,)), last=first) for n, said in enumerate(("left", "right"))]
    assert twins[0].entry.i == twins[1].entry.i
    assert _texts(_admitted(State(), first, *twins).state) == {hashed("left"), hashed("right")}


def test_sharing_trace_04_two_devices_admit_at_once() -> None:
    """Two devices admit one entry at once: the text stands there twice. -> one text in the view, one marker each."""
    one = stored(live("one"))
    left, right = _admitted(State(), one).state, _admitted(State(), one, dev=OTHER).state
    both = join(left, right).state
    assert len(both.entries[E]) == 2
    view = view_entry("tone", both.entries[E], TEXTS.get, lambda base: None)
    assert (view.data, view.conflicts, view.merged) == (text("one").encode(), (), False)
    assert not _admitted(both, one).changed


def test_sharing_trace_05_later_entry_arrives_first() -> None:
    """The entry that replaces a text arrives before the one that wrote it: the old text revives. -> marks of ops seen."""
    old = stored(live("old"))
    new = stored(live("new", 2, sees=(next(ops_of(old)).as_seen(),)), start=_start(2))
    state = _admitted(State(), new).state
    assert _texts(_admitted(state, old).state) == {hashed("new")}


def test_sharing_trace_06_old_text_is_brought_back() -> None:
    """An agent writes an earlier text again, which looks like a repeat. -> the clock distinguishes both."""
    old = stored(live("old"))
    new = stored(live("new", 2, sees=(next(ops_of(old)).as_seen(),)), start=_start(2))
    state = _admitted(State(), old, new).state
    back = replacing_op(
        E,
        entry_with_ops(state.entries[E], [], lambda dev: True),
        list(state.entries[E]),
        text("old"),
        later(9),
    )
    assert _texts(_admitted(state, stored(back, start=_start(3))).state) == {hashed("old")}


def test_sharing_trace_07_replayed_entry_of_a_deleted_text() -> None:
    """A provider shows an entry again whose text a person deleted: it returns. -> markers outlive the entry."""
    one = stored(live("one"))
    state = _admitted(State(), one).state
    gone = deleted(state, E, list(state.entries[E]))
    assert E not in _admitted(gone, one).state.entries
    assert E not in _admitted(gone, one, dev=OTHER).state.entries


def test_sharing_trace_08_five_writers_of_one_key() -> None:
    """Five containers write one key, one device admits: the fifth is refused. -> another key, and a dot
    reserved for its person."""
    entries = [stored(live(f"text {n}", n), start=_start(n)) for n in range(5)]
    state = _admitted(State(), *entries).state
    everywhere = {one.body for entry in state.entries.values() for one in entry.values()}
    assert {hashed(f"text {n}") for n in range(5)} <= everywhere
    assert len(state.entries[E]) == 3
    mine, _ = written(state, E, (), DEV, value("mine", 9))
    assert hashed("mine") in _texts(mine)


def test_sharing_trace_09_clock_of_2090_does_not_win() -> None:
    """A container's clock says 2090: its text is shown for ever. -> it waits; accepted, it is an alternative without a clock."""
    ahead = msgspec.structs.replace(live("ahead"), h=later(0, 64 * 365 * 24 * 3_600_000))
    entries = [stored(ahead), stored(live("now", 5), start=_start(2))]
    done = _admitted(State(), *entries)
    assert _texts(done.state) == {hashed("now")} and [one.reason for one in done.waiting] == [
        "its clock is ahead"
    ]
    state = _admitted(done.state, *entries, accepted=frozenset([done.waiting[0].op.mark])).state
    assert {one.h[:12] for one in state.entries[E].values()} == {ZERO[:12], later(5)[:12]}
    view = view_entry("tone", state.entries[E], TEXTS.get, lambda base: None)
    assert view.body == hashed("now") and len(view.conflicts) == 1


def test_sharing_trace_14_agent_writes_its_own_card() -> None:
    """An agent writes the card with its rights: it may do more. -> protected scopes, also when a person accepts."""
    entry = stored(live("more", e=f"m/agents/agent-{AGENT}"))
    done = _admitted(State(), entry, accepted=frozenset([next(ops_of(entry)).mark]))
    assert not done.changed and len(done.waiting) == 1


def test_sharing_trace_16_entry_sent_after_the_revoke_is_listed() -> None:
    """An entry arrives after its key was revoked: admitted. -> listed, and a person decides."""
    late = stored(live("late"))
    done = _admitted(State(), late, rights=REVOKED)
    assert not done.changed and [one.reason for one in done.waiting] == ["its agent key is not a member"]
    mark = done.waiting[0].op.mark
    assert _texts(_admitted(State(), late, rights=REVOKED, accepted=frozenset([mark])).state) == {
        hashed("late")
    }


def test_sharing_trace_17_entry_before_the_revoke_stays() -> None:
    """An entry is admitted and its key is revoked then: the text is lost. -> it is a value of the device."""
    one = stored(live("early"))
    state = _admitted(State(), one).state
    after = _admitted(state, one, rights=REVOKED)
    assert _texts(after.state) == {hashed("early")} and not after.waiting


def test_sharing_trace_19_start_with_many_writes_is_read_by_one_entry() -> None:
    """No device for a month: a reader fetches thousands of entries. -> the newest of a start repeats the others."""
    last: StoredEntry | None = None
    entries: list[StoredEntry] = []
    for n in range(60):
        last = stored(live(f"text {n}", n, e=f"m/k{n}"), last=last)
        entries.append(last)
    names = [EntryName(AGENT, one.entry.start, one.entry.i, one.sha) for one in entries]
    by_sha = {one.sha: one for one in entries}
    read: list[StoredEntry] = []
    while left := names_to_read(names, read):
        read.append(by_sha[left[0].sha])
    assert len(read) == 1
    full: Entry = _admitted(State(), *read).state.entries
    assert all(_texts(State({}, full), f"m/k{n}") == {hashed(f"text {n}")} for n in range(60))
