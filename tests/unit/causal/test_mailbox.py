"""Mailbox entries, their admission and the reader's view: the vectors, and attacks by a single entry."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from ipfsmem import canonical
from ipfsmem.bundle.memory_file import parse_memory, render_memory
from ipfsmem.causal.mailbox_admission import (
    APPEND,
    WRITER,
    AdmittedOps,
    Admitting,
    AgentRights,
    admit,
    pending_ops,
)
from ipfsmem.causal.mailbox_entry import (
    CUMULATIVE,
    MAX_OPS,
    MAX_PART,
    MAX_SEES,
    EntryName,
    MailboxOp,
    OpPlace,
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
    entry_token,
    marker_name,
    marker_text,
    marker_value,
    read_marks,
    stale_markers,
)
from ipfsmem.causal.mailbox_view import by_entry, entry_with_ops, op_clock, pending_events, replacing_op
from ipfsmem.causal.state import State
from ipfsmem.causal.value import FOREIGN, Entry
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
#: The texts that each reading shows.
SHOWN = {
    "an op is a sibling": {"old", "one"},
    "an op hides what it replaces": {"two"},
    "an op that waits is not shown": {"old", "one"},
    "an op of another person's agent is not shown": {"old"},
    "a replayed entry is done": {"old"},
    "a replayed op is done": {"old"},
    "markers are united": {"old"},
    "a marker of another person's device is ignored": {"old", "one"},
}
MAY = {AGENT: AgentRights(role=WRITER)}


def _all(dev: str) -> bool:
    """Every id belongs to the reader's person."""
    return True


def _admit(
    state: State, *entries: StoredEntry, texts: dict[str, bytes] | None = None, **more: Any
) -> AdmittedOps:
    known = {} if texts is None else texts
    by = Admitting(**{"dev": DEV, "now_ms": NOW, "mine": _all, "rights": MAY, "bodies": known.get, **more})
    done = admit(state, entries, read_marks(state.entries, known.get, by.mine), by)
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
    assert [placed.mark for placed in ops_of(opened)] == row["marks"]
    assert [placed.id for placed in ops_of(opened)] == row["ids"]


@pytest.mark.parametrize("row", FILE["readings"], ids=lambda row: row["about"])
def test_reading_of_a_vector_is_as_listed(row: dict[str, Any]) -> None:
    entries = [
        open_entry(parse_entry_name(name), canonical.unb64(data, "stored"), [SEALER], SIGNER.public, VAULT)
        for name, data in zip(row["names"], row["stored"], strict=True)
    ]
    state = msgspec.convert(row["state"], dict[str, Entry])
    texts = {body: said.encode() for body, said in row["texts"].items()}
    mine = row["mine"].__contains__
    rights = {AGENT: AgentRights(role=row["role"])}
    ready = pending_ops(reversed(entries), read_marks(state, texts.get, mine), rights, NOW, mine).ready
    shown = entry_with_ops(state[E], ready).entry
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
    state = State(row["ctx"], msgspec.convert(row["state"], dict[str, Entry]))
    scopes = row["rights"]["scopes"]
    rights = AgentRights(
        role=row["rights"]["role"],
        scopes=None if scopes is None else frozenset(scopes),
        until_ms=row["rights"]["until_ms"],
    )
    assert admitted(state, list(reversed(entries)), rights, {}) == row["result"]


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
        msgspec.structs.replace(made, i=1, prev="ab" * 32)
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
        parse_entry_name(f"{AGENT}.{each.entry.start}.{each.entry.i}.{each.sha}")
        for each in (first, second, twin)
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
def test_op_at_the_place_of_another_agents_op_does_not_replace_it(portions: bool) -> None:
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


def test_entry_that_names_many_ops_fills_several_markers() -> None:
    def sees(k: int) -> tuple[SeenOp, ...]:
        return tuple(SeenOp(AGENT, f"{k * 1000 + n:064x}", later(0), "") for n in range(MAX_SEES))

    texts: dict[str, bytes] = {}
    many = stored(*(live("x", k, e=f"m/k{k}", sees=sees(k)) for k in range(18)))
    done = _admit(State(), many, texts=texts)
    markers = [found for name in done.changed if (found := marker_name(name))]
    assert len(markers) > 2
    held = [texts[v.body or ""] for found in markers for v in done.state.entries[found.entry].values()]
    assert all(len(text) <= FULL for text in held)
    marks = read_marks(done.state.entries, texts.get, _all)
    assert marks.has_entry(AGENT, START, many.sha) and len(marks.tokens) == 18 * MAX_SEES + 1
    assert not _admit(done.state, many, texts=texts).changed


def test_pending_op_is_accepted_or_discarded_by_a_person() -> None:
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
    read = read_marks(done.state.entries, texts.get, _all)
    assert read.has_entry(AGENT, two.entry.start, two.sha)
    assert not read.has_entry(AGENT, protected.entry.start, protected.sha)


def test_replayed_entry_does_not_return_a_deleted_text() -> None:
    one, texts = stored(live("one")), dict[str, bytes]()
    done = _admit(State(), one, texts=texts)
    without = State(done.state.ctx, {name: e for name, e in done.state.entries.items() if name != E})
    assert _admit(without, one, texts=texts).state == without


def test_admission_with_an_unfetched_marker_is_refused() -> None:
    texts: dict[str, bytes] = {}
    done = _admit(State(), stored(live("one")), texts=texts)
    marker = next(name for name in done.changed if marker_name(name))
    missing = read_marks(done.state.entries, {}.get, _all)
    (value,) = done.state.entries[marker].values()
    assert missing == Marks(frozenset(), ((marker, value.body or ""),))
    assert read_marks(done.state.entries, {}.get, _all, [value.body or ""]) == Marks()
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
                    SeenOp(AGENT, f"{n * 1000 + k * 500 + i:064x}", later(0), "") for i in range(MAX_SEES)
                ),
            )
            for k in range(2)
        ]
        state = _admit(state, stored(*ops, start=f"{n:032x}"), texts=texts).state
    names = [found for name in state.entries if (found := marker_name(name))]
    assert {found.i for found in names} == {0, 1, 2, 3}
    assert all(len(texts[v.body or ""]) <= FULL for f in names for v in state.entries[f.entry].values())
    week = NOW // WEEK_MS
    mine = [MarkerName(DEV, w, 0).entry for w in (0, week, week - KEPT_WEEKS, week - KEPT_WEEKS - 1)]
    assert stale_markers([*mine, MarkerName(OTHER, 1, 0).entry, E], DEV, NOW) == [mine[3]]


def test_mark_of_a_clock_ahead_is_kept_forever() -> None:
    texts: dict[str, bytes] = {}
    ahead = stored(live("one", h=later(0, 3_600_000)))
    done = _admit(State(), ahead, texts=texts)
    (marker,) = [found for name in done.changed if (found := marker_name(name))]
    assert marker.week == 0
    again = _admit(done.state, ahead, texts=texts, now_ms=NOW + 2 * 3_600_000)
    assert again.state == done.state


def test_text_that_an_agent_repeats_from_another_person_names_its_author() -> None:
    done = _admit(State(), stored(live("one"), live("two", 2, e="m/x", author=FOREIGN)))
    authors = {name: [v.author for v in e.values()] for name, e in done.state.entries.items()}
    assert (authors[E], authors["m/x"]) == ([""], [FOREIGN])


def test_entries_of_another_persons_agents_are_not_admitted() -> None:
    def mine(dev: str) -> bool:
        return dev not in (AGENT, OTHER)

    one, texts = stored(live("one"), lines((5, 1, "x"))), dict[str, bytes]()
    done = _admit(State(), one, mine=mine, texts=texts)
    assert (done.state, done.waiting) == (State(), ())
    assert not pending_ops([one], Marks(), MAY, NOW, mine).ready
    theirs = _admit(State(), one, dev=OTHER, mine=lambda dev: dev in (AGENT, OTHER), texts=texts)
    assert {v.author for v in theirs.state.entries[E].values()} == {""}


def test_marker_of_another_persons_device_marks_nothing() -> None:
    def mine(dev: str) -> bool:
        return dev != OTHER

    one = stored(live("one"))
    body = marker_text([entry_token(AGENT, START, one.sha)])
    name = MarkerName(DEV, NOW // WEEK_MS, 0).entry
    sha = sha256(body).hexdigest()
    state = State({OTHER: 1}, {name: {f"{OTHER}-1": marker_value(sha)}})
    assert E in _admit(state, one, mine=mine, texts={sha: body}).state.entries
    assert E in _admit(state, one, mine=mine).state.entries


def test_accepted_op_repeated_with_another_text_is_not_accepted() -> None:
    rights = {AGENT: AgentRights(role=WRITER, scopes=frozenset({"web"}))}
    shown = stored(live("harmless"))
    (waiting,) = _admit(State(), shown, rights=rights).waiting
    evil = msgspec.structs.replace(live("evil"), first=OpPlace(shown.sha, 0))
    second = _repeating(shown, evil, live("x", 2, e="m/web/x"))
    for order in ((shown, second), (second, shown)):
        done = _admit(State(), *order, rights=rights, accepted=frozenset([waiting.op.mark]))
        assert {v.body for v in done.state.entries[E].values()} == {hashed("harmless")}


def test_false_repeat_marks_no_entry_of_another_process_as_done() -> None:
    rights, texts = {AGENT: AgentRights(role=APPEND)}, dict[str, bytes]()
    victim = stored(live("one"), live("two", 2, e="m/acme/second"))
    false = msgspec.structs.replace(live("noise", e="m/acme/noise"), first=OpPlace(victim.sha, 0))
    thief = _repeating(victim, false, live("y", 2, e="m/acme/y"))
    first = _admit(State(), thief, rights=rights, texts=texts)
    assert not read_marks(first.state.entries, texts.get, _all).has_entry(AGENT, START, victim.sha)
    done = _admit(first.state, victim, rights=rights, texts=texts)
    assert E in done.state.entries and "m/acme/second" in done.state.entries
    name = EntryName(AGENT, START, 0, victim.sha)
    assert names_to_read([name], [thief], repeated=True) == [name]


def _repeating(before: StoredEntry, *ops: MailboxOp) -> StoredEntry:
    made = msgspec.structs.replace(entry(*ops), i=1, prev=before.sha)
    return StoredEntry(made, sha256(put(made)).hexdigest())


def test_broken_entry_name_is_not_returned_again() -> None:
    bad, good = EntryName(AGENT, "0" * 32, 9, "1" * 64), EntryName(AGENT, "1" * 32, 0, "2" * 64)
    assert names_to_read([good, bad], [])[0] == bad
    assert names_to_read([good, bad], [], [bad]) == [good]


def test_dot_of_a_later_value_is_not_removed() -> None:
    op = stored(live("evil", dots=tuple(sorted(f"{DEV}-{n}" for n in range(1, 50)))))
    held = {f"{DEV}-7": value("written later", 100), f"{DEV}-8": value("old", 0)}
    done = _admit(State({DEV: 8}, {E: held}), op)
    assert {v.body for v in done.state.entries[E].values()} == {hashed("written later"), hashed("evil")}
    shown = entry_with_ops(held, pending_ops([op], Marks(), MAY, NOW, _all).ready)
    assert {v.body for v in shown.entry.values()} == {hashed("written later"), hashed("evil")}


def test_lines_keep_the_header_of_the_part_that_they_join() -> None:
    part, texts = lines((5, 1, "hello")), dict[str, bytes]()
    other = (lines((6, 2, "x")).text or "").replace("session: work\n", "session: work\ndescription: other\n")
    parsed = render_memory(parse_memory(other.encode())).decode()
    first = _admit(State(), stored(part), texts=texts)
    done = _admit(first.state, stored(msgspec.structs.replace(part, h=later(2), text=parsed)), texts=texts)
    ((_, held),) = done.state.entries[part.e].items()
    body = texts[held.body or ""]
    assert b"other" not in body and body.count(b'"at"') == 2


def test_lines_beyond_512_kib_go_to_the_next_part() -> None:
    big, texts = "x" * 300_000, dict[str, bytes]()
    ops = [lines((5 + n, n, big), h=later(n)) for n in range(3)]
    state = State()
    for op in ops:
        state = _admit(state, stored(op), texts=texts).state
    together = _admit(State(), stored(*ops[:2]), stored(ops[2])).state
    for made in (state, together):
        names = sorted(name for name in made.entries if marker_name(name) is None)
        assert names == [ops[0].e[:-1] + str(n) for n in range(3)]


def test_part_of_maximum_size_is_admitted() -> None:
    small = lines((5, 1, "")).text or ""
    op = lines((5, 1, "x" * (MAX_PART - len(small))))
    assert len(op.text or "") == MAX_PART
    assert op.e in _admit(State(), stored(op)).state.entries
    loose = msgspec.structs.replace(op, text=(op.text or "").replace("---\n\n", "---\n"))
    with pytest.raises(FormatError, match="form"):
        sign_entry(SIGNER, entry(loose))


def test_many_lines_are_merged_with_one_reading_of_the_part() -> None:
    part, texts = lines((5, 1, "hello")), dict[str, bytes]()
    first = _admit(State(), stored(part), texts=texts)
    read: list[str] = []

    def bodies(body: str) -> bytes | None:
        read.append(body)
        return texts.get(body)

    held = next(iter(first.state.entries[part.e].values())).body
    many = stored(*(lines((6, n, "x"), h=later(n + 2)) for n in range(200)))
    _admit(first.state, many, bodies=bodies, texts=texts)
    assert read.count(held or "") == 1


def test_text_without_a_free_dot_under_its_other_key_is_pending() -> None:
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 5)}
    there = f"{E}-{hashed('one')[:16]}"
    other: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(5, 9)}
    done = _admit(State({DEV: 8}, {E: full, there: other}), stored(live("one")))
    assert not done.changed and len(done.waiting) == 1


def test_forget_without_a_free_dot_is_admitted_later() -> None:
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 5)}
    wish = stored(replacing_op(E, entry_with_ops({}, []), (), None, later(9)))
    done = _admit(State({DEV: 4}, {E: full}), wish)
    assert [w.reason for w in done.waiting] == ["the device has no free dot for it"] and not done.changed
    later_on = _admit(State({DEV: 4}, {E: {f"{DEV}-1": full[f"{DEV}-1"]}}), wish)
    assert not later_on.waiting and len(later_on.state.entries[E]) == 2


def test_reader_shows_pending_ops_as_siblings_without_replaced_ones() -> None:
    old: Entry = {f"{OTHER}-1": value("old", 0)}
    one = stored(live("one", dots=(f"{OTHER}-1",)), event(1))
    pending = pending_ops([one], Marks(), MAY, NOW, _all).ready
    shown = entry_with_ops(old, by_entry(pending)[E])
    assert view_entry("tone", shown.entry, shown.texts.get, {}.get).data == text("one").encode()
    assert pending_events(pending) == {"acme": [(event(1).text or "").encode()]}
    clock = op_clock(shown.entry, later(0), NOW, 5)
    assert clock > later(1)
    op = replacing_op(E, shown, list(shown.entry), text("two"), clock)
    assert op.dots == (f"{OTHER}-1",) and [seen.body for seen in op.sees] == [hashed("one")]
    two = stored(op, start="1e" * 16)
    both = entry_with_ops(old, by_entry(pending_ops([two, one], Marks(), MAY, NOW, _all).ready)[E])
    assert [v.body for v in both.entry.values()] == [hashed("two")]
    done = _admit(State({OTHER: 1}, {E: old}), two, one)
    assert [v.body for v in done.state.entries[E].values()] == [hashed("two")]


def test_reader_shows_no_pending_op() -> None:
    one = stored(live("one", e="m/agents/agent-1"))
    pending = pending_ops([one], Marks(), MAY, NOW, _all)
    assert not pending.ready and [w.reason for w in pending.waiting] == ["no agent writes to this scope"]


def test_op_sees_at_most_256_ops() -> None:
    ops = [stored(live(str(n), n), start=f"{n:032x}") for n in range(MAX_SEES + 4)]
    shown = entry_with_ops({}, pending_ops(ops, Marks(), MAY, NOW, _all).ready)
    op = replacing_op(E, shown, list(shown.entry), text("last"), later(9999))
    assert len(op.sees) == MAX_SEES and min(seen.h for seen in op.sees) == later(4)
    assert parse_mailbox_entry(canonical.encode(entry(op))).ops == (op,)
