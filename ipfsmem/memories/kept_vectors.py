"""Stores the vectors of this device's texts for the next process (`recall-*.vectors`), and checks which of them are still valid.

Each model has its own file: otherwise two versions of the program, or two settings, that work on one vault would each replace the
other's vectors. The file of another model is deleted once it is a week older than the file that was written.

A vector of a memory belongs to the values of one entry: when these change it is invalid, and the next save drops it. A vector of an
event or a message belongs to that entry and the one before it. Every process checks the state and the file again before it replaces
the file, so that none stores the vector of a forgotten text. The file format is in `derived_file`.

`recall-*.whole` next to it records the state and the file for which no vector was missing: while both are unchanged, a process does
not search for entries without a vector. It also lists the texts that the model refused, which have no vector until they change.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ipfsmem.device.atomic_files import StagedFile
from ipfsmem.device.derived_file import DerivedFiles
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateMark
from ipfsmem.errors import FormatError, StorageError
from ipfsmem.memories.event_entries import HALF
from ipfsmem.memories.living import GroupReading, Living, Spoken, keys_of_removed
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.vectors import Vectors

if TYPE_CHECKING:
    from ipfsmem.memories.memories import MemoryStore

#: The name of the single file that earlier versions wrote.
EARLIER_FILE: Final = "recall.vectors"
_NAMES: Final = "recall-*.vectors"
#: Files that were not renamed yet, named by `atomic_files.new_name`.
_UNFINISHED: Final = ".recall*.vectors.*.tmp"
#: The version of a file's content, which is part of its name.
_VERSION: Final = 1
#: Maximum files of other models, and the seconds by which such a file may be older than the file that was written.
_MAX_OTHER_FILES: Final = 2
_MAX_AGE_S: Final = 7 * 86_400
#: The lock of the process that replaces the stored vectors.
_LOCK: Final = "recall.vectors.lock"
_FILES: Final = DerivedFiles(b"ipfsmem recall vectors 1", b"ipfsmem/vectors", level=0)
_WHOLE: Final = ".whole"
_WHOLES: Final = DerivedFiles(b"ipfsmem recall vectors whole 1", b"ipfsmem/whole")


class _VectorFile(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    vectors: bytes
    spoken: list[Spoken]


_decode = msgspec.msgpack.Decoder(_VectorFile).decode


class StoredVectors(NamedTuple):
    """The stored vectors, and the days and sessions that they belong to."""

    vectors: Vectors
    spoken: list[Spoken]


class Whole(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The record that all possible vectors exist: the model, the kinds of entries in addition to memories, the file of vectors
    (`stamp`), the state (`hash_of`), the keys of the texts that the model refused, and until when the record is valid (milliseconds
    since 1970 UTC; 0: no limit, because no other vector is missing). The state is a hash, so the record contains no name of a
    forgotten text."""

    identity: EmbedderIdentity
    kinds: frozenset[str]
    file: tuple[int, int, int]
    state: bytes
    refused: frozenset[bytes] = frozenset()
    until: int = 0


_encode_sorted = msgspec.msgpack.Encoder(order="deterministic").encode
_decode_whole = msgspec.msgpack.Decoder(Whole).decode


def hash_of(mark: StateMark, strangers: bytes) -> bytes:
    """Return the hash of a state and of the devices of others in it (`strangers_of`)."""
    return blake2b(_encode_sorted((mark, strangers)), digest_size=16).digest()


def load_whole(replica: Replica, model: EmbedderIdentity) -> Whole | None:
    """Return the last record of a model, or None if it does not exist or cannot be opened."""
    path = vectors_path(replica, model)
    try:
        data = None if path is None else _WHOLES.open(replica, path.with_suffix(_WHOLE))
        return None if data is None else _decode_whole(data)
    except (FormatError, StorageError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def save_whole(replica: Replica, whole: Whole) -> None:
    """Replace the record of a model. Raises StorageError."""
    path = vectors_path(replica, whole.identity)
    if path is not None:
        _WHOLES.save(replica, path.with_suffix(_WHOLE), msgspec.msgpack.encode(whole), durable=False)


def vectors_path(replica: Replica, model: EmbedderIdentity) -> Path | None:
    """Return the path of the vectors of a model; None in mode `none`."""
    if replica.folder is None:
        return None
    key = replica.device.row_key if replica.config.mode.sealed else b""
    of = msgspec.msgpack.encode((_VERSION, model))
    name = blake2b(of, digest_size=8, key=key, person=b"ipfsmem/model").hexdigest()
    return replica.folder / _NAMES.replace("*", name)


def vector_files(replica: Replica) -> list[Path]:
    """Return the files of vectors of all models, newest first."""
    folder, times = replica.folder, dict[Path, float]()
    for path in () if folder is None else (*folder.glob(EARLIER_FILE), *folder.glob(_NAMES)):
        with contextlib.suppress(OSError):  # another process removed it meanwhile
            times[path] = path.stat().st_mtime
    return sorted(times, key=lambda path: (-times[path], path.name))


def vectors_kept(replica: Replica, model: EmbedderIdentity) -> bool:
    """Return whether a file with vectors of a model, or of an earlier version, exists, valid or not."""
    path = vectors_path(replica, model)
    return path is not None and (path.exists() or path.with_name(EARLIER_FILE).exists())


def load_kept(replica: Replica, model: EmbedderIdentity) -> StoredVectors | None:
    """Return the stored vectors of a model, else those that an earlier version of the program stored, else those of the model used
    before. None if there is no file, or if it cannot be read or opened; a file that cannot be opened is removed."""
    path = vectors_path(replica, model)
    if path is None or path.exists():
        return _opened(replica, path)
    # A file of another model is not removed: a newer program may be able to open it.
    stored = [
        opened
        for one in vector_files(replica)
        if (opened := _opened(replica, one, removes=one.name == EARLIER_FILE)) is not None
    ]
    return next(
        (opened for opened in stored if opened.vectors.identity == model), stored[0] if stored else None
    )


def _opened(replica: Replica, path: Path | None, *, removes: bool = True) -> StoredVectors | None:
    try:
        data = _FILES.open(replica, path)
        return None if data is None else _restored(data)
    except StorageError:
        return None  # keep vectors that may have been paid for; the next save includes them
    except FormatError:
        if path is not None and removes and not replica.read_only:
            _remove(path)
        return None


def _restored(data: bytes | bytearray) -> StoredVectors:
    """Decode the result of `_dump`, or a file of an earlier version with vectors of memories only. Raises FormatError for anything
    else."""
    try:
        stored = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return StoredVectors(Vectors.restore(data), [])
    return StoredVectors(Vectors.restore(stored.vectors), stored.spoken)


def prepared(replica: Replica, stored: StoredVectors) -> StagedFile | None:
    """Write the new file of vectors under a temporary name, for the caller to rename. None in mode `none`. Raises StorageError."""
    return _FILES.prepare(replica, vectors_path(replica, stored.vectors.identity), _dump(stored))


def remove_left_behind(replica: Replica, model: EmbedderIdentity, written: float) -> None:
    """Remove the files of other models that are more than a week older than this model's file, and all but a few of the rest.
    `written`: when that file was written, in seconds since 1970 UTC."""
    path = vectors_path(replica, model)
    others = [one for one in vector_files(replica) if one != path]
    for number, one in enumerate(others):
        with contextlib.suppress(OSError):
            if number >= _MAX_OTHER_FILES or written - one.stat().st_mtime > _MAX_AGE_S:
                _remove(one)


def _dump(stored: StoredVectors) -> bytes:
    return msgspec.msgpack.encode(_VectorFile(stored.vectors.dump(), stored.spoken))


#: The stamp of a missing file.
NO_FILE: Final = (0, 0, 0)


def stamp(replica: Replica, model: EmbedderIdentity) -> tuple[int, int, int]:
    """Return a stamp that distinguishes the current file of vectors from any other."""
    return _stamp_of(vectors_path(replica, model))


def _stamp_of(path: Path | None) -> tuple[int, int, int]:
    try:
        status = path.stat() if path is not None else None
    except OSError:
        status = None
    return (status.st_ino, status.st_size, status.st_mtime_ns) if status is not None else NO_FILE


@contextlib.contextmanager
def saving(replica: Replica) -> Iterator[None]:
    """Keep other processes from replacing the stored vectors while the block runs (while `alone` is held). Raises StorageError,
    LockedError."""
    if replica.folder is None or replica.read_only:
        yield
        return
    with file_lock(replica.folder / _LOCK):
        yield


def _remove(path: Path) -> None:
    for one in (path.with_suffix(_WHOLE), path):
        with contextlib.suppress(OSError):
            one.unlink()


class Erased(NamedTuple):
    """The existing entries, and the file's stamp, when the file was last found to contain no vector of any other entry."""

    stamp: tuple[int, int, int]
    living: Living


class ErasedVectors(dict[Path, Erased]):
    """An `Erased` for each file of vectors."""


def erase_forgotten(memories: MemoryStore) -> None:
    """Erase the stored vectors of removed entries, of all models. Unfinished files, of running and of killed processes, are
    removed: a writer checks the state again before it renames its file. Raises StorageError, LockedError."""
    replica = memories.replica
    begun = [] if replica.folder is None else [*replica.folder.glob(_UNFINISHED)]
    if replica.read_only or not (begun or vector_files(replica)):
        return
    erased = memories.caches.of(ErasedVectors)
    with saving(replica):
        for path in begun:
            with contextlib.suppress(OSError):
                path.unlink()
        for path in vector_files(replica):
            entry = erased.pop(path, None)  # unknown until this succeeds
            living = entry.living if entry is not None else Living(memories)
            if entry is not None and entry.stamp == _stamp_of(path):
                remains = _erased_since(replica, path, living)
            else:
                remains = _erased_in(replica, path, living)
            if remains:
                erased[path] = Erased(_stamp_of(path), living)


def _erased_since(replica: Replica, path: Path, living: Living) -> bool:
    """Erase the vectors of entries removed since the last call from a file that was clean then; returns whether the file is valid.
    Opens no file if no entry was removed."""
    with replica.reading():
        follow_at_once(living)
    gone = living.pop_removed()
    if not gone:
        return True
    stored = _opened(replica, path)
    if stored is None:
        return False
    dead = keys_of_removed(stored.vectors.ids, gone)
    stored.vectors.drop(dead)
    # The file contains the keys of all entries of days and sessions, even of those without a vector.
    if dead or any(len(one) == HALF for one in gone):
        _put_left(replica, path, stored, living)
    return True


def _erased_in(replica: Replica, path: Path, living: Living) -> bool:
    """Erase from a file that another process wrote, or that was never checked; returns whether the file is valid."""
    stored = _opened(replica, path)
    if stored is None:
        return False
    living.adopt(stored.spoken)
    with replica.reading():
        follow_at_once(living)
    living.pop_removed()
    dead = [id for id in set(stored.vectors.ids).difference(living.files) if not living.has(id)]
    stored.vectors.drop(dead)
    others = [one for one in stored.spoken if living.spoken.get(one.group) != one]
    if dead or any(key[:HALF] not in living.entries for one in others for key in one.each()):
        _put_left(replica, path, stored, living)
    return True


def _put_left(replica: Replica, path: Path, stored: StoredVectors, living: Living) -> None:
    was = path.stat().st_mtime
    if _FILES.save(replica, path, _dump(StoredVectors(stored.vectors, list(living.spoken.values())))):
        os.utime(path, (was, was))  # keep the file's time: erasing is not a use


def follow_at_once(living: Living) -> None:
    """Follow all changes, also of days and sessions that were read (inside `reading`)."""
    for _ in living.follow():
        pass
    for group in living.changed():
        steps = living.read(group)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                living.store(GroupReading(*end.value))
                break
