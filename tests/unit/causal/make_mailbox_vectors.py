"""Writes fixtures/vectors/mailbox.json. Run it only when the format changes: python -m tests.unit.causal.make_mailbox_vectors"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import canonical
from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.bundle.session_parts import session_token
from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal.mailbox_admission import APPEND, WRITER, Admitting, AgentRights, pending_ops
from ipfsmem.causal.mailbox_entry import (
    EVENT,
    AgentOp,
    EntryName,
    MailboxEntry,
    MailboxOp,
    StoredEntry,
    ops_of,
    seal_entry,
    sign_entry,
    start_id,
    with_repeats,
)
from ipfsmem.causal.mailbox_markers import WEEK_MS, MarkerName, entry_token, marker_text, read_marks
from ipfsmem.causal.mailbox_view import entry_with_ops
from ipfsmem.causal.state import State
from ipfsmem.causal.value import FOREIGN, FORGOTTEN, LIVE, Entry, Loc, Value, hash32
from ipfsmem.provider.small_objects import small_box
from ipfsmem.seal.objects import Sealer, epoch_key
from ipfsmem.seal.primitives import Signer25519
from tests.support.mailbox_state import admit

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"
VAULT = bytes.fromhex("3973bff87388964db243992eeb7c6506")
SEALER = Sealer(epoch_key(1, bytes(range(32)), VAULT), VAULT)
SIGNER = Signer25519(bytes([1]) * 32)
ANCHOR = Signer25519(bytes([3]) * 32).public
AGENT = sha256(SIGNER.public).hexdigest()[:16]
#: A device, another person's, and a second one of the first person.
DEV, OTHER, SECOND = "d" * 16, "c" * 16, "b" * 16
START = "0f" * 16
NOW = 1_776_000_000_000
CLOCK = f"{NOW << 16 | 7:016x}"
E = "m/tone"


def text(body: str) -> str:
    return f"---\nname: Tone\n---\n\n{body}\n"


def hashed(body: str) -> str:
    return sha256(text(body).encode()).hexdigest()


def later(n: int, ms: int = 0) -> str:
    """Return a clock value n ticks and `ms` milliseconds after CLOCK."""
    return f"{int(CLOCK, 16) + n + (ms << 16):016x}"


def live(body: str, n: int = 1, **more: Any) -> MailboxOp:
    return MailboxOp(**{"e": E, "h": later(n), "kind": LIVE, "text": text(body), **more})


def event(x: int, start: str = START) -> MailboxOp:
    line = event_line(
        {"ts": "2026-04-14T12:03:12.000Z", "type": "built", "id": f"{start_id(AGENT, start)}-{x}", "x": x}
    )
    return MailboxOp(e="t/acme", h=later(x), kind=EVENT, text=line.decode())


def lines(*items: tuple[int, int, str], h: str | None = None, start: str = START, i: int = 0) -> MailboxOp:
    body = "\n".join(
        json.dumps({"at": at, "n": n, "item": {"role": "user", "content": said}}, separators=(",", ":"))
        for at, n, said in items
    )
    part = render_memory(MemoryFile({"type": "session", "session": "work"}, body)).decode()
    e = f"m/session-work-{start_id(AGENT, start)[:16]}-{i}"
    return MailboxOp(e=e, h=h or later(1), kind=LIVE, text=part)


def entry(*ops: MailboxOp, last: StoredEntry | None = None, start: str = START) -> MailboxEntry:
    every, repeats = with_repeats(last, ops)
    return MailboxEntry(
        agent=AGENT,
        ek=SEALER.epoch_key.id,
        i=0 if last is None else last.entry.i + 1,
        ops=every,
        repeats=repeats,
        start=start,
        vault=VAULT.hex(),
    )


def put(made: MailboxEntry) -> bytes:
    """Return the stored bytes of an entry."""
    return seal_entry(SEALER, made, sign_entry(SIGNER, made))


def stored(*ops: MailboxOp, last: StoredEntry | None = None, start: str = START) -> StoredEntry:
    made = entry(*ops, last=last, start=start)
    return StoredEntry(made, sha256(put(made)).hexdigest())


def value(body: str, n: int, **more: Any) -> Value:
    return Value(**{"b": (), "body": hashed(body), "h": later(n), "kind": LIVE, **more})


def marker(dev: str, *tokens: str, texts: dict[str, bytes], week: int = NOW // WEEK_MS, i: int = 0) -> Entry:
    """The entry of a marker that a device wrote; its text goes to `texts`."""
    data = marker_text(tokens)
    texts[sha256(data).hexdigest()] = data
    return {f"{dev}-1": Value(b=(), body=sha256(data).hexdigest(), h="0" * 16, kind=LIVE)}


def _entries() -> list[dict[str, Any]]:
    first = stored(live("one"), event(1))
    second = stored(lines((5, 1, "hello")), last=first)
    forget = MailboxOp(
        dots=((f"{OTHER}-3", later(0)),),
        e=E,
        h=later(9),
        kind=FORGOTTEN,
        sees=tuple(each.as_seen() for each in ops_of(first) if each.op.kind == LIVE),
    )
    rows = []
    for about, each in [
        ("a text and an event", first),
        ("the next entry of the start repeats them", second),
        ("a wish to forget what it was shown", stored(forget, start="1e" * 16)),
    ]:
        data = put(each.entry)
        rows.append(
            {
                "about": about,
                "json": canonical.encode(each.entry).decode(),
                "stored": canonical.b64(data),
                "box": small_box(ANCHOR, AGENT),
                "name": str(EntryName(AGENT, each.entry.start, each.entry.i, each.sha)),
                "start_id": start_id(AGENT, each.entry.start),
                "ids": [one.id for one in ops_of(each)],
                "marks": [one.mark for one in ops_of(each)],
                "done": entry_token(each.sha),
            }
        )
    return rows


def refused() -> list[dict[str, Any]]:
    """Yield JSON texts that are not entries."""
    good = msgspec.to_builtins(entry(live("one")))
    op = good["ops"][0]
    seen = [AGENT, "ab" * 32, CLOCK, ""]
    part, happened = msgspec.to_builtins(lines((1, 0, "x"))), msgspec.to_builtins(event(1))

    def with_op(**more: Any) -> dict[str, Any]:
        return {**good, "ops": [{**op, **more}]}

    def with_part(**more: Any) -> dict[str, Any]:
        return {**good, "ops": [{**part, **more}]}

    def with_line(line: str, session: str = "work") -> dict[str, Any]:
        return with_part(text=f"---\ntype: session\nsession: {session}\n---\n\n{line}\n")

    def with_event(**more: Any) -> dict[str, Any]:
        given = {"ts": "2026-04-14T12:03:12.000Z", "type": "x", "id": f"{start_id(AGENT, START)}-1", **more}
        return {**good, "ops": [{**happened, "text": event_line(given).decode()}]}

    bad: dict[str, Any] = {
        "an unknown field": {**good, "x": 1},
        "an unknown field of an op": with_op(x=1),
        "a missing field": {name: good[name] for name in good if name != "repeats"},
        "another version": {**good, "v": 2},
        "no op": {**good, "ops": []},
        "a number out of range": {**good, "i": -1},
        "a number of more than ten digits": {**good, "i": 10**10},
        "an agent that is not an id": {**good, "agent": "AB" * 8},
        "a start that is too short": {**good, "start": "0f" * 15},
        "a repeated entry that is not a hash": {**good, "repeats": ["ab"]},
        "a repeated entry twice": {**good, "repeats": ["ab" * 32] * 2},
        "an empty list that is written": with_op(b=[]),
        "dots out of order": with_op(dots=[[f"{OTHER}-3", CLOCK], [f"{OTHER}-2", CLOCK]]),
        "dots in the order of their numbers": with_op(dots=[[f"{OTHER}-9", CLOCK], [f"{OTHER}-10", CLOCK]]),
        "a dot twice": with_op(dots=[[f"{OTHER}-3", CLOCK]] * 2),
        "a dot without its clock": with_op(dots=[f"{OTHER}-3"]),
        "a dot with a malformed clock": with_op(dots=[[f"{OTHER}-3", "now"]]),
        "a malformed dot": with_op(dots=[["3", CLOCK]]),
        "seen ops out of order": with_op(sees=[[AGENT, f"{n:064x}", *seen[2:]] for n in (2, 1)]),
        "a seen op twice": with_op(sees=[seen, seen]),
        "a seen op without an id": with_op(sees=[[AGENT, "", *seen[2:]]]),
        "a seen op with another field": with_op(sees=[[*seen, 1]]),
        "more than 256 seen ops": with_op(sees=[[AGENT, f"{n:064x}", *seen[2:]] for n in range(257)]),
        "more than 800 dots": with_op(dots=[[f"{OTHER}-{n}", CLOCK] for n in range(1000, 1801)]),
        "five bases": with_op(b=[f"{n:032x}" for n in range(5)]),
        "a clock that is not hex": with_op(h="now"),
        "an unknown kind": with_op(kind="moved"),
        "a text without text": {**good, "ops": [{k: v for k, v in op.items() if k != "text"}]},
        "a wish to forget with a text": with_op(kind="forgotten"),
        "a text of nobody": with_op(of="me"),
        "a text of the agent itself": with_op(of=AGENT),
        "a text in a timeline": with_op(e="t"),
        "a text in a card": with_op(e="c/acme"),
        "an event in a memory": with_op(kind="event"),
        "an event that is not in its one form": {
            **good,
            "ops": [{**happened, "text": '{"type":"x","ts":"2026-01-01"}'}],
        },
        "an event that replaces a dot": {**good, "ops": [{**happened, "dots": [[f"{OTHER}-1", CLOCK]]}]},
        "an event under a device's own id": with_event(id=f"{OTHER}-1"),
        "an event of another start": with_event(id=f"{start_id(AGENT, '1e' * 16)}-1"),
        "an event whose id is not a number": with_event(id=f"{start_id(AGENT, START)}-x"),
        "an event of a type of ipfsmem": with_event(type="ipfsmem-moved"),
        "a part of another start": with_part(e=f"m/session-work-{OTHER}-0"),
        "a wish to forget a part of another start": with_op(
            **{"kind": "forgotten", "e": f"m/session-work-{OTHER}-0", "text": None}
        ),
        "a text of no session under the key of a part": with_op(e=part["e"]),
        "a part that is not in its one form": with_part(text=(part["text"]).replace("---\n\n", "---\n")),
        "a part without a line": with_part(text="---\ntype: session\nsession: work\n---\n"),
        "a part of the history of a memory": {
            **with_line('{"at":1,"item":{}}', "ipfsmem-history/tone"),
            "ops": [
                {
                    **part,
                    "e": f"m/session-{session_token('ipfsmem-history/tone')}-{start_id(AGENT, START)[:16]}-0",
                    "text": '---\ntype: session\nsession: ipfsmem-history/tone\n---\n\n{"at":1,"item":{}}\n',
                }
            ],
        },
    }
    for line in [
        "x",
        '{"at":6}',
        '{"at":6,"item":"x"}',
        '{"at":6,"item":null}',
        '{"at":6.5,"item":{}}',
        '{"at":6,"n":null,"item":{}}',
        '{"at":6,"n":-1,"item":{}}',
        '{"at":6,"piece":null,"item":{}}',
        '{"at":6,"piece":[0,2],"text":"x"}',
        f'{{"at":6,"gone":[5,"{OTHER}",1]}}',
        '{"at":6,"item":{"ipfsmem":{"approved":{}}}}',
        '{"at":6,"item":{"x":1,"\\u0069pfsmem":null}}',
        f'{{"at":{NOW + 1},"item":{{}}}}',
    ]:
        bad[f"a line {line}"] = with_line(line)
    bad["a wish to forget a part of another start"]["ops"][0].pop("text")
    return [{"about": about, "json": canonical.encode(each).decode()} for about, each in bad.items()]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An admission: what it shows, the state before, the entries, and the agent's rights. `refused`: entries of the state that accept
    no write."""

    about: str
    state: State = State()
    entries: list[StoredEntry]
    rights: AgentRights = AgentRights(role=WRITER)
    mine: tuple[str, ...] = (DEV, AGENT, SECOND)
    texts: dict[str, bytes] = {}
    accepted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def _replaces(*ops: MailboxOp, dots: tuple[tuple[str, str], ...] = (), **more: Any) -> StoredEntry:
    """The entry of another start that replaces these ops and dots with the text `two`."""
    sees = tuple(sorted(AgentOp(AGENT, op).as_seen() for op in ops))
    return stored(live("two", 2, sees=sees, dots=dots, **more), start="1e" * 16)


def cases() -> list[Case]:
    """What a device makes of entries, with each fault that a review found in the first rules."""
    one = stored(live("one"))
    two = _replaces(live("one"), dots=((f"{OTHER}-1", later(0)),))
    own, theirs = {f"{DEV}-1": value("old", 0)}, {f"{OTHER}-1": value("old", 0)}
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 4)}
    forget = MailboxOp(e=E, h=later(9), kind=FORGOTTEN)
    ahead = live("one", h=later(0, 3_600_000), dots=((f"{DEV}-1", later(0)),))
    old = live("one", h=later(0, -91 * 24 * 3_600_000))
    card = State({DEV: 1}, {"c/acme": {f"{DEV}-1": Value(b=(), body=None, h=CLOCK, kind=FORGOTTEN)}})
    base = value("old", 0, loc=Loc("0f" * 8, "ab" * 32, 100))
    texts: dict[str, bytes] = {}
    name = MarkerName(DEV, NOW // WEEK_MS, 0).entry

    def marked(dev: str, *tokens: str) -> State:
        return State({dev: 1}, {name: marker(dev, *tokens, texts=texts)})

    add, reader = AgentRights(role=APPEND), AgentRights(role="reader")
    return [
        Case(
            about="a text, an event and a part",
            entries=[stored(live("one"), event(1), lines((5, 1, "hello")))],
        ),
        Case(
            about="a text replaces the dot and the op that its writer was shown",
            state=State({OTHER: 1}, {E: theirs}),
            entries=[two, one],
        ),
        Case(
            about="an op seen that comes later is not revived",
            state=State({OTHER: 1}, {E: theirs}),
            entries=[two],
        ),
        Case(
            about="an op that another device admitted is replaced by its clock and text",
            state=State({SECOND: 1}, {E: {f"{SECOND}-1": value("one", 1)}}),
            entries=[two],
        ),
        Case(
            about="a copy of an op by another person is not that op",
            state=State({OTHER: 2}, {E: {f"{OTHER}-2": value("one", 1)}}),
            entries=[one, two],
        ),
        Case(
            about="a copy of a wish to forget by another person is not that wish",
            state=State({OTHER: 2}, {E: {f"{OTHER}-2": Value(b=(), body=None, h=later(9), kind=FORGOTTEN)}}),
            entries=[stored(forget)],
        ),
        Case(
            about="an equal text with another clock is another write",
            state=State({DEV: 1}, {E: {f"{DEV}-1": value("one", 1)}}),
            entries=[stored(live("one", 3))],
        ),
        Case(about="two processes write one key", entries=[one, stored(live("two", 2), start="1e" * 16)]),
        Case(about="a process resumed twice", entries=[one, stored(live("two", 2))]),
        Case(
            about="what two entries say alike is one op", entries=[one, stored(live("one"), start="1e" * 16)]
        ),
        Case(
            about="a dot with another clock was not shown",
            state=State({DEV: 1}, {E: own}),
            entries=[_replaces(dots=((f"{DEV}-1", later(1)),))],
        ),
        Case(
            about="own dots are full: a text goes to another key",
            state=State({DEV: 3}, {E: full}),
            entries=[one],
        ),
        Case(
            about="own dots are full: a wish to forget uses the last one",
            state=State({DEV: 3}, {E: full}),
            entries=[stored(forget)],
        ),
        Case(
            about="own dots are full: a text of others under the other key is not this one",
            state=State(
                {DEV: 3, OTHER: 1}, {E: full, f"{E}-{hashed('one')[:16]}": {f"{OTHER}-1": value("one", 1)}}
            ),
            entries=[one],
        ),
        Case(
            about="own dots are full: a part goes to the start of its mark",
            state=State({DEV: 3}, {lines((5, 1, "x")).e: full}),
            entries=[stored(lines((5, 1, "x")))],
        ),
        Case(about="a clock that is ahead waits", state=State({DEV: 1}, {E: own}), entries=[stored(ahead)]),
        Case(
            about="an accepted clock that is ahead is zero and replaces nothing",
            state=State({DEV: 1}, {E: own}),
            entries=[stored(ahead)],
            accepted=(AgentOp(AGENT, ahead).mark,),
        ),
        Case(about="an old op waits", entries=[stored(old)]),
        Case(
            about="an old op that a person accepts",
            entries=[stored(old)],
            accepted=(AgentOp(AGENT, old).mark,),
        ),
        Case(
            about="a protected scope waits", entries=[stored(live("one", e="m/agents/agent-1"), live("one"))]
        ),
        Case(
            about="a scope without a right waits",
            entries=[stored(live("one", e="m/acme/x"))],
            rights=AgentRights(role=WRITER, scopes=frozenset([""])),
        ),
        Case(about="an expired key waits", entries=[one], rights=AgentRights(role=WRITER, until_ms=NOW)),
        Case(about="a revoked key waits", entries=[one], rights=AgentRights(role=WRITER, revoked=True)),
        Case(about="a reader's key waits", entries=[one], rights=reader),
        Case(
            about="a key that may only add replaces nothing",
            state=State({OTHER: 1}, {E: theirs}),
            entries=[two],
            rights=add,
        ),
        Case(
            about="a key that may only add names no base",
            state=State({DEV: 1}, {E: own}),
            entries=[stored(live("one", b=(hash32(hashed("old")),)))],
            rights=add,
        ),
        Case(
            about="a key that may only add forgets no part",
            entries=[stored(MailboxOp(e=lines((5, 1, "x")).e, h=later(2), kind=FORGOTTEN))],
            rights=add,
        ),
        Case(about="a forgotten scope waits", state=card, entries=[stored(live("one", e="m/acme/x"))]),
        Case(
            about="a write that the device refuses costs the others nothing",
            entries=[stored(live("one"), live("two", 2, e="m/x"), event(3))],
            refused=(E,),
        ),
        Case(
            about="an event that the device refuses waits",
            entries=[stored(live("one"), event(3))],
            refused=("t",),
        ),
        Case(
            about="a text that replaces others' is theirs",
            state=State({OTHER: 1}, {E: theirs}),
            entries=[_replaces(dots=((f"{OTHER}-1", later(0)),))],
        ),
        Case(
            about="a text that another person copied before is not theirs",
            state=State({OTHER: 1}, {E: {f"{OTHER}-1": value("one", 0)}}),
            entries=[one],
        ),
        Case(
            about="a text says its author",
            entries=[stored(live("one"), live("two", 2, e="m/x", author=FOREIGN))],
        ),
        Case(
            about="a text of the device's own person says no author",
            entries=[stored(live("one", author=SECOND))],
        ),
        Case(
            about="a base is where the replaced value shows it",
            state=State({DEV: 1}, {E: {f"{DEV}-1": base}}),
            entries=[
                _replaces(b=(hash32(hashed("old")),), dots=((f"{DEV}-1", later(0)),)),
                stored(
                    live("three", 3, b=(hash32(hashed("old")),), dots=((f"{DEV}-1", later(0)),)),
                    start="2e" * 16,
                ),
            ],
        ),
        Case(
            about="texts of an agent that is another person are pending",
            state=State({DEV: 1}, {E: own}),
            entries=[_replaces(dots=((f"{DEV}-1", later(0)),)), stored(event(3), forget)],
            mine=(DEV, SECOND),
        ),
        Case(
            about="an agent that is another person replaces its own texts",
            state=State({DEV: 1}, {E: {f"{DEV}-1": value("old", 0, author=AGENT)}}),
            entries=[_replaces(dots=((f"{DEV}-1", later(0)),))],
            mine=(DEV, SECOND),
        ),
        Case(
            about="a marked op is not admitted again",
            state=marked(DEV, AgentOp(AGENT, live("one")).mark),
            entries=[one, stored(live("two", 2))],
            texts=texts,
        ),
        Case(
            about="an entry that is done is not admitted again",
            state=marked(SECOND, entry_token(one.sha)),
            entries=[one],
            texts=texts,
        ),
        Case(
            about="a marker of another person marks nothing and is not extended",
            state=marked(OTHER, entry_token(one.sha)),
            entries=[one],
            texts=texts,
        ),
    ]


def by_of(case: Case) -> Admitting:
    """How the device of a row admits."""
    return Admitting(
        dev=DEV,
        now_ms=NOW,
        mine=case.mine.__contains__,
        rights={AGENT: case.rights},
        accepted=frozenset(case.accepted),
    )


def admitted(case: Case) -> dict[str, Any]:
    """Return a device's result for these entries in the form of a row."""
    by = by_of(case)
    marks = read_marks(case.state.entries, lambda name, value: case.texts.get(value.body or ""), by.mine)
    done = admit(case.state, case.entries, marks, by, case.texts, case.refused)
    return {
        "ctx": done.state.ctx,
        "entries": _as_json({name: done.state.entries.get(name, {}) for name in done.changed}),
        "texts": {body: data.decode() for body, data in sorted(done.texts.items())},
        "events": [[scope, line.decode()] for scope, line in done.events],
        "waiting": sorted(each.op.mark for each in done.waiting),
    }


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader shows of the entry `E`, in which another person's text `old` stands."""

    about: str
    entries: list[StoredEntry]
    role: str = WRITER
    mine: tuple[str, ...] = (DEV, AGENT)
    agents: tuple[str, ...] = (AGENT,)
    marks: dict[str, list[str]] = {}
    held: Entry = {}


def readings() -> list[dict[str, Any]]:
    """What a reader of the agent's person shows of an entry of the state; `agents` have a card of this person."""
    one = stored(live("one"))
    two = _replaces(live("one"), dots=((f"{OTHER}-1", later(0)),))
    done, single = entry_token(one.sha), AgentOp(AGENT, live("one")).mark
    ahead = stored(live("ahead", h=later(0, 3_600_000)), start="3e" * 16)
    rows = []
    for each in [
        Reading(about="an op is a sibling", entries=[one]),
        Reading(about="an op hides what it replaces", entries=[one, two]),
        Reading(about="an op that waits is not shown", entries=[one, two], role=APPEND),
        Reading(about="an op whose clock is ahead is not shown", entries=[one, ahead]),
        Reading(about="an op of another person's agent is not shown", entries=[one], agents=()),
        Reading(
            about="a copy by another person hides no op", entries=[one], held={f"{OTHER}-2": value("one", 1)}
        ),
        Reading(about="a replayed entry is done", entries=[one], marks={DEV: [done]}),
        Reading(about="a replayed op is done", entries=[one], marks={DEV: [single]}),
        Reading(
            about="markers are united",
            entries=[one, two],
            mine=(DEV, AGENT, SECOND),
            marks={DEV: [single], SECOND: [next(ops_of(two)).mark]},
        ),
        Reading(about="a marker of another person's device is ignored", entries=[one], marks={OTHER: [done]}),
        Reading(
            about="an agent that is another person replaces its own ops", entries=[one, two], mine=(DEV,)
        ),
    ]:
        held: Entry = {f"{OTHER}-1": value("old", 0), **each.held}
        state: dict[str, Entry] = {E: held}
        texts: dict[str, bytes] = {}
        for dev, tokens in each.marks.items():
            state[MarkerName(dev, NOW // WEEK_MS, 0).entry] = marker(dev, *tokens, texts=texts)
        mine = each.mine.__contains__
        read = read_marks(state, lambda name, value, texts=texts: texts.get(value.body or ""), mine)  # type: ignore[misc]
        rights = {agent: AgentRights(role=each.role) for agent in each.agents}
        pending = pending_ops(each.entries, read, rights, NOW, mine)
        rows.append(
            {
                "about": each.about,
                "mine": list(each.mine),
                "agents": list(each.agents),
                "role": each.role,
                "state": _as_json(state),
                "texts": {body: data.decode() for body, data in texts.items()},
                **_stored_rows(each.entries),
                "shown": _as_json(entry_with_ops(held, pending.ready, mine).entry),
            }
        )
    return rows


def _stored_rows(entries: list[StoredEntry]) -> dict[str, list[str]]:
    return {
        "stored": [canonical.b64(put(each.entry)) for each in entries],
        "names": [str(EntryName(AGENT, each.entry.start, each.entry.i, each.sha)) for each in entries],
    }


def _as_json(given: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(given))


def vectors() -> dict[str, Any]:
    admissions = [
        {
            "about": case.about,
            "ctx": case.state.ctx,
            "state": _as_json(case.state.entries),
            "texts": {body: data.decode() for body, data in sorted(case.texts.items())},
            "mine": list(case.mine),
            "accepted": list(case.accepted),
            "refused": list(case.refused),
            **_stored_rows(case.entries),
            "rights": {
                "role": case.rights.role,
                "scopes": None if case.rights.scopes is None else sorted(case.rights.scopes),
                "until_ms": case.rights.until_ms,
                "revoked": case.rights.revoked,
            },
            "result": admitted(case),
        }
        for case in cases()
    ]
    return {
        "about": "Mailbox entries (format section 5.3), sealed under EK 00..1f of epoch 1 and signed by the agent",
        "vault": VAULT.hex(),
        "anchor": ANCHOR.hex(),
        "agent": AGENT,
        "sign": SIGNER.public.hex(),
        "dev": DEV,
        "now_ms": NOW,
        "entries": _entries(),
        "refused": refused(),
        "admissions": admissions,
        "readings": readings(),
    }


if __name__ == "__main__":
    made = json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"
    (VECTORS / "mailbox.json").write_text(made, encoding="utf-8")
