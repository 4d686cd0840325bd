"""Move a vault to another provider: every live root, verified there block by block before anyone depends on it."""

from __future__ import annotations

import contextlib

import msgspec

from ipfsmem.content.cid import CID, DAG_PB, parse_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.device.bulk import read_blocks
from ipfsmem.device.tables import placed
from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.provider.contract import MAX_BATCH, Block, Provider, raw_reader
from ipfsmem.published.live_set import live_set
from ipfsmem.sync.anchor_pins import check_anchor_pins, learn_unknown_anchors
from ipfsmem.sync.collection import Rules, judge_known_roots
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.deletion_holds import guarded, holds_at, publish_holds
from ipfsmem.sync.mailbox import agent_ids
from ipfsmem.sync.names import pin_name
from ipfsmem.sync.small_copies import copy_small_objects
from ipfsmem.sync.steps import Joined
from ipfsmem.sync.upload import publish_anchors, upload_to

#: Number of blocks read together.
_READ_BATCH = 2_000


class Moved(msgspec.Struct, frozen=True):
    """The data at the new provider: roots, and the blocks and bytes just sent for them.

    `incomplete`: roots with a block that is neither here nor at any old provider; `down`: why one of these could not be called.
    `forwarding_at`: old providers that now have a forwarding record for the devices that still use them; `no_forwarding_at`: those
    that did not accept one. `small_objects`: those of its area that were copied; `small_objects_left`: those that
    could not be copied. `small_unlisted`: old providers that did not list all of theirs.
    """

    roots: list[str]
    incomplete: list[str]
    blocks: int
    bytes: int
    checked: int
    down: str = ""
    forwarding_at: list[str] = []
    no_forwarding_at: list[str] = []
    small_objects: int = 0
    small_objects_left: int = 0
    small_unlisted: list[str] = []


async def move_roots(
    run: SyncContext, joined: Joined, target: Provider, *, newest: CID | None, keep_roots: int, keep_days: int
) -> Moved:
    """Place every live root at `target`, oldest first, and verify. `newest`: this device's current root.

    An old provider may be dead: incomplete older roots are then left behind and reported. For the newest root
    its ProviderError is raised.
    """
    await learn_unknown_anchors(run)
    await publish_anchors(run, joined)
    rules = Rules(keep_roots=keep_roots, keep_days=keep_days)
    verdicts = judge_known_roots(run, joined.found.ring_roots, rules, await _guarded_anywhere(run))
    live = [parse_cid(verdict.root) for verdict in reversed(verdicts) if verdict.keep]
    live += [root for root in sorted(run.names.roots(), key=str) if root not in live]
    placed: list[CID] = []
    missing: list[str] = []
    down, ask = "", True
    for done, root in enumerate(live):
        run.progress(f"moving to {target.name}", done, len(live))
        came = run.fetcher.blocks
        try:
            complete = await _complete(run, root, ask=root == newest or ask)
        except ProviderError as error:
            if root == newest:
                raise
            complete, down = False, str(error)
            ask = error.permanent or run.fetcher.blocks > came  # else each would be waited for again
        if not complete:
            missing.append(str(root))
            continue
        placed.append(await upload_to(run, joined, target, root))
    await publish_holds(run)
    checked = await _check(run, target, placed, newest)
    await check_anchor_pins(run, target)
    small = await copy_small_objects(run.anchor, run.providers, target, agent_ids(run.replica))
    return Moved(
        [str(root) for root in placed],
        missing,
        run.sending.blocks,
        run.sending.bytes,
        checked,
        down,
        small_objects=small.copied,
        small_objects_left=small.left,
        small_unlisted=[*small.unlisted],
    )


async def _complete(run: SyncContext, root: CID, *, ask: bool) -> bool:
    """Fetch the parts of another device's root that this device never needed; False if a block is unavailable
    everywhere.

    Raises ProviderError if a missing one may be at a provider that is down or cannot be opened; without `ask` none is
    called.
    """
    db = run.replica.db
    level = [root]
    seen = {root}
    while level:
        missing = [cid for cid in level if not db.has_block(cid.digest)]
        if missing and not ask:
            return False
        if missing:
            blocks, down = await run.fetcher.try_get(missing)
            if down is not None:
                raise down
            if len(blocks) < len(missing):
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


async def _guarded_anywhere(run: SyncContext) -> set[str]:
    """Return the roots guarded by this device or at a provider that answers: these move too."""
    roots = set(guarded(run.replica.db))
    for provider in run.providers:
        with contextlib.suppress(ProviderError):
            roots |= (await holds_at(run, provider)).keys()
    return roots


async def _check(run: SyncContext, target: Provider, roots: list[CID], newest: CID | None) -> int:
    """Return the number of blocks found there: every block of each root if that can be asked, ring, commits
    and nodes included.

    The structure of the newest root is read; where nothing can be asked, all of it.
    """
    live = [live_set(run.replica.db, root) for root in roots]
    wanted = list(dict.fromkeys(cid for one in live for cid in (*one.structure, *one.objects)))
    checked = 0
    if target.capabilities.has:
        await _send_what_lacks(run, target, roots, await _not_there(run, target, wanted))
        missing = await _not_there(run, target, wanted)
        if missing:
            raise _lacking(target, missing[0])
        checked = len(wanted)
    raw = raw_reader(target)
    if raw is not None and newest is not None and newest in roots and _keeps_tree(run, target, newest):
        last = live_set(run.replica.db, newest)
        read = [*last.structure, *([] if target.capabilities.has else last.objects)]
        for start in range(0, len(read), _READ_BATCH):
            part = read[start : start + _READ_BATCH]
            run.progress(f"reading {target.name}", start, len(read))
            blocks = await raw.read_stored(part)
            for cid in part:
                if cid not in blocks:
                    raise _lacking(target, cid)
        return max(checked, len(read))
    if checked:
        return checked
    blocks = await target.get_blocks(roots) if target.capabilities.blocks else dict.fromkeys(roots, b"")
    for root in roots:
        if root not in blocks:
            raise ProviderRefused(
                f"{target.name} does not serve version {root} yet", hint="Run the move again later."
            )
    return len(roots)


async def _not_there(run: SyncContext, target: Provider, wanted: list[CID]) -> list[CID]:
    absent: list[CID] = []
    for start in range(0, len(wanted), MAX_BATCH):
        batch = wanted[start : start + MAX_BATCH]
        run.progress(f"checking {target.name}", start, len(wanted))
        there = await target.has(batch)
        absent += [cid for cid in batch if cid not in there]
    return absent


async def _send_what_lacks(run: SyncContext, target: Provider, roots: list[CID], absent: list[CID]) -> None:
    """Resend missing blocks: a move was interrupted or lost something."""
    for start in range(0, len(absent) if target.capabilities.partial_car else 0, _READ_BATCH):
        part = absent[start : start + _READ_BATCH]
        here = read_blocks(run.replica.db, [cid.digest for cid in part])
        blocks: list[Block] = [(cid, here[cid.digest]) for cid in part if cid.digest in here]
        if blocks:
            await target.put_car(roots[-1], blocks, name=pin_name(run.anchor))
            run.sending.count(len(blocks), sum(len(data) for _, data in blocks))


def _keeps_tree(run: SyncContext, target: Provider, root: CID) -> bool:
    """Tell whether the provider has the tree as built here, not in its own layout."""
    row = placed.get(run.replica.db.connection, target.name, str(root))
    return row is None or row.answered == str(root)


def _lacking(target: Provider, cid: CID) -> ProviderRefused:
    return ProviderRefused(
        f"{target.name} does not have part {cid}",
        hint="Run the move again; a service may take hours to serve an upload.",
    )
