"""Store the index of recall in files `recall-*.image`, so that the next process need not read every text.

A file records the state that it was made from; its reader decides whether that is current. `derived_file` defines the
form of the file. The version is part of the name, so that two versions of the program on one vault do not replace
each other's files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from ipfsmem.device.derived_file import DerivedFiles
from ipfsmem.device.replica import Replica
from ipfsmem.errors import FormatError, StorageError

#: Version of the content of these files; increase it when the program changes it.
VERSION: Final = 19
#: Earlier versions' name for the index of the default scope.
_OLD_NAME: Final = "recall.image"
#: What is stored: the words of a stack of scopes, the headers of a scope, or its graph.
Kind = Literal["words", "heads", "graph"]
#: The files of each kind, and the maximum number of each, of this version and of all others: otherwise listing a few scopes would
#: evict the indexes of others.
_FILES_OF: Final[dict[Kind, str]] = {
    "words": "recall-*.image",
    "heads": "recall-heads-*.image",
    "graph": "recall-graph-*.image",
}
_MOST: Final[dict[Kind, int]] = {"words": 4, "heads": 12, "graph": 12}
#: Seconds by which a file of another version may be older than the one written now: a version in use writes when texts change.
_STALE_AFTER_S: Final = 7 * 86_400
_FILES: Final = DerivedFiles(b"ipfsmem recall image 2", b"ipfsmem/recall", in_pieces=True)


class RecallImage(msgspec.Struct, frozen=True):
    """An index, the state that it was made from, and extra data of its maker."""

    state: bytes
    #: Parts of the bytes of an opened file, not copies.
    rest: memoryview
    #: As `Index.image` returns it.
    index: memoryview = memoryview(b"")
    #: Data about the events and messages of an index of them.
    moments: memoryview = memoryview(b"")


#: A file: the length of its first part, that part (the state with the extra data), and the index with the moments. A reader that
#: needs only the first part does not open the second, which may be fifty times as long.
_LENGTH: Final = 8
_encode = msgspec.msgpack.Encoder().encode
_first = msgspec.msgpack.Decoder(tuple[bytes, memoryview]).decode
_second = msgspec.msgpack.Decoder(tuple[memoryview, memoryview]).decode


def save_image(
    replica: Replica,
    image: RecallImage,
    stack: str = "",
    *,
    kind: Kind = "words",
    holds: Callable[[], bool] = lambda: True,
) -> bool:
    """Store an index of a kind for a stack of scopes, replacing the last one. Returns whether it is stored: not in mode `none`,
    in a vault that was opened read-only, without keys, or when `holds` is false. Raises StorageError.

    `holds`: whether everything that the index was made of still exists, called inside `reading` once the whole file is written
    under its temporary name. A memory forgotten before that is noticed here; a later forget removes the index. Inside
    `reading`, where no other process is seen, nothing is stored.
    """
    path = image_path(replica, stack, kind)
    with replica.db.lock:
        blind = replica.db.connection.in_transaction
    if path is None or blind:
        return False
    first, second = _encode((image.state, image.rest)), _encode((image.index, image.moments))
    ready = _FILES.prepare(replica, path, b"".join((len(first).to_bytes(_LENGTH, "little"), first, second)))
    if ready is None:
        return False
    try:
        with replica.reading():
            if not holds():
                return False
            ready.put()
    finally:
        ready.leave()
    written = {one: stat.st_mtime for one, stat in images(replica) if _kind_of(one) == kind}
    last = written.pop(path, 0.0)
    newest = sorted(written, key=lambda one: -written[one])
    ours = [one for one in newest if _is_ours(one, kind)]
    others = [one for one in newest if one not in ours]
    stale = [one for one in others if last - written[one] > _STALE_AFTER_S]
    for old in (*ours[_MOST[kind] - 1 :], *others[_MOST[kind] :], *stale):
        _remove(old)
    return True


def load_image(
    replica: Replica, stack: str = "", *, kind: Kind = "words", first: bool = False
) -> RecallImage | None:
    """Return the stored index of a kind for a stack of scopes; None if absent, or if it does not open and is removed.
    `first`: without index and moments, which are not opened."""
    path = image_path(replica, stack, kind)
    try:
        return None if path is None else _open(replica, path, first)
    except (FormatError, StorageError):
        if path is not None and not replica.read_only:
            _remove(path)
        return None


def remove_images(replica: Replica, *, begun: bool = True) -> None:
    """Remove all stored indexes; `begun`: also those being written, or left half written by a killed process. An index that
    cannot be removed does not open either, or does not match its state."""
    if not replica.read_only:
        # An index that is renamed meanwhile is found under its own name, once it is not found under the temporary one.
        for path in _partial_images(replica) if begun else ():
            _remove(path)
        for path, _ in images(replica):
            _remove(path)


def _partial_images(replica: Replica) -> list[Path]:
    """Return indexes that still have their temporary name (`atomic_files.new_name`)."""
    return [] if replica.folder is None else [*replica.folder.glob(".recall*.image.*.tmp")]


def image_notice(replica: Replica) -> str:
    """Return a notice about stored indexes that do not open, for a person; "" if absent."""
    for path, _ in images(replica):
        if not _is_ours(path, _kind_of(path)):
            continue  # another version of the program uses it
        try:
            _open(replica, path)
        except (FormatError, StorageError) as error:
            return f"the saved index is unusable, and the next recall rebuilds it: {error}"
    return ""


def images(replica: Replica) -> list[tuple[Path, os.stat_result]]:
    """Return the files of stored indexes, without those that another process removes meanwhile."""
    files = []
    folder = replica.folder
    for path in () if folder is None else (*folder.glob(_OLD_NAME), *folder.glob(_FILES_OF["words"])):
        with contextlib.suppress(OSError):
            files.append((path, path.stat()))
    return files


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _kind_of(path: Path) -> Kind:
    return next((kind for kind in ("heads", "graph") if path.match(_FILES_OF[kind])), "words")


def _is_ours(path: Path, kind: Kind) -> bool:
    """Return whether a file is of this version."""
    beginning = _beginning(kind)
    return path.name.startswith((f"{beginning}.", f"{beginning}-"))


def _beginning(kind: Kind) -> str:
    return _FILES_OF[kind].replace("*.image", f"v{VERSION}")


def image_path(replica: Replica, stack: str = "", kind: Kind = "words") -> Path | None:
    """Return where an index is stored; None in mode `none`. Its name reveals nothing of the scopes without a key."""
    if replica.folder is None or (not stack and kind == "words"):
        return None if replica.folder is None else replica.folder / f"{_beginning(kind)}.image"
    key = replica.device.row_key if replica.config.mode.sealed else b""
    name = hashlib.blake2b(stack.encode(), digest_size=8, key=key, person=b"ipfsmem/stack").hexdigest()
    return replica.folder / f"{_beginning(kind)}-{name}.image"


def _open(replica: Replica, path: Path, first: bool = False) -> RecallImage | None:
    """Open a stored index. Raises FormatError if the file does not fit, StorageError."""
    data = _FILES.open(replica, path, _first_size if first else None)
    if data is None:
        return None
    both, size = memoryview(data), _first_size(data)
    try:
        state, rest = _first(both[_LENGTH:size])
        return RecallImage(state, rest) if first else RecallImage(state, rest, *_second(both[size:]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError(f"{path} is of another version") from None


def _first_size(data: bytes | bytearray) -> int:
    """Return the bytes of the first part and of its length."""
    return _LENGTH + int.from_bytes(data[:_LENGTH], "little")
