"""Guards: the root before a mass delete stays until a person says that the delete was right (format section 7).

The device that joined the delete remembers the guard, and pins the root under the vault's guard name where a provider keeps
several names for one root: so another device's collection leaves the root alone too. Where no provider does, only this device
guards it, and that is said. The number of guards is bounded for each author whose texts went, so that no author's guards push
out another's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, is_cid, parse_cid
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import heads, meta, placed
from ipfsmem.errors import NotFoundError, ProviderError, UsageError
from ipfsmem.provider.contract import Pin, Provider
from ipfsmem.ring.authority import BY_ROOT
from ipfsmem.ring.labels import families_named, label_and_id, label_of
from ipfsmem.sync.mass_delete import MassDelete
from ipfsmem.sync.run import Run

#: So many guards of the texts of one who was let in by a root, and of all together whom the same admins let in.
MOST_GUARDS: Final = 8
#: What a person gives for all guards.
ALL: Final = "all"
_WHICH: Final = "See what is: ipfsmem vault compact --dry-run"


class Guard(msgspec.Struct, frozen=True):
    """Why a root is guarded: since `at` (milliseconds), for `gone` texts of the families `of`, with how many each lost, which
    went in what the devices `by` published."""

    at: int
    gone: int
    of: dict[str, int]
    by: tuple[str, ...]


class Guarded(msgspec.Struct, frozen=True):
    """A guarded root for a person: `of` and `by` as labels with ids, for anybody may be called anything. One that only another device guards says no more than its root.
    `dropped`: it is guarded no more, or would be."""

    root: str
    at: int | None
    gone: int
    of: tuple[str, ...]
    by: tuple[str, ...]
    dropped: bool


def guard_name(anchor_public: bytes) -> str:
    """The pin name under which guarded roots of a vault stand beside their own."""
    return "ipfsmem-" + sha256(b"ipfsmem/v1/guard\0" + anchor_public).hexdigest()[:16]


def add_guard(replica: Replica, found: MassDelete) -> None:
    """Note that the roots before a mass delete are to stay (inside a transaction).

    Whose texts went decides which guards share a bound: of these the greatest stay, then the oldest. Each of those who lost
    texts counts for itself, and a root stays while one of them has room for it: so false alarms about one's own texts,
    however many, push out no guard of anybody else's, and none becomes one's own by what else went with it.
    """
    for root in found.roots:
        known = guarded(replica.db).get(root)
        new = Guard(replica.world.now(), found.gone, found.of, found.by)
        if known is not None:
            of = {
                one: max(known.of.get(one, 0), found.of.get(one, 0)) for one in sorted({*known.of, *found.of})
            }
            by = tuple(sorted({*known.by, *found.by}))
            new = Guard(known.at, max(known.gone, found.gone), of, by)
        replica.db.set_meta(meta.GUARD + root, msgspec.json.encode(new))
    shares: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for root, one in guarded(replica.db).items():
        of_share: Counter[str] = Counter()
        for family, number in one.of.items():
            of_share[_share_of(replica, family)] += number
        for share, number in of_share.items():
            shares[share].append((-number, one.at, root))
    stay = {root for share in shares.values() for *_, root in sorted(share)[:MOST_GUARDS]}
    _forget(replica, guarded(replica.db).keys() - stay)


def _share_of(replica: Replica, family: str) -> str:
    let_in = replica.ring.view.let_in(family) if replica.ring is not None else BY_ROOT
    return f"{let_in.rank} {family if let_in == BY_ROOT else let_in.admins}"


def guarded(db: Database) -> dict[str, Guard]:
    """The roots that this device guards, sorted."""
    names = meta.names(db.connection, meta.GUARD)
    stored = {name.removeprefix(meta.GUARD): db.get_meta(name) for name in names}
    return {root: read_json(row, type=Guard) for root, row in stored.items() if row is not None}


def forget_guards(replica: Replica, dropped: Iterable[str]) -> None:
    """Forget guards that a person dropped, and those of roots that are neither known nor here any more (inside a transaction)."""
    known = {*heads.roots(replica.db.connection), *map(str, guarded_roots_here(replica.db))}
    _forget(replica, {*dropped, *guarded(replica.db).keys() - known})


def guarded_roots_here(db: Database) -> list[CID]:
    """The guarded roots that lie on this device, whether or not it remembers where it saw them: a row that the disk changed must
    not let go of what a person was told is kept."""
    roots = [parse_cid(root) for root in guarded(db) if is_cid(root)]
    return [root for root in roots if db.block(root.digest) is not None]


def _forget(replica: Replica, roots: Iterable[str]) -> None:
    meta.forget(replica.db.connection, [meta.GUARD + root for root in roots])


def keeps_guards(provider: Provider) -> bool:
    """Whether a root can stand there under a second name."""
    can = provider.capabilities
    return can.pin and can.list and can.unpin and can.partial_car


async def bring_out_guards(run: Run) -> None:
    """Pin the roots that this device guards at each provider that can keep guards, once; say so where none can."""
    roots, noted = list(guarded(run.replica.db)), _pinned_guards(run)
    if not roots and not any(noted.values()):
        return
    takers = [provider for provider in run.providers if keeps_guards(provider)]
    for provider in takers:
        there = noted.setdefault(provider.name, [])
        for root in roots:
            if root in there:
                continue
            try:
                await provider.pin(_root_there(run, provider, root), guard_name(run.anchor))
            except ProviderError as error:
                run.notices.failed(
                    f"the version before a mass delete was not marked as kept at {provider.name}",
                    error,
                    provider=provider.name,
                )
                break
            there.append(root)
        await _unpin_dropped(run, provider, [root for root in there if root not in roots], there)
    if roots and not takers:
        run.notices.say(
            "guard",
            f"the version before a mass delete, {', '.join(roots)}, is kept by this device alone: no provider here can mark it "
            "as kept, so the gc of another device may let it go there. Keep it: ipfsmem export --car FILE",
        )
    with run.replica.transaction():
        run.replica.db.set_meta(meta.GUARD_PINS, msgspec.json.encode(noted))


async def _unpin_dropped(run: Run, provider: Provider, roots: list[str], there: list[str]) -> None:
    """Unpin the roots that this device guards no more; `there` is what it had pinned."""
    if not roots:
        return
    try:
        pins = {pin.cid: pin for pin in await provider.pins(guard_name(run.anchor))}
        for root in roots:
            pin = pins.get(_root_there(run, provider, root))
            if pin is not None:
                await provider.unpin(pin)
            there.remove(root)
    except ProviderError as error:
        run.notices.failed(
            f"a version that is kept no more could not be let go of at {provider.name}",
            error,
            provider=provider.name,
        )


async def guards_at(run: Run, provider: Provider) -> dict[str, Pin]:
    """The pins by which any device guards a root at a provider, by the root as this device calls it."""
    if not keeps_guards(provider):
        return {}
    ours = {row.answered: row.root for row in placed.at_provider(run.replica.db.connection, provider.name)}
    return {ours.get(str(pin.cid), str(pin.cid)): pin for pin in await provider.pins(guard_name(run.anchor))}


def meant(run: Run, wanted: Iterable[str], elsewhere: Iterable[str]) -> frozenset[str]:
    """The guarded roots that a person means with each text of `wanted`.

    A text is a root (then that one alone, even if a device has it as its label), a device whose published state alone
    brought the deletes (by id, the beginning of one, or label), or `ALL`. `elsewhere`: the roots that are guarded at
    providers. Raises, before anything is done, NotFoundError, and UsageError where a text names several devices.
    """
    here, ring = guarded(run.replica.db), run.replica.ring
    known = {*here, *elsewhere}
    labels = {device: label_of(ring, device) for one in here.values() for device in one.by}
    family = {device: ring.view.family_of(device) if ring is not None else device for device in labels}
    named: dict[str, set[str]] = {}
    for text in wanted:
        named[text] = set() if text in known else families_named(ring, text, labels)
        if len(named[text]) > 1:
            raise UsageError(f"several devices are called {text}", hint=_WHICH)
    theirs = set[str]().union(*named.values())
    alone = {root: {family[device] for device in one.by} for root, one in here.items()}
    alone = {root: families for root, families in alone.items() if families <= theirs}
    for text, called in named.items():
        if text != ALL and text not in known and all(called.isdisjoint(by) for by in alone.values()):
            raise NotFoundError(f"nothing is guarded as {text or 'the empty text'} alone", hint=_WHICH)
    return frozenset(known if ALL in named else alone.keys() | (known & named.keys()))


def describe_guards(run: Run, elsewhere: Iterable[str], dropped: frozenset[str]) -> list[Guarded]:
    """All guards for a person, the newest first. `elsewhere`: guarded roots at providers; `dropped`: those that are guarded no more."""
    here = guarded(run.replica.db)
    ring = run.replica.ring
    found = [
        Guarded(
            root,
            one.at,
            one.gone,
            tuple(
                label_and_id(ring, family) for family in sorted(one.of, key=one.of.__getitem__, reverse=True)
            ),
            tuple(label_and_id(ring, device) for device in one.by),
            root in dropped,
        )
        for root, one in here.items()
    ]
    found.sort(key=lambda one: (-(one.at or 0), one.root))
    others = sorted({*elsewhere} - here.keys())
    return found + [Guarded(root, None, 0, (), (), root in dropped) for root in others]


async def drop_guard_pins(run: Run, provider: Provider, dropped: frozenset[str]) -> None:
    """Take these guards away at a provider, whoever put them there: a person said that the deletes were right."""
    if not dropped or not keeps_guards(provider):
        return
    for root, pin in (await guards_at(run, provider)).items():
        if root in dropped:
            await provider.unpin(pin)
    noted = _pinned_guards(run)
    noted[provider.name] = [root for root in noted.get(provider.name, []) if root not in dropped]
    with run.replica.transaction():
        run.replica.db.set_meta(meta.GUARD_PINS, msgspec.json.encode(noted))


def _root_there(run: Run, provider: Provider, root: str) -> CID:
    row = placed.get(run.replica.db.connection, provider.name, root)
    return parse_cid(row.answered if row is not None else root)


def _pinned_guards(run: Run) -> dict[str, list[str]]:
    stored = run.replica.db.get_meta(meta.GUARD_PINS)
    return read_json(stored, type=dict[str, list[str]]) if stored else {}
