"""Laws of the join, and a reference model: a text disappears only if its replacer or deleter had been
shown it."""

from __future__ import annotations

import hashlib

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ipfsmem.causal.clock import ZERO, next_hlc
from ipfsmem.causal.state import State, delete, limit_values, next_bases, write
from ipfsmem.causal.value import FORGOTTEN, LIVE, MAX_DOTS, Entry, Loc, Value, dot
from ipfsmem.causal.view import KeyView, in_view_order, view_entry
from ipfsmem.errors import LimitError
from ipfsmem.ring.authority import BY_ROOT, Admission
from tests.support.causal_lab import covered, deleted, join, written
from tests.support.effort import cases

EXAMPLES = cases(60, 2000)
DEVICES = [c * 16 for c in "abcd"]
KEYS = ["k0", "k1"]

#: (what, device, key, other device)
steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "stale", "read", "delete", "forget", "reseal", "pull", "pull"]),
        st.integers(0, 3),
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    max_size=40,
)


class World:
    """Four devices, each with the operations that it knows: the model does not use ctx."""

    def __init__(self) -> None:
        self.states = [State() for _ in DEVICES]
        self.clocks = [ZERO for _ in DEVICES]
        self.known: list[set[int]] = [set() for _ in DEVICES]  # operations a device knows of
        self.tokens: dict[tuple[int, str], tuple[str, ...]] = {}
        self.operations: list[tuple[str | None, frozenset[str]]] = []  # (new dot, replaced dots)
        self.texts: dict[str, bytes] = {}
        self.now = 1000

    def bodies(self, body: str) -> bytes | None:
        return self.texts.get(body)

    def base(self, known: str) -> bytes | None:
        return next((text for body, text in self.texts.items() if body.startswith(known)), None)

    def view(self, who: int, key: str) -> KeyView:
        return view_entry(key, self.states[who].entries.get(f"m/{key}", {}), self.bodies, self.base)

    def edited(self, data: bytes | None, line: int) -> bytes:
        """Return the shown text with one changed line, so that some edits merge; or one text of all
        devices."""
        lines = (data or b"0\n-\n1\n-\n2\n-\n3\n").split(b"\n")
        if line and len(lines) > 6:
            lines[2 * line] = b"edit %d" % len(self.operations)
        return b"\n".join(lines)

    def tick(self, who: int) -> str:
        self.clocks[who] = next_hlc(self.clocks[who], self.now)
        return self.clocks[who]

    def did(self, who: int, new: str | None, replaced: tuple[str, ...]) -> None:
        self.known[who].add(len(self.operations))
        self.operations.append((new, frozenset(replaced)))

    def run(self, what: str, who: int, k: int, other: int) -> None:
        self.now += other  # clocks of several devices may agree
        key, name, state = KEYS[k], f"m/{KEYS[k]}", self.states[who]
        if what == "read":
            self.tokens[who, key] = self.view(who, key).dots
        elif what in ("write", "stale"):
            replaced = self.tokens.get((who, key), ()) if what == "stale" else self.view(who, key).dots
            text = self.edited(self.view(who, key).data, other)
            body = hashlib.sha256(text).hexdigest()
            b, base = next_bases(in_view_order(state.entries.get(name, {}), replaced), lambda known: True)
            value = Value(b=b, base=base, body=body, h=self.tick(who), kind=LIVE)
            try:
                self.states[who], new = written(state, name, replaced, DEVICES[who], value)
            except LimitError:
                return
            self.texts[body] = text
            self.did(who, new, replaced)
        elif what == "delete":
            replaced = self.view(who, key).dots
            self.states[who] = deleted(state, name, replaced)
            self.did(who, None, replaced)
        elif what == "forget":
            replaced = self.view(who, key).dots
            wish = Value(b=(), body=None, h=self.tick(who), kind=FORGOTTEN)
            try:
                self.states[who], new = written(state, name, replaced, DEVICES[who], wish)
            except LimitError:
                return
            self.did(who, new, replaced)
        elif what == "reseal":
            entries = {
                n: {d: self.resealed(v, str(other)) for d, v in entry.items()}
                for n, entry in state.entries.items()
            }
            self.states[who] = State(state.ctx, entries)
        elif what == "pull":
            joined = join(state, self.states[other])
            assert not joined.clashes
            self.states[who] = joined.state
            self.known[who] |= self.known[other]

    def resealed(self, value: Value, ek: str) -> Value:
        if value.body is None:
            return value
        return msgspec.structs.replace(value, loc=Loc(ek * 16, value.body, 512), s=ek * 86)

    def expected(self, who: int) -> set[str]:
        done = [self.operations[i] for i in self.known[who]]
        gone = frozenset[str]().union(*(replaced for _, replaced in done))
        return {new for new, _ in done if new is not None} - gone


def grown(trace: list[tuple[str, int, int, int]]) -> World:
    world = World()
    for step in trace:
        world.run(*step)
    return world


def dots_of(state: State) -> set[str]:
    return {d for entry in state.entries.values() for d in entry}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
@example(
    [
        ("write", 0, 0, 1),
        ("pull", 1, 0, 0),
        ("read", 1, 0, 0),
        ("write", 0, 0, 1),
        ("stale", 1, 0, 1),
        ("pull", 0, 0, 1),
    ]
)
def test_text_disappears_only_if_its_replacer_was_shown_it(
    trace: list[tuple[str, int, int, int]],
) -> None:
    world = World()
    for step in trace:
        world.run(*step)
        who = step[1]
        assert dots_of(world.states[who]) == world.expected(who)
        covered(world.states[who])


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_join_is_commutative_associative_idempotent(trace: list[tuple[str, int, int, int]]) -> None:
    a, b, c, _ = grown(trace).states

    def both(x: State, y: State) -> State:
        joined = join(x, y)
        assert not joined.clashes
        return joined.state

    assert both(a, b) == both(b, a)
    assert both(both(a, b), c) == both(a, both(b, c))
    assert both(a, a) == a
    assert both(a, both(a, b)) == both(a, b)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.randoms(use_true_random=False))
def test_view_is_order_independent_and_names_its_dots(trace: list[tuple[str, int, int, int]], random) -> None:  # type: ignore[no-untyped-def]
    world = grown(trace)
    for who, key in ((w, k) for w in range(4) for k in KEYS):
        entry = world.states[who].entries.get(f"m/{key}", {})
        shown = world.view(who, key)
        items = list(entry.items())
        random.shuffle(items)
        assert view_entry(key, dict(items), world.bodies, world.base) == shown
        listed = [*shown.dots, *(d for copy in (*shown.conflicts, *shown.hidden) for d in copy.dots)]
        assert sorted(listed) == sorted(entry)  # every dot is somewhere, and once
        if not shown.merged:
            assert len({entry[d].body for d in shown.dots}) <= 1
            if shown.data is not None:
                assert hashlib.sha256(shown.data).hexdigest() == shown.body == entry[shown.dots[0]].body


def test_write_keeps_alternatives_that_were_not_shown() -> None:
    one = Value(b=(), body="1" * 64, h="0" * 16, kind=LIVE)
    entry = {dot(DEVICES[0], 1): one, dot(DEVICES[1], 1): one}
    assert write(entry, [dot(DEVICES[0], 1)], dot(DEVICES[2], 1), one).keys() == {
        dot(DEVICES[1], 1),
        dot(DEVICES[2], 1),
    }


#: The admitters of the devices of a crowded entry: three by roots, the rest by two admins, one of them with
#: most, or nobody.
CROWD: dict[str, Admission] = {
    f"{n:016x}": BY_ROOT
    if n < 3
    else Admission(1, "1" * 16)
    if n < 5
    else Admission(2, "")
    if n == 5
    else Admission(1, "2" * 16)
    for n in range(12)
}
#: (device, its clock): one write under the one key, which replaces nothing.
crowded = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 3)), min_size=8, max_size=48)


def crowd(trace: list[tuple[int, int]]) -> dict[str, Entry]:
    """Return what each device wrote: at most four concurrent values with an arbitrary clock."""
    written: dict[str, Entry] = {}
    for who, clock in trace:
        device = f"{who:016x}"
        entry = written.setdefault(device, {})
        if len(entry) < MAX_DOTS:
            new = dot(device, len(entry) + 1)
            entry[new] = Value(
                b=(), body=hashlib.sha256(new.encode()).hexdigest(), h=f"{clock:016x}", kind=LIVE
            )
    return written


def roomy(x: State, y: State, most: int) -> State:
    """Return `x` after a sync that received `y`, where an entry has room for `most` values."""
    joined = join(x, y, room=lambda entry: limit_values(entry, CROWD.__getitem__, most))
    assert not joined.clashes
    return joined.state


def held(written: dict[str, Entry], devices: set[str], most: int) -> State:
    """Return the state of a device that joined these devices' heads."""
    entry = {d: value for device in devices & written.keys() for d, value in written[device].items()}
    ctx = {device: len(written[device]) for device in devices & written.keys()}
    kept = limit_values(entry, CROWD.__getitem__, most)
    return State(ctx, {"m/k": kept} if kept else {})


some = st.sets(st.sampled_from(sorted(CROWD)))


@settings(max_examples=EXAMPLES * 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(crowded, st.integers(0, 12), some, some, some)
def test_join_with_limited_entries_is_still_a_join(
    trace: list[tuple[int, int]], most: int, one: set[str], two: set[str], three: set[str]
) -> None:
    written = crowd(trace)
    a, b, c = (held(written, devices, most) for devices in (one, two, three))
    assert roomy(a, b, most) == roomy(b, a, most)
    assert roomy(roomy(a, b, most), c, most) == roomy(a, roomy(b, c, most), most)
    assert roomy(a, a, most) == a and roomy(a, roomy(a, b, most), most) == roomy(a, b, most)
    assert roomy(roomy(a, b, most), c, most) == held(written, one | two | three, most)


@settings(max_examples=EXAMPLES * 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(crowded, st.integers(3, 12))
def test_crowd_displaces_no_only_text_of_other_members(trace: list[tuple[int, int]], most: int) -> None:
    """Separate shares have the devices of roots, those of each admin, and revoked ones."""
    entry = {d: value for values in crowd(trace).values() for d, value in values.items()}
    kept = limit_values(entry, CROWD.__getitem__, most)
    newest = {
        device: max((value.h, int(d[17:]), d) for d, value in entry.items() if d[:16] == device)[2]
        for device in {d[:16] for d in entry}
    }
    by_roots = {d for device, d in newest.items() if CROWD[device] == BY_ROOT}
    assert by_roots <= kept.keys() and len(kept) == min(most, len(entry))
    honest = [d for device, d in newest.items() if CROWD[device] == (1, "1" * 16)]
    if most >= len(by_roots) + 4 * len(honest):
        assert kept.keys() >= set(honest)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    crowded,
    st.integers(0, 12),
    st.lists(st.tuples(some, st.integers(0, 47)), min_size=3, max_size=3),
    st.data(),
)
def test_limited_joins_and_deletes_converge_in_any_order(
    trace: list[tuple[int, int]], most: int, what: list[tuple[set[str], int]], data: st.DataObject
) -> None:
    written, states = crowd(trace), []
    for devices, deleted_one in what:
        state = held(written, devices, most)
        entry = state.entries.get("m/k", {})
        after = delete(entry, sorted(entry)[deleted_one : deleted_one + 1])
        states.append(State(state.ctx, {"m/k": after} if after else {}))
    for _ in range(2):
        for at in data.draw(st.permutations(range(3))):
            for other in data.draw(st.permutations(range(3))):
                states[at] = roomy(states[at], states[other], most)
    assert states[0] == states[1] == states[2]
