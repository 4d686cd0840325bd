"""What packs, pins and name records need of the place that stores them: a flat set of named files, a shelf.

A shelf is a folder on a disk (directory/files.py) or the objects below one prefix of a bucket (bucket/layout.py). Nothing
is asked of it but what both can do: no order of names, no lock, no append; a file appears whole. Protocols only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple, Protocol


class FileInfo(NamedTuple):
    """What a listing says of one file."""

    size: int  #: bytes
    modified: int  #: milliseconds since 1970 UTC, by the clock of the place
    version: Hashable  #: differs whenever the content does


class Head(NamedTuple):
    """The first bytes of a file."""

    data: bytes
    size: int  #: bytes of the whole file


class FileWriter(Protocol):
    """A file that is being written and that nobody sees yet."""

    def write(self, data: bytes) -> None:
        """Append."""

    def place(self, name: str) -> None:
        """Make it durable and visible under `name`, in place of a file of that name."""

    def drop(self) -> None:
        """Discard it. Never fails."""


class Shelf(Protocol):
    """Files by name. All methods block.

    Unless a method says otherwise, a missing file raises FileNotFoundError. A disk or bucket that fails raises OSError or
    ProviderError.
    """

    #: Reading this many bytes costs about as much as reading a few.
    cheap_read_bytes: int

    def files(self, prefix: str = "") -> dict[str, FileInfo]:
        """The files whose names begin with `prefix`. Links, folders and the like are left out."""

    def not_files(self, prefix: str = "") -> frozenset[str]:
        """The links, folders and the like whose names begin with `prefix`: they hold nothing that can be read."""

    def containing(self, part: str) -> frozenset[str]:
        """Every name that contains `part`, also of links and folders: programs that keep a folder in step put a placeholder for a file
        that is not here. Empty where no such program works."""

    def read(self, name: str, limit: int) -> bytes | None:
        """A whole file; None when it is missing or longer than `limit` bytes."""

    def heads(self, names: Sequence[str], length: int) -> dict[str, Head]:
        """The first `length` bytes of each file that exists."""

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> Iterable[bytes]:
        """The bytes of each span (first offset, offset behind the last), in the order of `spans`; shorter at the file's end."""

    def open_file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """A seekable reader of a file."""

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Store a small file whole; durably, unless `flush` is off."""

    def new_file(self) -> FileWriter:
        """Begin a file whose name and length are not known yet."""

    def unlink(self, name: str) -> None:
        """Remove a file. A missing one may raise FileNotFoundError."""

    def set_aside(self, name: str) -> None:
        """Rename what `not_files` names, so that it is in nobody's way; nothing of it is lost."""

    def flush(self) -> None:
        """Make what was placed and removed durable."""

    def sweep(self, oldest: float) -> None:
        """Remove unfinished files that a crash left, on this shelf and those beside it, last changed before `oldest` (Unix time, seconds)."""

    def held_open(self) -> AbstractContextManager[None]:
        """While the block runs, this thread works in one and the same place, even when a path comes to lead elsewhere."""
