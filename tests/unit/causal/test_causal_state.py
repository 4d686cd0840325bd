"""Joins, writes, deletes and forks of states equal the shared vectors, within the limits of an entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipfsmem.causal.own_copies import (
    adopt_fork,
    drew_pair,
    equivocating_devices,
    lines_to_move,
    step_back,
    values_to_move,
)
from ipfsmem.causal.state import (
    Clash,
    EntryDifference,
    State,
    covers,
    delete,
    join_changes,
    join_ctx,
    join_seen,
    limit_values,
    location_chooser,
    next_bases,
    write,
)
from ipfsmem.causal.value import (
    LIVE,
    MAX_BASES,
    MAX_OBJECT,
    MAX_VALUES,
    DeviceCounter,
    Entry,
    Loc,
    Value,
    dot,
    encode_entry,
)
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.ring.authority import Admission
from tests.support.causal_lab import covered, join

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/state.json").read_text())
A, B, C = "a" * 16, "b" * 16, "c" * 16


def state_of(data: Any) -> State:
    return msgspec.convert(data, State)


def text(body: str = "1", **more: Any) -> Value:
    return Value(b=more.pop("b", ()), body=body * 64, h="0" * 16, kind="live", **more)


def test_joined_states_equal_the_vectors() -> None:
    for case in VECTORS["joins"]:
        mine, theirs, joined = state_of(case["mine"]), state_of(case["theirs"]), state_of(case["joined"])
        assert join(mine, theirs).state == joined
        assert join(theirs, mine).state == joined


@pytest.mark.parametrize("case", VECTORS["clashes"], ids=lambda case: case["why"])
def test_one_dot_with_two_identities_is_a_clash(case: Any) -> None:
    mine, theirs = state_of(case["mine"]), state_of(case["theirs"])
    assert join(mine, theirs).clashes == (Clash(case["dot"], *case["entries"]),)
    assert join(theirs, mine).clashes == (Clash(case["dot"], *reversed(case["entries"])),)
    assert join(mine, theirs).state.entries == mine.entries


@pytest.mark.parametrize("case", VECTORS["next_bases"], ids=lambda case: case["why"])
def test_next_bases_equal_the_vectors(case: Any) -> None:
    replaced = msgspec.convert(case["replaced_in_view_order"], list[Value])
    b, base = next_bases(replaced, case["published"].__contains__)
    assert list(b) == case["b"]
    assert base == msgspec.convert(case["base"], Loc | None)


def test_contexts_are_joined_and_compared() -> None:
    assert join_ctx({A: 1, B: 5}, {A: 3, C: 1}) == {A: 3, B: 5, C: 1}
    assert covers({A: 10}, dot(A, 9)) and covers({A: 10}, dot(A, 10))
    assert not covers({A: 9}, dot(A, 10)) and not covers({}, dot(A, 1))
    one, two = DeviceCounter(1, "f" * 16, "x"), DeviceCounter(2, "0" * 16, "y")
    forked = DeviceCounter(2, "1" * 16, "z")
    assert join_seen({A: one}, {A: two}) == join_seen({A: two}, {A: one}) == {A: two}
    assert join_seen({A: two}, {A: forked}) == {A: forked}
    assert equivocating_devices({A: two, B: one}, {A: forked, B: one}) == [A]
    assert equivocating_devices({A: one}, {A: two, B: one}) == []


def test_uncovered_or_duplicate_dots_are_refused() -> None:
    covered(State({A: 2}, {"m/k": {dot(A, 2): text()}}))
    with pytest.raises(FormatError, match="beyond"):
        join(State(), State({A: 1}, {"m/k": {dot(A, 2): text()}}))
    with pytest.raises(FormatError, match=r"dot .* is in m/[kl] and in m/[kl]"):
        join(State(), State({A: 2}, {"m/k": {dot(A, 2): text()}, "m/l": {dot(A, 2): text()}}))


def test_write_and_delete_replace_the_given_dots() -> None:
    entry: Entry = {dot(A, 1): text("1"), dot(B, 1): text("2")}
    assert write(entry, [dot(A, 1), dot(A, 99)], dot(C, 1), text("3")).keys() == {dot(B, 1), dot(C, 1)}
    assert delete(entry, [dot(B, 1)]).keys() == {dot(A, 1)}
    assert delete(entry, entry) == {}
    with pytest.raises(FormatError, match="used already"):
        write(entry, [dot(A, 1)], dot(A, 1), text("3"))


def test_fifth_concurrent_text_of_one_device_is_refused_not_dropped() -> None:
    entry: Entry = {}
    for n in range(1, 5):
        entry = write(entry, [], dot(A, n), text(str(n)))
    with pytest.raises(LimitError, match="4"):
        write(entry, [], dot(A, 5), text("5"))
    assert len(write(entry, [], dot(B, 1), text("5"))) == 5
    assert len(write(entry, [dot(A, 1)], dot(A, 5), text("5"))) == 4


@pytest.mark.parametrize("case", VECTORS["room"], ids=lambda case: case["why"])
def test_values_over_the_limit_are_dropped_as_in_the_vectors(case: Any) -> None:
    entry = state_of({"ctx": {}, "entries": {"m/k": case["entry"]}}).entries["m/k"]
    kept = limit_values(entry, lambda device: Admission(*case["let_in"][device]), case["most"])
    assert sorted(kept) == case["kept"]
    assert len(kept) == min(case["most"], len(entry))


def test_full_entry_is_smaller_than_512_kib() -> None:
    longest = Loc("a" * 16, "a" * 64, MAX_OBJECT)
    value = Value(
        b=tuple(f"{n}" * 32 for n in range(MAX_BASES)),
        base=longest,
        body="a" * 64,
        h="f" * 16,
        kind=LIVE,
        loc=longest,
        author="a" * 16,
        s="a" * 86,
    )
    devices = [f"{n:016x}" for n in range(MAX_VALUES)]
    assert len(encode_entry({dot(one, 2**53 - 1): value for one in devices})) < 512 * 1024


def test_location_is_taken_only_when_its_object_passes() -> None:
    good, bad, newer = Loc("1" * 16, "2" * 64, 1), Loc("9" * 16, "f" * 64, 1), Loc("0" * 16, "3" * 64, 1)
    epochs = {"1" * 16: 1, "0" * 16: 2, "9" * 16: 9}
    asked: list[tuple[Loc, str]] = []

    def passes(loc: Loc, wanted: str) -> bool:
        asked.append((loc, wanted))
        return loc != bad

    choose = location_chooser(passes, epochs.__getitem__)
    d = dot(A, 1)
    for mine, theirs, kept in (
        (good, bad, good),
        (bad, good, good),
        (good, newer, newer),
        (newer, good, newer),
        (None, good, good),
        (None, bad, None),
        (good, None, good),
    ):
        assert choose(d, text(loc=mine), text(loc=theirs)).loc == kept
    assert all(wanted == "1" * 64 for _, wanted in asked)
    b = ("4" * 32,)
    assert choose(d, text(b=b, base=bad), text(b=b, base=good)).base == good
    assert asked[-1] == (bad, "4" * 32) or asked[-2] == (good, "4" * 32)
    change = EntryDifference("m/k", {d: text(loc=bad, s="1")}, {d: text(loc=good, s="2")})
    joined = join_changes([change], {A: 1}, {A: 1}, lambda name: choose, lambda entry: entry)
    assert joined.entries == {"m/k": {d: text(loc=good, s="2")}} and not joined.clashes


def test_own_pair_is_recognised() -> None:
    drawn = {1: "1" * 16, 4: "4" * 16}
    assert drew_pair(drawn, 4, "4" * 16)
    assert not drew_pair(drawn, 4, "5" * 16)  # trace 2: same counter, another draw
    assert not drew_pair(drawn, 9, "9" * 16)  # trace 1: a counter that we never reached


def test_restored_device_moves_values_as_in_the_vectors() -> None:
    case = VECTORS["restore"]
    state, head = state_of(case["state"]), state_of(case["head"])
    for move in case["moves"]:
        found = values_to_move(
            state.entries, case["old"], move["last_common"], lambda name: head.entries.get(name, {})
        )
        assert [held.dot for held in found.memories] == move["moved_dots"]
        after = step_back(state, case["old"], move["last_common"], found, case["new"])
        assert after == state_of(move["after"])
        covered(after)


def test_restored_segments_are_reset_and_their_lines_moved() -> None:
    name = f"t/2026-04-14/{A}/0"
    state = State({A: 3}, {name: {dot(A, 3): text()}})
    moves = values_to_move(state.entries, A, 1, lambda name: {})
    assert [held.entry for held in moves.segments] == [name] and not moves.memories
    assert step_back(state, A, 1, moves, C) == State({A: 1}, {})
    assert lines_to_move([b"1", b"2", b"3"], [b"1"]) == [b"2", b"3"]
    assert lines_to_move([b"1", b"x", b"x"], [b"1", b"x", b"y"]) == [b"x"]
    assert lines_to_move([b"1"], [b"1", b"2"]) == []
    assert lines_to_move([b"1"], []) == [b"1"]


def test_held_fork_is_joined_after_both_copies_are_adopted() -> None:
    d = dot(A, 2)
    mine = State({A: 2, B: 1}, {"m/k": {d: text("1"), dot(A, 1): text("0")}, "m/x": {dot(B, 1): text("5")}})
    theirs = State({A: 3, B: 1}, {"m/l": {d: text("2"), dot(A, 3): text("3")}, "m/k": {dot(A, 1): text("0")}})
    assert join(mine, theirs).clashes == (Clash(d, "m/k", "m/l"),)
    ours, others, beside = adopt_fork(mine, theirs, [A], C, lambda dev: True)
    assert (ours.ctx, others.ctx, beside) == ({A: 2, B: 1, C: 3}, theirs.ctx, {})
    joined = join(ours, others)
    assert not joined.clashes
    assert joined.state == State(
        {A: 3, B: 1, C: 3},
        {
            "m/k": {dot(A, 1): text("0"), dot(C, 1): text("1")},
            "m/l": {dot(C, 2): text("2"), dot(C, 3): text("3")},
        },  # m/x was deleted by a device that had seen it, and its device is not forked
    )
    covered(joined.state)
    same = State({A: 1}, {"m/k": {dot(A, 1): text("0")}})
    assert adopt_fork(same, same, [A], C, lambda dev: True) == (same, same, {})
    two_bodies = State({A: 1}, {"m/k": {dot(A, 1): text("9")}})
    ours, others, _ = adopt_fork(same, two_bodies, [A], C, lambda dev: True)
    assert ours.entries == {"m/k": {dot(C, 1): text("0"), dot(C, 2): text("9")}} and others.entries == {}


@pytest.mark.parametrize("case", VECTORS["adopted"], ids=lambda case: case["why"])
def test_adopted_fork_equals_the_vectors(case: Any) -> None:
    """Of any size."""
    ours, left, beside = adopt_fork(
        state_of(case["mine"]), state_of(case["theirs"]), case["forked"], case["dev"], lambda dev: True
    )
    assert (ours, left) == (state_of(case["ours"]), state_of(case["left"]))
    assert beside == msgspec.convert(case["beside"], dict[str, list[Value]])
    assert not join(ours, left).clashes


def test_adopted_text_keeps_its_author_unless_it_is_own() -> None:
    """Of equal bodies the own one has priority."""
    ours = State(
        {A: 2, C: 0},
        {"m/k": {dot(A, 1): text("1")}, "m/l": {dot(A, 2): text("2")}, "c/w": {dot(A, 3): text("3")}},
    )
    after, _, _ = adopt_fork(ours, State(), [A], C, lambda dev: dev == C)
    assert {value.author for value in after.entries["m/k"].values()} == {A}
    assert {value.author for value in after.entries["c/w"].values()} == {""}
    after, _, _ = adopt_fork(ours, State(), [A], C, lambda dev: dev in (A, C))
    assert {value.author for value in after.entries["m/k"].values()} == {""}
    twice = State({A: 1, B: 1}, {"m/k": {dot(A, 1): text("1"), dot(B, 1): text("1")}})
    after, _, _ = adopt_fork(twice, State(), [A, B], C, lambda dev: dev in (B, C))
    assert [value.author for value in after.entries["m/k"].values()] == [""]
