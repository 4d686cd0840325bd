"""Guards: the root before a mass delete stays until a person says that the delete was right (format section 7).

The device that joined the delete notes it, and pins the root under the vault's guard name where a provider keeps several
names for one root: so another device's collection leaves it alone too. Where none does, the guard is this device's alone,
and that is said. Nothing here judges roots.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import ProviderError
from ipfsmem.replica.database import Database
from ipfsmem.replica.replica import Replica
from ipfsmem.sync.provider import Provider
from ipfsmem.sync.retention import DAY_MS
from ipfsmem.sync.run import Run

#: Row in `meta` for a root that stays until the user says otherwise, followed by the root.
GUARDED = "guarded "
#: So few texts are never a mass delete.
GUARD_FROM: Final = 10
#: Row that counts what joins took away lately.
_GONE: Final = "gone lately"
#: Row that says which guards stand at which provider.
_NOTED = "guard pins"


def guard_name(anchor_public: bytes) -> str:
    """The pin name under which guarded roots of a vault stand beside their own."""
    return "ipfsmem-" + sha256(b"ipfsmem/v1/guard\0" + anchor_public).hexdigest()[:16]


def guard(db: Database, root: str) -> None:
    """Note that a root is to stay (inside a transaction)."""
    db.set_meta(GUARDED + root, b"1")


class Gone(msgspec.Struct, frozen=True):
    """What joins took away since `at` (milliseconds): texts that stood in the root `root`, which this device published
    last before the first of them, when the state had so many entries."""

    at: int
    root: str
    entries: int
    gone: int


def count_gone(replica: Replica, gone: int, entries: Callable[[], int]) -> Gone | None:
    """Count texts that a join took away (inside a transaction); what a day took when that was a mass delete, whose root is
    guarded then. `entries`: how many the state had before this join.

    Added up over a day, for whoever deletes a little at each sync deletes all in the end. Roots of a day are kept anyway.
    """
    db, now = replica.db, replica.world.now()
    stored, root = db.get_meta(_GONE), db.get_meta("root")
    known = read_json(stored, type=Gone) if stored else None
    if known is None or not now - DAY_MS < known.at <= now:
        if root is None:
            return None
        known = Gone(now, root.decode(), entries(), 0)
    known = msgspec.structs.replace(known, gone=known.gone + gone)
    mass = known.gone > GUARD_FROM and known.gone * 10 > known.entries
    db.set_meta(_GONE, b"" if mass else msgspec.json.encode(known))
    if not mass:
        return None
    guard(db, known.root)
    return known


def counted_from(replica: Replica) -> str | None:
    """The root that would be guarded if more went in the same day; it must not go before."""
    stored = replica.db.get_meta(_GONE)
    known = read_json(stored, type=Gone) if stored else None
    return known.root if known is not None and replica.world.now() - DAY_MS < known.at else None


def guarded(db: Database) -> list[str]:
    """The roots that this device guards."""
    rows = db.connection.execute("SELECT name FROM meta WHERE name GLOB ?", (GUARDED + "*",))
    return sorted(name.removeprefix(GUARDED) for (name,) in rows.fetchall())


def keeps_guards(provider: Provider) -> bool:
    """Whether a root can stand there under a second name."""
    can = provider.capabilities
    return can.pin and can.list and can.unpin and can.partial_car


async def bring_out_guards(run: Run) -> None:
    """Pin what this device guards where it can be, once; say where it cannot."""
    roots = guarded(run.replica.db)
    if not roots:
        return
    noted = _noted(run)
    takers = [provider for provider in run.providers if keeps_guards(provider)]
    for provider in takers:
        there = noted.setdefault(provider.name, [])
        for root in roots:
            if root in there:
                continue
            try:
                await provider.pin(_answered(run, provider, root), guard_name(run.anchor))
            except ProviderError as error:
                run.report.failed(
                    f"the version before a mass delete was not marked as kept at {provider.name}", error
                )
                break
            there.append(root)
    if not takers:
        run.report.say(
            "guard",
            f"the version before a mass delete, {', '.join(roots)}, is kept by this device alone: no provider here can mark it "
            "as kept, so the gc of another device may let it go there. Keep it: ipfsmem export --car FILE",
        )
    with run.replica.transaction():
        run.replica.db.set_meta(_NOTED, msgspec.json.encode(noted))


async def guard_pins(run: Run, provider: Provider) -> set[CID]:
    """The roots that any device guards at a provider."""
    if not keeps_guards(provider):
        return set()
    return {pin.cid for pin in await provider.pins(guard_name(run.anchor))}


async def drop_guard_pins(run: Run, provider: Provider) -> None:
    """Take all guards away at a provider, whoever put them there: a person said that the deletes were right."""
    if not keeps_guards(provider):
        return
    for pin in await provider.pins(guard_name(run.anchor)):
        await provider.unpin(pin)
    noted = _noted(run)
    noted.pop(provider.name, None)
    with run.replica.transaction():
        run.replica.db.set_meta(_NOTED, msgspec.json.encode(noted))


def _answered(run: Run, provider: Provider, root: str) -> CID:
    row = run.replica.db.connection.execute(
        "SELECT answered FROM placed WHERE provider=? AND root=?", (provider.name, root)
    ).fetchone()
    return parse_cid(row[0] if row is not None else root)


def _noted(run: Run) -> dict[str, list[str]]:
    stored = run.replica.db.get_meta(_NOTED)
    return read_json(stored, type=dict[str, list[str]]) if stored else {}
