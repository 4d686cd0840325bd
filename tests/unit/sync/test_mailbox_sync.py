"""Full devices admit what an agent key left at a provider: with its rights, once, and delete it when all confirmed it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal.clock import hlc
from ipfsmem.causal.mailbox_admission import AgentRights
from ipfsmem.causal.mailbox_entry import (
    EVENT,
    EntryName,
    MailboxEntry,
    MailboxOp,
    StoredEntry,
    seal_entry,
    sign_entry,
    start_id,
    with_repeats,
)
from ipfsmem.causal.mailbox_markers import marker_name
from ipfsmem.causal.mailbox_view import entry_with_ops, replacing_op
from ipfsmem.causal.value import LIVE
from ipfsmem.device.codec import SealedCodec
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.small_objects import LISTED_MAX, small_box, small_name
from ipfsmem.published.layout import SealedLayout
from ipfsmem.ring import operations
from ipfsmem.ring.statements import member_id
from ipfsmem.seal.objects import Sealer
from ipfsmem.seal.primitives import Signer25519, x25519_public
from ipfsmem.sync import engine, mailbox
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.times import DAY_MS
from ipfsmem.testing.simulator import SimCloud, SimProvider
from tests.support.device_lab import ROOT, Lab

E = "m/acme/tone"
#: What the agents of these tests may write.
RIGHTS: dict[str, AgentRights] = {}


class Agent:
    """An agent key that the first device of a lab enrolled, and a process that writes with it."""

    def __init__(self, lab: Lab, memory: Memory, seed: int = 7, role: str = "writer") -> None:
        self.lab, self.memory = lab, memory
        self.signer = Signer25519(bytes([seed]) * 32)
        self.id = member_id(self.signer.public)
        self.start, self.last, self.ticks = f"{seed:032x}", None, 0
        self.last: StoredEntry | None
        replica = memory.replica
        ring = replica.ring
        assert ring is not None and replica.vault_tag is not None
        public = operations.enrollee_of(
            self.signer, x25519_public(bytes([seed + 1]) * 32), "web", ring.vault, kind="agent"
        )
        with replica.transaction():
            replica.set_ring(operations.enrol(ring, ROOT.admin, public, "writer", since=self.h()))
        RIGHTS[self.id] = AgentRights(
            role=role, scopes=frozenset({"acme", "web"}), until_ms=lab.clock.ms + 30 * DAY_MS
        )

    def h(self) -> str:
        self.ticks += 1
        return hlc(self.lab.clock.ms, self.ticks)

    def live(self, text: str, e: str = E, **more: Any) -> MailboxOp:
        return MailboxOp(**{"e": e, "h": self.h(), "kind": LIVE, "text": said(text), **more})

    def event(self, n: int) -> MailboxOp:
        line = event_line(
            {
                "ts": "2026-03-01T12:00:00.000Z",
                "type": "built",
                "id": f"{start_id(self.id, self.start)}-{n}",
                "x": n,
            }
        )
        return MailboxOp(e="t/acme", h=self.h(), kind=EVENT, text=line.decode())

    def put(self, *ops: MailboxOp) -> str:
        """Leave an entry at the provider; returns its name there."""
        replica = self.memory.replica
        assert isinstance(replica.codec, SealedCodec) and replica.vault_tag is not None
        sealer: Sealer = replica.codec.sealers(replica.codec.ek)[0]
        every, repeats = with_repeats(self.last, ops)
        made = MailboxEntry(
            agent=self.id,
            ek=sealer.epoch_key.id,
            i=0 if self.last is None else self.last.entry.i + 1,
            ops=every,
            repeats=repeats,
            start=self.start,
            vault=replica.vault_tag.hex(),
        )
        data = seal_entry(sealer, made, sign_entry(self.signer, made))
        self.last = StoredEntry(made, sha256(data).hexdigest())
        label = str(EntryName(self.id, self.start, made.i, self.last.sha)).rpartition(".")[0]
        name = small_name(small_box(anchor(self.memory), self.id), label, data)
        self.lab.cloud.small[name] = data
        return name


def sync(lab: Lab, memory: Memory) -> SyncReport:
    """Sync one second later, as a device that reads the cards of these agents."""
    lab.clock.advance(1)
    return asyncio.run(engine_sync(lab, memory))


async def engine_sync(lab: Lab, memory: Memory) -> SyncReport:
    name = next(name for name, one in lab.devices.items() if one is memory)
    layout = SealedLayout()
    return await engine.sync(
        memory.replica, [lab.provider(name)], layout, rights_of_agents=lambda replica: RIGHTS
    )


def said(text: str) -> str:
    return render_memory(MemoryFile({"name": "Tone"}, f"{text}\n")).decode()


def anchor(memory: Memory) -> bytes:
    assert memory.replica.config.vault is not None
    return bytes.fromhex(memory.replica.config.vault.anchor)


def texts(memory: Memory, e: str = E) -> set[str]:
    store = memory.replica.store
    bodies = [store.body(e, value) for value in store.entry(e).values()]
    return {body.decode().strip().rpartition("\n")[2] for body in bodies if body is not None}


def notices(memory: Memory, lab: Lab) -> list[str]:
    return [one.text for one in sync(lab, memory).notices if one.kind == "mailbox"]


def markers(memory: Memory) -> list[str]:
    return [name for name in memory.replica.store.names() if marker_name(name) is not None]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    RIGHTS.clear()
    made = Lab(tmp_path)
    yield made
    made.close()


def begun(lab: Lab, **more: Any) -> tuple[Memory, Agent]:
    a = lab.create("a")
    a.write("k", "text")
    agent = Agent(lab, a, **more)
    sync(lab, a)
    return a, agent


def test_text_and_event_of_an_agent_reach_all_devices(lab: Lab) -> None:
    a, agent = begun(lab)
    b = lab.restore("b")
    agent.put(agent.live("from a container"), agent.event(1))
    assert notices(a, lab) == []
    assert texts(a) == {"from a container"} and len(markers(a)) == 1
    assert [event["x"] for event in a.scope("acme").timeline.read().events if event["type"] == "built"] == [1]
    sync(lab, b)
    assert texts(b) == {"from a container"}
    assert agent.id not in a.replica.store.frame.ctx
    lab.settle(a, b)


def test_entry_that_two_devices_admit_at_once_is_one_text(lab: Lab) -> None:
    a, agent = begun(lab)
    b = lab.restore("b")
    agent.put(agent.live("once"), agent.event(1))

    async def both() -> None:
        await asyncio.gather(engine_sync(lab, a), engine_sync(lab, b))

    asyncio.run(both())
    lab.settle(a, b)
    for memory in (a, b):
        assert texts(memory) == {"once"}
        assert memory.scope("acme").read("tone").text.endswith("once\n")
        assert len([e for e in memory.scope("acme").timeline.read().events if e["type"] == "built"]) == 1


def test_replayed_entry_of_a_forgotten_text_is_not_admitted(lab: Lab) -> None:
    a, agent = begun(lab)
    name = agent.put(agent.live("old"))
    sync(lab, a)
    a.scope("acme").forget("tone")
    data = lab.cloud.small[name]
    b = lab.restore("b")
    lab.cloud.small[name] = data
    lab.settle(a, b)
    assert texts(a) == texts(b) == set()


def test_op_replaces_what_its_writer_was_shown(lab: Lab) -> None:
    a, agent = begun(lab)
    a.scope("acme").write("tone", "by the person")
    sync(lab, a)
    entry = a.replica.store.entry(E)
    shown = entry_with_ops(entry, [], a.replica.is_mine)
    agent.put(replacing_op(E, shown, list(entry), said("edited"), agent.h()))
    sync(lab, a)
    assert texts(a) == {"edited"}
    ((_, value),) = a.replica.store.entry(E).items()
    assert value.b and value.base is not None and value.loc is not None and value.s


def test_writes_beyond_the_card_wait_and_cost_the_others_nothing(lab: Lab) -> None:
    a, agent = begun(lab)
    agent.put(agent.live("in"), agent.live("out", "m/other/x"), agent.live("card", "m/agents/agent-1"))
    assert notices(a, lab) == [
        "1 write of agents not admitted: its agent key may not write to this scope",
        "1 write of agents not admitted: no agent writes to this scope",
    ]
    assert texts(a) == {"in"} and not texts(a, "m/other/x")


def test_write_into_a_forgotten_scope_waits(lab: Lab) -> None:
    a, agent = begun(lab)
    a.scope("web").write("x", "text")
    sync(lab, a)
    a.scopes.forget("web")
    agent.put(agent.live("in"), agent.live("out", "m/web/x"))
    assert notices(a, lab) == ["1 write of agents not admitted: the scope is forgotten"]
    assert texts(a) == {"in"}


def test_agent_with_a_readers_card_writes_nothing(lab: Lab) -> None:
    a, agent = begun(lab, role="reader")
    agent.put(agent.live("one"))
    sync(lab, a)
    assert texts(a) == set()


def test_expired_agent_waits(lab: Lab) -> None:
    a, agent = begun(lab)
    lab.clock.advance(31 * DAY_MS // 1000)
    agent.put(agent.live("late"))
    assert notices(a, lab) == ["1 write of agents not admitted: its agent key has expired"]


def test_entries_that_are_not_of_the_agent_are_ignored_and_reported(lab: Lab) -> None:
    a, agent = begun(lab)
    box = small_box(anchor(a), agent.id)
    lab.cloud.small[small_name(box, f"{agent.id}.{'0f' * 16}.0", b"junk")] = b"junk"
    lab.cloud.small[small_name(box, "other", b"junk")] = b"junk"
    agent.put(agent.live("good"))
    assert [text.partition(":")[0] for text in notices(a, lab)] == ["1 mailbox entry ignored"]
    assert texts(a) == {"good"}


def test_full_box_of_one_agent_does_not_hide_another(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    a, agent = begun(lab)
    other = Agent(lab, a, seed=9)
    sync(lab, a)
    box = small_box(anchor(a), other.id)
    for n in range(LISTED_MAX + 5):
        lab.cloud.small[small_name(box, f"0.{n}", b"%d" % n)] = b"%d" % n
    agent.put(agent.live("seen"))
    sync(lab, a)
    assert texts(a) == {"seen"}


def test_later_sync_continues_where_one_stopped(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    a, agent = begun(lab)
    monkeypatch.setattr(mailbox, "MAX_READ", 2)
    for n in range(5):
        agent.last = None
        agent.start = f"{n:032x}"
        agent.put(agent.live(f"text {n}", f"m/acme/k{n}"))
    for _ in range(3):
        sync(lab, a)
    assert all(texts(a, f"m/acme/k{n}") == {f"text {n}"} for n in range(5))


def test_admitted_entry_is_deleted_when_confirmed_for_a_day(lab: Lab) -> None:
    a, agent = begun(lab)
    name = agent.put(agent.live("kept"))
    sync(lab, a)
    sync(lab, a)
    assert name in lab.cloud.small
    lab.clock.advance(DAY_MS // 1000 + 10)
    sync(lab, a)
    assert name not in lab.cloud.small
    assert texts(a) == {"kept"}


def test_entry_that_waits_is_never_deleted(lab: Lab) -> None:
    a, agent = begun(lab)
    name = agent.put(agent.live("in"), agent.live("out", "m/other/x"))
    for _ in range(3):
        sync(lab, a)
        lab.clock.advance(2 * DAY_MS // 1000)
    assert name in lab.cloud.small


def test_sync_goes_on_where_the_mailbox_cannot_be_listed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    a, agent = begun(lab)
    agent.put(agent.live("later"))

    async def fails(boxes: Collection[str]) -> dict[str, int]:
        raise ProviderUnavailable("not now")

    with monkeypatch.context() as patched:
        patched.setattr(lab.provider("a"), "list_small", fails)
        report = sync(lab, a)
    assert any("writes of agents were not listed" in one.text for one in report.notices)
    sync(lab, a)
    assert texts(a) == {"later"}


def test_crash_after_the_admission_admits_nothing_twice(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    a, agent = begun(lab)
    agent.put(agent.live("once"), agent.event(1))

    async def crash(*_: object, **__: object) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr("ipfsmem.sync.engine.publish", crash)
        with pytest.raises(RuntimeError):
            sync(lab, a)
    assert texts(a) == {"once"} and len(markers(a)) == 1
    before = a.replica.store.frame.ctx
    sync(lab, a)
    assert a.replica.store.frame.ctx == before and texts(a) == {"once"}


def test_vault_without_agents_asks_for_no_mailbox(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    a = lab.create("a")

    async def never(boxes: Collection[str]) -> dict[str, int]:
        raise AssertionError("listed")

    monkeypatch.setattr(lab.provider("a"), "list_small", never)
    sync(lab, a)
    assert msgspec.structs.asdict(mailbox.Mailbox(anchor(a)))["listed"] == {}


def test_markers_are_neither_a_scope_nor_memories_for_people(lab: Lab) -> None:
    a, agent = begun(lab)
    b = lab.restore("b")
    agent.put(agent.live("one"))
    sync(lab, a)
    report = sync(lab, b)
    assert markers(a) == markers(b) != []
    assert report.changes.added == {"acme": ("tone",)} and "mailbox" not in report.changed_in
    for memory in (a, b):
        assert [one.scope for one in memory.scopes.list()] == ["acme"]
        assert memory.status().memories == 2


def test_move_carries_the_mailboxes_of_agents(lab: Lab) -> None:
    a, agent = begun(lab)
    name = agent.put(agent.live("moved", "m/other/x"))
    new = SimProvider(SimCloud(), name="new")
    moved = asyncio.run(a.providers.move(new)).moved
    assert moved.small_objects == 1 and name in new.cloud.small
