"""Retry texts that were unavailable when their values were joined: "not fetched" is a temporary state."""

from __future__ import annotations

from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import raw_cid
from ipfsmem.device.tables import meta, objects
from ipfsmem.errors import ProviderError
from ipfsmem.sync.forwarding import learn_moves
from ipfsmem.sync.join_work import JoinWork
from ipfsmem.sync.times import DAY_MS, passed

#: Maximum number of unavailable bodies requested again per sync.
ASK_AT_ONCE: Final = 1_000


async def ask_for_missing_texts(work: JoinWork) -> None:
    """Request them at every provider. Those missed by this very sync's join are requested in the next.

    Of more than `ASK_AT_ONCE` texts all are requested once a day, else one part after another while something
    arrives. A writer can name any number of nonexistent objects, which stay named after its revocation.
    """
    work.unsure_of_bodies = False
    if work.run.replica.db.get_meta(meta.LACKING) != b"1":
        return
    with work.run.replica.transaction():
        # Only then are texts counted that this sync joined as a device found to be a copy.
        work.run.replica.store.checkpoint(folders=True)
    missing = objects.without_block(work.run.replica.db.connection)
    if missing:
        # A provider that is down does not keep the rest from being published.
        came, down = await _ask_for(work, missing)
        work.unsure_of_bodies = down is not None
        work.not_fetched += len(missing) - came
        if came:
            with work.run.replica.transaction():
                work.run.fetcher.keep()
                learn_moves(work.run.replica, work.run.replica.store.names())
    else:
        with work.run.replica.transaction():
            work.run.replica.db.set_meta(meta.LACKING, b"0")


class _Asked(msgspec.Struct):
    """`at`: when all missing texts were last requested and every provider answered (milliseconds). `last`:
    the last text requested since then, by SHA-256 (hex)."""

    at: int = 0
    last: str = ""


async def _ask_for(work: JoinWork, missing: list[bytes]) -> tuple[int, ProviderError | None]:
    """Request objects by SHA-256; return the number received, and why the others could not be requested everywhere."""
    db, now = work.run.replica.db, work.run.replica.world.now()
    stored = db.get_meta(meta.ASKED_FOR)
    asked = read_json(stored, type=_Asked) if stored else _Asked()
    everything = len(missing) <= ASK_AT_ONCE or passed(asked.at, now, DAY_MS)
    start = next((i for i, digest in enumerate(missing) if digest.hex() > asked.last), 0)
    ordered = [raw_cid(digest) for digest in (*missing[start:], *missing[:start])]
    came, down = 0, None  # an outage stops requests; the next sync continues after it
    for at in range(0, len(ordered), ASK_AT_ONCE):
        part = ordered[at : at + ASK_AT_ONCE]
        found, failure = await work.run.fetcher.try_get(part)
        down = down or failure
        came += len(found)
        asked.last = part[-1].digest.hex()
        if not found and (failure is not None or not everything):
            break
    if everything and down is None:
        asked.at = now
    if len(missing) > ASK_AT_ONCE:
        with work.run.replica.transaction():
            db.set_meta(meta.ASKED_FOR, msgspec.json.encode(asked))
    return came, down
