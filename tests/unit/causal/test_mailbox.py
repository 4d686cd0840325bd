"""Mailbox entries, their admission and the reader's view: the vectors, and attacks that one entry can make."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from ipfsmem import canonical
from ipfsmem.causal.mailbox_admission import WRITER, AdmittedOps, Admitting, AgentRights, admit, pending_ops
from ipfsmem.causal.mailbox_entry import (
    CUMULATIVE,
    MAX_OPS,
    MAX_SEES,
    MailboxOp,
    SeenOp,
    StoredEntry,
    names_to_read,
    open_entry,
    ops_of,
    parse_entry_name,
    parse_mailbox_entry,
    repeated_ops,
    seal_entry,
    sign_entry,
)
from ipfsmem.causal.mailbox_markers import (
    FULL,
    KEPT_WEEKS,
    WEEK_MS,
    MarkerName,
    Marks,
    marker_name,
    read_marks,
    stale_markers,
)
from ipfsmem.causal.mailbox_view import by_entry, entry_with_ops, op_clock, pending_events, replacing_op
from ipfsmem.causal.state import State
from ipfsmem.causal.value import FOREIGN, FORGOTTEN, Entry
from ipfsmem.causal.view import view_entry
from ipfsmem.errors import FormatError, LimitError, OpenError, SignatureError, UsageError
from ipfsmem.seal.objects import MAILBOX_ENTRY, Sealer, epoch_key
from ipfsmem.seal.primitives import Signer25519
from tests.unit.causal.make_mailbox_vectors import (
    AGENT,
    DEV,
    NOW,
    OTHER,
    SEALER,
    SIGNER,
    START,
    VAULT,
    VECTORS,
    E,
    admitted,
    entry,
    event,
    hashed,
    later,
    lines,
    live,
    put,
    stored,
    text,
    value,
    vectors,
)

FILE: dict[str, Any] = json.loads((VECTORS / "mailbox.json").read_text("utf-8"))
MAY = {AGENT: AgentRights(role=WRITER)}


def _all(dev: str) -> bool:
    """Every id is of the reader's person."""
    return True


def _admit(
    state: State, *entries: StoredEntry, texts: dict[str, bytes] | None = None, **more: Any
) -> AdmittedOps:
    known = {} if texts is None else texts
    by = Admitting(**{"dev": DEV, "now_ms": NOW, "mine": _all, "rights": MAY, "bodies": known.get, **more})
    done = admit(state, entries, read_marks(state.entries, known.get), by)
    known.update(done.texts)
    return done


def test_mailbox_vectors_are_those_of_the_script() -> None:
    assert vectors() == FILE


@pytest.mark.parametrize("row", FILE["entries"], ids=lambda row: row["about"])
def test_entry_of_a_vector_opens(row: dict[str, Any]) -> None:
    name = parse_entry_name(row["name"])
    data = canonical.unb64(row["stored"], "stored")
    opened = open_entry(name, AGENT, data, [SEALER], SIGNER.public, VAULT)
    assert canonical.encode(opened.entry).decode() == row["json"]
    assert [placed.mark for placed in ops_of(opened)] == row["marks"]


@pytest.mark.parametrize("row", FILE["refused"], ids=lambda row: row["about"])
def test_malformed_entry_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        parse_mailbox_entry(row["json"].encode())


@pytest.mark.parametrize("row", FILE["admissions"], ids=lambda row: row["about"])
def test_admission_of_a_vector(row: dict[str, Any]) -> None:
    entries = [
        open_entry(
            parse_entry_name(name), AGENT, canonical.unb64(data, "stored"), [SEALER], SIGNER.public, VAULT
        )
        for name, data in zip(row["names"], row["stored"], strict=True)
    ]
    state = State(row["ctx"], msgspec.convert(row["state"], dict[str, Entry]))
    scopes = row["rights"]["scopes"]
    rights = AgentRights(
        role=row["rights"]["role"],
        scopes=None if scopes is None else frozenset(scopes),
        until_ms=row["rights"]["until_ms"],
    )
    assert admitted(state, list(reversed(entries)), rights, {}) == row["result"]


def test_entry_with_other_bytes_name_signer_vault_or_key_is_refused() -> None:
    made = entry(live("one"))
    data = put(made)
    name = parse_entry_name(f"{made.start}.0.{stored(live('one')).sha}")
    other = Sealer(epoch_key(2, bytes(range(32)), VAULT), VAULT)
    with pytest.raises(FormatError):
        open_entry(name, AGENT, data[:-1] + b"x", [SEALER], SIGNER.public, VAULT)
    with pytest.raises(OpenError):
        open_entry(name._replace(i=1), AGENT, data, [SEALER], SIGNER.public, VAULT)
    with pytest.raises(OpenError):
        open_entry(name, OTHER, data, [SEALER], SIGNER.public, VAULT)
    with pytest.raises(OpenError):
        open_entry(name, AGENT, data, [other], SIGNER.public, VAULT)
    with pytest.raises(SignatureError):
        open_entry(name, AGENT, data, [SEALER], Signer25519(bytes([2]) * 32).public, VAULT)
    with pytest.raises(FormatError):
        open_entry(name, AGENT, data, [SEALER], SIGNER.public, bytes(16))


@pytest.mark.parametrize("field", ["agent", "start", "i", "ek"])
def test_entry_that_names_another_place_than_it_is_sealed_for_is_refused(field: str) -> None:
    made = entry(live("one"))
    false: dict[str, Any] = {"agent": OTHER, "start": "1e" * 16, "ek": "1e" * 8}
    wrong = (
        msgspec.structs.replace(made, i=1, prev="ab" * 32)
        if field == "i"
        else msgspec.structs.replace(made, **{field: false[field]})
    )
    data = SEALER.seal(MAILBOX_ENTRY, f"{AGENT}/{made.start}/0", sign_entry(SIGNER, wrong))
    name = parse_entry_name(f"{made.start}.0.{sha256(data).hexdigest()}")
    with pytest.raises(FormatError, match="than"):
        open_entry(name, AGENT, data, [SEALER], SIGNER.public, VAULT)


@pytest.mark.parametrize(
    "name", ["", "0f.0.ab", f"{'0f' * 16}.00.{'ab' * 32}", f"{'0f' * 16}.9999999999999999.{'ab' * 32}"]
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
    line = r'{"at":1,"piece":[0,2],"text":"\ud83d"}'
    part = (lines((1, 0, "x")).text or "").partition("{")[0] + line + "\n"
    op = msgspec.structs.replace(lines((1, 0, "x")), text=part)
    done = _admit(State(), stored(op))
    assert line.encode() in b"".join(done.texts.values())


def test_newest_entry_repeats_the_ops_of_its_start_up_to_64_kib() -> None:
    first = stored(live("one"))
    second = stored(live("two", 2), last=first)
    assert [placed.place.sha for placed in ops_of(second)] == [first.sha, second.sha]
    long = stored(live("x" * CUMULATIVE, 3), last=second)
    assert len(long.entry.ops) == 1
    twin = stored(live("other", 2), last=first)
    names = [
        parse_entry_name(f"{each.entry.start}.{each.entry.i}.{each.sha}") for each in (first, second, twin)
    ]
    assert names_to_read(names, [])[0].i == 1
    assert names_to_read(names, [second]) == [names[2]]
    assert names_to_read(names, [second, twin]) == []
    assert len(repeated_ops(first, [live("two", 2)])) == 2


def test_op_of_another_entry_is_not_superseded() -> None:
    secret = stored(live("secret"))
    op = next(ops_of(secret))
    thief = stored(live("mine", 2, e="m/other", sees=(op.as_seen(),)), start="1e" * 16)
    texts: dict[str, bytes] = {}
    first = _admit(State(), thief, texts=texts)
    done = _admit(first.state, secret, texts=texts)
    assert [v.body for v in done.state.entries[E].values()] == [hashed("secret")]


@pytest.mark.parametrize("portions", [True, False])
def test_op_with_the_place_of_another_agent_does_not_replace_it(portions: bool) -> None:
    signer = Signer25519(bytes([2]) * 32)
    other = sha256(signer.public).hexdigest()[:16]
    real = stored(live("real"))
    op = next(ops_of(real))
    made = entry(live("false", first=op.place), live("x", 2, e="m/x"))
    false = msgspec.structs.replace(made, agent=other)
    data = seal_entry(SEALER, false, sign_entry(signer, false))
    rights = {**MAY, other: AgentRights(role=WRITER)}
    thief, texts = StoredEntry(false, sha256(data).hexdigest()), dict[str, bytes]()
    first = _admit(State(), *([thief] if portions else [thief, real]), rights=rights, texts=texts)
    done = _admit(first.state, thief, real, rights=rights, texts=texts)
    assert {v.body for v in done.state.entries[E].values()} == {hashed("real"), hashed("false")}


def test_part_that_cannot_be_parsed_does_not_end_the_admission() -> None:
    op = lines((5, 1, "hello"))
    for bad in (b"\xff\xfe", b"---\n" + b"a: b\n" * 2000 + b"---\n"):
        body = sha256(bad).hexdigest()
        held = msgspec.structs.replace(value("x", 0), body=body)
        state = State({OTHER: 1}, {op.e: {f"{OTHER}-1": held}})
        done = _admit(state, stored(op), texts={body: bad})
        assert len(done.state.entries[op.e]) == 2 and not done.waiting


def test_entry_that_names_very_many_ops_fills_several_markers() -> None:
    def sees(k: int) -> tuple[SeenOp, ...]:
        return tuple(SeenOp(AGENT, START, f"{k:064x}", n, later(0), "") for n in range(MAX_SEES))

    texts: dict[str, bytes] = {}
    many = stored(*(live("x", k, e=f"m/k{k}", sees=sees(k)) for k in range(18)))
    done = _admit(State(), many, texts=texts)
    markers = [found for name in done.changed if (found := marker_name(name))]
    assert len(markers) > 2
    held = [texts[v.body or ""] for found in markers for v in done.state.entries[found.entry].values()]
    assert all(len(text) <= FULL for text in held)
    marks = read_marks(done.state.entries, texts.get)
    assert marks.has_entry(AGENT, START, many.sha) and len(marks.tokens) == 18 * MAX_SEES + 1
    assert not _admit(done.state, many, texts=texts).changed


def test_person_accepts_or_discards_an_op_that_waits() -> None:
    one, two = stored(live("one")), stored(live("two", 2, e="m/x"), start="1e" * 16)
    protected = stored(live("bad", 3, e="m/agents/agent-1"), start="2e" * 16)
    marks = {next(ops_of(each)).op.text: next(ops_of(each)).mark for each in (one, two, protected)}
    decided = {
        "rights": {},
        "accepted": frozenset([marks[text("one")], marks[text("bad")]]),
        "discarded": frozenset([marks[text("two")]]),
    }
    texts: dict[str, bytes] = {}
    done = _admit(State(), one, two, protected, texts=texts, **decided)
    assert E in done.state.entries and "m/x" not in done.state.entries
    assert [w.op.mark for w in done.waiting] == [marks[text("bad")]]
    read = read_marks(done.state.entries, texts.get)
    assert read.has_entry(AGENT, two.entry.start, two.sha)
    assert not read.has_entry(AGENT, protected.entry.start, protected.sha)


def test_replayed_entry_does_not_return_a_deleted_text() -> None:
    one, texts = stored(live("one")), dict[str, bytes]()
    done = _admit(State(), one, texts=texts)
    without = State(done.state.ctx, {name: e for name, e in done.state.entries.items() if name != E})
    assert _admit(without, one, texts=texts).state == without


def test_admission_without_a_marker_that_is_not_fetched_is_refused() -> None:
    texts: dict[str, bytes] = {}
    done = _admit(State(), stored(live("one")), texts=texts)
    marker = next(name for name in done.changed if marker_name(name))
    missing = read_marks(done.state.entries, {}.get)
    assert missing == Marks(frozenset(), (marker,))
    by = Admitting(dev=DEV, now_ms=NOW, mine=lambda dev: True, rights=MAY, bodies={}.get)
    with pytest.raises(UsageError, match="not fetched"):
        admit(done.state, [], missing, by)


def test_markers_are_split_by_size_and_week() -> None:
    texts: dict[str, bytes] = {}
    state = State()
    for n in range(6):
        ops = [
            live(
                "x",
                n,
                e=f"m/k{k}",
                sees=tuple(
                    sorted(SeenOp(AGENT, f"{n:032x}", "ab" * 32, i, later(0), "") for i in range(MAX_SEES))
                ),
            )
            for k in range(2)
        ]
        state = _admit(state, stored(*ops, start=f"{n:032x}"), texts=texts).state
    names = [found for name in state.entries if (found := marker_name(name))]
    assert {found.i for found in names} == {0, 1}
    assert all(len(texts[v.body or ""]) <= FULL for f in names for v in state.entries[f.entry].values())
    week = NOW // WEEK_MS
    mine = [MarkerName(DEV, w, 0).entry for w in (0, week, week - KEPT_WEEKS, week - KEPT_WEEKS - 1)]
    assert stale_markers([*mine, MarkerName(OTHER, 1, 0).entry, E], DEV, NOW) == [mine[3]]


def test_mark_of_a_clock_ahead_is_kept_for_ever() -> None:
    texts: dict[str, bytes] = {}
    ahead = stored(live("one", h=later(0, 3_600_000)))
    done = _admit(State(), ahead, texts=texts)
    (marker,) = [found for name in done.changed if (found := marker_name(name))]
    assert marker.week == 0
    again = _admit(done.state, ahead, texts=texts, now_ms=NOW + 2 * 3_600_000)
    assert again.state == done.state


def test_text_of_another_persons_agent_names_its_author() -> None:
    def mine(dev: str) -> bool:
        return dev != AGENT

    done = _admit(State(), stored(live("one"), live("two", 2, e="m/x", author=FOREIGN)), mine=mine)
    authors = {name: [v.author for v in e.values()] for name, e in done.state.entries.items()}
    assert (authors[E], authors["m/x"]) == ([AGENT], [FOREIGN])


def test_agent_of_another_person_removes_no_text_of_the_owner() -> None:
    signer = Signer25519(bytes([2]) * 32)
    other = sha256(signer.public).hexdigest()[:16]

    def theirs(*ops: MailboxOp) -> StoredEntry:
        made = msgspec.structs.replace(entry(*ops), agent=other)
        return StoredEntry(made, sha256(sign_entry(signer, made)).hexdigest())

    def mine(dev: str) -> bool:
        return dev != other

    own = stored(live("own"))
    seen = (next(ops_of(own)).as_seen(),)
    new = theirs(live("theirs", 2, sees=seen, dots=(f"{OTHER}-1",)))
    forget = theirs(MailboxOp(e=E, h=later(3), kind=FORGOTTEN, sees=seen, dots=(f"{OTHER}-1",)))
    state = State({OTHER: 1}, {E: {f"{OTHER}-1": value("held", 0)}})
    rights = {**MAY, other: AgentRights(role=WRITER)}
    kept = {hashed("held"), hashed("own"), hashed("theirs")}
    for order in ([new, forget, own], [own, new, forget]):
        texts: dict[str, bytes] = {}
        done = AdmittedOps(state)
        for each in order:
            done = _admit(done.state, each, texts=texts, rights=rights, mine=mine)
            if each is forget:
                assert [w.reason for w in done.waiting] == ["its agent key is of another person"]
        assert {v.body for v in done.state.entries[E].values()} == kept
    pending = pending_ops([new, forget, own], Marks(), rights, NOW).ready
    shown = entry_with_ops(state.entries[E], pending, mine)
    assert {v.body for v in shown.entry.values()} == {*kept, None}
    decided = {"accepted": frozenset(each.mark for each in pending)}
    done = _admit(state, forget, rights=rights, mine=mine, **decided)
    assert None in {v.body for v in done.state.entries[E].values()}


def test_text_without_a_free_dot_under_its_other_key_waits() -> None:
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 5)}
    there = f"{E}-{hashed('one')[:16]}"
    other: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(5, 9)}
    done = _admit(State({DEV: 8}, {E: full, there: other}), stored(live("one")))
    assert not done.changed and len(done.waiting) == 1


def test_wish_to_forget_without_a_free_dot_waits_and_is_admitted_later() -> None:
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 5)}
    wish = stored(replacing_op(E, entry_with_ops({}, [], _all), (), None, later(9)))
    done = _admit(State({DEV: 4}, {E: full}), wish)
    assert [w.reason for w in done.waiting] == ["the device has no free dot for it"] and not done.changed
    later_on = _admit(State({DEV: 4}, {E: {f"{DEV}-1": full[f"{DEV}-1"]}}), wish)
    assert not later_on.waiting and len(later_on.state.entries[E]) == 2


def test_reader_shows_pending_ops_as_siblings_without_replaced_ones() -> None:
    old: Entry = {f"{OTHER}-1": value("old", 0)}
    one = stored(live("one", dots=(f"{OTHER}-1",)), event(1))
    pending = pending_ops([one], Marks(), MAY, NOW).ready
    shown = entry_with_ops(old, by_entry(pending)[E], _all)
    assert view_entry("tone", shown.entry, shown.texts.get, {}.get).data == text("one").encode()
    assert pending_events(pending) == {"acme": [(event(1).text or "").encode()]}
    clock = op_clock(shown.entry, later(0), NOW, 5)
    assert clock > later(1)
    op = replacing_op(E, shown, list(shown.entry), text("two"), clock)
    assert op.dots == (f"{OTHER}-1",) and [seen.body for seen in op.sees] == [hashed("one")]
    two = stored(op, start="1e" * 16)
    both = entry_with_ops(old, by_entry(pending_ops([two, one], Marks(), MAY, NOW).ready)[E], _all)
    assert [v.body for v in both.entry.values()] == [hashed("two")]
    done = _admit(State({OTHER: 1}, {E: old}), two, one)
    assert [v.body for v in done.state.entries[E].values()] == [hashed("two")]


def test_reader_shows_no_op_that_waits() -> None:
    one = stored(live("one", e="m/agents/agent-1"))
    pending = pending_ops([one], Marks(), MAY, NOW)
    assert not pending.ready and [w.reason for w in pending.waiting] == ["no agent writes to this scope"]


def test_op_sees_at_most_256_ops() -> None:
    ops = [stored(live(str(n), n), start=f"{n:032x}") for n in range(MAX_SEES + 4)]
    shown = entry_with_ops({}, pending_ops(ops, Marks(), MAY, NOW).ready, _all)
    op = replacing_op(E, shown, list(shown.entry), text("last"), later(9999))
    assert len(op.sees) == MAX_SEES and min(seen.h for seen in op.sees) == later(4)
    assert parse_mailbox_entry(canonical.encode(entry(op))).ops == (op,)
