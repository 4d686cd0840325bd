"""Writes fixtures/vectors/mailbox.json. Run it only when the format changes: python -m tests.unit.causal.make_mailbox_vectors"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import canonical
from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal.mailbox_admission import APPEND, WRITER, Admitting, AgentRights, admit, pending_ops
from ipfsmem.causal.mailbox_entry import (
    EVENT,
    LINES,
    EntryName,
    MailboxEntry,
    MailboxOp,
    StoredEntry,
    ops_of,
    repeated_ops,
    seal_entry,
    sign_entry,
)
from ipfsmem.causal.mailbox_markers import (
    MarkerName,
    Marks,
    entry_token,
    marker_text,
    marker_value,
    op_token,
    read_marks,
)
from ipfsmem.causal.mailbox_view import entry_with_ops
from ipfsmem.causal.state import State
from ipfsmem.causal.value import FORGOTTEN, LIVE, Entry, Value
from ipfsmem.provider.small_objects import small_box
from ipfsmem.seal.objects import Sealer, epoch_key
from ipfsmem.seal.primitives import Signer25519

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"
VAULT = bytes.fromhex("3973bff87388964db243992eeb7c6506")
SEALER = Sealer(epoch_key(1, bytes(range(32)), VAULT), VAULT)
SIGNER = Signer25519(bytes([1]) * 32)
ANCHOR = Signer25519(bytes([3]) * 32).public
AGENT = sha256(SIGNER.public).hexdigest()[:16]
DEV, OTHER = "d" * 16, "c" * 16
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


def event(x: int) -> MailboxOp:
    line = event_line({"ts": "2026-04-14T12:03:12.000Z", "type": "built", "id": f"{START}-{x}", "x": x})
    return MailboxOp(e="t/acme", h=later(x), kind=EVENT, text=line.decode())


def lines(*items: tuple[int, int, str], h: str | None = None) -> MailboxOp:
    body = "\n".join(
        json.dumps({"at": at, "n": n, "item": {"role": "user", "content": said}}, separators=(",", ":"))
        for at, n, said in items
    )
    part = render_memory(MemoryFile({"type": "session", "session": "work"}, body)).decode()
    return MailboxOp(e=f"m/session-work-{START[:16]}-0", h=h or later(1), kind=LINES, text=part)


def entry(*ops: MailboxOp, last: StoredEntry | None = None, start: str = START) -> MailboxEntry:
    return MailboxEntry(
        agent=AGENT,
        ek=SEALER.epoch_key.id,
        i=0 if last is None else last.entry.i + 1,
        ops=repeated_ops(last, ops),
        prev=None if last is None else last.sha,
        ring="ab" * 32,
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


def _entries() -> list[dict[str, Any]]:
    first = stored(live("one"), event(1))
    second = stored(lines((5, 1, "hello")), last=first)
    forget = MailboxOp(
        dots=(f"{OTHER}-3",),
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
                "box": small_box(ANCHOR),
                "name": str(EntryName(AGENT, each.entry.start, each.entry.i, each.sha)),
                "ids": [placed.id for placed in ops_of(each)],
                "marks": [placed.mark for placed in ops_of(each)],
                "done": entry_token(AGENT, each.entry.start, each.sha),
            }
        )
    return rows


def refused() -> list[dict[str, Any]]:
    """Yield JSON texts that are not entries."""
    good = msgspec.to_builtins(entry(live("one")))
    op = good["ops"][0]
    seen = [AGENT, "ab" * 32, CLOCK, ""]

    def with_op(**more: Any) -> dict[str, Any]:
        return {**good, "ops": [{**op, **more}]}

    part = msgspec.to_builtins(lines((1, 0, "x")))

    def with_part(**more: Any) -> dict[str, Any]:
        return {**good, "ops": [{**part, **more}]}

    def with_line(line: str) -> dict[str, Any]:
        return with_part(text=f"---\ntype: session\nsession: work\n---\n\n{line}\n")

    bad: dict[str, Any] = {
        "an unknown field": {**good, "x": 1},
        "an unknown field of an op": with_op(x=1),
        "a missing field": {name: good[name] for name in good if name != "ring"},
        "another version": {**good, "v": 2},
        "no op": {**good, "ops": []},
        "a first entry with one before it": {**good, "prev": "ab" * 32},
        "a later entry with none before it": {**good, "i": 1},
        "a number out of range": {**good, "i": -1},
        "an agent that is not an id": {**good, "agent": "AB" * 8},
        "a start that is too short": {**good, "start": "0f" * 15},
        "only repeated ops": with_op(first=["ab" * 32, 0]),
        "a repeated op after a new one": {**good, "ops": [op, {**op, "first": ["ab" * 32, 0]}]},
        "an op repeated twice": {**good, "ops": [*[{**op, "first": ["ab" * 32, 0]}] * 2, op]},
        "an empty list that is written": with_op(b=[]),
        "dots out of order": with_op(dots=[f"{OTHER}-3", f"{OTHER}-2"]),
        "dots in the order of their numbers": with_op(dots=[f"{OTHER}-9", f"{OTHER}-10"]),
        "seen ops out of order": with_op(sees=[[AGENT, f"{n:064x}", *seen[2:]] for n in (2, 1)]),
        "a dot twice": with_op(dots=[f"{OTHER}-3", f"{OTHER}-3"]),
        "a malformed dot": with_op(dots=["3"]),
        "a seen op twice": with_op(sees=[seen, seen]),
        "a seen op without an id": with_op(sees=[[AGENT, "", *seen[2:]]]),
        "a seen op with another field": with_op(sees=[[*seen, 1]]),
        "more than 256 seen ops": with_op(sees=[[AGENT, f"{n:064x}", *seen[2:]] for n in range(257)]),
        "five bases": with_op(b=[f"{n:032x}" for n in range(5)]),
        "a clock that is not hex": with_op(h="now"),
        "an unknown kind": with_op(kind="moved"),
        "a text without text": {**good, "ops": [{k: v for k, v in op.items() if k != "text"}]},
        "a wish to forget with a text": with_op(kind="forgotten"),
        "a text of nobody": with_op(of="me"),
        "a text in a timeline": with_op(e="t"),
        "a text in a card": with_op(e="c/acme"),
        "an event in a memory": with_op(kind="event"),
        "an event that is not in its one form": with_op(
            kind="event", e="t", text='{"type":"x","ts":"2026-01-01"}'
        ),
        "an event under a device's own id": with_op(
            kind="event",
            e="t",
            text=event_line({"ts": "2026-04-14T12:03:12.000Z", "type": "x", "id": f"{OTHER}-1"}).decode(),
        ),
        "an event that replaces a dot": {
            **good,
            "ops": [{**msgspec.to_builtins(event(1)), "dots": [f"{OTHER}-1"]}],
        },
        "lines that are not of a part": with_op(kind="lines"),
        "a part written as a text": {
            **good,
            "ops": [{**msgspec.to_builtins(lines((1, 0, "x"))), "kind": "live"}],
        },
        "lines of a part with too great a number": {
            **good,
            "ops": [{**msgspec.to_builtins(lines((1, 0, "x"))), "e": f"m/session-work-{START[:16]}-100000"}],
        },
        "a line that is not JSON": {
            **good,
            "ops": [
                {
                    **msgspec.to_builtins(lines((1, 0, "x"))),
                    "text": "---\ntype: session\nsession: work\n---\n\nx\n",
                }
            ],
        },
        "a number of more than ten digits": {**good, "i": 10**10, "prev": "ab" * 32},
        "a part of another start": with_part(e=f"m/session-work-{OTHER}-0"),
        "a part that is not in its one form": with_part(text=(part["text"]).replace("---\n\n", "---\n")),
        "a line that removes an item": with_line(f'{{"at":6,"gone":[5,"{OTHER}",1]}}'),
        "a line that approves items": with_line('{"at":6,"item":{"ipfsmem":{"approved":{}}}}'),
        "a piece of an item": with_line('{"at":6,"piece":[0,2],"text":"x"}'),
        "an event of a type of ipfsmem": with_op(
            kind="event",
            e="t",
            text=event_line(
                {"ts": "2026-04-14T12:03:12.000Z", "type": "ipfsmem-moved", "id": f"{START}-1"}
            ).decode(),
        ),
    }
    return [{"about": about, "json": canonical.encode(each).decode()} for about, each in bad.items()]


def cases() -> list[tuple[str, State, list[StoredEntry], AgentRights]]:
    """Yield (what it shows, state, entries, the agent's rights)."""
    may = AgentRights(role=WRITER)
    empty = State()
    one = stored(live("one"))
    op = next(ops_of(one))
    two = stored(live("two", 2, sees=(op.as_seen(),), dots=(f"{OTHER}-1",)), start="1e" * 16)
    held = State({OTHER: 1}, {E: {f"{OTHER}-1": value("old", 0)}})
    taken = State({OTHER: 2}, {E: {f"{OTHER}-2": value("one", 1)}})
    full: Entry = {f"{DEV}-{n}": value(f"own {n}", n) for n in range(1, 4)}
    ahead = later(0, 3_600_000)
    repeated = msgspec.structs.replace(live("false"), first=op.place)
    false = entry(repeated, live("two", 2), last=None)
    false = msgspec.structs.replace(false, i=1, prev=one.sha)
    liar = StoredEntry(false, sha256(put(false)).hexdigest())
    kept = msgspec.structs.replace(live("one"), h=later(0, -91 * 24 * 3_600_000))
    part = lines((NOW - 5, 1, "one"), (NOW + 5, 2, "two"))
    forgot = State(
        {DEV: 1}, {part.e: {f"{DEV}-1": Value(b=(), body=None, h=f"{NOW << 16:016x}", kind=FORGOTTEN)}}
    )
    card = State({DEV: 1}, {"c/acme": {f"{DEV}-1": Value(b=(), body=None, h=CLOCK, kind=FORGOTTEN)}})
    return [
        ("a text, an event and lines", empty, [stored(live("one"), event(1), lines((5, 1, "hello")))], may),
        ("a text replaces the dot and the op that its writer was shown", held, [two, one], may),
        ("an op seen that comes later is not revived", held, [two], may),
        ("another device admitted the op", taken, [one], may),
        ("another device admitted the op seen", taken, [two], may),
        ("an equal text with another clock is another write", taken, [stored(live("one", 3))], may),
        ("two processes write one key", empty, [one, stored(live("two", 2), start="1e" * 16)], may),
        ("a process resumed twice", empty, [one, stored(live("two", 2))], may),
        ("own dots are full: a text stands beside", State({DEV: 3}, {E: full}), [one], may),
        (
            "own dots are full: a wish to forget takes the last one",
            State({DEV: 3}, {E: full}),
            [stored(MailboxOp(e=E, h=later(9), kind=FORGOTTEN))],
            may,
        ),
        ("a clock that is ahead loses its time", empty, [stored(live("one", h=ahead))], may),
        ("an old op waits", empty, [stored(kept)], may),
        ("a protected scope waits", empty, [stored(live("one", e="m/agents/agent-1"), live("one"))], may),
        (
            "a scope without a right waits",
            empty,
            [stored(live("one", e="m/acme/x"))],
            AgentRights(role=WRITER, scopes=frozenset([""])),
        ),
        ("an expired key waits", empty, [one], AgentRights(role=WRITER, until_ms=NOW)),
        ("a key that may only add replaces nothing", held, [two], AgentRights(role=APPEND)),
        ("a reader's key waits", empty, [one], AgentRights(role="reader")),
        ("a forgotten scope waits", card, [stored(live("one", e="m/acme/x"))], may),
        ("lines before a forget are left out", forgot, [stored(part)], may),
        (
            "lines with equal numbers are both kept",
            empty,
            [stored(lines((5, 1, "one"))), stored(lines((5, 1, "two"), h=later(2)))],
            may,
        ),
        ("a repeat with another content is another op", empty, [liar, one], may),
        ("a false repeat marks no entry that was not read", empty, [liar], may),
        (
            "a dot of a value later than the op stays",
            State({OTHER: 1}, {E: {f"{OTHER}-1": value("later", 9)}}),
            [two],
            may,
        ),
    ]


def admitted(
    state: State, entries: list[StoredEntry], rights: AgentRights, texts: dict[str, bytes]
) -> dict[str, Any]:
    """Return a device's result for these entries in the form of a row."""
    by = Admitting(dev=DEV, now_ms=NOW, mine=lambda dev: True, rights={AGENT: rights}, bodies=texts.get)
    done = admit(state, entries, Marks(), by)
    return {
        "ctx": done.state.ctx,
        "entries": _as_json({name: done.state.entries.get(name, {}) for name in done.changed}),
        "texts": {body: data.decode() for body, data in sorted(done.texts.items())},
        "events": [[each.scope, each.line.decode()] for each in done.events],
        "waiting": [each.op.mark for each in done.waiting],
    }


def readings() -> list[dict[str, Any]]:
    """Yield what a reader of the agent's person (devices: DEV and the agent) shows of an entry of the
    state."""
    may, other = {AGENT: AgentRights(role=WRITER)}, {AGENT: AgentRights(role=APPEND)}
    one = stored(live("one"))
    op = next(ops_of(one))
    two = stored(live("two", 2, sees=(op.as_seen(),), dots=(f"{OTHER}-1",)), start="1e" * 16)
    held: Entry = {f"{OTHER}-1": value("old", 0)}
    done, single = entry_token(AGENT, START, one.sha), op_token(op.mark)
    rows = []
    for about, entries, rights, mine, marks in [
        ("an op is a sibling", [one], may, [DEV, AGENT], {}),
        ("an op hides what it replaces", [one, two], may, [DEV, AGENT], {}),
        ("an op that waits is not shown", [one, two], other, [DEV, AGENT], {}),
        ("an op of another person's agent is not shown", [one], may, [DEV], {}),
        ("a replayed entry is done", [one], may, [DEV, AGENT], {DEV: [done]}),
        ("a replayed op is done", [one], may, [DEV, AGENT], {DEV: [single]}),
        (
            "markers are united",
            [one, two],
            may,
            [DEV, AGENT, "b" * 16],
            {DEV: [single], "b" * 16: [op_token(next(ops_of(two)).mark)]},
        ),
        ("a marker of another person's device is ignored", [one], may, [DEV, AGENT], {OTHER: [done]}),
    ]:
        state: dict[str, Entry] = {E: held}
        texts: dict[str, bytes] = {}
        for dev, tokens in marks.items():
            data = marker_text(tokens)
            texts[sha256(data).hexdigest()] = data
            marker = marker_value(sha256(data).hexdigest())
            state[MarkerName(dev, NOW // (7 * 24 * 3_600_000), 0).entry] = {f"{dev}-1": marker}
        read = read_marks(state, texts.get, mine.__contains__)
        pending = pending_ops(entries, read, rights, NOW, mine.__contains__)
        rows.append(
            {
                "about": about,
                "mine": mine,
                "role": rights[AGENT].role,
                "state": _as_json(state),
                "texts": {body: data.decode() for body, data in texts.items()},
                "stored": [canonical.b64(put(each.entry)) for each in entries],
                "names": [
                    str(EntryName(AGENT, each.entry.start, each.entry.i, each.sha)) for each in entries
                ],
                "shown": _as_json(entry_with_ops(held, pending.ready).entry),
            }
        )
    return rows


def _as_json(given: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(given))


def vectors() -> dict[str, Any]:
    admissions = []
    for about, state, entries, rights in cases():
        admissions.append(
            {
                "about": about,
                "ctx": state.ctx,
                "state": _as_json(state.entries),
                "stored": [canonical.b64(put(each.entry)) for each in entries],
                "names": [
                    str(EntryName(AGENT, each.entry.start, each.entry.i, each.sha)) for each in entries
                ],
                "rights": {
                    "role": rights.role,
                    "scopes": None if rights.scopes is None else sorted(rights.scopes),
                    "until_ms": rights.until_ms,
                },
                "result": admitted(state, entries, rights, {}),
            }
        )
    return {
        "about": "Mailbox entries (format section 5.3), sealed under EK 00..1f of epoch 1 and signed by the agent",
        "vault": VAULT.hex(),
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
