"""`recall.vectors`: the vectors of this device's texts, kept for the next process, and which of them are still of use.

A vector belongs to the very values under one name: when these change it is of no use, and goes with the next save. Whatever is
forgotten has none from then on. How the file lies on the disk: `derived_file`.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ipfsmem.causal.entries import MemoryName, memory_name
from ipfsmem.causal.value import decode_entry
from ipfsmem.device.derived_file import DerivedFiles
from ipfsmem.device.replica import Replica
from ipfsmem.errors import FormatError, StorageError
from ipfsmem.memories.search_index import entry_id
from ipfsmem.recall.vectors import Vectors

if TYPE_CHECKING:
    from ipfsmem.memories.memories import Memories

VECTORS_FILE: Final = "recall.vectors"
_FILES: Final = DerivedFiles(b"ipfsmem recall vectors 1", b"ipfsmem/vectors")


class Live(NamedTuple):
    """A memory that is not forgotten, and the clock of its newest value."""

    place: MemoryName
    hlc: str


def live(memories: Memories) -> dict[bytes, Live]:
    """The memories of all scopes that are not forgotten (inside `reading`)."""
    found, forgotten = dict[bytes, Live](), dict[str, bool]()
    for name, text in memories.replica.store.texts():
        place = memory_name(name)
        if place is None:
            continue
        gone = forgotten.get(place.scope)
        if gone is None:
            gone = forgotten[place.scope] = memories.in_scope(place.scope).forgotten()
        clocks = [] if gone else [value.h for value in decode_entry(name, text).values() if value.body]
        if clocks:
            found[entry_id(name, text)] = Live(place, max(clocks))
    return found


def vectors_kept(replica: Replica) -> bool:
    """Whether there is a file of vectors, good or not."""
    path = _path(replica)
    return path is not None and path.exists()


def load_vectors(replica: Replica) -> Vectors | None:
    """The vectors that were kept last; None where there are none, they cannot be read now, or do not open: then they are removed."""
    try:
        data = _FILES.open(replica, _path(replica))
        return None if data is None else Vectors.restore(data)
    except StorageError:
        return None  # a model may have been paid for each: they stay, and are taken in by the next save
    except FormatError:
        remove_vectors(replica)
        return None


def save_vectors(replica: Replica, vectors: Vectors) -> bool:
    """Put vectors in the place of those before; whether there is a place for them. Raises StorageError."""
    return _FILES.save(replica, _path(replica), vectors.dump())


def remove_vectors(replica: Replica) -> None:
    """Remove the kept vectors, if there are some."""
    path = _path(replica)
    if path is not None and not replica.read_only:
        with contextlib.suppress(OSError):
            path.unlink()


def _path(replica: Replica) -> Path | None:
    return None if replica.folder is None else replica.folder / VECTORS_FILE


def erase_forgotten(memories: Memories) -> None:
    """Erase the kept vectors of what is not there any more. Raises StorageError."""
    vectors = load_vectors(memories.replica)
    if vectors is None:
        return
    with memories.replica.reading():
        there = live(memories)
    if vectors.keep(there):
        save_vectors(memories.replica, vectors)
