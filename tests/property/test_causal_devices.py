"""Restored and cloned devices: whatever happens to counters, no text that a running device knew is lost."""

from __future__ import annotations

import hashlib
from copy import deepcopy

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ipfsmem.causal.own_copies import (
    adopt_fork,
    drew_pair,
    equivocating_devices,
    step_back,
    values_to_move,
)
from ipfsmem.causal.state import State, counts_of, join_seen
from ipfsmem.causal.value import LIVE, MAX_DOTS, DeviceCounter, Value
from tests.support.causal_lab import join, written
from tests.support.effort import cases

EXAMPLES = cases(60, 1500)
KEYS = ["m/k0", "m/k1", "m/k2"]


class Device:
    """One copy of a device's state on one disk."""

    def __init__(self, name: str) -> None:
        self.id = name
        self.state = State()
        self.seen: dict[str, DeviceCounter] = {}
        self.drawn: dict[int, str] = {}
        self.published: set[tuple[int, str]] = set()  # own pairs in the chain of this copy's own commits
        self.wrote: dict[str, frozenset[str]] = {}  # body -> bodies that its writer replaced, as far as known
        self.held = 0


class Head:
    def __init__(self, device: Device) -> None:
        self.owner = device.id
        self.state, self.seen, self.wrote = device.state, dict(device.seen), dict(device.wrote)
        self.published = set(device.published)


class World:
    """Disks, backups of them, and the history of each device name."""

    def __init__(self) -> None:
        self.disks = [Device(c * 16) for c in "abc"]
        self.backups: dict[int, Device] = {}
        self.names: dict[str, list[Head]] = {}
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"{self.count:016x}"

    def write(self, who: int, key: str) -> None:
        device = self.disks[who]
        entry = device.state.entries.get(key, {})
        body = hashlib.sha256(self.fresh().encode()).hexdigest()
        value = Value(b=(), body=body, h="0" * 16, kind=LIVE)
        device.state, _ = written(device.state, key, entry, device.id, value)
        device.wrote[body] = frozenset(v.body for v in entry.values() if v.body)

    def sync(self, who: int, stale: bool, adopt: bool = False) -> None:
        device = self.disks[who]
        heads = [shown[0 if stale else -1] for shown in self.names.values()]
        for head in sorted(heads, key=lambda head: head.owner != device.id):  # its own name first
            self.look_for_own_id(device, head)
        for head in heads:
            joined = join(device.state, head.state)
            forked = {clash.dot[:16] for clash in joined.clashes} | {
                *equivocating_devices(device.seen, head.seen)
            }
            if forked and not adopt:
                device.held += 1
                continue
            if forked:
                mine, theirs, beside = adopt_fork(device.state, head.state, forked, device.id, lambda _: True)
                joined = join(mine, theirs)
                assert not joined.clashes
            device.state = joined.state
            if forked:
                device.state = put_beside(device.state, beside, device.id)
            device.seen = join_seen(device.seen, head.seen)
            device.wrote |= head.wrote
        self.publish(device)

    def publish(self, device: Device) -> None:
        n = device.state.ctx.get(device.id, 0)
        if n and n not in device.drawn:
            device.drawn[n] = self.fresh()
            device.seen[device.id] = DeviceCounter(n, device.drawn[n], "")
        assert counts_of(device.seen) == device.state.ctx
        if n:
            device.published.add((n, device.drawn[n]))
        self.names.setdefault(device.id, []).append(Head(device))

    def look_for_own_id(self, device: Device, head: Head) -> None:
        pair = head.seen.get(device.id)
        if pair is None or drew_pair(device.drawn, pair.n, pair.r):
            return
        # Only that copy's own publications tell what it knows; a third device's head tells nothing.
        published = head.published if head.owner == device.id else ()
        common = max((n for n, r in published if device.drawn.get(n) == r), default=0)
        moves = values_to_move(
            device.state.entries, device.id, common, lambda n: head.state.entries.get(n, {})
        )
        old, device.id = device.id, self.fresh()
        device.state = step_back(device.state, old, common, moves, device.id)
        device.seen = {dev: seen for dev, seen in device.seen.items() if dev != old}
        if common:
            device.seen[old] = DeviceCounter(common, device.drawn[common], "")
        device.drawn, device.published = {}, set()


def put_beside(state: State, beside: dict[str, list[Value]], device: str) -> State:
    """Put texts without room under a name made from the text, as `sync.identity` does."""
    for name, values in beside.items():
        for value in values:
            there = f"{name}-{(value.body or '')[:16]}"
            if value.body and value.body not in {v.body for v in state.entries.get(there, {}).values()}:
                state, _ = written(state, there, (), device, value)
    return state


def bodies(state: State) -> set[str]:
    return {value.body for entry in state.entries.values() for value in entry.values() if value.body}


def kept(wrote: dict[str, frozenset[str]]) -> set[str]:
    return set(wrote) - frozenset[str]().union(*wrote.values())


def run(trace: list[tuple[str, int, int]], clones: bool, restores: bool, stale: bool) -> World:
    world = World()
    for what, who, k in trace:
        who %= len(world.disks)
        if what == "write":
            world.write(who, KEYS[k])
        elif what == "sync":
            world.sync(who, stale=stale and k == 2)
        elif what == "backup":
            world.backups[who] = deepcopy(world.disks[who])
        elif what == "restore" and restores and who in world.backups:
            world.disks[who] = deepcopy(world.backups[who])
        elif what == "clone" and clones and len(world.disks) < 5:
            world.disks.append(deepcopy(world.disks[who]))
    return world


def settle(world: World, adopt: bool = False) -> None:
    for _ in range(4):
        for who in range(len(world.disks)):
            world.sync(who, stale=False, adopt=adopt)


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "sync", "sync", "backup", "restore", "clone"]),
        st.integers(0, 4),
        st.integers(0, 2),
    ),
    max_size=30,
)
TRACE_1 = [
    ("write", 1, 0),
    ("backup", 1, 0),
    ("write", 1, 1),
    ("sync", 1, 0),
    ("restore", 1, 0),
    ("write", 1, 2),
]
TRACE_2 = [*TRACE_1, ("write", 1, 2), ("write", 1, 1), ("write", 1, 0)]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
@example(TRACE_1)
@example(TRACE_2)
def test_restored_device_loses_no_known_text(trace: list[tuple[str, int, int]]) -> None:
    world = run(trace, clones=False, restores=True, stale=False)
    wrote: dict[str, frozenset[str]] = {}
    for device in world.disks:
        wrote |= device.wrote
    settle(world)
    for device in world.disks:
        assert kept(wrote) <= bodies(device.state)
        assert device.state.entries == world.disks[0].state.entries
        assert not device.held


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
@example([("clone", 0, 0), ("write", 0, 0), ("write", 3, 1), ("sync", 0, 0), ("sync", 3, 0)])
@example(
    [
        ("write", 0, 0),
        ("sync", 0, 0),
        ("clone", 0, 0),
        ("write", 0, 0),
        ("sync", 0, 0),
        ("write", 3, 1),
        ("write", 3, 1),
        ("sync", 3, 2),
        ("sync", 1, 0),
    ]
)
def test_clones_with_stale_names_lose_no_text(trace: list[tuple[str, int, int]]) -> None:
    world = run(trace, clones=True, restores=False, stale=True)
    wrote: dict[str, frozenset[str]] = {}
    for device in world.disks:
        wrote |= device.wrote
    settle(world)
    everywhere = set().union(*(bodies(device.state) for device in world.disks))
    assert kept(wrote) <= everywhere
    settle(world, adopt=True)
    for device in world.disks:
        assert kept(wrote) <= bodies(device.state)
        assert bodies(device.state) == bodies(world.disks[0].state)


four = st.lists(st.integers(0, 9), max_size=MAX_DOTS, unique=True)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.tuples(four, four, four, four), st.tuples(four, four, four, four))
def test_concurrent_takeovers_of_one_fork_converge_without_loss(
    mine: tuple[list[int], ...], theirs: tuple[list[int], ...]
) -> None:
    c, d, liar = "c" * 16, "d" * 16, "f" * 16
    before = [_crowd(c, liar, mine, "c"), _crowd(d, liar, theirs, "d")]
    after = []
    for me, (state, other) in zip((c, d), (before, before[::-1]), strict=True):
        ours, left, beside = adopt_fork(state, other, [liar], me, lambda _: True)
        joined = join(ours, left)
        assert not joined.clashes
        # The person can write there still, unless the room was taken before.
        for name, entry in joined.state.entries.items():
            own = sum(dot[:16] == me for dot in entry)
            assert own < MAX_DOTS or own == sum(dot[:16] == me for dot in state.entries[name])
        after.append(put_beside(joined.state, beside, me))
    one, two = join(after[0], after[1]), join(after[1], after[0])
    assert not one.clashes and not two.clashes and one.state == two.state
    assert bodies(before[0]) | bodies(before[1]) == bodies(one.state)
    again = join(one.state, after[0])
    assert not again.clashes and again.state == one.state


def _crowd(me: str, liar: str, said: tuple[list[int], ...], tag: str) -> State:
    """Return two entries with texts of `me` and of `liar`, whose counters contradict each other nowhere
    else."""
    state = State()
    for name, own, forked in zip(KEYS[:2], said[:2], said[2:], strict=True):
        texts = [(me, f"{tag} own {n}") for n in own] + [
            (liar, f"{tag if n % 3 else ''} {n}") for n in forked
        ]
        for device, text in texts:
            body = hashlib.sha256(text.encode()).hexdigest()
            value = Value(b=(), body=body, h=f"{len(text) + len(texts):016x}", kind=LIVE)
            state, _ = written(state, name, (), device, value)
    return state


def test_trace_46_greater_counter_of_clone_keeps_the_other_text() -> None:
    trace = [
        ("write", 0, 0),
        ("sync", 0, 0),
        ("clone", 0, 0),
        ("write", 0, 1),
        ("sync", 0, 0),
        ("sync", 1, 0),
    ]
    world = run(trace, clones=True, restores=False, stale=False)
    texts = bodies(world.disks[0].state)
    world.write(3, "m/k2")
    world.write(3, "m/k0")
    world.publish(world.disks[3])  # shown a stale name, it published a greater n
    texts |= kept(world.disks[3].wrote)
    before = world.disks[1].state
    world.sync(1, stale=False)
    assert world.disks[1].held == 1  # one dot with two identities: in m/k1 here and in m/k2 there
    assert world.disks[1].state == before
    settle(world)
    texts -= {v.body for v in before.entries["m/k0"].values() if v.body}  # the clone replaced it
    assert texts <= set().union(*(bodies(device.state) for device in world.disks))
