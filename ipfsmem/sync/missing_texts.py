"""Asking again for texts that could not be had when their values were joined in an earlier sync: "not fetched" is a state that
ends."""

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

#: So many bodies that nobody had are asked for again in each sync.
ASK_AT_ONCE: Final = 1_000


async def ask_for_missing_texts(work: JoinWork) -> None:
    """Ask for them at every provider. What the join of this very sync misses is asked for in the next one.

    Of more than `ASK_AT_ONCE` texts all are asked for once a day; in other syncs one part after another, for as long as
    something comes. A writer can name any number of objects that never were, and they stay named when the writer is revoked.
    """
    work.unsure_of_bodies = False
    if work.run.replica.db.get_meta(meta.LACKING) != b"1":
        return
    with work.run.replica.transaction():
        # What this very sync joined, as a device that turned out to be a copy, is counted only then.
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
    """`at`: when all missing texts were asked for last and every provider answered (milliseconds). `last`: the text that was asked
    for last since then, by its SHA-256 (hex)."""

    at: int = 0
    last: str = ""


async def _ask_for(work: JoinWork, missing: list[bytes]) -> tuple[int, ProviderError | None]:
    """Ask for objects by SHA-256: how many came, and why the others could not be asked for everywhere."""
    db, now = work.run.replica.db, work.run.replica.world.now()
    stored = db.get_meta(meta.ASKED_FOR)
    asked = read_json(stored, type=_Asked) if stored else _Asked()
    everything = len(missing) <= ASK_AT_ONCE or passed(asked.at, now, DAY_MS)
    start = next((i for i, digest in enumerate(missing) if digest.hex() > asked.last), 0)
    ordered = [raw_cid(digest) for digest in (*missing[start:], *missing[:start])]
    came, down = 0, None  # an outage ends the asking, and the next sync goes on behind it
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
