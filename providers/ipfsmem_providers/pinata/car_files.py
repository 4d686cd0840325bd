"""The files of a spooled CAR: for services that accept a folder of files but no CAR.

Blocks are read from the CAR's temporary file on demand, so a large tree is never in memory whole. The service
chooses its own chunking.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, TypeVar

from ipfsmem.content.car import CarParser, header
from ipfsmem.content.cid import CID, RAW, varint
from ipfsmem.content.dagpb import decode_node, decode_unixfs
from ipfsmem.content.fetch import Fetch, drive_async
from ipfsmem.content.limits import OWN_LIMITS, Limits
from ipfsmem.content.reader import Reader
from ipfsmem.errors import BlockError, FormatError, LimitError, NotFoundError, ProviderRefused
from ipfsmem_providers.http.body import SpooledCar

T = TypeVar("T")
_BINARY: Final = "application/octet-stream"


class CarFiles:
    """The offset of each block in a spooled CAR, and the files that the blocks make. Valid as long as the CAR is open."""

    def __init__(
        self, car: SpooledCar, root: CID, places: dict[CID, tuple[int, int]], limits: Limits
    ) -> None:
        self._car = car
        self._places = places
        self._limits = limits
        self.root = root

    @classmethod
    async def of(cls, car: SpooledCar, root: CID, limits: Limits = OWN_LIMITS) -> CarFiles:
        """Read a CAR of `root` once, to learn the positions of its blocks."""
        places: dict[CID, tuple[int, int]] = {}
        parser = CarParser(limits, verify=False)  # each block was checked on its way in
        position = len(header([root]))
        async for piece in car.pieces():
            for cid, data in parser.feed(piece):
                length = len(cid.encode()) + len(data)
                position += len(varint(length)) + length
                places[cid] = (position - len(data), len(data))
        return cls(car, root, places, limits)

    async def files(self) -> list[tuple[str, CarUpload]]:
        """Return every file with its path, by path; a root that is a file itself has the path "".

        A file of one block that is not in the CAR is left out: a device may publish before it could fetch
        every text, and then the CAR lacks that block. Raises ProviderRefused when more of the tree is
        missing.
        """
        try:
            paths = await self._read(Reader(self._limits).walk(self.root))
            return [
                (path, CarUpload(self, cid, await self._size(cid)))
                for path, cid in sorted(paths.items())
                if cid in self._places or cid.codec != RAW or not path
            ]
        except (FormatError, LimitError, NotFoundError, BlockError) as error:
            raise ProviderRefused(f"{self.root} cannot be sent as files: {error}") from None

    async def content(self, cid: CID) -> bytes:
        """Return the bytes of one file."""
        if cid.codec == RAW:
            return await self._block(cid)
        return await self._read(Reader(self._limits).read_file(cid))

    async def _size(self, cid: CID) -> int:
        if cid.codec == RAW:
            return self._place(cid)[1]
        message = decode_unixfs(decode_node(await self._block(cid)).data or b"")
        return message.filesize if message.filesize is not None else len(message.data or b"")

    async def _block(self, cid: CID) -> bytes:
        start, length = self._place(cid)
        return b"".join([piece async for piece in self._car.part(start, length)])

    def _place(self, cid: CID) -> tuple[int, int]:
        place = self._places.get(cid)
        if place is None:
            raise NotFoundError(f"block {cid} is not in the CAR")
        return place

    async def _read(self, fetch: Fetch[T]) -> T:
        return await drive_async(fetch, self._some)

    async def _some(self, cids: list[CID]) -> dict[CID, bytes]:
        return {cid: await self._block(cid) for cid in cids if cid in self._places}


class CarUpload:
    """One file, as a body that can be sent again."""

    def __init__(self, files: CarFiles, cid: CID, size: int) -> None:
        self._files = files
        self._cid = cid
        self.size = size
        self.content_type = _BINARY

    async def pieces(self) -> AsyncIterator[bytes]:
        """Return its bytes, from the start."""
        yield await self._files.content(self._cid)
