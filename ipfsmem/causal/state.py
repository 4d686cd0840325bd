"""Join, write and delete on a causal map of multi-value registers under one version vector (format section 5).

A write or delete removes only dots that its device was shown. Pure: the caller signs, stores and locates objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ipfsmem.causal.value import (
    MAX_BASES,
    MAX_DOTS,
    DeviceCounter,
    Entry,
    Loc,
    Value,
    hash32,
    same_identity,
)
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.ring.authority import BY_ROOT, Admission

#: Version vector: device id -> the highest known counter.
Ctx = dict[str, int]
#: Chooses between two values of one write that differ in `loc` or `base`: (dot, mine, theirs) -> the value to keep.
ChooseLocation = Callable[[str, Value, Value], Value]


class Clash(msgspec.Struct, frozen=True, order=True):
    """Equivocation: one dot with two identities, in one entry or in two. The head that contains it is held back."""

    dot: str
    mine: str
    theirs: str


class EntryDifference(msgspec.Struct, frozen=True, gc=False):
    """One entry in which two states differ, with the value of each side; {} if absent."""

    name: str
    mine: Entry
    theirs: Entry


class JoinResult(msgspec.Struct, frozen=True):
    """The changed entries of a join; an empty entry is removed. If there are `clashes`, the caller discards the
    result.

    `ctx`: the joined version vector. `crowded`: number of values that did not fit, by entry.
    """

    entries: dict[str, Entry]
    clashes: tuple[Clash, ...] = ()
    ctx: Ctx = {}
    crowded: dict[str, int] = {}


class State(msgspec.Struct, frozen=True):
    """A version vector and some or all entries of a state."""

    ctx: Ctx = msgspec.field(default_factory=dict)
    entries: dict[str, Entry] = msgspec.field(default_factory=dict)


def covers(ctx: Mapping[str, int], dot: str) -> bool:
    """Tell whether a state with this `ctx` has seen the write `dot`. `dot` must be well formed."""
    return int(dot[17:]) <= ctx.get(dot[:16], 0)


def join_ctx(mine: Mapping[str, int], theirs: Mapping[str, int]) -> Ctx:
    """Return the greater counter of each device."""
    joined = dict(mine)
    for dev, n in theirs.items():
        if n > joined.get(dev, 0):
            joined[dev] = n
    return joined


def join_seen(
    mine: Mapping[str, DeviceCounter], theirs: Mapping[str, DeviceCounter]
) -> dict[str, DeviceCounter]:
    """Return the greater (n, r) of each device, and of two signatures of one pair the greater, so that devices
    converge."""
    joined = dict(mine)
    for dev, seen in theirs.items():
        ours = joined.get(dev)
        if ours is None or (seen.n, seen.r, seen.s) > (ours.n, ours.r, ours.s):
            joined[dev] = seen
    return joined


def counts_of(seen: Mapping[str, DeviceCounter]) -> Ctx:
    """Return the counters of a commit's `ctx` without their signatures."""
    return {dev: pair.n for dev, pair in seen.items()}


def location_chooser(passes: Callable[[Loc, str], bool], epoch_of: Callable[[str], int]) -> ChooseLocation:
    """Return the format's location rule: the location whose object passes; if both pass, the greater (epoch, EK id).

    `passes(loc, hash)` opens the object at `loc` and compares the hash of the plain bytes (64 hex digits for `loc`,
    32 for `base`); `epoch_of` returns the epoch number of an EK id. If neither passes, `mine` is kept.
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


def clashes_of(changes: Sequence[EntryDifference]) -> list[Clash]:
    """Return the dots that name different writes on the two sides, in one entry or in two, sorted."""
    clashes: list[Clash] = []
    only_mine: dict[str, str] = {}
    for change in changes:
        for dot, value in change.mine.items():
            other = change.theirs.get(dot)
            if other is None:
                only_mine[dot] = change.name
            elif not same_identity(value, other):
                clashes.append(Clash(dot, change.name, change.name))
    if only_mine:  # empty in a first join
        clashes += [
            Clash(dot, only_mine[dot], change.name)
            for change in changes
            for dot in change.theirs
            if dot in only_mine and dot not in change.mine
        ]
    return sorted(clashes)


def join_changes(
    changes: Sequence[EntryDifference],
    my_ctx: Mapping[str, int],
    their_ctx: Mapping[str, int],
    choose: Callable[[str], ChooseLocation],
    room: Callable[[Entry], Entry],
) -> JoinResult:
    """Join two states. `changes`: all entries in which they differ.

    A dot stays if both sides have it, or if the other side's ctx does not cover it (format section 5). `choose`
    returns the location rule for an entry name; `room` returns the part of a joined entry that fits (see
    `limit_values`).
    """
    clashes = clashes_of(changes)
    if clashes:
        return JoinResult({}, tuple(clashes), join_ctx(my_ctx, their_ctx))
    entries: dict[str, Entry] = {}
    crowded: dict[str, int] = {}
    for change in changes:
        joined = _join_entry(change.mine, change.theirs, my_ctx, their_ctx, choose(change.name))
        if joined == change.mine:
            continue
        entry = room(joined)
        if len(entry) < len(joined):
            crowded[change.name] = len(joined) - len(entry)
        if entry != change.mine:
            entries[change.name] = entry
    return JoinResult(entries, ctx=join_ctx(my_ctx, their_ctx), crowded=crowded)


def _join_entry(
    mine: Entry,
    theirs: Entry,
    my_ctx: Mapping[str, int],
    their_ctx: Mapping[str, int],
    choose: ChooseLocation,
) -> Entry:
    entry: Entry = {}
    for dot, value in mine.items():
        other = theirs.get(dot)
        if other is None:
            if int(dot[17:]) > their_ctx.get(dot[:16], 0):
                entry[dot] = value
        elif other is value or other == value:
            entry[dot] = value
        else:
            entry[dot] = _same_write(dot, value, other, choose)
    for dot, value in theirs.items():
        if dot not in mine and int(dot[17:]) > my_ctx.get(dot[:16], 0):
            entry[dot] = value
    return entry


def limit_values(entry: Entry, admission_of: Callable[[str], Admission], most: int) -> Entry:
    """Trim an entry that has more than `most` values after a join; return any other unchanged.

    First the newest value of each device admitted by a root is kept. The remaining room is shared round-robin among
    the admitting members; within a share, each device's newest value precedes any second one, and so on, then the
    greater (HLC, dot). So many devices of one admitter displace only each other's values, whatever their clocks.
    Trimming is idempotent.
    """
    if len(entry) <= most:
        return entry
    newest = sorted(
        entry.items(), key=lambda item: (item[1].h, item[0][:16], int(item[0][17:])), reverse=True
    )
    written: dict[str, int] = {}
    first: list[str] = []
    shares: dict[Admission, list[tuple[int, int, str]]] = {}
    for at, (dot, _) in enumerate(newest):
        device, before = dot[:16], written.get(dot[:16], 0)
        written[device] = before + 1
        share = admission_of(device)
        if before == 0 and share == BY_ROOT:
            first.append(dot)
        else:
            shares.setdefault(share, []).append((before, at, dot))
    turns = [
        (turn, share, dot)
        for share, values in shares.items()
        for turn, (_, _, dot) in enumerate(sorted(values))
    ]
    kept_dots = set([*first, *(dot for *_, dot in sorted(turns))][:most])
    return {dot: value for dot, value in entry.items() if dot in kept_dots}


def write(entry: Entry, replaces: Iterable[str], new_dot: str, value: Value) -> Entry:
    """Return `entry` after a write: `new_dot` replaces the dots in `replaces`, all others stay.

    `replaces`: the dots rendered in the text that the writer was shown (KeyView.dots). Raises LimitError if the entry
    would then have more than four siblings of this device, which happens if its writers were not shown each other's
    text.
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
            hint="Read the memory and its alternatives, then write with that reading.",
        )
    return result


def delete(entry: Entry, replaces: Iterable[str]) -> Entry:
    """Return `entry` without the dots `replaces`; a delete leaves no tombstone. The caller removes an empty entry."""
    gone = set(replaces)
    return {dot: old for dot, old in entry.items() if dot not in gone}


def next_bases(
    replaced: Sequence[Value], published: Callable[[str], bool]
) -> tuple[tuple[str, ...], Loc | None]:
    """Return `b` and `base` of a new value that replaces the values `replaced`, in view order (the shown one first).

    `b`: up to four hashes, newest first, without repeats: those of the published texts among `replaced`, then the `b`
    of each. `published(hash)` tells whether the text with this hash (32 hex digits) was ever published. Other devices
    know only published texts, so a series of offline edits keeps its original base. `base`: the location of the first
    hash.
    """
    locations: dict[str, Loc | None] = {}
    for value in replaced:
        if value.body is not None and published(hash32(value.body)):
            _add_location(locations, hash32(value.body), value.loc)
    for value in replaced:
        for i, known in enumerate(value.b):
            _add_location(locations, known, value.base if i == 0 else None)
    bases = tuple(locations)[:MAX_BASES]
    return bases, locations[bases[0]] if bases else None


def check_covered(ctx: Mapping[str, int], name: str, entry: Entry, where: dict[str, str]) -> None:
    """Check that `ctx` covers each dot of an entry and that no other entry has the same dot. Raises FormatError.

    `where` maps each dot of the entries checked so far to its entry; this call updates it.
    """
    for dot in entry:
        if not covers(ctx, dot):
            raise FormatError(f"value {dot} of {name} is beyond the counters of its own commit")
        if where.setdefault(dot, name) != name:
            raise FormatError(f"dot {dot} is in {where[dot]} and in {name}")


def _add_location(locations: dict[str, Loc | None], known: str, loc: Loc | None) -> None:
    if locations.get(known) is None:
        locations[known] = loc


def _same_write(dot: str, mine: Value, theirs: Value, choose: ChooseLocation) -> Value:
    value = mine
    if mine.loc != theirs.loc or mine.base != theirs.base:
        value = choose(dot, mine, theirs)
    # Any fixed choice between valid signatures makes all devices converge: the signature is not part of the identity.
    s = max(mine.s, theirs.s)
    return value if value.s == s else msgspec.structs.replace(value, s=s)
