"""Random histories of full devices and agent processes that share one vault through its mailbox, with
production rules.

`play(seed)` draws one; `judge` raises AssertionError if an acknowledged write is lost. Entries are signed,
sealed and opened as at a provider; they are withheld, repeated and replayed after deletion. Processes are
copied while they run and killed before a write is acknowledged. Contains no tests."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.bundle.session_parts import is_part_key
from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal import mailbox_admission, mailbox_entry, mailbox_markers
from ipfsmem.causal.authorship import IsMine
from ipfsmem.causal.clock import hlc, next_hlc
from ipfsmem.causal.entries import memory_name, segment_entry
from ipfsmem.causal.mailbox_admission import WRITER, Admitting, AgentRights, pending_ops
from ipfsmem.causal.mailbox_entry import (
    EVENT,
    AgentOp,
    EntryName,
    MailboxEntry,
    MailboxOp,
    StoredEntry,
    open_entry,
    parse_entry_name,
    seal_entry,
    sign_entry,
    start_id,
    with_repeats,
)
from ipfsmem.causal.mailbox_markers import Marks, marker_name, read_marks
from ipfsmem.causal.mailbox_view import by_entry, entry_with_ops, op_clock, replacing_op
from ipfsmem.causal.state import State
from ipfsmem.causal.value import FORGOTTEN, LIVE, Entry, Value, hash32
from ipfsmem.seal.objects import Sealer, epoch_key
from ipfsmem.seal.primitives import Signer25519
from tests.support.causal_lab import covered, join, written
from tests.support.mailbox_state import AdmittedOps, admit

VAULT = bytes(range(16))
SEALER = Sealer(epoch_key(1, bytes(range(32)), VAULT), VAULT)
BEGIN = 1_790_000_000_000
NAMES = [f"m/k{i}" for i in range(4)] + ["m/acme/k0"]
SESSION = "work"


class Agent:
    """An agent key, and the number of its person."""

    def __init__(self, number: int) -> None:
        self.person = number - 1
        self.signer = Signer25519(bytes([number]) * 32)
        self.id = sha256(self.signer.public).hexdigest()[:16]


AGENTS = (Agent(1), Agent(2))
OTHERS = AGENTS[1].id


#: The device of the second person, in plays of a shared vault.
OTHERS_DEVICE = "f" * 16


def mine_of(person: int) -> Callable[[str], bool]:
    """Return what identifies the devices and agents of a person."""
    return lambda dev: (dev in (OTHERS, OTHERS_DEVICE)) == bool(person)


class World:
    """The shared state: the provider, the clock, texts by hash, and acknowledged writes."""

    def __init__(self, rng: random.Random, keepers: int, faults: bool) -> None:
        self.rng, self.faults = rng, faults
        self.clock = BEGIN
        #: In some plays the second agent may write to the unnamed scope only: its other ops wait for
        #: approval.
        scopes = rng.choice([None, None, frozenset([""])])
        self.rights = {
            AGENTS[0].id: AgentRights(role=WRITER),
            OTHERS: AgentRights(role=WRITER, scopes=scopes),
        }
        self.texts: dict[str, bytes] = {}
        self.mailbox: dict[str, tuple[str, bytes]] = {}
        self.deleted: dict[str, tuple[str, bytes]] = {}
        self.opened: dict[str, StoredEntry] = {}
        self.heads: dict[str, State] = {}
        self.keepers = [FullDevice(self, f"{i + 1:x}" * 16) for i in range(keepers)]
        self.shared = rng.random() < 0.6
        if self.shared:
            self.keepers.append(FullDevice(self, OTHERS_DEVICE))
        #: Acknowledged writes by (entry, h, body), each with the writes that replaced it after having seen
        #: it.
        self.written: dict[tuple[str, str, str | None], set[tuple[str, str, str | None]]] = {}
        self.events: set[bytes] = set()
        self.lines: set[tuple[str, bytes]] = set()
        self.returned: set[str] = set()
        self.counts = dict.fromkeys(
            ("starts", "copies", "entries", "ops", "returns", "replayed", "beside", "left"), 0
        )

    def replaced(self, e: str, old: Value, by: tuple[str, str, str | None]) -> None:
        """Note that `by` replaces a value that its writer was shown."""
        if (e, old.h, old.body) in self.written:
            self.written[e, old.h, old.body].add(by)

    def rights_of(self, mine: IsMine) -> dict[str, AgentRights]:
        """The rights of the agents of a person."""
        return {agent: rights for agent, rights in self.rights.items() if mine(agent)}

    def marks(self, state: State, mine: IsMine) -> Marks:
        """What the markers in a state say."""
        return read_marks(state.entries, lambda name, value: self.texts.get(value.body or ""), mine)

    def tick(self) -> int:
        self.clock += self.rng.randint(0, 2)
        return self.clock

    def body(self, text: str) -> tuple[str, str]:
        data = text.encode()
        name = sha256(data).hexdigest()
        self.texts[name] = data
        return text, name

    def text_for(self, e: str, writer: str) -> str:
        """Return a new text, or sometimes an earlier text that was replaced."""
        old = sorted({body for (name, _, body), by in self.written.items() if name == e and body and by})
        if old and self.rng.random() < 0.12:
            self.counts["returns"] += 1
            body = self.rng.choice(old)
            self.returned.add(body)
            return self.texts[body].decode()
        return self.body(f"---\nname: t\n---\n\n{writer} {self.rng.getrandbits(64):x}\n")[0]

    def listed(self) -> list[StoredEntry]:
        """Return the entries that a reader gets from the provider; in faulty periods some are late or
        withheld."""
        found = []
        for name, (agent, data) in self.mailbox.items():
            if self.faults and self.rng.random() < 0.15:
                continue
            if name not in self.opened:
                key = next(each for each in AGENTS if each.id == agent)
                parsed = parse_entry_name(name)
                stored = open_entry(parsed, data, [SEALER], key.signer.public, VAULT)
                self.opened[name] = stored
            found.append(self.opened[name])
        self.rng.shuffle(found)
        return found


class FullDevice:
    """A device that publishes."""

    def __init__(self, world: World, dev: str) -> None:
        self.world, self.dev, self.state = world, dev, State()
        self.mine = mine_of(int(dev == OTHERS_DEVICE))
        self.skew = world.rng.choice([0, 0, -40_000, 40_000])
        self.waiting: set[tuple[str, str, str | None]] = set()

    def sync(self) -> AdmittedOps:
        for head in self.world.heads.values():
            joined = join(self.state, head)
            assert not joined.clashes, joined.clashes
            self.state = joined.state
        done = self.admission(self.world.listed())
        self.world.texts.update(done.texts)
        self.state = done.state
        for scope, line in done.events:
            self.append(scope, line)
        covered(self.state)
        self.waiting |= {(each.op.op.e, each.op.op.h, each.op.op.body) for each in done.waiting}
        self.world.heads[self.dev] = self.state
        return done

    def admission(self, entries: list[StoredEntry]) -> AdmittedOps:
        now = self.world.clock + self.skew
        by = Admitting(dev=self.dev, now_ms=now, mine=self.mine, rights=self.world.rights_of(self.mine))
        return admit(self.state, entries, self.world.marks(self.state, self.mine), by, self.world.texts)

    def append(self, scope: str, line: bytes) -> None:
        name = segment_entry("2026-09-21", self.dev, 0, scope)
        entry = self.state.entries.get(name, {})
        text = b"".join(self.world.texts[value.body or ""] for value in entry.values())
        if line in text.split(b"\n"):
            return
        _, body = self.world.body((text + line + b"\n").decode())
        value = Value(b=(), body=body, h=hlc(self.world.clock), kind=LIVE)
        self.state, _ = written(self.state, name, entry, self.dev, value)

    def write(self, e: str, forget: bool) -> None:
        world, entry = self.world, self.state.entries.get(e, {})
        if forget and not entry:
            return
        now = hlc(world.tick() + self.skew)
        h = max([now, *(next_hlc(value.h, 0) for value in entry.values())])
        body = None if forget else world.body(world.text_for(e, f"device {self.dev[:2]}"))[1]
        b = tuple(dict.fromkeys(hash32(v.body) for v in entry.values() if v.body))[:4] if body else ()
        value = Value(b=b, body=body, h=h, kind=FORGOTTEN if forget else LIVE)
        world.written.setdefault((e, h, body), set())
        for old in entry.values():
            world.replaced(e, old, (e, h, body))
        self.state, _ = written(self.state, e, entry, self.dev, value)


class Start:
    """A process with an agent key and without a home."""

    def __init__(self, world: World) -> None:
        self.world, self.agent = world, world.rng.choice(AGENTS if world.shared else AGENTS[:1])
        self.mine = mine_of(self.agent.person)
        self.start = f"{world.rng.getrandbits(128):032x}"
        self.skew = world.rng.choice([0, 0, 0, -40_000, 40_000, 10**10])
        self.last: StoredEntry | None = None
        self.clock, self.noted = "0" * 16, 0
        self.id = start_id(self.agent.id, self.start)
        self.state, self.seen = State(), {}
        for head in world.heads.values():
            self.state = join(self.state, head).state
        self.read()
        world.counts["starts"] += 1

    def copied(self) -> Start:
        twin = copy.copy(self)
        twin.seen = dict(self.seen)
        self.world.counts["copies"] += 1
        return twin

    def read(self) -> None:
        self.seen: dict[str, StoredEntry]
        self.seen.update({stored.sha: stored for stored in self.world.listed()})

    def write(self) -> None:
        """Write some ops in one entry, which is acknowledged when it is stored."""
        world, rng = self.world, self.world.rng
        ops: list[MailboxOp] = []
        facts: list[Callable[[], None]] = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            draw = rng.random()
            if draw < 0.7:
                e = rng.choice([name for name in NAMES if name not in {op.e for op in ops}])
                self._memory(e, rng.random() < 0.08, ops, facts)
            elif draw < 0.8:
                self._event(ops, facts)
            else:
                self._line(ops, facts)
        if not ops or (world.faults and rng.random() < 0.05):
            return  # killed before the upload: never acknowledged
        self.put(ops)
        for fact in facts:
            fact()

    def put(self, ops: list[MailboxOp]) -> None:
        world, last = self.world, self.last
        every, repeats = with_repeats(last, ops)
        entry = MailboxEntry(
            agent=self.agent.id,
            ek=SEALER.epoch_key.id,
            i=0 if last is None else last.entry.i + 1,
            ops=every,
            repeats=repeats,
            start=self.start,
            vault=VAULT.hex(),
        )
        data = seal_entry(SEALER, entry, sign_entry(self.agent.signer, entry))
        self.last = StoredEntry(entry, sha256(data).hexdigest())
        name = str(EntryName(self.agent.id, self.start, entry.i, self.last.sha))
        if name not in world.mailbox and name not in world.deleted:
            world.mailbox[name] = (self.agent.id, data)
        self.seen[self.last.sha] = self.last
        world.counts["entries"] += 1
        world.counts["ops"] += len(ops)

    def pending(self) -> list[AgentOp]:
        marks = self.world.marks(self.state, self.mine)
        now = self.world.clock + self.skew
        rights = self.world.rights_of(self.mine)
        return pending_ops(self.seen.values(), marks, rights, now, self.mine).ready

    def _clock(self, seen: Entry) -> str:
        self.clock = op_clock(seen, self.clock, self.world.tick() + self.skew, self.world.rng.getrandbits(16))
        return self.clock

    def _memory(self, e: str, forget: bool, ops: list[MailboxOp], facts: list[Callable[[], None]]) -> None:
        world = self.world
        shown = entry_with_ops(self.state.entries.get(e, {}), by_entry(self.pending()).get(e, []), self.mine)
        if forget and not shown.entry:
            return
        text = None if forget else world.text_for(e, f"start {self.start[:4]}")
        everything = [dot for dot in shown.entry if world.rng.random() < 0.9]
        op = replacing_op(e, shown, everything, text, self._clock(shown.entry))
        ops.append(op)
        old = [value for dot, value in shown.entry.items() if dot in everything]

        def fact() -> None:
            world.written.setdefault((e, op.h, op.body), set())
            for each in old:
                world.replaced(e, each, (e, op.h, op.body))

        facts.append(fact)

    def _event(self, ops: list[MailboxOp], facts: list[Callable[[], None]]) -> None:
        self.noted += 1
        event: dict[str, Any] = {
            "ts": "2026-09-21T10:00:00.000Z",
            "type": "built",
            "id": f"{self.id}-{self.noted}",
            "x": self.world.rng.getrandbits(30),
        }
        line = event_line(event)
        ops.append(MailboxOp(e="t", h=self._clock({}), kind=EVENT, text=line.decode()))
        facts.append(lambda: self.world.events.add(line))

    def _line(self, ops: list[MailboxOp], facts: list[Callable[[], None]]) -> None:
        """Add a line to the part of this process: an op that replaces what the part holds, as far as it is shown."""
        world, rng = self.world, self.world.rng
        name = f"m/session-{SESSION}-{self.id[:16]}-0"
        if name in {op.e for op in ops}:
            return
        shown = entry_with_ops(
            self.state.entries.get(name, {}), by_entry(self.pending()).get(name, []), self.mine
        )
        held = {
            line
            for value in shown.entry.values()
            for line in lines_of(shown.texts.get(value.body or "") or world.texts[value.body or ""])
        }
        h = self._clock(shown.entry)
        item = {"role": "user", "content": f"{rng.getrandbits(40):x}"}
        line = json.dumps(
            {"at": (world.clock + self.skew) // 64 * 64, "n": rng.getrandbits(40), "item": item}
        )
        body = "\n".join([*sorted(each.decode() for each in held), line])
        text = render_memory(MemoryFile({"type": "session", "session": SESSION}, body))
        ops.append(replacing_op(name, shown, list(shown.entry), text.decode(), h))
        facts.append(lambda: world.lines.add((name, line.encode())))


def lines_of(part: bytes) -> list[bytes]:
    """The lines of a session's part."""
    return [line for line in parse_memory(part).body.encode().split(b"\n") if line]


def play(seed: int) -> World:
    """Draw one history and finish it: everybody reads everything."""
    rng = random.Random(seed)
    world = World(rng, rng.choice([1, 1, 2, 3]), rng.random() < 0.8)
    alive: list[Start] = []
    for _ in range(rng.randint(20, 70)):
        draw = rng.random()
        if draw < 0.04 and alive and world.faults:
            alive.append(rng.choice(alive).copied())
        elif draw < 0.15 or not alive:
            alive = [*alive, Start(world)][-8:]
        elif draw < 0.6:
            start = rng.choice(alive)
            if rng.random() < 0.3:
                start.read()
            start.write()
        elif draw < 0.7:
            rng.choice(world.keepers).write(rng.choice(NAMES), rng.random() < 0.1)
        elif draw < 0.86:
            rng.choice(world.keepers).sync()
        elif draw < 0.93:
            collect(world)
        elif world.faults:
            for name in rng.sample(sorted(world.deleted), min(4, len(world.deleted))):
                world.mailbox[name] = world.deleted[name]
                world.counts["replayed"] += 1
    world.faults = False
    for _ in range(3):
        for keeper in world.keepers:
            keeper.sync()
    return world


def collect(world: World) -> None:
    """Delete entries at the provider that markers in every published head name."""
    if len(world.heads) < len(world.keepers):
        return
    marks = {
        agent.id: [world.marks(head, mine_of(agent.person)) for head in world.heads.values()]
        for agent in AGENTS
    }
    for name in list(world.mailbox):
        agent, _, _, sha = parse_entry_name(name)
        if all(each.has_entry(sha) for each in marks[agent]):
            world.deleted[name] = world.mailbox.pop(name)


def judge(world: World) -> None:
    """Raise AssertionError for a lost write, for devices that differ, or for a replaced text that
    reappears."""
    shapes = [shape(keeper.state) for keeper in world.keepers]
    assert all(each == shapes[0] for each in shapes), "devices differ"
    state = world.keepers[0].state
    assert set(state.ctx) <= {keeper.dev for keeper in world.keepers}, "an agent's id is in the counters"
    again = world.keepers[0].admission(world.listed())
    assert again.state == state and not again.events, "admitting again changes the state"
    held = {(name, value.body) for name, entry in state.entries.items() for value in entry.values()}
    bodies = {body for _, body in held}
    waiting = {each for keeper in world.keepers for each in keeper.waiting}
    for (e, h, body), by in world.written.items():
        if body is None:
            kept = by or (e, None) in held or (e, h, body) in waiting
            assert kept, f"a wish to forget is lost: {e} {h}"
        else:
            assert by or body in bodies or (e, h, body) in waiting, (
                f"a text is lost: {e} {world.texts[body]!r}"
            )
    events = {
        line
        for name, entry in state.entries.items()
        if name.startswith("t/")
        for value in entry.values()
        for line in world.texts[value.body or ""].split(b"\n")
    }
    undecided = {body for _, _, body in waiting}
    acknowledged = {line for line in world.events if sha256(line).hexdigest() not in undecided}
    assert acknowledged <= events, "an event is lost"
    waits = {e for e, _, _ in waiting}
    lines = {line for name, line in world.lines if name not in waits}
    assert lines <= items(world, state), "a session's line is lost"
    world.counts["beside"] = sum(
        "-" in name and not is_part_key(name[2:]) for name, _ in held if name.startswith("m/k")
    )
    # A text for which a device had no dot is under another key, and removes nothing (format 5.3, rule 3).
    elsewhere = {body for name, body in held if body and name.endswith(f"-{body[:16]}")}
    left = [
        (e, body)
        for (e, h, body), by in world.written.items()
        if body
        and {one for one in by - waiting if one[2] not in elsewhere}
        and body not in world.returned
        and (e, body) in held
    ]
    world.counts["left"] = len(left)
    assert len(world.keepers) - world.shared > 1 or not left, (
        f"a replaced text returned: {left[0][0]} {world.texts[left[0][1]]!r}"
    )


def items(world: World, state: State) -> set[bytes]:
    """The lines of all parts of sessions: a reader shows those of all siblings."""
    return {
        line
        for name, entry in state.entries.items()
        if (parsed := memory_name(name)) is not None and is_part_key(parsed.key)
        for value in entry.values()
        for line in lines_of(world.texts[value.body or ""])
    }


def shape(state: State) -> dict[str, list[tuple[str, str | None]]]:
    """Return what a state shows, without dots, clocks and markers."""
    return {
        name: sorted({(value.kind, value.body or "") for value in entry.values()})
        for name, entry in state.entries.items()
        if marker_name(name) is None
    }


def without_rule() -> dict[str, list[tuple[Any, str, Any]]]:
    """Each rule whose absence a play notices: (object, attribute, what it is without the rule)."""

    def replaced(entry: Entry, each: AgentOp, mine: IsMine) -> set[str]:
        return {dot for dot, _ in each.op.dots} & set(entry)

    return {
        "identity by content": [
            (mailbox_entry, "op_id", lambda op: sha256(f"{op.e} {op.h[:12]}".encode()).hexdigest()),
        ],
        "markers": [(mailbox_markers, "tokens_of", lambda data: set())],
        "text under another key": [(mailbox_admission, "_other_key", lambda each: each.op.e)],
        "ops seen are replaced": [(mailbox_admission, "replaced_dots", replaced)],
        "ops seen are marked": [(mailbox_admission, "superseded_marks", lambda each, mine: [])],
    }
