"""Keep the root before a mass delete until the user confirms the delete (format section 7).

The device that joined the delete records a guard, and pins the root under the vault's guard name at providers that
support several names per root, so that collections of other devices keep it. Otherwise only this device guards the
root, which is reported. The number of guards is limited per author of the lost texts, so that one author's guards
cannot displace another's.
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
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.mass_delete import MassDelete

#: Maximum number of guards for the texts of one author admitted by a root, and for all authors admitted by
#: the same admins.
MOST_GUARDS: Final = 8
#: Selects all guards.
ALL: Final = "all"
_WHICH: Final = "List the guarded versions: ipfsmem vault compact --dry-run"


class DeletionHold(msgspec.Struct, frozen=True):
    """The reason of a guard. `at`: since when, in milliseconds since 1970 UTC. `gone`: number of removed texts. `of`:
    their authors' families, with the number per family. `by`: the devices whose versions removed them."""

    at: int
    gone: int
    of: dict[str, int]
    by: tuple[str, ...]


class Guarded(msgspec.Struct, frozen=True):
    """A guarded root for display. `of` and `by`: labels with ids, since labels are not unique. If only another device
    guards the root, the other fields are unknown. `dropped`: the guard was released, or would be."""

    root: str
    at: int | None
    gone: int
    of: tuple[str, ...]
    by: tuple[str, ...]
    dropped: bool


def guard_name(anchor_public: bytes) -> str:
    """Return the pin name of a vault's guarded roots."""
    return "ipfsmem-" + sha256(b"ipfsmem/v1/guard\0" + anchor_public).hexdigest()[:16]


def add_hold(replica: Replica, deletes: MassDelete) -> None:
    """Guard the roots before a mass delete (inside a transaction).

    The number of guards is limited per author of the lost texts; the largest deletes are kept, then the oldest. A
    root is kept if it is within the limit of one of its authors. So a person who deletes many own texts cannot
    displace guards for other people's texts.
    """
    for root in deletes.roots:
        before = guarded(replica.db).get(root)
        new = DeletionHold(replica.environment.now(), deletes.gone, deletes.of, deletes.by)
        if before is not None:
            of = {
                one: max(before.of.get(one, 0), deletes.of.get(one, 0))
                for one in sorted({*before.of, *deletes.of})
            }
            by = tuple(sorted({*before.by, *deletes.by}))
            new = DeletionHold(before.at, max(before.gone, deletes.gone), of, by)
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
    admission = replica.ring.view.admission_of(family) if replica.ring is not None else BY_ROOT
    return f"{admission.rank} {family if admission == BY_ROOT else admission.admins}"


def guarded(db: Database) -> dict[str, DeletionHold]:
    """Return the roots that this device guards, sorted."""
    names = meta.names(db.connection, meta.GUARD)
    stored = {name.removeprefix(meta.GUARD): db.get_meta(name) for name in names}
    return {root: read_json(row, type=DeletionHold) for root, row in stored.items() if row is not None}


def forget_holds(replica: Replica, dropped: Iterable[str]) -> None:
    """Drop guards that the user released, and those of roots neither known nor local any more (inside a
    transaction)."""
    roots_known = {*heads.roots(replica.db.connection), *map(str, guarded_roots_here(replica.db))}
    _forget(replica, {*dropped, *guarded(replica.db).keys() - roots_known})


def guarded_roots_here(db: Database) -> list[CID]:
    """Return the roots that this device guards, including those whose row is damaged, since they were reported as
    kept."""
    roots = [parse_cid(root) for root in guarded(db) if is_cid(root)]
    return [root for root in roots if db.block(root.digest) is not None]


def _forget(replica: Replica, roots: Iterable[str]) -> None:
    meta.forget(replica.db.connection, [meta.GUARD + root for root in roots])


def keeps_holds(provider: Provider) -> bool:
    """Tell whether a provider supports a second pin name for a root."""
    can = provider.capabilities
    return can.pin and can.list and can.unpin and can.partial_car


async def publish_holds(run: SyncContext) -> None:
    """Pin this device's guarded roots at each provider that supports guards; report if none does."""
    roots, noted = list(guarded(run.replica.db)), _pinned_guards(run)
    if not roots and not any(noted.values()):
        return
    takers = [provider for provider in run.providers if keeps_holds(provider)]
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
            f"the version before a mass delete, {', '.join(roots)}, is kept by this device only: no provider here can mark it as kept, so another device may delete it there. Keep a copy: ipfsmem export --car FILE",
        )
    with run.replica.transaction():
        run.replica.db.set_meta(meta.GUARD_PINS, msgspec.json.encode(noted))


async def _unpin_dropped(run: SyncContext, provider: Provider, roots: list[str], there: list[str]) -> None:
    """Unpin the roots that this device no longer guards. `there`: the roots that it had pinned."""
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
            f"a released version could not be deleted at {provider.name}",
            error,
            provider=provider.name,
        )


async def holds_at(run: SyncContext, provider: Provider) -> dict[str, Pin]:
    """Return the pins by which any device guards a root at a provider, by the root as known to this device."""
    if not keeps_holds(provider):
        return {}
    ours = {row.answered: row.root for row in placed.at_provider(run.replica.db.connection, provider.name)}
    return {ours.get(str(pin.cid), str(pin.cid)): pin for pin in await provider.pins(guard_name(run.anchor))}


def meant(run: SyncContext, names_given: Iterable[str], elsewhere: Iterable[str]) -> frozenset[str]:
    """Return the guarded roots selected by each text of `names_given`.

    A text is a root (even if it is also a label); the id, id prefix or label of a device that alone published the
    deletes; or `ALL`. `elsewhere`: the roots guarded at providers. Raises NotFoundError, and UsageError if a text
    names several devices, before any change.
    """
    here, ring = guarded(run.replica.db), run.replica.ring
    roots = {*here, *elsewhere}
    labels = {device: label_of(ring, device) for one in here.values() for device in one.by}
    family = {device: ring.view.family_of(device) if ring is not None else device for device in labels}
    families_of: dict[str, set[str]] = {}
    for text in names_given:
        families_of[text] = set() if text in roots else families_named(ring, text, labels)
        if len(families_of[text]) > 1:
            raise UsageError(f"several devices have the label {text}", hint=_WHICH)
    theirs = set[str]().union(*families_of.values())
    alone = {root: {family[device] for device in one.by} for root, one in here.items()}
    alone = {root: families for root, families in alone.items() if families <= theirs}
    for text, called in families_of.items():
        if text != ALL and text not in roots and all(called.isdisjoint(by) for by in alone.values()):
            raise NotFoundError(f"no version is guarded for {text or 'the empty text'} alone", hint=_WHICH)
    return frozenset(roots if ALL in families_of else alone.keys() | (roots & families_of.keys()))


def describe_holds(run: SyncContext, elsewhere: Iterable[str], dropped: frozenset[str]) -> list[Guarded]:
    """Return all guards for display, newest first. `elsewhere`: roots guarded at providers. `dropped`: released
    roots."""
    here = guarded(run.replica.db)
    ring = run.replica.ring
    holds = [
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
    holds.sort(key=lambda one: (-(one.at or 0), one.root))
    others = sorted({*elsewhere} - here.keys())
    return holds + [Guarded(root, None, 0, (), (), root in dropped) for root in others]


async def drop_guard_pins(run: SyncContext, provider: Provider, dropped: frozenset[str]) -> None:
    """Remove these guards at a provider, whichever device set them: the user confirmed the deletes."""
    if not dropped or not keeps_holds(provider):
        return
    for root, pin in (await holds_at(run, provider)).items():
        if root in dropped:
            await provider.unpin(pin)
    noted = _pinned_guards(run)
    noted[provider.name] = [root for root in noted.get(provider.name, []) if root not in dropped]
    with run.replica.transaction():
        run.replica.db.set_meta(meta.GUARD_PINS, msgspec.json.encode(noted))


def _root_there(run: SyncContext, provider: Provider, root: str) -> CID:
    row = placed.get(run.replica.db.connection, provider.name, root)
    return parse_cid(row.answered if row is not None else root)


def _pinned_guards(run: SyncContext) -> dict[str, list[str]]:
    stored = run.replica.db.get_meta(meta.GUARD_PINS)
    return read_json(stored, type=dict[str, list[str]]) if stored else {}
