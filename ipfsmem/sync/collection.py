"""Letting go of superseded roots, at providers and on this device, by the rules of `retention` (format section 7)."""

from __future__ import annotations

import msgspec

from ipfsmem.content.cid import parse_cid, raw_cid
from ipfsmem.errors import ProviderError
from ipfsmem.replica.collect import Collected, collect
from ipfsmem.sync.anchor_pins import known_roots, pinned_anchors
from ipfsmem.sync.names import pin_name
from ipfsmem.sync.provider import MAX_BATCH, Collecting, Provider
from ipfsmem.sync.retention import Pinned, Verdict, judge
from ipfsmem.sync.run import Run


class Collection(msgspec.Struct, frozen=True):
    """What a collection let go: a verdict for each root, at each provider and here, and the blocks here.

    `freed`: bytes that are free at a provider which is told to let go of blocks, or will be a day later. `problems`: why
    one that was told did not, or could not be asked.
    """

    providers: dict[str, list[Verdict]]
    here: list[Verdict]
    blocks: Collected
    freed: dict[str, int] = {}
    problems: dict[str, str] = {}


async def _unpin(
    run: Run, provider: Provider, dry_run: bool, keep_roots: int, keep_days: int
) -> list[Verdict]:
    pins = await provider.pins(pin_name(run.anchor))
    db = run.replica.db.connection
    ours = {
        answered: (root, at)
        for root, answered, at in db.execute(
            "SELECT root, answered, at FROM placed WHERE provider=?", (provider.name,)
        )
    }
    facts = {}
    for pin in pins:
        answered = str(pin.cid)
        root, at = ours.get(answered, (answered, pin.created))
        facts[answered] = msgspec.structs.replace(_facts(run, root, at), root=answered)
    for pin in await pinned_anchors(run, provider):
        facts[str(pin.cid)] = Pinned(str(pin.cid), pin.created, ring=True)
    whole = await whole_at(run, provider)
    verdicts = judge(
        facts.values(), run.replica.world.now(), whole=whole, keep_roots=keep_roots, keep_days=keep_days
    )
    gone = {verdict.root for verdict in verdicts if not verdict.keep}
    for pin in pins:
        if str(pin.cid) in gone and not dry_run:
            await provider.unpin(pin)
            with run.replica.transaction():
                db.execute(
                    "DELETE FROM placed WHERE provider=? AND answered=?", (provider.name, str(pin.cid))
                )
    return verdicts


def judge_here(run: Run, keep_roots: int, keep_days: int) -> list[Verdict]:
    """A verdict for each root that this device knows, newest first."""
    rows = run.replica.db.connection.execute("SELECT root, seen FROM heads").fetchall()
    facts = [_facts(run, root, seen) for root, seen in rows]
    return judge(facts, run.replica.world.now(), whole=True, keep_roots=keep_roots, keep_days=keep_days)


def _facts(run: Run, root: str, at: int) -> Pinned:
    db = run.replica.db.connection
    head = db.execute("SELECT seen FROM heads WHERE root=?", (root,)).fetchone()
    guarded = run.replica.db.get_meta(f"guarded {root}") is not None
    cid = parse_cid(root)
    return Pinned(
        root,
        head[0] if head else at,
        verified=head is not None,
        named=cid in run.names.roots(),
        ring=head is None and cid in run.ring_roots,
        guarded=guarded,
    )


async def whole_at(run: Run, provider: Provider) -> bool:
    """Whether everything that the joined state names is at this provider, asked block by block where it can be."""
    root = run.replica.db.get_meta("root")
    db = run.replica.db.connection
    placed = (
        root is not None
        and db.execute(
            "SELECT 1 FROM placed WHERE provider=? AND root=?", (provider.name, root.decode())
        ).fetchone()
    )
    digests = [bytes(row[0]) for row in db.execute("SELECT digest FROM objects")]
    if not placed or not all(run.replica.db.has_block(digest) for digest in digests):
        return False
    if provider.capabilities.has:
        cids = [raw_cid(digest) for digest in digests]
        for start in range(0, len(cids), MAX_BATCH):
            batch = cids[start : start + MAX_BATCH]
            if len(await provider.has(batch)) < len(batch):
                return False
    return True


async def collect_roots(run: Run, *, dry_run: bool, keep_roots: int, keep_days: int) -> Collection:
    """Unpin superseded roots and drop the blocks that only they needed (format section 7). After a pull."""
    verdicts: dict[str, list[Verdict]] = {}
    problems: dict[str, str] = {}
    failure: ProviderError | None = None
    for provider in run.providers:
        if provider.capabilities.list and provider.capabilities.unpin:
            try:
                verdicts[provider.name] = await _unpin(run, provider, dry_run, keep_roots, keep_days)
            except ProviderError as error:
                failure = failure or error
                problems[provider.name] = str(error)
    if failure is not None and not verdicts:
        raise failure
    here = judge_here(run, keep_roots, keep_days)
    stay = [parse_cid(verdict.root) for verdict in here if verdict.keep]
    with run.replica.transaction():
        collected = collect(
            run.replica.store, [*stay, *run.names.roots(), *known_roots(run)], dry_run=dry_run
        )
        if not dry_run:
            gone = [(verdict.root,) for verdict in here if not verdict.keep]
            run.replica.db.connection.executemany("DELETE FROM heads WHERE root=?", gone)
    freed: dict[str, int] = {}
    if not dry_run:
        for provider in run.providers:
            if isinstance(provider, Collecting) and provider.name not in problems:
                try:
                    freed[provider.name] = await provider.collect()
                except ProviderError as error:
                    problems[provider.name] = str(error)
    return Collection(verdicts, here, collected, freed, problems)
