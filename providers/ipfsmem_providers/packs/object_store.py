"""The storage interface of packs, pins and name records: a flat set of named files, an object store.

An object store is a folder on a disk (directory/files.py) or on another machine (remote/object_store.py), the objects under
one prefix of a bucket (bucket/layout.py), or files in a git branch (git/object_store.py). It requires only what all can do:
no order of names, no lock, no append; a file appears whole. "Durable" is what the location makes so. Protocols only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple, Protocol


class FileInfo(NamedTuple):
    """A listing's data about one file."""

    size: int  #: bytes
    modified: int  #: milliseconds since 1970 UTC, by the clock of the location
    version: Hashable  #: differs whenever the content does


class Head(NamedTuple):
    """The first bytes of a file."""

    data: bytes
    size: int  #: bytes of the whole file


class PassedOver(set[tuple[str, Hashable, Hashable]]):
    """Hidden files that sweeps leave alone: they cannot be read, are damaged, or have more than `limit` bytes with the file of
    their name. Each with its version, and that of the file of its name."""

    def __init__(self, limit: float = 64 * 1024 * 1024) -> None:
        """`limit`: the most bytes that a sweep reads."""
        super().__init__()
        self.limit = limit
        #: Those that were read, as was the file of their name, and have nothing that could be restored or saved.
        self.worthless: set[tuple[str, Hashable, Hashable]] = set()


class FileWriter(Protocol):
    """A file that is being written and that nobody sees yet."""

    def write(self, data: bytes) -> None:
        """Append."""

    def place(self, name: str) -> None:
        """Make it durable and visible as `name`, replacing a file of that name."""

    def drop(self) -> None:
        """Discard it. Never fails."""


class ObjectStore(Protocol):
    """Files by name. All methods block.

    Unless stated otherwise, a missing file raises FileNotFoundError. A failing disk or bucket raises OSError
    or ProviderError.
    """

    #: Reading this many bytes costs about as much as reading a few.
    cheap_read_bytes: int

    def files(self, prefix: str = "") -> dict[str, FileInfo]:
        """Return the files whose names begin with `prefix`. Links, folders and the like are left out."""

    def refresh(self) -> bool:
        """Make the next `files` list anew; tell whether it would have been answered from an earlier listing."""

    def not_files(self, prefix: str = "") -> frozenset[str]:
        """Return the links, folders and the like whose names begin with `prefix`: they hold nothing that can
        be read."""

    def containing(self, part: str) -> frozenset[str]:
        """Return every name that contains `part`, including links and folders; empty where no sync program works.

        Programs that sync a folder put a placeholder for an absent file.
        """

    def read(self, name: str, limit: int) -> bytes | None:
        """Return a whole file; None when it is missing or longer than `limit` bytes."""

    def heads(self, names: Sequence[str], length: int) -> dict[str, Head]:
        """Return the first `length` bytes of each file that exists."""

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> Iterable[bytes]:
        """Return the bytes of each span (first offset, offset behind the last), in the order of `spans`;
        shorter at the file's end."""

    def open_file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """Return a seekable reader of a file."""

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Store a small file whole; durably, unless `flush` is off."""

    def new_file(self) -> FileWriter:
        """Begin a file whose name and length are not known yet."""

    def unlink(self, name: str) -> None:
        """Remove a file. A missing one may raise FileNotFoundError."""

    def set_aside(self, name: str) -> None:
        """Rename what `not_files` returns so that it blocks nobody; nothing is lost."""

    def flush(self) -> None:
        """Make placements and removals durable."""

    def sweep(self, oldest: float, passed_over: PassedOver | None = None) -> None:
        """Remove unfinished files of a crash, in this store and its siblings, last changed before `oldest`
        (Unix time, seconds). Those that it could not settle are in `passed_over` then, and left alone."""

    def held_open(self) -> AbstractContextManager[None]:
        """Keep this thread working in the same folder during the block, even if its path comes to lead elsewhere."""


class CollectedFile:
    """A new file that is collected in memory and written whole, for stores without partial writes."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._parts.append(data)

    def place(self, name: str) -> None:
        self._store.write(name, b"".join(self._parts))
        self._parts = []

    def drop(self) -> None:
        self._parts = []
