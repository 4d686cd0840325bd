"""Random histories of a mailbox (`bench.soak mailbox` plays many more), and each rule of its admission
removed."""

from __future__ import annotations

import re
from contextlib import ExitStack
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.causal.state import State
from tests.support import effort
from tests.support.mailbox_lab import FullDevice, World, judge, play, shape, without_rule

#: Number of plays in which a removed rule must show; the first failure of each is among the first 120.
PLAYS = 300
#: Tried first: the one in which the rule that most plays do without is missed.
SOON = 94
#: The key of a text next to its key, in any scope.
_BESIDE = re.compile(r"/k[0-9]+-[0-9a-f]{16}$")


def test_mailbox_loses_no_acknowledged_write_in_random_plays() -> None:
    for seed in range(1, effort.cases(150, 3000)):
        world = play(seed)
        try:
            judge(world)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None


@pytest.mark.parametrize("rule", without_rule())
def test_mailbox_without_one_of_its_rules_breaks(rule: str) -> None:
    with ExitStack() as patched:
        for owner, name, without in without_rule()[rule]:
            patched.enter_context(mock.patch.object(owner, name, without))
        for seed in (SOON, *range(1, PLAYS)):
            try:
                judge(play(seed))
            except AssertionError:
                return
    pytest.fail(f"nothing was lost in {PLAYS} plays without the rule: {rule}")


def _fresh(world: World) -> FullDevice:
    return FullDevice(world, "9" * 16)


@given(st.integers(10_000, 90_000), st.randoms(use_true_random=False))
def test_admission_is_independent_of_order_repetition_and_portions(seed: int, random: object) -> None:
    world = play(seed)
    entries = list(world.opened.values())
    whole, portions = _fresh(world), _fresh(world)
    whole.skew = portions.skew = 0
    once = whole.admission(entries)
    shuffled = entries * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert whole.admission(shuffled).state == once.state
    events = set()
    for stored in shuffled:
        done = portions.admission([stored])
        world.texts.update(done.texts)
        events.update(done.events)
        portions.state = done.state
    world.texts.update(once.texts)
    assert events == set(once.events)
    if not _crowded(once.state) and not _crowded(portions.state):
        assert shape(portions.state) == shape(once.state)


@given(st.integers(10_000, 90_000))
def test_admission_of_admitted_entries_changes_nothing(seed: int) -> None:
    world = play(seed)
    entries = list(world.opened.values())
    device = _fresh(world)
    first = device.admission(entries)
    world.texts.update(first.texts)
    device.state = first.state
    again = device.admission(entries)
    assert (again.state, again.events, again.changed) == (first.state, (), ())
    marks = world.marks(first.state, device.mine)
    waiting = {each.op.mark for each in first.waiting}
    assert (
        all(marks.has_entry(stored.sha) for stored in entries if device.mine(stored.entry.agent)) or waiting
    )


def _crowded(state: State) -> bool:
    """Return whether there are texts next to their key: which ones depends on the order of arrival."""
    return any(map(_BESIDE.search, state.entries)) or any(len(entry) >= 3 for entry in state.entries.values())
