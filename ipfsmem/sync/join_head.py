"""Join one verified head into this device's state: read, check and fetch the differences, then store them in one
step.

A head with a value that its device did not sign, a dot beyond its counters, or a dot of another write is dropped as a
whole. A value whose body is unavailable is joined as "not fetched". See format sections 5 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256

import msgspec

from ipfsmem.causal.clock import ZERO, hlc_after_seeing
from ipfsmem.causal.entries import check_entry_name, entry_display_name
from ipfsmem.causal.state import (
    ChooseLocation,
    EntryDifference,
    check_covered,
    counts_of,
    join_changes,
    join_seen,
    limit_values,
    location_chooser,
)
from ipfsmem.causal.tree import Difference
from ipfsmem.causal.value import (
    MAX_VALUES,
    Entry,
    Loc,
    Value,
    check_entry,
    decode_entry,
    same_identity,
    verify_value,
)
from ipfsmem.content.cid import raw_cid
from ipfsmem.device.bulk import blocks_here, first_failing, no_collection
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateHeader, locations
from ipfsmem.device.tables import meta
from ipfsmem.device.texts_of_others import keep_own, note_others
from ipfsmem.errors import FormatError, SignatureError
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.labels import label_and_id
from ipfsmem.sync.fetch import HELD_MAX, Fetcher
from ipfsmem.sync.progress import Progress
from ipfsmem.sync.report import MOST_NAMED

#: Number of signatures checked between two progress reports.
_TELL = 8_192
#: Objects per portion: if each claims one byte, a portion may still be half a gibibyte, but no more.
_PORTION = 512


def checked(
    differences: Iterable[Difference], head: Head, replica: Replica, progress: Progress
) -> list[EntryDifference]:
    """Decode and check the differences. Raises FormatError, LimitError, SignatureError: the head is dropped.

    Values that we already hold are not checked again (format section 7).
    """
    with no_collection():
        return _checked(differences, head, replica, progress)


def _checked(
    differences: Iterable[Difference], head: Head, replica: Replica, progress: Progress
) -> list[EntryDifference]:
    counts = counts_of(head.ctx)
    vault = replica.vault_tag
    assert vault is not None and replica.ring is not None
    keys = replica.ring.view.keys_of
    remaining = list(differences)
    changes: list[EntryDifference] = []
    unseen: list[tuple[str, str, Value]] = []
    places: dict[str, str] = {}
    for difference in remaining:
        name = check_entry_name(difference.name)
        mine = decode_entry(name, difference.mine) if difference.mine is not None else {}
        theirs = decode_entry(name, difference.theirs) if difference.theirs is not None else {}
        if theirs:
            check_entry(name, theirs)
        if head.unknown_devices:
            # Nobody can verify these now; their holders rewrite them under their own dots (format section 5).
            theirs = {dot: value for dot, value in theirs.items() if dot[:16] not in head.unknown_devices}
        check_covered(counts, name, theirs, places)
        for dot, value in theirs.items():
            own_value = mine.get(dot)
            # Another signature is not part of the identity, but an invalid one must not be joined either.
            if own_value is not None and own_value.s == value.s and same_identity(own_value, value):
                continue
            unseen.append((name, dot, value))
        changes.append(EntryDifference(name, mine, theirs))

    def signed(item: tuple[str, str, Value]) -> bool:
        name, dot, value = item
        return any(verify_value(key, name, dot, value, vault) for key in keys.get(dot[:16], ()))

    for start in range(0, len(unseen), _TELL):
        progress("checking signatures", start, len(unseen))
        wrong = first_failing(signed, unseen[start : start + _TELL])
        if wrong is not None:
            raise SignatureError(f"value {wrong[1]} of {wrong[0]} is not signed by device {wrong[1][:16]}")
    return changes


async def fetch_objects(
    changes: list[EntryDifference], replica: Replica, fetcher: Fetcher, progress: Progress
) -> None:
    """Fetch the missing objects that joining needs, in portions: of new values, and of other locations.

    Their total is unbounded: an existing device got them one head at a time, a new one meets them all at once
    (format section 8).
    """
    sizes: dict[bytes, int] = {}
    for change in changes:
        for dot, value in change.theirs.items():
            mine = change.mine.get(dot)
            for loc in locations({dot: value}):
                if mine is None or loc not in (mine.loc, mine.base):
                    sizes[bytes.fromhex(loc.sha)] = loc.size
    here = blocks_here(replica.db, sizes)
    missing = {digest: size for digest, size in sizes.items() if digest not in here}
    done = 0
    for portion in _portions(missing):
        await fetcher.get([raw_cid(digest) for digest in portion])
        # Blocks are named by hash: keeping them early is harmless and bounds memory.
        with replica.transaction():
            fetcher.keep()
        done += len(portion)
        progress("fetching", done, len(missing))


def _portions(sizes: Mapping[bytes, int]) -> Iterator[list[bytes]]:
    """Yield the objects to request together. The unsigned size in a location only makes portions smaller.

    They are in the order in which packs hold them, so that each portion is in one part of a pack.
    """
    portion: list[bytes] = []
    size = 0
    for digest, claimed in sorted(sizes.items()):
        if portion and (len(portion) == _PORTION or size + claimed > HELD_MAX):
            yield portion
            portion, size = [], 0
        portion.append(digest)
        size += claimed
    if portion:
        yield portion


class JoinedHead(msgspec.Struct, frozen=True):
    """The result of joining one head: its entries before and after, and the number of unavailable texts."""

    before: dict[str, Entry]
    after: dict[str, Entry]
    not_fetched: int
    #: Number of texts without room, and where; empty when all fit.
    left_out: int
    crowded: str


def join(changes: list[EntryDifference], head: Head, replica: Replica) -> JoinedHead:
    """Join inside a transaction. Raises FormatError, with nothing changed, if a dot has two writes: callers look for
    forks first."""
    with no_collection():
        return _join(changes, head, replica)


def _join(changes: list[EntryDifference], head: Head, replica: Replica) -> JoinedHead:
    store = replica.store
    theirs_ctx = counts_of(head.ctx)
    # The state may have changed since the differences were read.
    now_here = [EntryDifference(change.name, store.entry(change.name), change.theirs) for change in changes]
    epoch_of = _epoch_of(replica)

    def choose(name: str) -> ChooseLocation:
        return location_chooser(_passes(replica, name), epoch_of)

    assert replica.ring is not None
    admission_of = replica.ring.view.admission_of
    # With an unsealable part of the state nobody could publish or join any more.
    outcome = join_changes(
        now_here,
        store.frame.ctx,
        theirs_ctx,
        choose,
        lambda entry: limit_values(entry, admission_of, MAX_VALUES),
    )
    if outcome.clashes:
        dots = ", ".join(clash.dot for clash in outcome.clashes)
        raise FormatError(
            f"head {head.root} contradicts itself: {label_and_id(replica.ring, dots[:16])} wrote different texts under {dots}"
        )
    joined, crowded = outcome.entries, _words_of_crowded(outcome.crowded)
    if crowded:
        replica.left_out.append(crowded)
    before = {change.name: change.mine for change in now_here if change.name in joined}
    bodies: list[bytes] = []
    bases: list[bytes] = []
    for name, entry in joined.items():
        new = [value for dot, value in entry.items() if dot not in before[name]]
        bodies += [bytes.fromhex(value.loc.sha) for value in new if value.loc is not None]
        bases += [bytes.fromhex(value.base.sha) for value in new if value.base is not None]
    _note_stray(replica, joined.values())
    here = blocks_here(replica.db, (*bodies, *bases))
    now = replica.environment.now()
    latest = max((value.h for entry in joined.values() for value in entry.values()), default=ZERO)
    hlc = hlc_after_seeing(store.frame.hlc, latest, now)
    frame = StateHeader(outcome.ctx, join_seen(store.frame.seen, head.ctx), hlc)
    if joined or frame != store.frame:
        note_others(replica, joined)
        keep_own(replica, before, joined)
        store.apply(joined, frame)
    missing = sum(digest not in here for digest in bodies)
    if missing or not here.issuperset(bases):
        replica.db.set_meta(meta.LACKING, b"1")
    return JoinedHead(before, joined, missing, sum(outcome.crowded.values()), crowded)


def _words_of_crowded(crowded: dict[str, int]) -> str:
    if not crowded:
        return ""
    places = sorted(map(entry_display_name, crowded))
    return f"{sum(crowded.values())} texts were left out, as too many devices wrote under one name: {', '.join(places[:MOST_NAMED])}"


def _note_stray(replica: Replica, entries: Iterable[Entry]) -> None:
    """Record that something uses a key that the ring does not name: the next publish re-seals it."""
    ring = replica.ring
    if ring is None or ring.plain or replica.db.get_meta(meta.STRAY) == b"1":
        return
    names = ring.view.names
    if any(loc.ek and loc.ek not in names for entry in entries for loc in locations(entry)):
        replica.db.set_meta(meta.STRAY, b"1")


def _passes(replica: Replica, name: str) -> Callable[[Loc, str], bool]:
    def passes(loc: Loc, prefix: str) -> bool:
        body = replica.store.open_located(name, loc)
        return body is not None and sha256(body).hexdigest()[: len(prefix)] == prefix

    return passes


def _epoch_of(replica: Replica) -> Callable[[str], int]:
    ring = replica.ring
    eks = ring.view.eks if ring is not None else {}
    return lambda ek: eks[ek][0].epoch if ek in eks else -1
