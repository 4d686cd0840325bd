"""Send a provider what it lacks of a root: candidate blocks, the provider's holdings, upload and pin.

A root with a block that is neither here nor there is never pinned. The caller chooses the root.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from ipfsmem.content.cid import CID, PB_PREFIX
from ipfsmem.content.dagpb import decode_link, link_fields
from ipfsmem.device.bulk import not_here, read_blocks
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.errors import MissingError
from ipfsmem.provider.contract import MAX_BATCH, Provider, same_root
from ipfsmem.published.live_set import live_set

#: Number of blocks read from the database together: about a megabyte.
_AT_ONCE = 250
#: Maximum of new blocks, next to a root that is there, sent without asking: an answer may cost an index of
#: everything there.
_FEW = 64


def new_blocks(db: Database, root: CID, roots: Iterable[CID]) -> Iterator[CID]:
    """Yield CIDs below `root` that are not at the like path below one of `roots`, parents first.

    Folders are compared name by name, so a changed memory costs reading the folders on its path.
    """
    start = [cid for cid in roots if db.has_block(cid.digest)]
    if root in start:
        return
    done: set[CID] = set()
    stack: list[tuple[CID, list[CID]]] = [(root, start)]
    while stack:
        cid, olds = stack.pop()
        if cid in done:
            continue
        done.add(cid)
        yield cid
        if cid.encode()[:4] != PB_PREFIX:
            continue
        block = db.block(cid.digest)
        if block is None:
            continue
        mine = link_fields(block)
        theirs: set[bytes] = set()
        for old in olds:
            data = db.block(old.digest) if old.encode()[:4] == PB_PREFIX else None
            if data is not None:
                theirs.update(link_fields(data))
        # Most links are equal bytes on both sides; only the others are worth decoding.
        before: dict[str, list[CID]] = {}
        for field in theirs.difference(mine):
            link = decode_link(field)
            before.setdefault(link.name, []).append(link.cid)
        for field in mine:
            if field not in theirs:
                link = decode_link(field)
                same = before.get(link.name, [])
                if link.cid not in same:
                    stack.append((link.cid, same))


class Sent(msgspec.Struct, frozen=True):
    """The result of sending to a provider: blocks, their bytes, its root, and its pin handle.

    `new` were sent; `reused` were not, since it already reported having them.
    """

    blocks: int
    bytes: int
    root: CID
    handle: str
    new: frozenset[CID] = frozenset()
    reused: frozenset[CID] = frozenset()


async def send(
    replica: Replica,
    provider: Provider,
    root: CID,
    cids: Sequence[CID],
    name: str,
    *,
    ask: bool = True,
    others: bool = False,
    there: Collection[CID] = (),
) -> Sent:
    """Send what the provider lacks of `root` and pin it under `name`. `cids`: blocks that it may lack.

    `ask`: some may be there, so the provider is asked first; for many blocks it always is. `others`: another device
    contributed to the root, so an object available nowhere is omitted. `there`: blocks that the provider just served
    or accepted. Raises MissingError, with nothing pinned, if any other block is neither here nor there.
    """
    db = replica.db
    can = provider.capabilities
    reused: set[CID] = set()
    if can.has and can.partial_car and (ask or len(cids) > _FEW):
        reused.update(cid for cid in cids if cid in there)
        unsent = [cid for cid in cids if cid not in reused]
        for start in range(0, len(unsent), MAX_BATCH):
            reused |= await provider.has(unsent[start : start + MAX_BATCH])
        cids = [cid for cid in cids if cid not in reused]
    absent = not_here(db, cids)
    if absent:
        if not others or not set(absent).isdisjoint(live_set(db, root).structure):
            raise _incomplete(provider, root, absent)
        gone = set(absent)
        cids = [cid for cid in cids if cid not in gone]
    totals = [0, 0]

    def blocks() -> Iterator[tuple[CID, bytes]]:
        for start in range(0, len(cids), _AT_ONCE):
            part = cids[start : start + _AT_ONCE]
            here = read_blocks(db, [cid.digest for cid in part])
            lost = [cid for cid in part if cid.digest not in here]
            if lost:  # lost on disk; an incomplete tree is never pinned
                raise _incomplete(provider, root, lost)
            for cid in part:
                data = here[cid.digest]
                totals[0] += 1
                totals[1] += len(data)
                yield cid, data

    answered = root
    if cids or not can.pin:
        answered = same_root(root, await provider.put_car(root, blocks(), name=name), provider)
    handle = (await provider.pin(answered, name)).handle if can.pin else ""
    return Sent(totals[0], totals[1], answered, handle, frozenset(cids), frozenset(reused))


def _incomplete(provider: Provider, root: CID, absent: list[CID]) -> MissingError:
    parts = "a part" if len(absent) == 1 else f"{len(absent)} parts"
    return MissingError(
        f"{parts} of version {root} found neither on this device nor at {provider.name}, for instance {absent[0]}: "
        "nothing was published there",
        missing=[cid.digest for cid in absent],
    )
