"""Mailbox entries, their admission and the reader's view: the vectors, and attacks by a single entry."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from ipfsmem import canonical
from ipfsmem.causal.authorship import is_own
from ipfsmem.causal.clock import ZERO, hlc
from ipfsmem.causal.mailbox_admission import (
    APPEND,
    WRITER,
    Admitting,
    AgentRights,
    pending_ops,
    superseded_marks,
)
from ipfsmem.causal.mailbox_entry import (
    CUMULATIVE,
    MAX_OPS,
    MAX_PART,
    MAX_SEES,
    AgentOp,
    EntryName,
    SeenOp,
    StoredEntry,
    names_to_read,
    open_entry,
    ops_of,
    parse_entry_name,
    parse_mailbox_entry,
    sign_entry,
    start_id,
    with_repeats,
)
from ipfsmem.causal.mailbox_markers import (
    FULL,
    FULL_TOKENS,
    KEPT_WEEKS,
    WEEK_MS,
    MarkerName,
    Marks,
    entry_token,
    marker_name,
    marker_writes,
    read_marks,
    stale_markers,
)
from ipfsmem.causal.mailbox_view import by_entry, entry_with_ops, op_clock, pending_events, replacing_op
from ipfsmem.causal.state import State
from ipfsmem.causal.value import LIVE, MAX_VALUES, Entry, Loc, Value, hash32
from ipfsmem.causal.view import own_view, view_entry
from ipfsmem.errors import FormatError, LimitError, OpenError, SignatureError, UsageError
from ipfsmem.provider.small_objects import LISTED_MAX, small_box
from ipfsmem.seal.objects import MAILBOX_ENTRY, Sealer, epoch_key
from ipfsmem.seal.primitives import Signer25519
from tests.support.causal_lab import deleted
from tests.support.mailbox_state import AdmittedOps, admit
from tests.unit.causal.make_mailbox_vectors import (
    AGENT,
    ANCHOR,
    DEV,
    NOW,
    OTHER,
    SEALER,
    SIGNER,
    START,
    VAULT,
    VECTORS,
    Case,
    E,
    admitted,
    entry,
    event,
    hashed,
    later,
    lines,
    live,
    marker,
    put,
    stored,
    text,
    value,
    vectors,
)

FILE: dict[str, Any] = json.loads((VECTORS / "mailbox.json").read_text("utf-8"))
#: The texts that each reading shows.
SHOWN = {
    "an op is a sibling": {"old", "one"},
    "an op hides what it replaces": {"two"},
    "an op that waits is not shown": {"old", "one"},
    "an op whose clock is ahead is not shown": {"old", "one"},
    "an op of another person's agent is not shown": {"old"},
    "a copy by another person hides no op": {"old", "one"},
    "a replayed entry is done": {"old"},
    "a replayed op is done": {"old"},
    "markers are united": {"old"},
    "a marker of another person's device is ignored": {"old", "one"},
    "an agent that is another person replaces its own ops": {"two"},
}
MAY = {AGENT: AgentRights(role=WRITER)}


def _not_other(dev: str) -> bool:
    """Every id but one is of the reader's person."""
    return dev != OTHER


def _marks(state: State, texts: dict[str, bytes]) -> Marks:
    return read_marks(state.entries, lambda name, value: texts.get(value.body or ""), _not_other)


def _admit(
    state: State,
    *entries: StoredEntry,
    texts: dict[str, bytes] | None = None,
    refused: tuple[str, ...] = (),
    **more: Any,
) -> AdmittedOps:
    known = {} if texts is None else texts
    by = Admitting(**{"dev": DEV, "now_ms": NOW, "mine": _not_other, "rights": MAY, **more})
    done = admit(state, entries, _marks(state, known), by, known, refused)
    known.update(done.texts)
    return done


def test_mailbox_vectors_equal_the_generated_ones() -> None:
    assert vectors() == FILE


@pytest.mark.parametrize("row", FILE["entries"], ids=lambda row: row["about"])
def test_mailbox_entry_of_a_vector_opens(row: dict[str, Any]) -> None:
    name = parse_entry_name(row["name"])
    data = canonical.unb64(row["stored"], "stored")
    opened = open_entry(name, data, [SEALER], SIGNER.public, VAULT)
    assert canonical.encode(opened.entry).decode() == row["json"]
    assert [each.mark for each in ops_of(opened)] == row["marks"]
    assert [each.id for each in ops_of(opened)] == row["ids"]
    assert start_id(opened.entry.agent, opened.entry.start) == row["start_id"]
    assert (small_box(ANCHOR, AGENT), entry_token(opened.sha)) == (row["box"], row["done"])


@pytest.mark.parametrize("row", FILE["readings"], ids=lambda row: row["about"])
def test_reading_of_a_vector_is_as_listed(row: dict[str, Any]) -> None:
    entries = [
        open_entry(parse_entry_name(name), canonical.unb64(data, "stored"), [SEALER], SIGNER.public, VAULT)
        for name, data in zip(row["names"], row["stored"], strict=True)
    ]
    state = msgspec.convert(row["state"], dict[str, Entry])
    texts = {body: said.encode() for body, said in row["texts"].items()}
    mine = row["mine"].__contains__
    rights = {agent: AgentRights(role=row["role"]) for agent in row["agents"]}
    marks = read_marks(state, lambda name, value: texts.get(value.body or ""), mine)
    ready = pending_ops(reversed(entries), marks, rights, NOW, mine).ready
    shown = entry_with_ops(state[E], ready, mine).entry
    said = {"old": hashed("old"), "one": hashed("one"), "two": hashed("two")}
    bodies = {name for name, body in said.items() if any(v.body == body for v in shown.values())}
    assert shown == msgspec.convert(row["shown"], Entry)
    assert bodies == SHOWN[row["about"]]


@pytest.mark.parametrize("row", FILE["refused"], ids=lambda row: row["about"])
def test_malformed_entry_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        parse_mailbox_entry(row["json"].encode())


@pytest.mark.parametrize("row", FILE["admissions"], ids=lambda row: row["about"])
def test_admission_of_a_vector_is_as_listed(row: dict[str, Any]) -> None:
    entries = [
        open_entry(parse_entry_name(name), canonical.unb64(data, "stored"), [SEALER], SIGNER.public, VAULT)
        for name, data in zip(row["names"], row["stored"], strict=True)
    ]
    rights = row["rights"]
    case = Case(
        about=row["about"],
        state=State(row["ctx"], msgspec.convert(row["state"], dict[str, Entry])),
        entries=list(reversed(entries)),
        rights=AgentRights(
            role=rights["role"],
            scopes=None if rights["scopes"] is None else frozenset(rights["scopes"]),
            until_ms=rights["until_ms"],
            revoked=rights["revoked"],
        ),
        mine=tuple(row["mine"]),
        texts={body: said.encode() for body, said in row["texts"].items()},
        accepted=tuple(row["accepted"]),
        refused=tuple(row["refused"]),
    )
    assert admitted(case) == row["result"]


def test_entry_with_wrong_bytes_name_signer_vault_or_key_is_refused() -> None:
    made = entry(live("one"))
    data = put(made)
    name = parse_entry_name(f"{AGENT}.{made.start}.0.{stored(live('one')).sha}")
    other = Sealer(epoch_key(2, bytes(range(32)), VAULT), VAULT)
    with pytest.raises(FormatError):
        open_entry(name, data[:-1] + b"x", [SEALER], SIGNER.public, VAULT)
    with pytest.raises(OpenError):
        open_entry(name._replace(i=1), data, [SEALER], SIGNER.public, VAULT)
    with pytest.raises(OpenError):
        open_entry(name._replace(agent=OTHER), data, [SEALER], SIGNER.public, VAULT)
    with pytest.raises(OpenError):
        open_entry(name, data, [other], SIGNER.public, VAULT)
    with pytest.raises(SignatureError):
        open_entry(name, data, [SEALER], Signer25519(bytes([2]) * 32).public, VAULT)
    with pytest.raises(FormatError):
        open_entry(name, data, [SEALER], SIGNER.public, bytes(16))


@pytest.mark.parametrize("field", ["agent", "start", "i", "ek"])
def test_entry_sealed_for_another_place_is_refused(field: str) -> None:
    made = entry(live("one"))
    false: dict[str, Any] = {"agent": OTHER, "start": "1e" * 16, "ek": "1e" * 8}
    wrong = (
        msgspec.structs.replace(made, i=1)
        if field == "i"
        else msgspec.structs.replace(made, **{field: false[field]})
    )
    data = SEALER.seal(MAILBOX_ENTRY, f"{AGENT}/{made.start}/0", sign_entry(SIGNER, wrong))
    name = parse_entry_name(f"{AGENT}.{made.start}.0.{sha256(data).hexdigest()}")
    with pytest.raises(FormatError, match="than"):
        open_entry(name, data, [SEALER], SIGNER.public, VAULT)


@pytest.mark.parametrize(
    "name", ["", "0f.0.ab", f"{AGENT}.{START}.00.{'ab' * 32}", f"{AGENT}.{START}.10000000000.{'ab' * 32}"]
)
def test_malformed_name_of_an_entry_is_refused(name: str) -> None:
    with pytest.raises(FormatError):
        parse_entry_name(name)


def test_deeply_nested_or_too_long_entry_is_refused() -> None:
    with pytest.raises(FormatError, match="nested"):
        parse_mailbox_entry(b'{"agent":' + b"[" * 100_000)
    with pytest.raises(LimitError):
        parse_mailbox_entry(b" " * 1_040_000)
    with pytest.raises(LimitError):
        sign_entry(SIGNER, entry(*(live(str(n), n) for n in range(MAX_OPS + 1))))
    with pytest.raises(FormatError):
        sign_entry(SIGNER, entry(live("\ud800", text="\ud800")))


def test_session_line_nested_too_deep_is_refused() -> None:
    part = lines((1, 0, "x"))
    deep = (part.text or "").replace('{"at"', '{"x":' + "[" * 600 + "]" * 600 + ',"at"')
    with pytest.raises(FormatError, match="line"):
        sign_entry(SIGNER, entry(msgspec.structs.replace(part, text=deep)))


def test_session_line_with_half_of_a_surrogate_pair_is_accepted() -> None:
    line = r'{"at":1,"item":{"content":"\ud83d"}}'
    part = (lines((1, 0, "x")).text or "").partition("{")[0] + line + "\n"
    done = _admit(State(), stored(msgspec.structs.replace(lines((1, 0, "x")), text=part)))
    assert line.encode() in b"".join(done.texts.values())


def test_newest_entry_repeats_the_ops_of_its_start_up_to_64_kib() -> None:
    first = stored(live("one"))
    second = stored(live("two", 2), last=first)
    assert [each.op for each in ops_of(second)] == [live("one"), live("two", 2)]
    assert second.entry.repeats == (first.sha,)
    long = stored(live("x" * CUMULATIVE, 3), last=second)
    assert len(long.entry.ops) == 1
    twin = stored(live("other", 2), last=first)
    names = [
        parse_entry_name(f"{AGENT}.{each.entry.start}.{each.entry.i}.{each.sha}")
        for each in (first, second, twin)
    ]
    assert names_to_read(names, [])[0].i == 1
    assert names_to_read(names, [second]) == [names[2]]
    assert names_to_read(names, [second, twin]) == []
    assert len(with_repeats(first, [live("two", 2)])[0]) == 2


def test_op_of_another_entry_is_not_superseded() -> None:
    secret = stored(live("secret"))
    op = next(ops_of(secret))
    thief = stored(live("mine", 2, e="m/other", sees=(op.as_seen(),)), start="1e" * 16)
    texts: dict[str, bytes] = {}
    first = _admit(State(), thief, texts=texts)
    done = _admit(first.state, secret, texts=texts)
    assert [v.body for v in done.state.entries[E].values()] == [hashed("secret")]


def test_replayed_entry_does_not_return_a_deleted_text() -> None:
    one, texts = stored(live("one")), dict[str, bytes]()
    done = _admit(State(), one, texts=texts)
    without = State(done.state.ctx, {name: e for name, e in done.state.entries.items() if name != E})
    assert _admit(without, one, texts=texts).state == without


def test_broken_entry_name_is_not_returned_again() -> None:
    bad, good = EntryName(AGENT, "0" * 32, 9, "1" * 64), EntryName(AGENT, "1" * 32, 0, "2" * 64)
    assert names_to_read([good, bad], [])[0] == bad
    assert names_to_read([good, bad], [], [bad]) == [good]


def test_part_of_maximum_size_is_admitted() -> None:
    small = lines((5, 1, "")).text or ""
    op = lines((5, 1, "x" * (MAX_PART - len(small))))
    assert len(op.text or "") == MAX_PART
    assert op.e in _admit(State(), stored(op)).state.entries
    with pytest.raises(FormatError, match="at most"):
        sign_entry(SIGNER, entry(lines((5, 1, "x" * (MAX_PART - len(small) + 1)))))


def test_part_is_replaced_by_a_longer_one_and_others_lines_stay() -> None:
    texts: dict[str, bytes] = {}
    short, long = lines((5, 1, "a")), lines((5, 1, "a"), (6, 2, "b"), h=later(2))
    twin = stored(lines((5, 7, "c"), h=later(3)))
    first = _admit(State(), stored(short), texts=texts)
    op = replacing_op(
        short.e,
        entry_with_ops(first.state.entries[short.e], [], _not_other),
        [f"{DEV}-1"],
        long.text,
        later(2),
    )
    done = _admit(first.state, stored(op), twin, texts=texts)
    held = b"".join(texts[v.body or ""] for v in done.state.entries[short.e].values())
    assert sorted(line[-4:-3] for line in held.split(b"\n") if b'"at"' in line) == [b"a", b"b", b"c"]


def test_start_of_another_agent_has_another_id() -> None:
    assert start_id(AGENT, START) != start_id(OTHER, START) != start_id(OTHER, "1e" * 16)


def test_member_that_copies_an_op_and_deletes_it_loses_nothing() -> None:
    texts = {hashed("one"): text("one").encode()}
    one = stored(live("one"))
    done = _admit(State({OTHER: 1}, {E: {f"{OTHER}-1": value("one", 1)}}), one, texts=texts)
    gone = deleted(done.state, E, [f"{OTHER}-1"])
    shown = own_view("tone", gone.entries[E], lambda dot, of: is_own(dot, of, _not_other), texts.get, {}.get)
    assert shown.data == text("one").encode()
    assert not _admit(gone, one, texts=texts).changed


def test_tokens_written_by_a_member_are_never_signed_by_the_device() -> None:
    victim, texts = stored(live("victim"), start="2e" * 16), dict[str, bytes]()
    name = MarkerName(DEV, NOW // WEEK_MS, 0).entry
    state = State({OTHER: 1}, {name: marker(OTHER, entry_token(victim.sha), texts=texts)})
    done = _admit(state, stored(live("x", e="m/x")), texts=texts)
    assert E in _admit(done.state, victim, texts=texts).state.entries


def test_full_markers_of_a_member_do_not_push_away_those_of_the_device() -> None:
    texts: dict[str, bytes] = {}
    tokens = [f"{n:032x}" for n in range(FULL_TOKENS)]
    names = [MarkerName(DEV, NOW // WEEK_MS, i).entry for i in range(20)]
    entries = {
        name: {f"{OTHER}-{i + 1}": v}
        for i, name in enumerate(names)
        for v in marker(OTHER, *tokens, texts=texts).values()
    }
    done = _admit(State({OTHER: 20}, entries), stored(live("one")), texts=texts)
    assert set(done.changed) == {E, names[0]}


def test_marks_are_split_by_size_and_only_the_last_marker_grows() -> None:
    texts: dict[str, bytes] = {}
    state = State()
    for n in range(5):
        sees = tuple(SeenOp(AGENT, f"{n * 1000 + i:064x}", later(0), "") for i in range(MAX_SEES))
        ops = [live("x", n, e=f"m/k{k}", sees=sees) for k in range(2)]
        state = _admit(state, stored(*ops, start=f"{n:032x}"), texts=texts).state
    names = [found for name in state.entries if (found := marker_name(name))]
    assert {found.i for found in names} == {0, 1, 2}
    assert all(len(texts[v.body or ""]) <= FULL for f in names for v in state.entries[f.entry].values())
    assert len(_marks(state, texts).tokens) == 5 * (2 * MAX_SEES + 2 + 1)


def test_stale_markers_are_those_before_the_last_weeks_with_any() -> None:
    def name(week: int, dev: str = DEV) -> str:
        return MarkerName(dev, week, 0).entry

    week = NOW // WEEK_MS
    kept = [name(week + n) for n in range(KEPT_WEEKS)]
    assert stale_markers([name(week - 1), *kept, name(1, OTHER), E], DEV) == [name(week - 1)]
    # A clock that was a year ahead once removes nothing.
    assert stale_markers([name(week), name(week + 52)], DEV) == []


def test_marker_that_is_given_up_is_not_extended() -> None:
    name = MarkerName(DEV, 5, 0).entry
    lost: Entry = {f"{DEV}-1": Value(b=(), body="ab" * 32, h=ZERO, kind=LIVE)}
    entries: dict[str, Entry] = {name: lost}
    (made,) = marker_writes(["ab" * 16], DEV, 5, lambda one: entries.get(one, {}), lambda one, v: None)
    assert made.name == MarkerName(DEV, 5, 1).entry


def test_admission_with_an_unfetched_marker_is_refused() -> None:
    texts: dict[str, bytes] = {}
    done = _admit(State(), stored(live("one")), texts=texts)
    name = next(name for name in done.changed if marker_name(name))
    (held,) = done.state.entries[name].values()
    missing = _marks(done.state, {})
    assert missing == Marks(frozenset(), ((name, held.body or ""),))
    assert read_marks(done.state.entries, lambda one, v: None, _not_other, [held.body or ""]) == Marks()
    with pytest.raises(UsageError, match="not fetched"):
        admit(done.state, [], missing, Admitting(dev=DEV, now_ms=NOW, mine=_not_other, rights=MAY), {})


def test_pending_op_is_accepted_or_discarded_by_a_person() -> None:
    one, two = stored(live("one")), stored(live("two", 2, e="m/x"), start="1e" * 16)
    protected = stored(live("bad", 3, e="m/agents/agent-1"), start="2e" * 16)
    marks = {next(ops_of(each)).op.text: next(ops_of(each)).mark for each in (one, two, protected)}
    texts: dict[str, bytes] = {}
    done = _admit(
        State(),
        one,
        two,
        protected,
        texts=texts,
        rights={AGENT: AgentRights(role=WRITER, revoked=True)},
        accepted=frozenset([marks[text("one")], marks[text("bad")]]),
        discarded=frozenset([marks[text("two")]]),
    )
    assert E in done.state.entries and "m/x" not in done.state.entries
    assert [each.op.mark for each in done.waiting] == [marks[text("bad")]]
    read = _marks(done.state, texts)
    assert read.has_entry(two.sha) and not read.has_entry(protected.sha)


def test_later_entry_cannot_change_what_a_person_accepted() -> None:
    rights = {AGENT: AgentRights(role=WRITER, scopes=frozenset({"web"}))}
    shown = stored(live("harmless"))
    (waiting,) = _admit(State(), shown, rights=rights).waiting
    second = stored(live("evil"), live("x", 2, e="m/web/x"), last=shown)
    for order in ((shown, second), (second, shown)):
        done = _admit(State(), *order, rights=rights, accepted=frozenset([waiting.op.mark]))
        assert {v.body for v in done.state.entries[E].values()} == {hashed("harmless")}


def test_false_claim_to_repeat_marks_no_entry_of_another_process() -> None:
    rights, texts = {AGENT: AgentRights(role=APPEND)}, dict[str, bytes]()
    victim = stored(live("one"))
    made = msgspec.structs.replace(entry(live("y", 2, e="m/y")), i=1, repeats=(victim.sha,))
    thief = StoredEntry(made, sha256(put(made)).hexdigest())
    first = _admit(State(), thief, rights=rights, texts=texts)
    assert not _marks(first.state, texts).has_entry(victim.sha)
    assert E in _admit(first.state, victim, rights=rights, texts=texts).state.entries
    name = EntryName(AGENT, START, 0, victim.sha)
    assert names_to_read([name], [thief]) == []
    assert names_to_read([name], [thief], repeated=True) == [name]


def test_blind_dots_remove_nothing() -> None:
    guessed = tuple(sorted((f"{DEV}-{n}", later(0)) for n in range(1, 50)))
    held = {f"{DEV}-7": value("written later", 100), f"{DEV}-8": value("old", 0)}
    op = stored(live("evil", dots=guessed))
    done = _admit(State({DEV: 8}, {E: held}), op)
    assert {v.body for v in done.state.entries[E].values()} == {hashed("written later"), hashed("evil")}
    shown = entry_with_ops(held, pending_ops([op], Marks(), MAY, NOW, _not_other).ready, _not_other)
    assert {v.body for v in shown.entry.values()} == {hashed("written later"), hashed("evil")}


def test_text_of_a_device_with_a_fast_clock_is_replaced() -> None:
    held: Entry = {f"{DEV}-1": value("old", 0, h=later(0, 3_600_000))}
    clock = op_clock(held, later(0), NOW, 5)
    op = replacing_op(E, entry_with_ops(held, [], _not_other), [f"{DEV}-1"], text("new"), clock)
    done = _admit(State({DEV: 1}, {E: held}), stored(op))
    assert not done.waiting and {v.body for v in done.state.entries[E].values()} == {hashed("new")}


@pytest.mark.parametrize("h", ["f" * 16, later(0, 3_600_000)])
def test_op_clock_stays_near_now_whatever_was_seen(h: str) -> None:
    clock = op_clock({f"{DEV}-1": value("x", 0, h=h)}, ZERO, NOW, 5)
    assert later(0) < clock < later(0, 5 * 60_000 + 1)
    assert clock < op_clock({}, clock, NOW, 9)


@pytest.mark.parametrize(("now", "clock"), [(-5, hlc(0, 9)), (0, hlc(0, 9)), (2**50, hlc(2**48 - 1, 9))])
def test_op_clock_of_a_clock_out_of_range_is_at_its_end(now: int, clock: str) -> None:
    assert op_clock({}, ZERO, now, 9) == clock


def test_reader_is_shown_no_op_whose_clock_is_ahead_until_it_comes() -> None:
    ahead = stored(live("ahead", h=later(0, 3_600_000)))
    waits = pending_ops([ahead], Marks(), MAY, NOW, _not_other)
    assert not waits.ready and [each.reason for each in waits.waiting] == ["its clock is ahead"]
    assert pending_ops([ahead], Marks(), MAY, NOW + 3_600_000, _not_other).ready
    done = _admit(State(), ahead, now_ms=NOW + 3_600_000)
    assert {v.body for v in done.state.entries[E].values()} == {hashed("ahead")}


def test_many_dots_and_ops_of_others_do_not_stop_a_writer() -> None:
    ops = [
        stored(
            live(
                f"bad {k}", k, dots=tuple(sorted((f"{OTHER}-{k * 1000 + n}", later(0)) for n in range(600)))
            ),
            start=f"{k:032x}",
        )
        for k in (1, 2)
    ]
    shown = entry_with_ops({}, pending_ops(ops, Marks(), MAY, NOW, _not_other).ready, _not_other)
    op = replacing_op(E, shown, list(shown.entry), text("mine"), op_clock(shown.entry, ZERO, NOW, 5))
    assert len(op.dots) == MAX_VALUES
    done = _admit(State(), *ops, stored(op))
    assert {v.body for v in done.state.entries[E].values()} == {hashed("mine")}


def test_ops_shown_directly_come_before_those_that_they_replaced() -> None:
    stuffed = tuple(sorted(SeenOp(AGENT, f"{n:064x}", "f" * 16, "") for n in range(MAX_SEES)))
    bad = stored(live("bad", sees=stuffed))
    shown = entry_with_ops({}, pending_ops([bad], Marks(), MAY, NOW, _not_other).ready, _not_other)
    op = replacing_op(E, shown, list(shown.entry), text("good"), later(9))
    assert len(op.sees) == MAX_SEES and next(ops_of(bad)).as_seen() in op.sees
    for order in ([bad, stored(op)], [stored(op), bad]):
        assert {v.body for v in _admit(State(), *order).state.entries[E].values()} == {hashed("good")}


def test_op_sees_at_most_256_ops() -> None:
    ops = [stored(live(str(n), n), start=f"{n:032x}") for n in range(MAX_SEES + 4)]
    shown = entry_with_ops({}, pending_ops(ops, Marks(), MAY, NOW, _not_other).ready, _not_other)
    op = replacing_op(E, shown, list(shown.entry), text("last"), later(9999))
    assert len(op.sees) == MAX_SEES and min(seen.h for seen in op.sees) == later(4)
    assert parse_mailbox_entry(canonical.encode(entry(op))).ops == (op,)


def test_texts_of_two_containers_are_merged_with_their_base() -> None:
    base = text("a\n\nb\n\nc")
    left, right = base.replace("a\n", "A\n"), base.replace("c\n", "C\n")
    body = sha256(base.encode()).hexdigest()
    loc = Loc("0" * 16, "ab" * 32, 100)
    held: Entry = {f"{DEV}-1": Value(b=(), body=body, h=later(0), kind=LIVE, loc=loc)}
    shown = entry_with_ops(held, [], _not_other)
    made = [
        stored(replacing_op(E, shown, [f"{DEV}-1"], said, later(n)), start=f"{n:032x}")
        for n, said in ((1, left), (2, right))
    ]
    texts = {body: base.encode()}
    done = _admit(State({DEV: 1}, {E: held}), *made, texts=texts).state.entries[E]
    assert [v.base for v in done.values()] == [loc, loc]
    view = view_entry("tone", done, texts.get, {hash32(body): base.encode()}.get)
    assert view.merged and view.data == left.replace("c\n", "C\n").encode()


def test_append_agent_does_not_replace_a_text_by_naming_it_as_a_base() -> None:
    held: Entry = {f"{DEV}-1": value("rule", 0)}
    op = stored(live("attack", b=(hash32(hashed("rule")),)))
    (waiting,) = _admit(State({DEV: 1}, {E: held}), op, rights={AGENT: AgentRights(role=APPEND)}).waiting
    assert waiting.reason == "its agent key may only add"


def test_text_that_replaces_others_text_stays_theirs() -> None:
    texts = {hashed("evil"): text("evil").encode()}
    state = State({OTHER: 1}, {E: {f"{OTHER}-1": value("evil", 0)}})
    done = _admit(state, stored(live("evil", 3, dots=((f"{OTHER}-1", later(0)),))), texts=texts)
    own = own_view(
        "tone", done.state.entries[E], lambda dot, of: is_own(dot, of, _not_other), texts.get, {}.get
    )
    assert own.data is None
    assert {v.author for v in done.state.entries[E].values()} == {OTHER}


def test_device_leaves_entries_of_agents_without_its_persons_card_alone() -> None:
    one = stored(live("one"))
    done = _admit(State(), one, rights={})
    assert (done.state, done.waiting) == (State(), ())


def test_text_of_a_pending_agent_is_admitted_as_others_text() -> None:
    texts: dict[str, bytes] = {}
    held: Entry = {f"{DEV}-1": value("own", 0)}
    made = stored(live("one", dots=((f"{DEV}-1", later(0)),)), event(2))
    done = _admit(State({DEV: 1}, {E: held}), made, texts=texts, mine=lambda dev: dev == DEV)
    assert {(v.body, v.author) for v in done.state.entries[E].values()} == {
        (hashed("own"), ""),
        (hashed("one"), AGENT),
    }
    assert [each.reason for each in done.waiting] == ["only texts of this agent key can be pending"]


def test_pending_agent_supersedes_no_op_of_another_agent() -> None:
    op = live(
        "two", 2, sees=tuple(sorted(SeenOp(agent, "ab" * 32, later(1), "") for agent in (AGENT, OTHER)))
    )
    assert len(superseded_marks(AgentOp(AGENT, op), _not_other)) == 2
    assert len(superseded_marks(AgentOp(OTHER, op), _not_other)) == 1


def test_own_agent_that_replaces_a_pending_agents_op_names_it_as_author() -> None:
    op = live("two", 2, sees=(SeenOp(OTHER, "ab" * 32, later(1), hashed("x")),))
    assert {v.author for v in _admit(State(), stored(op)).state.entries[E].values()} == {OTHER}


def test_store_that_refuses_one_write_admits_the_others() -> None:
    texts: dict[str, bytes] = {}
    both = stored(live("one"), live("two", 2, e="m/x"))
    done = _admit(State(), both, texts=texts, refused=(E,))
    assert [each.reason for each in done.waiting] == [f"{E} accepts no write"]
    assert "m/x" in done.state.entries and E not in done.state.entries
    assert not _marks(done.state, texts).has_entry(both.sha)
    after = _admit(done.state, both, texts=texts)
    assert E in after.state.entries and len(after.state.entries["m/x"]) == 1
    assert _marks(after.state, texts).has_entry(both.sha)


def test_text_without_a_free_dot_under_its_other_key_is_pending() -> None:
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 5)}
    there = f"{E}-{hashed('one')[:16]}"
    other: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(5, 9)}
    done = _admit(State({DEV: 8}, {E: full, there: other}), stored(live("one")))
    assert not done.changed and len(done.waiting) == 1


def test_forget_without_a_free_dot_is_admitted_later() -> None:
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 5)}
    wish = stored(replacing_op(E, entry_with_ops({}, [], _not_other), (), None, later(9)))
    done = _admit(State({DEV: 4}, {E: full}), wish)
    assert [each.reason for each in done.waiting] == [
        "the device has no free dot for it"
    ] and not done.changed
    later_on = _admit(State({DEV: 4}, {E: {f"{DEV}-1": full[f"{DEV}-1"]}}), wish)
    assert not later_on.waiting and len(later_on.state.entries[E]) == 2


def test_reader_shows_pending_ops_as_siblings_without_replaced_ones() -> None:
    old: Entry = {f"{DEV}-1": value("old", 0)}
    one = stored(live("one", dots=((f"{DEV}-1", later(0)),)), event(1))
    pending = pending_ops([one], Marks(), MAY, NOW, _not_other).ready
    shown = entry_with_ops(old, by_entry(pending)[E], _not_other)
    assert view_entry("tone", shown.entry, shown.texts.get, {}.get).data == text("one").encode()
    assert pending_events(pending) == {"acme": [(event(1).text or "").encode()]}
    clock = op_clock(shown.entry, later(0), NOW, 5)
    assert clock > later(1)
    op = replacing_op(E, shown, list(shown.entry), text("two"), clock)
    assert op.dots == ((f"{DEV}-1", later(0)),) and [seen.body for seen in op.sees] == [hashed("one")]
    two = stored(op, start="1e" * 16)
    ready = pending_ops([two, one], Marks(), MAY, NOW, _not_other).ready
    both = entry_with_ops(old, by_entry(ready)[E], _not_other)
    assert [v.body for v in both.entry.values()] == [hashed("two")]
    done = _admit(State({DEV: 1}, {E: old}), two, one)
    assert [v.body for v in done.state.entries[E].values()] == [hashed("two")]


def test_reader_shows_no_pending_op() -> None:
    one = stored(live("one", e="m/agents/agent-1"))
    pending = pending_ops([one], Marks(), MAY, NOW, _not_other)
    assert not pending.ready and [each.reason for each in pending.waiting] == [
        "no agent writes to this scope"
    ]


def test_boxes_of_two_agents_and_of_their_vault_differ() -> None:
    assert len({small_box(ANCHOR), small_box(ANCHOR, AGENT), small_box(ANCHOR, OTHER)}) == 3
    assert LISTED_MAX == 10_000
