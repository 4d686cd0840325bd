"""`recall.vectors`: the vectors of this device's texts, kept for the next process, and which of them are still of use.

A vector of a memory belongs to the very values under one name: when these change it is of no use, and goes with the next save. One of
an event or a message belongs to that entry and the one before it. Whatever is forgotten has none from then on, whichever processes
works here: each looks at the state and at the file once more before it puts its own in the place. How the file lies on the disk:
`derived_file`.

Beside it lies `recall.vectors.whole`, which says for which state and which file of vectors nothing was missing: as long as both are
the same, a process that asks one question need not look through all entries for what has none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ipfsmem.device.atomic_files import Beside
from ipfsmem.device.derived_file import DerivedFiles
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateMark
from ipfsmem.errors import FormatError, StorageError
from ipfsmem.memories.living import Living, Reading, Spoken
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.vectors import Vectors

if TYPE_CHECKING:
    from ipfsmem.memories.memories import Memories

VECTORS_FILE: Final = "recall.vectors"
#: Held by the process that puts vectors in the place of those before.
_LOCK: Final = "recall.vectors.lock"
_FILES: Final = DerivedFiles(b"ipfsmem recall vectors 1", b"ipfsmem/vectors", level=0)
WHOLE_FILE: Final = "recall.vectors.whole"
_WHOLES: Final = DerivedFiles(b"ipfsmem recall vectors whole 1", b"ipfsmem/whole")


class _Stored(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    vectors: bytes
    spoken: list[Spoken]


_decode = msgspec.msgpack.Decoder(_Stored).decode


class Kept(NamedTuple):
    """The vectors that were kept last, and which days and sessions they are of."""

    vectors: Vectors
    spoken: list[Spoken]


class Whole(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """That nothing was without a vector: of which model, of which kinds of entries besides memories, in which file of vectors (`stamp`),
    and in which state (`hash_of`): of what is forgotten no name stays in it."""

    identity: EmbedderIdentity
    kinds: frozenset[str]
    file: tuple[int, int, int]
    state: bytes


_encode_sorted = msgspec.msgpack.Encoder(order="deterministic").encode
_decode_whole = msgspec.msgpack.Decoder(Whole).decode


def hash_of(mark: StateMark, strangers: bytes) -> bytes:
    """A hash of a state, as which devices were others' in it (`strangers_of`)."""
    return blake2b(_encode_sorted((mark, strangers)), digest_size=16).digest()


def load_whole(replica: Replica) -> Whole | None:
    """What was said last; None where nothing was, or it does not open."""
    try:
        data = _WHOLES.open(replica, _path(replica, WHOLE_FILE))
        return None if data is None else _decode_whole(data)
    except (FormatError, StorageError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def save_whole(replica: Replica, whole: Whole) -> None:
    """Say it in the place of what was said before. Raises StorageError."""
    _WHOLES.save(replica, _path(replica, WHOLE_FILE), msgspec.msgpack.encode(whole), durable=False)


def vectors_kept(replica: Replica) -> bool:
    """Whether there is a file of vectors, good or not."""
    path = _path(replica)
    return path is not None and path.exists()


def load_kept(replica: Replica) -> Kept | None:
    """What was kept last; None where there is none, it cannot be read now, or does not open: then it is removed."""
    try:
        data = _FILES.open(replica, _path(replica))
        return None if data is None else _restored(data)
    except StorageError:
        return None  # a model may have been paid for each: they stay, and are taken in by the next save
    except FormatError:
        remove_vectors(replica)
        return None


def load_vectors(replica: Replica) -> Vectors | None:
    """The vectors of it."""
    kept = load_kept(replica)
    return None if kept is None else kept.vectors


def _restored(data: bytes | bytearray) -> Kept:
    """What `_dump` gave, or an earlier version, which kept those of memories alone. Raises FormatError for anything else."""
    try:
        stored = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Kept(Vectors.restore(data), [])
    return Kept(Vectors.restore(stored.vectors), stored.spoken)


def save_kept(replica: Replica, kept: Kept) -> bool:
    """Put vectors in the place of those before; whether there is a place for them. Raises StorageError."""
    return _FILES.save(replica, _path(replica), _dump(kept))


def prepared(replica: Replica, kept: Kept) -> Beside | None:
    """The same without its last step, which takes no time; None where there is no place. Raises StorageError."""
    return _FILES.prepare(replica, _path(replica), _dump(kept))


def _dump(kept: Kept) -> bytes:
    return msgspec.msgpack.encode(_Stored(kept.vectors.dump(), kept.spoken))


def stamp(replica: Replica) -> tuple[int, int, int]:
    """What tells the file of vectors that is there now from another."""
    path = _path(replica)
    try:
        found = path.stat() if path is not None else None
    except OSError:
        found = None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found is not None else (0, 0, 0)


@contextlib.contextmanager
def saving(replica: Replica) -> Iterator[None]:
    """While vectors are put in the place of those before: no other process does (while `alone` is held). Raises StorageError,
    LockedError."""
    if replica.folder is None or replica.read_only:
        yield
        return
    with file_lock(replica.folder / _LOCK):
        yield


def remove_vectors(replica: Replica) -> None:
    """Remove the kept vectors, if there are some."""
    for path in (_path(replica, WHOLE_FILE), _path(replica)):
        if path is not None and not replica.read_only:
            with contextlib.suppress(OSError):
                path.unlink()


def _path(replica: Replica, name: str = VECTORS_FILE) -> Path | None:
    return None if replica.folder is None else replica.folder / name


def erase_forgotten(memories: Memories) -> None:
    """Erase the kept vectors of what is not there any more. Raises StorageError, LockedError."""
    replica = memories.replica
    if not vectors_kept(replica) or replica.read_only:
        return
    with saving(replica):
        kept = load_kept(replica)
        if kept is None:
            return
        living = Living(memories, kept.spoken)
        with replica.reading():
            follow_at_once(living)
        if kept.vectors.keep([id for id in kept.vectors.ids if living.has(id)]) or living.take_gone():
            save_kept(replica, Kept(kept.vectors, list(living.spoken.values())))


def follow_at_once(living: Living) -> None:
    """Bring what is there up to date, also days and sessions that were read (inside `reading`)."""
    for _ in living.follow():
        pass
    for group in living.changed():
        steps = living.read(group)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                living.took(Reading(*end.value))
                break
