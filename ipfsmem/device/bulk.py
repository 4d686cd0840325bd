"""Work on very many rows or values at once: few statements for many rows, several threads for many signatures, and no
garbage collection while a large structure is built.
"""

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

#: From this many signatures on, threads are worth their start.
_FEW = 256
_CHUNK = 256
_collecting = threading.Lock()
_paused = 0
_was_on = False


def blocks_here(db: Database, digests: Iterable[bytes]) -> set[bytes]:
    """Those of `digests` whose blocks are on this device, as far as is known intact."""
    here = set(blocks.known_among(db.connection, digests))
    return here - {digest for digest in db.suspects & here if db.is_damaged(digest)}


def not_here(db: Database, cids: Iterable[CID]) -> list[CID]:
    """Those of `cids` whose blocks are missing on this device or were found damaged, in their order."""
    wanted = list(cids)
    here = blocks_here(db, [cid.digest for cid in wanted])
    return [cid for cid in wanted if cid.digest not in here]


def read_blocks(db: Database, digests: Iterable[bytes]) -> dict[bytes, bytes]:
    """Those of these blocks that are on this device and intact, by digest."""
    rows = blocks.get_many(db.connection, digests)
    return {digest: data for digest, data in rows if db.is_sound(digest, data)}


def first_failing(test: Callable[[T], bool], items: Sequence[T]) -> T | None:
    """The first item for which `test` is false, None when there is none. `test` runs in threads as in `parallel_map`."""
    found = _in_threads(lambda chunk: _first_failure(test, chunk), items)
    with contextlib.closing(found):
        return next((item for item in found if item is not None), None)


def parallel_map(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results of `work` on each item, in order. It runs in several threads when there are many items: libsodium releases
    the interpreter lock while it computes, so signatures are made and checked on all cores.
    """
    found = _in_threads(lambda chunk: [work(item) for item in chunk], items)
    with contextlib.closing(found):
        return [made for part in found for made in part]


def _in_threads(work: Callable[[Sequence[T]], R], items: Sequence[T]) -> Generator[R, None, None]:
    """The results of `work` on each chunk of items, in order."""
    threads = min(4, os.cpu_count() or 1)
    if len(items) <= _FEW or threads < 2:
        yield work(items)
        return
    chunks = [items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)]
    from concurrent.futures import ThreadPoolExecutor  # 6 ms for what most calls never do

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(work, chunks)
        finally:
            # The first failure ends it: chunks that were not begun are not needed.
            pool.shutdown(wait=True, cancel_futures=True)


def _first_failure(test: Callable[[T], bool], items: Iterable[T]) -> T | None:
    return next((item for item in items if not test(item)), None)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """While the block runs, no thread collects cyclic garbage. For short work that makes hundreds of thousands of objects that
    all stay, which the collector would visit again and again. Never use it around anything that waits.
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
