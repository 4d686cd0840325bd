"""Laws of salvage on production code: whatever nodes of whatever heads are lost, a salvage loses nothing
and, once the whole heads exist again, revives nothing; a second one changes nothing."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.causal.salvage import DamagedHead, rewrite, salvage
from ipfsmem.causal.state import State
from ipfsmem.causal.tree import name_digits
from ipfsmem.causal.value import LIVE, Entry, Value, hash32
from tests.support.causal_lab import deleted, join, written
from tests.support.effort import cases

DEVICES = tuple(f"{n:016x}" for n in range(1, 5))
SAVIOUR = "f" * 16
NAMES = tuple(f"m/key{n}" for n in range(12))


def live(entries: dict[str, Entry], name: str) -> set[str]:
    return {value.body for value in entries.get(name, {}).values() if value.body is not None}


def histories(random: Random, steps: int) -> list[State]:
    """Devices that replace, delete and join each other's shown texts."""
    states = [State() for _ in DEVICES]
    for n in range(steps):
        who = random.randrange(len(DEVICES))
        state, name = states[who], random.choice(NAMES)
        entry = state.entries.get(name, {})
        act = random.random()
        if act < 0.55:
            shown = [dot for dot in entry if random.random() < 0.9]
            body = f"{n:064x}"
            bases = tuple(hash32(entry[dot].body or "") for dot in shown)[:4]
            value = Value(b=bases, body=body, h=f"{n:016x}", kind=LIVE)
            own = sum(dot[:16] == DEVICES[who] for dot in entry if dot not in shown)
            if own < 4:
                states[who], _ = written(state, name, shown, DEVICES[who], value)
        elif act < 0.7:
            states[who] = deleted(state, name, list(entry))
        else:
            other = random.randrange(len(DEVICES))
            states[who] = join(state, states[other]).state
    return states


def damaged(head: State, base: State, lost: tuple[str, ...]) -> DamagedHead:
    names = {*head.entries, *base.entries}
    differs = {
        name: head.entries.get(name, {})
        for name in names
        if not name_digits(name).startswith(lost or ("-",))
        and head.entries.get(name, {}) != base.entries.get(name, {})
    }
    return DamagedHead(head.ctx, differs, lost)


def salvaged(base: State, parts: list[DamagedHead]) -> State:
    entries, n = dict(base.entries), base.ctx.get(SAVIOUR, 0)
    for change in salvage(base.entries, base.ctx, parts):
        made = rewrite(entries.get(change.name, {}), change, SAVIOUR, n, lambda _: True)
        assert not made.crowded or len(change.taken) > 4
        entries[change.name], n = made.entry, made.n
        if not made.entry:
            del entries[change.name]
    return State({**base.ctx, SAVIOUR: n} if n else base.ctx, entries)


@settings(max_examples=cases(150, 3000))
@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(5, 60),
    whole=st.sets(st.integers(0, 3), max_size=3),
    lost=st.lists(st.sets(st.sampled_from("0123456789abcdef"), max_size=12), min_size=4, max_size=4),
)
def test_salvage_loses_nothing_and_revives_nothing(
    seed: int, steps: int, whole: set[int], lost: list[set[str]]
) -> None:
    states = histories(Random(seed), steps)
    base = State()
    for n in whole:
        base = join(base, states[n]).state
    rest = [n for n in range(4) if n not in whole]
    parts = [damaged(states[n], base, tuple(sorted(lost[n]))) for n in rest]
    after = salvaged(base, parts)
    again = salvaged(after, [damaged(states[n], after, tuple(sorted(lost[n]))) for n in rest])
    assert again.entries == after.entries, "salvaging twice does nothing"

    truth = base
    for n in rest:
        truth = join(truth, states[n]).state
    for name in NAMES:
        readable = [n for n in rest if parts[rest.index(n)].proves(name)]
        shown = join_all(base, [states[n] for n in readable])
        crowded = sum(len(c.taken) for c in salvage(base.entries, base.ctx, parts) if c.name == name) > 4
        if not crowded:
            missing = live(shown.entries, name) - live(after.entries, name)
            assert all(replaced(body, after.entries.get(name, {})) for body in missing), (
                "all that was proved is there"
            )
        unproved = len(readable) < len(rest)
        if not unproved:
            assert live(after.entries, name) <= live(truth.entries, name), "nothing that was deleted is there"
    end = after
    for n in rest:
        end = join(end, states[n]).state
    for name in NAMES:
        gone = live(truth.entries, name) - live(end.entries, name)
        assert not gone, "nothing is lost when the whole heads are there again"
        if all(part.proves(name) for part in parts):
            assert live(end.entries, name) == live(truth.entries, name), "and nothing is revived"


def join_all(base: State, others: list[State]) -> State:
    for other in others:
        base = join(base, other).state
    return base


def replaced(body: str, entry: Entry) -> bool:
    return any(hash32(body) in value.b for value in entry.values())


def test_fully_damaged_head_changes_nothing() -> None:
    """Its context alone deletes nothing."""
    state, _ = written(State(), "m/tone", (), DEVICES[0], Value(b=(), body="a" * 64, h="0" * 16, kind=LIVE))
    part = DamagedHead({DEVICES[0]: 9, DEVICES[1]: 9}, {}, ("",))
    assert salvage(state.entries, state.ctx, [part]) == []
    assert msgspec.json.encode(salvaged(state, [part])) == msgspec.json.encode(state)
