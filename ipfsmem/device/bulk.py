"""Work on very many rows or values at once: few statements for many rows, threads for many signatures, no garbage collection
while a large structure is built."""

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

#: Number of signatures from which starting threads pays off.
_FEW = 256
_CHUNK = 256
_collecting = threading.Lock()
_paused = 0
_was_on = False


def blocks_here(db: Database, digests: Iterable[bytes]) -> set[bytes]:
    """Return those of `digests` whose blocks are on this device and not known to be damaged."""
    here = set(blocks.known_among(db.connection, digests))
    return here - {digest for digest in db.suspects & here if db.is_damaged(digest)}


def not_here(db: Database, cids: Iterable[CID]) -> list[CID]:
    """Return those of `cids` whose blocks are missing on this device or damaged, in their order."""
    every = list(cids)
    here = blocks_here(db, [cid.digest for cid in every])
    return [cid for cid in every if cid.digest not in here]


def read_blocks(db: Database, digests: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return by digest those of these blocks that are on this device and intact."""
    rows = blocks.get_many(db.connection, digests)
    return {digest: data for digest, data in rows if db.is_sound(digest, data)}


def first_failing(test: Callable[[T], bool], items: Sequence[T]) -> T | None:
    """Return the first item for which `test` is false, None if absent. `test` runs in threads as in `parallel_map`."""
    failures = _in_threads(lambda chunk: _first_failure(test, chunk), items)
    with contextlib.closing(failures):
        return next((item for item in failures if item is not None), None)


def parallel_map(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the results of `work` on each item, in order. Many items run in threads: libsodium releases the interpreter lock, so
    signatures are made and checked on all cores."""
    if len(items) <= _FEW:
        return [work(item) for item in items]
    chunks = _in_threads(lambda chunk: [work(item) for item in chunk], items)
    with contextlib.closing(chunks):
        return [results for part in chunks for results in part]


def _in_threads(work: Callable[[Sequence[T]], R], items: Sequence[T]) -> Generator[R, None, None]:
    """Yield the results of `work` on each chunk of items, in order."""
    threads = min(4, os.cpu_count() or 1)
    if len(items) <= _FEW or threads < 2:
        yield work(items)
        return
    chunks = [items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)]
    from concurrent.futures import ThreadPoolExecutor  # 6 ms that most calls do not need

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(work, chunks)
        finally:
            # After the first failure the chunks not begun yet are not needed.
            pool.shutdown(wait=True, cancel_futures=True)


def _first_failure(test: Callable[[T], bool], items: Iterable[T]) -> T | None:
    return next((item for item in items if not test(item)), None)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Stop the collection of cyclic garbage in all threads while the block runs. For short work that makes hundreds of thousands
    of objects that stay, which the collector would visit again and again. Never use it around anything that waits."""
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
