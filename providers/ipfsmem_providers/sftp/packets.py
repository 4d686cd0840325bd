"""Packets of SFTP version 3 (draft-ietf-secsh-filexfer-02), which every server speaks. Pure."""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

(INIT, VERSION, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, OPENDIR, READDIR, REMOVE, MKDIR, STAT, RENAME) = (
    1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 17, 18)  # fmt: skip
STATUS, HANDLE, DATA, NAME, ATTRS, EXTENDED = 101, 102, 103, 104, 105, 200
OK, EOF, NO_SUCH_FILE, PERMISSION_DENIED, FAILURE, UNSUPPORTED = 0, 1, 2, 3, 4, 8
#: Of a later version; some servers send it.
NO_SUCH_PATH = 10
#: Flags of OPEN.
FOR_READING, FOR_WRITING, CREATE, EXCLUSIVE = 1, 2, 8, 32
#: Maximum bytes of a packet, as in OpenSSH.
PACKET_MAX: Final = 256 * 1024
#: Bytes of one READ or WRITE that every server accepts.
CHUNK: Final = 32 * 1024
_SIZE, _OWNER, _MODE, _TIMES, _MORE = 1, 2, 4, 8, 0x80000000
_MORE_MAX: Final = 64


class BadPacket(Exception):
    """A packet is not what the protocol says."""


class Reply(NamedTuple):
    """The reply to one request: the type of the packet, and the bytes after its number."""

    kind: int
    body: bytes


class Attributes(NamedTuple):
    """Attributes of a file; None for those that the server omits."""

    size: int | None
    modified: int | None  #: seconds since 1970 UTC
    mode: int | None

    @property
    def is_file(self) -> bool:
        """Return whether it is a regular file; without a mode, it is if it has a size."""
        return self.size is not None and (self.mode is None or stat.S_IFMT(self.mode) in (0, stat.S_IFREG))

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return self.mode is not None and stat.S_ISDIR(self.mode)


class Cursor:
    """Reads the fields of a packet in order. Raises BadPacket behind its end."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def number(self) -> int:
        """Return 32 bits."""
        return int.from_bytes(self._take(4), "big")

    def text(self) -> bytes:
        """Return bytes with their length before them."""
        return self._take(self.number())

    def attributes(self) -> Attributes:
        """Return the attributes of a file."""
        flags = self.number()
        size = int.from_bytes(self._take(8), "big") if flags & _SIZE else None
        if flags & _OWNER:
            self._take(8)
        mode = self.number() if flags & _MODE else None
        modified = None
        if flags & _TIMES:
            self.number()
            modified = self.number()
        if flags & _MORE:
            count = self.number()
            if count > _MORE_MAX:
                raise BadPacket("too many attributes")
            for _ in range(2 * count):
                self.text()
        return Attributes(size, modified, mode)

    @property
    def is_at_end(self) -> bool:
        """Return whether nothing is left."""
        return self._at >= len(self._body)

    def _take(self, count: int) -> bytes:
        if count > len(self._body) - self._at:
            raise BadPacket("a packet is too short")
        self._at += count
        return self._body[self._at - count : self._at]


def text(value: str | bytes) -> bytes:
    """Return bytes with their length before them."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">I", len(data)) + data


def opening(path: str, flags: int) -> bytes:
    """Return the body of an OPEN, without attributes: the server's own umask applies."""
    return text(path) + struct.pack(">II", flags, 0)


def making(path: str) -> bytes:
    """Return the body of a MKDIR, without attributes."""
    return text(path) + bytes(4)


def reading(handle: bytes, start: int, length: int) -> bytes:
    """Return the body of a READ."""
    return text(handle) + struct.pack(">QI", start, length)


def writing(handle: bytes, start: int, data: bytes) -> bytes:
    """Return the body of a WRITE."""
    return text(handle) + struct.pack(">Q", start) + text(data)


def status(reply: Reply) -> tuple[int, str]:
    """Return the code and the message of a STATUS; the message is the server's, printable and short."""
    if reply.kind != STATUS:
        raise BadPacket(f"a packet of type {reply.kind} instead of a status")
    cursor = Cursor(reply.body)
    code = cursor.number()
    message = "" if cursor.is_at_end else cursor.text().decode(errors="replace")
    return code, "".join(char if char.isprintable() else " " for char in message[:200]).strip()


def only_text(reply: Reply, kind: int) -> bytes:
    """Return the bytes of a HANDLE or DATA."""
    if reply.kind != kind:
        raise BadPacket(f"a packet of type {reply.kind} instead of {kind}")
    return Cursor(reply.body).text()


def attributes(reply: Reply) -> Attributes:
    """Return the attributes in an ATTRS."""
    if reply.kind != ATTRS:
        raise BadPacket(f"a packet of type {reply.kind} instead of attributes")
    return Cursor(reply.body).attributes()


def names(reply: Reply) -> Iterator[tuple[bytes, Attributes]]:
    """Yield the entries in a NAME."""
    if reply.kind != NAME:
        raise BadPacket(f"a packet of type {reply.kind} instead of names")
    cursor = Cursor(reply.body)
    count = cursor.number()
    if count == 0:
        raise BadPacket("a list of no names")
    for _ in range(count):
        name = cursor.text()
        cursor.text()  # a line for people
        yield name, cursor.attributes()


def extensions(body: bytes) -> frozenset[bytes]:
    """Return the names of the extensions in the body of a VERSION. Raises BadPacket for a version that is not 3."""
    cursor = Cursor(body)
    version = cursor.number()
    if version != 3:
        raise BadPacket(f"version {version} of SFTP")
    values = set()
    while not cursor.is_at_end:
        values.add(cursor.text())
        cursor.text()
    return frozenset(values)
