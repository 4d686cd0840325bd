"""Join, write, delete, forget on entries and states (format section 5): a causal map of multi-value registers under one
version vector. A dot disappears only when whoever replaced or deleted it had been shown it.

Pure: every function returns new values. It checks no signature, opens no object and knows nothing of trees or commits;
which of two locations is right is asked of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ipfsmem.causal.value import (
    FORGOTTEN,
    MAX_BASES,
    MAX_DOTS,
    Entry,
    Loc,
    Seen,
    Value,
    hash32,
    same_identity,
)
from ipfsmem.causal.value import dot as make_dot
from ipfsmem.errors import FormatError, LimitError

#: How far each device has counted, as far as we know: device id -> n.
Ctx = dict[str, int]
#: Settles two values that are one write but differ in `loc` or `base`: (dot, mine, theirs) -> the one to keep.
Choose = Callable[[str, Value, Value], Value]


class Clash(msgspec.Struct, frozen=True, order=True):
    """Equivocation: one dot with two identities, in one entry or in two. The head that brought it is held back."""

    dot: str
    mine: str
    theirs: str


class Joined(msgspec.Struct, frozen=True):
    """One entry after a join, and the dots under which the two sides hold different writes (ours were kept)."""

    entry: Entry
    clashes: tuple[str, ...] = ()


class State(msgspec.Struct, frozen=True):
    """A whole state in memory, for small ones and for tests; large ones live in a tree."""

    ctx: Ctx = msgspec.field(default_factory=dict)
    entries: dict[str, Entry] = msgspec.field(default_factory=dict)


class JoinedState(msgspec.Struct, frozen=True):
    """Two states as one. With `clashes` it must not be kept: theirs is held back."""

    state: State
    clashes: tuple[Clash, ...] = ()


def covers(ctx: Mapping[str, int], dot: str) -> bool:
    """Whether whoever has this `ctx` knows of the write `dot` (which must be well formed)."""
    return int(dot[17:]) <= ctx.get(dot[:16], 0)


def join_ctx(mine: Mapping[str, int], theirs: Mapping[str, int]) -> Ctx:
    """The greater count of each device."""
    joined = dict(mine)
    for dev, n in theirs.items():
        if n > joined.get(dev, 0):
            joined[dev] = n
    return joined


def join_seen(mine: Mapping[str, Seen], theirs: Mapping[str, Seen]) -> dict[str, Seen]:
    """The greater (n, r) of each device; of two signatures of one pair the greater, so that all devices end equal."""
    joined = dict(mine)
    for dev, seen in theirs.items():
        ours = joined.get(dev)
        if ours is None or (seen.n, seen.r, seen.s) > (ours.n, ours.r, ours.s):
            joined[dev] = seen
    return joined


def seen_counts(seen: Mapping[str, Seen]) -> Ctx:
    """The plain counts of a commit's `ctx`."""
    return {dev: pair.n for dev, pair in seen.items()}


def greater_location(dot: str, mine: Value, theirs: Value) -> Value:
    """The choice when nobody can look at objects: a location before none, then the greater text."""
    loc = max((mine.loc, theirs.loc), key=_loc_order)
    base = max((mine.base, theirs.base), key=_loc_order)
    return msgspec.structs.replace(mine, loc=loc, base=base)


def location_chooser(passes: Callable[[Loc, str], bool], epoch_of: Callable[[str], int]) -> Choose:
    """The rule of the format: the location whose object passes; when both pass, the greater (epoch, EK id).

    `passes(loc, hash)` opens the object at `loc` and compares with the hash of the plain bytes (64 hex for `loc`, 32 for
    `base`); `epoch_of` gives the epoch of an EK id. When neither passes ours stays.
    """

    def order(loc: Loc) -> tuple[int, str, str, int]:
        return (epoch_of(loc.ek), loc.ek, loc.sha, loc.size)

    def pick(mine: Loc | None, theirs: Loc | None, wanted: str | None) -> Loc | None:
        if theirs is None or mine == theirs or wanted is None or not passes(theirs, wanted):
            return mine
        if mine is None or not passes(mine, wanted):
            return theirs
        return max(mine, theirs, key=order)

    def choose(dot: str, mine: Value, theirs: Value) -> Value:
        base = pick(mine.base, theirs.base, mine.b[0] if mine.b else None)
        loc = pick(mine.loc, theirs.loc, mine.body)
        return msgspec.structs.replace(mine, base=base, loc=loc)

    return choose


def join_entry(
    mine: Entry,
    theirs: Entry,
    my_ctx: Mapping[str, int],
    their_ctx: Mapping[str, int],
    choose: Choose = greater_location,
) -> Joined:
    """Join one entry; a side that lacks it passes {}. An empty result means that the entry is gone.

    A dot stays when both sides have it, or when the other side's ctx does not cover it (format section 5).
    """
    clashes: list[str] = []
    entry = _join(mine, theirs, my_ctx, their_ctx, choose, clashes)
    return Joined(entry, tuple(clashes))


def join_states(mine: State, theirs: State, choose: Choose = greater_location) -> JoinedState:
    """Join two whole states: the same as joining each entry that differs, and the ctx."""
    my_ctx, their_ctx = mine.ctx, theirs.ctx
    ours, others = mine.entries, theirs.entries
    entries = dict(ours)
    clashes: list[Clash] = []
    only_mine: dict[str, str] = {}
    only_theirs: dict[str, str] = {}
    nothing: Entry = {}
    changed = [name for name, entry in others.items() if ours.get(name) != entry]
    changed += [name for name in ours if name not in others]
    for name in changed:
        a, b = ours.get(name, nothing), others.get(name, nothing)
        twofold: list[str] = []
        joined = _join(a, b, my_ctx, their_ctx, choose, twofold)
        if joined:
            entries[name] = joined
        else:
            entries.pop(name, None)
        for dot in a:
            if dot not in b:
                only_mine[dot] = name
        for dot in b:
            if dot not in a:
                only_theirs[dot] = name
        if twofold:
            clashes += [Clash(dot, name, name) for dot in twofold]
    # One dot names one write of one entry, so the same dot in two entries is two identities.
    clashes += [Clash(dot, only_mine[dot], only_theirs[dot]) for dot in only_mine.keys() & only_theirs.keys()]
    return JoinedState(State(join_ctx(my_ctx, their_ctx), entries), tuple(sorted(clashes)))


def _join(
    mine: Entry,
    theirs: Entry,
    my_ctx: Mapping[str, int],
    their_ctx: Mapping[str, int],
    choose: Choose,
    clashes: list[str],
) -> Entry:
    entry: Entry = {}
    for dot, value in mine.items():
        other = theirs.get(dot)
        if other is None:
            if int(dot[17:]) > their_ctx.get(dot[:16], 0):
                entry[dot] = value
        elif other is value or other == value:
            entry[dot] = value
        elif same_identity(value, other):
            entry[dot] = _settle(dot, value, other, choose)
        else:
            entry[dot] = value
            clashes.append(dot)
    for dot, value in theirs.items():
        if dot not in mine and int(dot[17:]) > my_ctx.get(dot[:16], 0):
            entry[dot] = value
    return entry


def write(entry: Entry, replaces: Iterable[str], new_dot: str, value: Value) -> Entry:
    """`entry` after a write: `new_dot` stands for the dots in `replaces`, all others stay.

    `replaces` are the dots that were rendered in the text that the writer was given (KeyView.dots). Raises LimitError
    when this device would then hold more than four siblings here: writes that had not been shown each other.
    """
    gone = set(replaces)
    result = {dot: old for dot, old in entry.items() if dot not in gone}
    if new_dot in entry:
        raise FormatError(f"dot {new_dot} is used already")
    result[new_dot] = value
    own = sum(dot[:16] == new_dot[:16] for dot in result)
    if own > MAX_DOTS:
        raise LimitError(
            f"this device already holds {MAX_DOTS} texts here that do not know of each other",
            hint="Read the memory and its conflict copies, then write with what was read.",
        )
    return result


def delete(entry: Entry, replaces: Iterable[str]) -> Entry:
    """`entry` after a delete of what was shown; no tombstone. Empty: the entry goes."""
    gone = set(replaces)
    return {dot: old for dot, old in entry.items() if dot not in gone}


def forget(entry: Entry, replaces: Iterable[str], new_dot: str, h: str) -> Entry:
    """`entry` after the user's wish to forget: a value without a text, which hides what others edit at the same time."""
    return write(entry, replaces, new_dot, Value(b=(), body=None, h=h, kind=FORGOTTEN))


def next_bases(
    replaced: Sequence[Value], published: Callable[[str], bool]
) -> tuple[tuple[str, ...], Loc | None]:
    """`b` and `base` of a value that replaces these values, given in view order (the shown one first).

    Up to four hashes, newest first, without repeats: the published versions among the replaced ones, then their lists.
    `published(hash)` tells whether the version with this hash of 32 digits was ever published: others can know only such
    a version, so a run of offline edits keeps the base it started from. The location is that of the first hash.
    """
    found: dict[str, Loc | None] = {}
    for value in replaced:
        if value.body is not None and published(hash32(value.body)):
            _note(found, hash32(value.body), value.loc)
    for value in replaced:
        for i, known in enumerate(value.b):
            _note(found, known, value.base if i == 0 else None)
    bases = tuple(found)[:MAX_BASES]
    return bases, found[bases[0]] if bases else None


def check_covered(ctx: Mapping[str, int], entries: Mapping[str, Entry]) -> None:
    """Refuse a state with a dot beyond its ctx, or one dot in two entries. Raises FormatError."""
    where: dict[str, str] = {}
    for name, entry in entries.items():
        for dot in entry:
            if not covers(ctx, dot):
                raise FormatError(f"dot {dot} of entry {name!r} is beyond the ctx that comes with it")
            if where.setdefault(dot, name) != name:
                raise FormatError(f"dot {dot} stands in {where[dot]!r} and in {name!r}")


def state_write(
    state: State, name: str, replaces: Iterable[str], dev: str, value: Value
) -> tuple[State, str]:
    """A write of device `dev` on a whole state: the new state and the new dot."""
    n = state.ctx.get(dev, 0) + 1
    dot = make_dot(dev, n)
    entry = write(state.entries.get(name, {}), replaces, dot, value)
    return State({**state.ctx, dev: n}, {**state.entries, name: entry}), dot


def state_delete(state: State, name: str, replaces: Iterable[str]) -> State:
    """A delete on a whole state."""
    entry = delete(state.entries.get(name, {}), replaces)
    entries = {other: kept for other, kept in state.entries.items() if other != name}
    if entry:
        entries[name] = entry
    return State(state.ctx, entries)


def _note(found: dict[str, Loc | None], known: str, loc: Loc | None) -> None:
    if found.get(known) is None:
        found[known] = loc


def _settle(dot: str, mine: Value, theirs: Value, choose: Choose) -> Value:
    value = mine
    if mine.loc != theirs.loc or mine.base != theirs.base:
        value = choose(dot, mine, theirs)
    # The signature is no part of the identity; both hold, so any fixed choice makes all devices end equal.
    s = max(mine.s, theirs.s)
    return value if value.s == s else msgspec.structs.replace(value, s=s)


def _loc_order(loc: Loc | None) -> tuple[str, str, int]:
    return ("", "", -1) if loc is None else (loc.ek, loc.sha, loc.size)
