"""Detect a restored or cloned device state, here or on another device, and move its writes to a new device id.

See format section 5, "A counter is never used twice". Pure: the caller creates the new key, signs and publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ipfsmem.causal.authorship import IsMine, author_of_copy
from ipfsmem.causal.entries import memory_name, segment_name
from ipfsmem.causal.state import State, write
from ipfsmem.causal.value import MAX_DOTS, DeviceCounter, Entry, Value, same_identity
from ipfsmem.causal.value import dot as make_dot

#: Returns the entry with this name in the head that showed an unknown pair; {} if absent.
HeadEntry = Callable[[str], Entry]


class ValueToMove(msgspec.Struct, frozen=True):
    """A value of the old id that has to move, with its entry name and dot."""

    entry: str
    dot: str
    value: Value


class ValuesToMove(msgspec.Struct, frozen=True):
    """Values to move to the new id: whole memories, and of segments only the lines that the head lacks."""

    memories: tuple[ValueToMove, ...]
    segments: tuple[ValueToMove, ...]


def drew_pair(drawn: Mapping[int, str], seen_n: int, seen_r: str) -> bool:
    """Tell whether this device drew the pair (n, r) that a verified ctx shows for it.

    `drawn`: every pair that this device ever drew. False means that its state was restored or cloned.
    """
    return drawn.get(seen_n) == seen_r


def equivocating_devices(mine: Mapping[str, DeviceCounter], theirs: Mapping[str, DeviceCounter]) -> list[str]:
    """Return the devices for which two verified ctxs have different `r` for equal `n`. The caller joins the first
    head and holds back the second."""
    return sorted(dev for dev, seen in theirs.items() if dev in mine and _is_fork(mine[dev], seen))


def values_to_move(entries: Mapping[str, Entry], old: str, common: int, head: HeadEntry) -> ValuesToMove:
    """Return the values of device `old` beyond the last common pair, unless `head` has the same write under
    the same dot."""
    memories: list[ValueToMove] = []
    segments: list[ValueToMove] = []
    for name, entry in entries.items():
        for dot, value in entry.items():
            if dot[:16] != old or int(dot[17:]) <= common:
                continue
            there = head(name).get(dot)
            if there is None or not same_identity(value, there):
                (memories if segment_name(name) is None else segments).append(ValueToMove(name, dot, value))
    return ValuesToMove(tuple(sorted(memories, key=_dot_number)), tuple(sorted(segments, key=_dot_number)))


def lines_to_move(mine: Sequence[bytes], theirs: Sequence[bytes]) -> list[bytes]:
    """Return the lines of the segment `mine` that the kept copy `theirs` lacks, in order.

    Usually `theirs` is a prefix of `mine`; in diverged copies, repeated lines are matched one to one.
    """
    if list(mine[: len(theirs)]) == list(theirs):
        return list(mine[len(theirs) :])
    left: dict[bytes, int] = {}
    for line in theirs:
        left[line] = left.get(line, 0) + 1
    moved: list[bytes] = []
    for line in mine:
        if left.get(line, 0):
            left[line] -= 1
        else:
            moved.append(line)
    return moved


def step_back(state: State, old: str, common: int, moves: ValuesToMove, new: str) -> State:
    """Return the `state` with which device `new` continues.

    The counter of `old` returns to `common`, so that the other copy's writes are unseen. Each moved text gets a new,
    unsigned dot and keeps its clock and bases.

    Other dots of `old` beyond `common` are dropped: the head has them and the join restores them. Segments revert to
    those of the head; the caller appends `lines_to_move` to new segments.
    """
    entries: dict[str, Entry] = {}
    for name, entry in state.entries.items():
        remaining = {dot: v for dot, v in entry.items() if dot[:16] != old or int(dot[17:]) <= common}
        if remaining:
            entries[name] = remaining
    n = state.ctx.get(new, 0)
    for to_move in moves.memories:
        n += 1
        moved = msgspec.structs.replace(to_move.value, s="")
        entries[to_move.entry] = {**entries.get(to_move.entry, {}), make_dot(new, n): moved}
    ctx = {dev: count for dev, count in state.ctx.items() if dev != old}
    if common:
        ctx[old] = common
    if n:
        ctx[new] = n
    return State(ctx, entries)


class JoinableStates(NamedTuple):
    """Both states, now joinable. `without_room`: the values that did not fit into `ours`, by entry."""

    ours: State
    theirs: State
    without_room: dict[str, list[Value]]


def adopt_fork(
    mine: State, theirs: State, forked: Iterable[str], dev: str, my_person: IsMine
) -> JoinableStates:
    """Make two states joinable although copies of one device wrote different values under the same dots.

    Each value of a `forked` device that only one side has loses its dot and gets a new, unsigned dot of `dev` in
    `ours`, with its author in `author`. A later join then loses no text of either copy; a text may appear twice, or
    reappear after a delete. Otherwise the held head could never be joined.

    A value that `dev` already has is not written again. Each entry keeps one dot of `dev` free, so that the user can
    still write; values that do not fit are in `without_room` and in neither state.
    """
    devices = frozenset(forked)
    entries, others = dict(mine.entries), dict(theirs.entries)
    without_room: dict[str, list[Value]] = {}
    n = mine.ctx.get(dev, 0)
    for name in sorted(entries.keys() | others.keys()):
        ours, there = entries.get(name, {}), others.get(name, {})
        lone = _on_one_side_only(ours, there, devices) + _on_one_side_only(there, ours, devices)
        if not lone:
            continue
        remaining = {
            dot: value
            for dot, value in ours.items()
            if dot[:16] not in devices or _on_both_sides(dot, ours, there)
        }
        own = {(value.body, value.author) for dot, value in remaining.items() if dot[:16] == dev}
        values = [v for v in unsigned_copies(name, lone, my_person) if (v.body, v.author) not in own]
        room = max(0, MAX_DOTS - 1 - sum(dot[:16] == dev for dot in remaining))
        if len(values) > room:
            # Every device must choose the same: FORGOTTEN values stay before texts, newer values before older ones.
            without_room[name] = sorted(values, key=_by_precedence)[: len(values) - room]
            values = [value for value in values if value not in without_room[name]]
        for value in values:
            n += 1
            remaining = write(remaining, (), make_dot(dev, n), value)
        _put(entries, name, remaining)
        _put(
            others,
            name,
            {d: v for d, v in there.items() if d[:16] not in devices or _on_both_sides(d, ours, there)},
        )
    ctx = {**mine.ctx, dev: n} if n else mine.ctx
    return JoinableStates(State(ctx, entries), State(theirs.ctx, others), without_room)


def _by_precedence(value: Value) -> tuple[bool, str, str]:
    return value.body is None, value.h, value.body or ""


def _on_both_sides(dot: str, ours: Entry, there: Entry) -> bool:
    return dot in ours and dot in there and same_identity(ours[dot], there[dot])


def _on_one_side_only(entry: Entry, other: Entry, devices: frozenset[str]) -> list[tuple[str, Value]]:
    return [
        item
        for item in entry.items()
        if item[0][:16] in devices and not _on_both_sides(item[0], entry, other)
    ]


def unsigned_copies(name: str, values: list[tuple[str, Value]], my_person: IsMine) -> Iterable[Value]:
    """Copy these values for another device to sign: each body once, the reader's own before a foreign one (format
    section 5.2)."""
    made: dict[str | None, Value] = {}
    for dot, value in values:
        text = memory_name(name) is not None and value.body is not None
        of = author_of_copy(dot, value, my_person) if text else ""
        if value.body not in made or not of:
            made[value.body] = msgspec.structs.replace(value, author=of, s="")
    return made.values()


def _put(entries: dict[str, Entry], name: str, entry: Entry) -> None:
    if entry:
        entries[name] = entry
    else:
        entries.pop(name, None)


def _is_fork(mine: DeviceCounter, theirs: DeviceCounter) -> bool:
    return mine.n == theirs.n and mine.r != theirs.r


def _dot_number(moved: ValueToMove) -> int:
    return int(moved.dot[17:])
