"""Whole states in memory for laws and vectors, joined with the functions that a sync uses. Contains no
tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ipfsmem.causal.state import (
    ChooseLocation,
    Clash,
    State,
    check_covered,
    delete,
    join_changes,
    location_chooser,
    write,
)
from ipfsmem.causal.state import EntryDifference as EntryDifference
from ipfsmem.causal.tree import StateTree, build_tree, diff
from ipfsmem.causal.value import Entry, Value, decode_entry, dot, encode_entry

#: A choice in which every object passes and all keys are of one epoch.
ALL_PASS: ChooseLocation = location_chooser(lambda loc, wanted: True, lambda ek: 0)


class Joined(msgspec.Struct, frozen=True):
    """The join of two states. With `clashes` it must not be stored: theirs is held back."""

    state: State
    clashes: tuple[Clash, ...] = ()


def join(
    mine: State,
    theirs: State,
    choose: ChooseLocation = ALL_PASS,
    room: Callable[[Entry], Entry] = lambda entry: entry,
) -> Joined:
    """Return `mine` after a sync that received `theirs`. `room`: limit on what remains of an entry. Raises
    FormatError as the sync does for content that a head must not have."""
    where: dict[str, str] = {}
    changes = []
    for found in diff(tree(mine.entries), tree(theirs.entries)):
        ours = decode_entry(found.name, found.mine) if found.mine is not None else {}
        other = decode_entry(found.name, found.theirs) if found.theirs is not None else {}
        check_covered(theirs.ctx, found.name, other, where)
        changes.append(EntryDifference(found.name, ours, other))
    joined = join_changes(changes, mine.ctx, theirs.ctx, lambda name: choose, room)
    after = {
        **mine.entries,
        **{name: joined.entries[name] for name in theirs.entries if name in joined.entries},
    }
    entries = {name: entry for name, entry in {**after, **joined.entries}.items() if entry}
    return Joined(State(joined.ctx, entries), joined.clashes)


def tree(entries: Mapping[str, Entry]) -> StateTree:
    """Return the tree of these entries as published."""
    return build_tree({name: encode_entry(entry) for name, entry in entries.items()}).tree


def covered(state: State) -> None:
    """Raise FormatError if a state has content that a head must not have."""
    where: dict[str, str] = {}
    for name, entry in state.entries.items():
        check_covered(state.ctx, name, entry, where)


def written(state: State, name: str, replaces: Iterable[str], device: str, value: Value) -> tuple[State, str]:
    """Write as `device`; return the new state and the new dot. Raises LimitError."""
    n = state.ctx.get(device, 0) + 1
    new = dot(device, n)
    entry = write(state.entries.get(name, {}), replaces, new, value)
    return State({**state.ctx, device: n}, {**state.entries, name: entry}), new


def deleted(state: State, name: str, replaces: Iterable[str]) -> State:
    """Delete the shown value."""
    entry = delete(state.entries.get(name, {}), replaces)
    entries = {other: kept for other, kept in {**state.entries, name: entry}.items() if kept}
    return State(state.ctx, entries)
