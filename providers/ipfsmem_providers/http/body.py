"""Bodies of uploads that can be sent again: bytes and CARs spooled to disk, and multipart forms.

Their length is known before they are sent, and each attempt reads them from the start. Blocks are checked against their
CIDs when they are added. Nothing here sends anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterable
from typing import IO, Final, Protocol, Self, runtime_checkable

from ipfsmem.content.car import header, section
from ipfsmem.content.cid import CID
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, LimitError, ProviderRefused, StorageError
from ipfsmem.provider.contract import Block

CAR_TYPE: Final = "application/vnd.ipld.car"
_PIECE: Final = 256 * 1024
#: Small pieces of a form are joined into pieces of at least this many bytes.
_LEAST_PIECE: Final = 64 * 1024
_IN_MEMORY: Final = 8 * 1024 * 1024


@runtime_checkable
class Body(Protocol):
    """Something to send whose length is known and that can be read as often as needed."""

    @property
    def size(self) -> int:
        """Return the size in bytes."""

    @property
    def content_type(self) -> str:
        """Return the Content-Type header."""

    def pieces(self) -> AsyncIterator[bytes]:
        """Return all bytes, from the start."""


class SpooledFile:
    """A Body held in memory while small, else in a temporary file.

    Close it, or use it as a context manager, to remove the file.
    """

    content_type = "application/octet-stream"

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self._hash = hashlib.sha256()
        self.size = 0  #: bytes

    @property
    def sha256(self) -> bytes:
        """Return the SHA-256 of all bytes."""
        return self._hash.digest()

    def append(self, data: bytes) -> None:
        """Add bytes. StorageError when the disk has no room."""
        try:
            self._file.write(data)
        except OSError as error:
            raise StorageError(f"no room for a temporary file: {error}") from error
        self._hash.update(data)
        self.size += len(data)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield all bytes, from the start. One reader at a time."""
        async for piece in self.part(0, self.size):
            yield piece

    async def part(self, start: int, length: int) -> AsyncIterator[bytes]:
        """Return `length` bytes from `start`: for uploads in parts."""
        position, end = start, min(self.size, start + length)
        while position < end:
            self._file.seek(position)
            piece = self._file.read(min(_PIECE, end - position))
            if not piece:
                raise StorageError("a temporary file ended before its end")
            position += len(piece)
            yield piece
            if position < end:
                await asyncio.sleep(0)

    def close(self) -> None:
        """Remove the temporary file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SpooledCar(SpooledFile):
    """A CAR of blocks, each once:

    with await SpooledCar.write(root, blocks) as car:
        await http.request("POST", url, body=car)
    """

    content_type = CAR_TYPE

    @classmethod
    async def write(cls, root: CID, blocks: Iterable[Block]) -> SpooledCar:
        """Read `blocks` once, in order, on this thread. ProviderRefused for one that does not match its CID."""
        car = cls()
        try:
            car.append(header([root]))
            seen: set[CID] = set()
            for cid, data in blocks:
                if cid in seen:
                    continue
                try:
                    verify_block(cid, data)
                except (BlockError, LimitError) as error:
                    raise ProviderRefused(f"block {cid} was not sent: {error}") from error
                seen.add(cid)
                before = car.size // _PIECE
                car.append(section(cid, data))
                if car.size // _PIECE != before:
                    await asyncio.sleep(0)
        except BaseException:
            car.close()
            raise
        return car


class Multipart:
    """A multipart/form-data body. Add fields and files in order, then send it as `body=`."""

    def __init__(self, boundary: str | None = None) -> None:
        """`boundary` is random unless given."""
        self._boundary = boundary or f"ipfsmem-{secrets.token_hex(16)}"
        self._parts: list[bytes | Body] = []

    @property
    def content_type(self) -> str:
        """Return the media type with the boundary, for the Content-Type header."""
        return f"multipart/form-data; boundary={self._boundary}"

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(
            len(part) if isinstance(part, bytes) else part.size for part in (*self._parts, self._end())
        )

    def field(self, name: str, value: str) -> Multipart:
        """Add a text field."""
        self._head(f'form-data; name="{_quoted(name)}"', "")
        self._parts.append(value.encode() + b"\r\n")
        return self

    def file(
        self, name: str, file_name: str, content: bytes | Body, content_type: str = "application/octet-stream"
    ) -> Multipart:
        """Add a file."""
        self._head(f'form-data; name="{_quoted(name)}"; filename="{_quoted(file_name)}"', content_type)
        self._parts += [content, b"\r\n"]
        return self

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield all bytes, from the start. Small pieces are joined: a folder has three per file."""
        buffer: list[bytes] = []
        size = 0
        for part in (*self._parts, self._end()):
            if isinstance(part, bytes):
                buffer.append(part)
                size += len(part)
            else:
                async for piece in part.pieces():
                    buffer.append(piece)
                    size += len(piece)
                    if size >= _LEAST_PIECE:
                        yield b"".join(buffer)
                        buffer, size = [], 0
            if size >= _LEAST_PIECE:
                yield b"".join(buffer)
                buffer, size = [], 0
        if buffer:
            yield b"".join(buffer)

    def _head(self, disposition: str, content_type: str) -> None:
        kind = f"Content-Type: {content_type}\r\n" if content_type else ""
        self._parts.append(f"--{self._boundary}\r\nContent-Disposition: {disposition}\r\n{kind}\r\n".encode())

    def _end(self) -> bytes:
        return f"--{self._boundary}--\r\n".encode()


def _quoted(text: str) -> str:
    """Return text for a quoted header value, as browsers write it: only what would end it is escaped; UTF-8 stays."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
