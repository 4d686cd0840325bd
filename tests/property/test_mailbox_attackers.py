"""Entries of an agent that follows no rule are refused or admitted within the rights of its key, and raise
no other error."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipfsmem import canonical
from ipfsmem.causal.mailbox_admission import APPEND, WRITER, Admitting, AgentRights, pending_ops
from ipfsmem.causal.mailbox_entry import (
    EVENT,
    MailboxEntry,
    MailboxOp,
    SeenOp,
    StoredEntry,
    ops_of,
    parse_mailbox_entry,
    sign_entry,
)
from ipfsmem.causal.mailbox_markers import Marks, marker_name, read_marks
from ipfsmem.causal.mailbox_view import by_entry, entry_with_ops
from ipfsmem.causal.state import State
from ipfsmem.causal.value import FOREIGN, FORGOTTEN, LIVE, check_entry, check_value
from ipfsmem.causal.view import view_entry
from ipfsmem.errors import FormatError
from tests.support.causal_lab import covered
from tests.support.mailbox_state import admit
from tests.unit.causal.make_mailbox_vectors import (
    AGENT,
    DEV,
    NOW,
    OTHER,
    SIGNER,
    START,
    entry,
    event,
    later,
    lines,
    live,
    stored,
    text,
    value,
)

REAL = stored(live("real", e="m/acme/x"), start="1e" * 16)
LINE = lines((1, 0, "x"))
HASHES = st.sampled_from([REAL.sha, "ab" * 32, sha256(text("real").encode()).hexdigest()])
CLOCKS = st.sampled_from([later(1), later(2), later(0, 3_600_000), "0" * 16, "f" * 16])
NAMES = st.sampled_from(
    [
        "m/acme/x",
        "m/acme/" + "k" * 64,
        "m/x",
        "m/agents/agent-1",
        "m/mailbox/got-dddddddddddddddd-2936-0",
        "t",
        "t/acme",
        "c/acme",
        lines((1, 0, "x")).e,
        "m/acme/session-work-0f0f0f0f0f0f0f0f-999999",
        "",
    ]
)
TEXTS = st.sampled_from(
    [None, "", text("real"), text("other"), event(1).text, lines((1, 0, "x"), (1, 0, "y")).text, "---\na: b"]
)
_ADDED = st.one_of(
    st.builds(
        MailboxOp,
        e=st.sampled_from(["t", "t/acme"]),
        h=CLOCKS,
        kind=st.just(EVENT),
        text=st.just(event(1).text),
    ),
    st.builds(
        MailboxOp,
        e=st.sampled_from(
            [
                LINE.e,
                LINE.e.replace("m/", "m/acme/"),
                LINE.e.replace("m/", "m/acme/").replace("-0", "-999999"),
            ]
        ),
        h=CLOCKS,
        kind=st.sampled_from([LIVE, FORGOTTEN]),
        author=st.sampled_from(["", FOREIGN, OTHER]),
        text=st.sampled_from([LINE.text, lines((1, 0, "x"), (2, 1, "y")).text, lines((1, 0, "z")).text]),
    ),
)
OPS = _ADDED | st.builds(
    MailboxOp,
    b=st.lists(st.sampled_from(["ab" * 16, "cd" * 16]), max_size=2).map(tuple),
    dots=st.sets(
        st.tuples(
            st.sampled_from([f"{DEV}-1", f"{OTHER}-1", f"{DEV}-9007199254740991"]),
            st.sampled_from([later(0), later(1)]),
        )
    )
    .map(sorted)
    .map(tuple),
    e=NAMES,
    h=CLOCKS,
    kind=st.sampled_from([LIVE, LIVE, FORGOTTEN, EVENT, "moved"]),
    author=st.sampled_from(["", "", FOREIGN, DEV, OTHER]),
    sees=st.sets(
        st.builds(
            SeenOp,
            st.sampled_from([AGENT, OTHER]),
            HASHES | st.just(next(ops_of(REAL)).id),
            CLOCKS,
            st.just("") | HASHES,
        ),
        max_size=3,
    )
    .map(sorted)
    .map(tuple),
    text=TEXTS,
)


def _stored(made: MailboxEntry) -> StoredEntry | None:
    """Return the entry as it arrives; None if refused."""
    try:
        payload = sign_entry(SIGNER, made)
        return StoredEntry(parse_mailbox_entry(payload[64:]), sha256(payload).hexdigest())
    except FormatError:
        return None


def _entries(batches: list[list[MailboxOp]]) -> list[StoredEntry]:
    found = []
    for batch in batches:
        for ops in [batch, *([op] for op in batch)]:  # a refused op does not hide the others
            if (arrived := _stored(entry(*ops))) is not None:
                found.append(arrived)
    return found


@given(st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=5), st.sampled_from([WRITER, APPEND]))
def test_hostile_entries_stay_within_the_rights_of_their_key(
    batches: list[list[MailboxOp]], role: str
) -> None:
    entries = _entries(batches)
    rights = {AGENT: AgentRights(role=role, scopes=frozenset(["acme"]))}
    held = {f"{DEV}-1": value("own", 0), f"{OTHER}-1": value("theirs", 0)}
    state = State({DEV: 1, OTHER: 1}, {"m/acme/x": held})
    texts: dict[str, bytes] = {}
    by = Admitting(dev=DEV, now_ms=NOW, mine=lambda dev: dev != OTHER, rights=rights)
    done = admit(state, entries, Marks(), by, texts)
    texts.update(done.texts)
    covered(done.state)
    for name in done.changed:
        assert name.startswith("m/acme/") or marker_name(name), name
        if name in done.state.entries:
            check_entry(name, done.state.entries[name], published=False)
    assert all(scope == "acme" for scope, _ in done.events)
    if role == APPEND:
        assert held.items() <= done.state.entries["m/acme/x"].items()
    marks = read_marks(done.state.entries, lambda name, one: texts.get(one.body or ""), by.mine)
    again = admit(done.state, entries, marks, by, texts)
    assert (again.state, again.events) == (done.state, ())


@given(st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=4))
def test_reader_shows_hostile_entries_without_an_error(batches: list[list[MailboxOp]]) -> None:
    rights = {AGENT: AgentRights(role=WRITER)}
    pending = pending_ops(_entries(batches), Marks(), rights, NOW, lambda dev: True).ready
    for name, ops in by_entry(pending).items():
        if name.startswith("m/"):
            shown = entry_with_ops({f"{OTHER}-1": value("theirs", 0)}, ops, lambda dev: dev != OTHER)
            for dot, one in shown.entry.items():  # more than four of an agent may wait
                check_value(name, dot, one, published=False)
            view_entry(name.rpartition("/")[2], shown.entry, shown.texts.get, lambda base: None)


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-1, 2)
        | st.text(max_size=5)
        | st.sampled_from([AGENT, START, "ab" * 32]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["agent", "ek", "i", "ops", "repeats", "start", "v", "vault", "e", "h"]),
                inner,
                max_size=9,
            )
        ),
    )
)
def test_arbitrary_json_is_an_entry_or_a_format_error(given_value: Any) -> None:
    data = given_value if isinstance(given_value, bytes) else canonical.encode(given_value)
    try:
        parse_mailbox_entry(data)
    except FormatError:
        return
    raise AssertionError("random JSON is an entry")
