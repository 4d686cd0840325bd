"""Blocks of uploaded CARs for stand-ins: each CAR is stored in a temporary file.

A CAR is either checked block by block while it arrives, as by services that import it, or only its header
is read, and its blocks are checked on first access. The stand-in chooses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple

from ipfsmem.content.car import CarParser
from ipfsmem.content.cid import CID, read_varint, varint
from ipfsmem.errors import FormatError

_PIECE = 1 << 18


class _Place(NamedTuple):
    file: IO[bytes]
    start: int
    length: int


class Arriving:
    """One CAR being received. `keep` it when complete, or `drop` it."""

    def __init__(self, store: CarStore, *, strict: bool) -> None:
        """`strict`: check every block on arrival."""
        self._store = store
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._index = _Index(self._file) if strict else None
        self._header = CarParser(verify=False)

    def feed(self, piece: bytes) -> None:
        """Add the next bytes. FormatError (BlockError, LimitError) if the checked part is not a valid CAR."""
        self._file.write(piece)
        if self._index is not None:
            self._index.feed(piece)
        if self._header.roots is None:
            self._header.feed(piece)

    def keep(self) -> CID:
        """Store the complete CAR; return the root in its header."""
        roots = self._header.roots or ()
        if len(roots) != 1:
            raise FormatError(f"a CAR with {len(roots)} roots")
        self._file.flush()
        if self._index is not None:
            self._index.close()
            self._store.places.update(self._index.places)
        else:
            self._store.unread.append(self._file)
        return roots[0]

    def drop(self) -> None:
        """Discard an incomplete CAR."""
        self._file.close()


class _Index:
    """Offsets of the blocks of a CAR, each checked."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._parser = CarParser()
        self._position = 0  # after the last block, 0 before the header's end is known
        self._start = b""
        self.places: dict[CID, _Place] = {}

    def feed(self, piece: bytes) -> None:
        if not self._position:
            self._start += piece[:16]
        blocks = self._parser.feed(piece)
        if not self._position and self._parser.roots is not None:
            size, start = read_varint(self._start, 0)
            self._position = start + size
        for cid, data in blocks:
            length = len(cid.encode()) + len(data)
            self._position += len(varint(length)) + length
            self.places.setdefault(cid, _Place(self._file, self._position - len(data), len(data)))

    def close(self) -> None:
        self._parser.close()


class CarStore(Mapping[CID, bytes]):
    """Blocks by CID: those of all CARs, and single ones."""

    def __init__(self) -> None:
        self.places: dict[CID, _Place] = {}
        self.unread: list[IO[bytes]] = []  # CARs of which only the header was read
        self._single: dict[CID, bytes] = {}

    def arriving(self, *, strict: bool) -> Arriving:
        """Start receiving a CAR."""
        return Arriving(self, strict=strict)

    def update(self, blocks: Mapping[CID, bytes]) -> None:
        """Add single blocks."""
        self._single.update(blocks)

    def __getitem__(self, cid: CID) -> bytes:
        if cid in self._single:
            return self._single[cid]
        self._read()
        place = self.places[cid]
        return os.pread(place.file.fileno(), place.length, place.start)

    def __contains__(self, cid: object) -> bool:
        if cid in self._single:
            return True
        self._read()
        return cid in self.places

    def __iter__(self) -> Iterator[CID]:
        self._read()
        return iter({**self._single, **self.places})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _read(self) -> None:
        """Check and index unread CARs; blocks after a bad one are not served."""
        while self.unread:
            file = self.unread.pop()
            index = _Index(file)
            file.seek(0)
            try:
                while piece := file.read(_PIECE):
                    index.feed(piece)
            except FormatError:
                pass
            self.places.update(index.places)
