"""Bringing a memory to another provider: every root that lives, checked there block by block before anybody relies on it."""

from __future__ import annotations

import msgspec

from ipfsmem.content.cid import CID, DAG_PB, parse_cid, raw_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.replica.collect import reachable
from ipfsmem.sync.anchor_pins import check_anchor_pins, learn_unknown
from ipfsmem.sync.collection import Rules, judge_here
from ipfsmem.sync.placing import bring_out_anchors, place_at
from ipfsmem.sync.provider import MAX_BATCH, Provider
from ipfsmem.sync.run import Run


class Moved(msgspec.Struct, frozen=True):
    """What stands at the new provider: roots, and the blocks and bytes that were sent for them just now.

    `incomplete` names roots of which a block is neither on this device nor to be had at any of the old providers;
    `down` says why one of these could not be asked, if that was so. `told`: places that were left at which a forwarding
    record stands now, for the devices that still look there; `untold`: those that did not take one.
    """

    roots: list[str]
    incomplete: list[str]
    blocks: int
    bytes: int
    checked: int
    down: str = ""
    told: list[str] = []
    untold: list[str] = []


async def move_roots(run: Run, target: Provider, *, keep_roots: int, keep_days: int) -> Moved:
    """Place every live root at `target`, oldest first, and verify.

    An old provider may be dead: then older roots that are not wholly here are left behind, and said. Raises its
    ProviderError when that is so of the root that this device stands on.
    """
    await learn_unknown(run)
    await bring_out_anchors(run)
    verdicts = judge_here(run, Rules(keep_roots=keep_roots, keep_days=keep_days))
    live = [parse_cid(verdict.root) for verdict in reversed(verdicts) if verdict.keep]
    live += [root for root in sorted(run.names.roots(), key=str) if root not in live]
    placed: list[CID] = []
    lacking: list[str] = []
    down = ""
    for done, root in enumerate(live):
        run.progress(f"moving to {target.name}", done, len(live))
        newest = str(root) == run.report.root
        try:
            complete = await _complete(run, root, ask=newest or not down)
        except ProviderError as error:
            if newest:
                raise
            complete, down = False, str(error)
        if not complete:
            lacking.append(str(root))
            continue
        placed.append(await place_at(run, target, root))
    checked = await _check(run, target, placed)
    await check_anchor_pins(run, target)
    return Moved(
        [str(root) for root in placed], lacking, run.report.blocks_sent, run.report.bytes_sent, checked, down
    )


async def _complete(run: Run, root: CID, *, ask: bool) -> bool:
    """Fetch what this device never needed of another device's root. False when a block cannot be had anywhere.

    Raises ProviderError when nothing could be had because a provider is down; without `ask` nobody is asked.
    """
    db = run.replica.db
    level = [root]
    seen = {root}
    while level:
        missing = [cid for cid in level if not db.has_block(cid.digest)]
        if missing and not ask:
            return False
        if missing:
            found, down = await run.fetcher.some(missing)
            if not found and down is not None:
                raise down
            if len(found) < len(missing):
                return False
            with run.replica.transaction():
                run.fetcher.keep()
        below: list[CID] = []
        for cid in level:
            block = db.block(cid.digest) if cid.codec == DAG_PB else None
            for link in decode_node(block).links if block is not None else ():
                if link.cid not in seen:
                    seen.add(link.cid)
                    below.append(link.cid)
        level = below
    return True


async def _check(run: Run, target: Provider, roots: list[CID]) -> int:
    """How many blocks were found there: all of each root where it can be asked, else the roots themselves."""
    if target.capabilities.has:
        digests = reachable(run.replica.db, roots)
        wanted = [*roots, *(raw_cid(row) for row in digests if _is_raw(run, row))]
        for start in range(0, len(wanted), MAX_BATCH):
            batch = wanted[start : start + MAX_BATCH]
            there = await target.has(batch)
            for cid in batch:
                if cid not in there:
                    raise ProviderRefused(
                        f"{target.name} does not have block {cid}", hint="Run the move again."
                    )
        return len(wanted)
    found = await target.get_blocks(roots) if target.capabilities.blocks else dict.fromkeys(roots, b"")
    for root in roots:
        if root not in found:
            raise ProviderRefused(
                f"{target.name} does not serve root {root} yet", hint="Run the move again later."
            )
    return len(roots)


def _is_raw(run: Run, digest: bytes) -> bool:
    row = run.replica.db.connection.execute("SELECT 1 FROM objects WHERE digest=?", (digest,)).fetchone()
    return row is not None
