"""Drive reading generators, which yield CIDs and receive the blocks, without I/O of their own.

The same reading code serves a local store and the network.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ipfsmem.content.cid import CID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
#: Yields wanted CIDs, receives blocks, returns T.
Fetch = Generator[list[CID], Mapping[CID, bytes], T]


def drive(fetch: Fetch[T], get_many: Callable[[list[CID]], Mapping[CID, bytes]]) -> T:
    """Run a reading generator with a function that returns the available blocks of those requested."""
    try:
        wanted = next(fetch)
        while True:
            wanted = fetch.send(get_many(wanted))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def drive_async(fetch: Fetch[T], get_many: Callable[[list[CID]], Awaitable[Mapping[CID, bytes]]]) -> T:
    """Run a reading generator with a coroutine function that returns the available blocks of those requested."""
    try:
        wanted = next(fetch)
        while True:
            wanted = fetch.send(await get_many(wanted))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def from_mapping(blocks: Mapping[CID, bytes]) -> Callable[[list[CID]], Mapping[CID, bytes]]:
    """Return a `get_many` function for `drive` that reads blocks in memory."""

    def get(cids: list[CID]) -> Mapping[CID, Any]:
        return {cid: blocks[cid] for cid in cids if cid in blocks}

    return get


def with_known_blocks(fetch: Fetch[T], known: Mapping[CID, bytes]) -> Fetch[T]:
    """Answer requests of `fetch` from `known` first, so that a known block is not requested again."""
    try:
        wanted = next(fetch)
        while True:
            blocks = {cid: known[cid] for cid in wanted if cid in known}
            missing = [cid for cid in wanted if cid not in blocks]
            if missing:
                blocks.update((yield missing))
            wanted = fetch.send(blocks)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
