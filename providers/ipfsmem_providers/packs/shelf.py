"""Where packs, pins or records lie by name: a folder on a disk, or the objects of a bucket below one prefix.

What is kept there (store.py, pins.py, names.py) is the same, and asks for no more than this. Names have no
order and no lock; what is written appears whole. Protocols only: a folder is one in directory/files.py, a bucket in
bucket/layout.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple, Protocol


class Seen(NamedTuple):
    """What a look shows of one file."""

    size: int  #: bytes
    changed: int  #: milliseconds since 1970 UTC, by the clock of the place
    stamp: Hashable  #: another one when the content is


class Start(NamedTuple):
    """The first bytes of a file, and how many it has in all."""

    data: bytes
    size: int


class Making(Protocol):
    """A file that nobody sees yet."""

    def write(self, data: bytes) -> None:
        """Append."""

    def place(self, name: str) -> None:
        """Make it durable, and let it be seen under `name`, in place of what has that name."""

    def drop(self) -> None:
        """Forget it. Never fails."""


class Shelf(Protocol):
    """Files by name. Methods block. Unless said otherwise one that is not there raises FileNotFoundError. A disk or a bucket that
    fails raises an OSError or a ProviderError."""

    #: Bytes to read at once where only a few are wanted.
    at_once: int

    def look(self, start: str = "") -> dict[str, Seen]:
        """The files whose names begin with `start`; what is no plain file is left out."""

    def read(self, name: str, limit: int) -> bytes | None:
        """All of a file of at most `limit` bytes; None when it is absent or larger."""

    def starts(self, names: Sequence[str], length: int) -> dict[str, Start]:
        """The first `length` bytes of each file that is there."""

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> Iterable[bytes]:
        """Bytes from a start to an end each, in the order asked; shorter where the file ends before."""

    def file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """A file to be read from its start and at any place."""

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Put a small file there whole; durably, unless `flush` is off."""

    def new(self) -> Making:
        """Begin a file."""

    def unlink(self, name: str) -> None:
        """Remove a file. One that is gone already may raise FileNotFoundError."""

    def flush(self) -> None:
        """Make what was placed and removed durable."""

    def sweep(self, oldest: float) -> None:
        """Remove unfinished files that a crash left, on this shelf and those beside it, last changed before `oldest` (Unix time, seconds)."""

    def kept(self) -> AbstractContextManager[None]:
        """What this thread does until the end is done at one and the same place."""
