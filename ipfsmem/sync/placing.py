"""Bringing roots and records to providers: each gets what it lacks, and one that takes it suffices.

What was placed where is remembered, so that an outage is made up for at the next sync.
"""

from __future__ import annotations

from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.errors import (
    ConfigError,
    ProviderError,
)
from ipfsmem.sync.anchor_pins import bring_out_anchor_pins
from ipfsmem.sync.mending import mend
from ipfsmem.sync.names import DEVICE_LIFE_MS, pin_name, target
from ipfsmem.sync.provider import Provider
from ipfsmem.sync.publish import send
from ipfsmem.sync.run import Run


async def bring_out_anchors(run: Run) -> None:
    """Put anchors where they are missing or old, the ring they point at first when it was made here.

    Devices cannot sign them, and somebody must keep them alive (format section 7).
    """
    names = [ipns_name(anchor) for anchor in sorted(run.anchors())]
    for name in names:
        record = run.names.known(name)
        if record is None or not run.names.differs(name):
            continue
        leads = target(record)
        if isinstance(leads, CID) and run.replica.db.has_block(leads.digest):
            await place(run, leads)
    await run.names.put(names)
    await bring_out_anchor_pins(run)


async def place(run: Run, root: CID) -> CID:
    """Bring a root to every provider that does not have it yet; the root that names are to point at.

    One that takes it suffices: what the others missed goes to them at the next sync. Raises the first failure when
    none took it.
    """
    answers: list[CID] = []
    failures: list[tuple[Provider, ProviderError]] = []
    takers = [provider for provider in run.providers if provider.capabilities.put]
    for provider in takers:
        try:
            answers.append(await place_at(run, provider, root))
        except ProviderError as error:
            failures.append((provider, error))
            continue
        try:
            await mend(run, provider, root)
        except ProviderError as error:
            run.report.failed(f"damaged blocks at {provider.name} could not be sent again", error)
    if not answers:
        raise failures[0][1] if failures else ConfigError(f"nothing can be published at {run.where}")
    answered = root if root in answers else answers[0]
    for provider in run.providers:
        if provider.capabilities.pin and not provider.capabilities.put:
            try:
                await _pin_at(run, provider, root, answered)
            except ProviderError as error:
                failures.append((provider, error))
    for provider, failure in failures:
        run.report.failed(f"not published at {provider.name}", failure)
    return answered


async def place_at(run: Run, provider: Provider, root: CID) -> CID:
    db = run.replica.db.connection
    row = db.execute(
        "SELECT answered FROM placed WHERE provider=? AND root=?", (provider.name, str(root))
    ).fetchone()
    if row is not None and await _still_there(run, provider, parse_cid(row[0])):
        return parse_cid(row[0])
    run.progress(f"publishing to {provider.name}", 0, 0)
    before = db.execute(
        "SELECT root FROM placed WHERE provider=? ORDER BY at DESC LIMIT 2", (provider.name,)
    ).fetchall()
    known = [parse_cid(text) for (text,) in before]
    known = await _whole_there(run, provider, known)
    sent = await send(run.replica, provider, root, known, pin_name(run.anchor))
    run.report.blocks_sent += sent.blocks
    run.report.bytes_sent += sent.bytes
    with run.replica.transaction():
        db.execute(
            "INSERT OR REPLACE INTO placed VALUES (?,?,?,?,?)",
            (provider.name, str(root), str(sent.root), sent.handle, run.replica.world.now()),
        )
    return sent.root


async def _pin_at(run: Run, provider: Provider, root: CID, answered: CID) -> None:
    """Have a root pinned where nothing can be uploaded: such a service fetches it from where it was placed."""
    db = run.replica.db.connection
    key = (provider.name, str(root))
    if db.execute("SELECT 1 FROM placed WHERE provider=? AND root=?", key).fetchone() is not None:
        return
    pin = await provider.pin(answered, pin_name(run.anchor))
    with run.replica.transaction():
        db.execute(
            "INSERT OR REPLACE INTO placed VALUES (?,?,?,?,?)",
            (*key, str(answered), pin.handle, run.replica.world.now()),
        )


async def _still_there(run: Run, provider: Provider, root: CID) -> bool:
    """A folder can be emptied and an account closed: ask where that is cheap."""
    return not provider.capabilities.has or bool(await provider.has([root]))


def move_former(run: Run, root: CID) -> list[str]:
    """After a change of id nobody follows the new name yet: the old one leads to it until somebody does."""
    former = run.replica.former()
    if former is None:
        return []
    if run.known_elsewhere:
        with run.replica.transaction():
            run.replica.forget_former()
        return []
    value = f"/ipfs/{root}"
    known = run.names.known(ipns_name(former.sign_public))
    if known is not None and known.value == value:
        return []
    # The old id may still be in use elsewhere, and what we were shown of its name may be old.
    return [run.names.sign(former.sign_seed, former.sign_public, value, DEVICE_LIFE_MS, instead=True)]


async def _whole_there(run: Run, provider: Provider, placed: list[CID]) -> list[CID]:
    """Roots whose trees are wholly at a provider: what was placed there and is still, and heads that it lists as pinned.

    That it knows a root's own block says nothing: an upload may have been cut off.
    """
    can = provider.capabilities
    known = list(await provider.has(placed)) if can.has and placed else placed
    others = [root for root in run.heads if root not in known]
    if others and can.list:
        pinned = {pin.cid for pin in await provider.pins(pin_name(run.anchor))}
        known += [root for root in others if root in pinned]
    return known
