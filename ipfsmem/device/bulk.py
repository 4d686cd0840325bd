"""Process many rows or values at once, with few statements, threads for signatures, and paused garbage collection."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from ipfsmem.device.database import Database
from ipfsmem.device.tables import blocks

if TYPE_CHECKING:
    from ipfsmem.content.cid import CID

T = TypeVar("T")
R = TypeVar("R")

#: Minimum number of items for which starting threads is faster.
_MIN_FOR_THREADS = 256
_CHUNK = 256
_collecting = threading.Lock()
_paused = 0
_was_on = False


def blocks_here(db: Database, digests: Iterable[bytes]) -> set[bytes]:
    """Return the `digests` whose blocks are on this device and not known to be damaged."""
    here = set(blocks.known_among(db.connection, digests))
    return here - {digest for digest in db.suspects & here if db.is_damaged(digest)}


def not_here(db: Database, cids: Iterable[CID]) -> list[CID]:
    """Return the `cids` whose blocks are missing on this device or damaged, in their order."""
    every = list(cids)
    here = blocks_here(db, [cid.digest for cid in every])
    return [cid for cid in every if cid.digest not in here]


def read_blocks(db: Database, digests: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the blocks that are on this device and intact, by digest."""
    rows = blocks.get_many(db.connection, digests)
    return {digest: data for digest, data in rows if db.is_sound(digest, data)}


def first_failing(test: Callable[[T], bool], items: Sequence[T]) -> T | None:
    """Return the first item for which `test` is false, else None. `test` runs in threads as in `parallel_map`."""
    failures = _in_threads(lambda chunk: _first_failure(test, chunk), items)
    with contextlib.closing(failures):
        return next((item for item in failures if item is not None), None)


def parallel_map(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the results of `work` on each item, in order. Many items are processed in threads: libsodium releases
    the interpreter lock, so signatures use all cores."""
    if len(items) <= _MIN_FOR_THREADS:
        return [work(item) for item in items]
    chunks = _in_threads(lambda chunk: [work(item) for item in chunk], items)
    with contextlib.closing(chunks):
        return [results for part in chunks for results in part]


def _in_threads(work: Callable[[Sequence[T]], R], items: Sequence[T]) -> Generator[R, None, None]:
    """Yield the results of `work` on each chunk of items, in order."""
    threads = min(4, os.cpu_count() or 1)
    if len(items) <= _MIN_FOR_THREADS or threads < 2:
        yield work(items)
        return
    chunks = [items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)]
    from concurrent.futures import ThreadPoolExecutor  # 6 ms that most calls do not need

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(work, chunks)
        finally:
            # After the first failure, the remaining chunks are not needed.
            pool.shutdown(wait=True, cancel_futures=True)


def _first_failure(test: Callable[[T], bool], items: Iterable[T]) -> T | None:
    return next((item for item in items if not test(item)), None)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pause the cyclic garbage collector in all threads while the block runs.

    For short work that creates hundreds of thousands of long-lived objects, which the collector would visit
    repeatedly. The block must not wait for anything.
    """
    global _paused, _was_on
    with _collecting:
        _paused += 1
        if _paused == 1:
            _was_on = gc.isenabled()
            gc.disable()
    try:
        yield
    finally:
        with _collecting:
            _paused -= 1
            if not _paused and _was_on:
                gc.enable()
