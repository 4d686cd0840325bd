"""Files derived from the state, such as an index of recall: kept for the next process, and removed when in doubt.

A torn file, or one of another key or version, is removed, and its user rebuilds it. In a sealed vault a file is sealed under a
key of its own derived from this device's row key, and not compressed: the size of a compressed one would tell anyone who can add
texts which words are in it. A file that each question opens is sealed in pieces, as opening a large one at once needs three times
its memory and most of the time. In plain modes, where the texts are on the disk too, it is compressed. The caller defines the
content and whether it is current.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nacl import bindings, exceptions

from ipfsmem.device.atomic_files import StagedFile, read_in_pieces, read_in_two
from ipfsmem.device.replica import Replica
from ipfsmem.errors import FormatError

_NONCE, _SUM = 24, 32
#: Bytes of a piece, of its tag, of the length of the whole, and of the counter at the end of a nonce.
_PIECE, _TAG, _LENGTH, _COUNTING = 64 * 1024, 16, 8, 8
#: Maximum bytes of a file, and of its inflated content. An index of a hundred thousand long texts has about 60 MB.
_MOST: Final = 1024 * 1024 * 1024
#: Returns how many bytes of some data are needed, from its first bytes.
Size = Callable[[bytes | bytearray], int]


class DerivedFiles:
    """Files of one kind, with a magic prefix and the purpose of their key (at most 16 bytes)."""

    def __init__(self, begins: bytes, person: bytes, *, level: int = 1, in_pieces: bool = False) -> None:
        """`level`: compression level of a plain file, 0 for none; `in_pieces`: whether a sealed file consists of pieces."""
        #: The magic prefix of a sealed and of a plain file; sealed ones are bound to it.
        self._sealed, self._plain = begins + b" sealed\n", begins + b" plain\n"
        self._person, self._level, self._in_pieces = person, level, in_pieces

    def save(self, replica: Replica, path: Path | None, data: bytes, *, durable: bool = True) -> bool:
        """Replace the file by these bytes; `durable` False: without fsync. Returns False if it cannot be stored: without a path,
        in a vault that was opened read-only, or without keys. Raises StorageError."""
        prepared = self.prepare(replica, path, data, durable=durable)
        if prepared is None:
            return False
        prepared.put()
        return True

    def prepare(
        self, replica: Replica, path: Path | None, data: bytes, *, durable: bool = True
    ) -> StagedFile | None:
        """Write the replacement of `save` without the final rename; None if it cannot be stored. Raises StorageError."""
        sealed = replica.config.mode.sealed
        if path is None or replica.read_only or (sealed and not replica.device.row_key):
            return None
        if sealed:
            nonce = replica.world.random(_NONCE)
            key = self._key(replica)
            stored = (
                self._sealed
                + nonce
                + (self._sealed_pieces if self._in_pieces else self._box)(data, nonce, key)
            )
        else:
            stream = zlib.compress(data, self._level)
            stored = self._plain + hashlib.sha256(stream).digest() + stream
        return StagedFile(path, stored, durable=durable)

    def open(self, replica: Replica, path: Path | None, size: Size | None = None) -> bytes | bytearray | None:
        """Return the bytes saved last; None if there are none, or no keys. `size`: only the beginning is needed, with the number
        of bytes that it returns for the first ones; a file in pieces is read no further. Raises FormatError if the file does
        not fit, StorageError."""
        sealed = replica.config.mode.sealed
        if path is None or (sealed and not replica.device.row_key):
            return None
        if sealed and self._in_pieces:
            return self._open_pieces(path, self._key(replica), size)
        kind, further = (self._sealed, _NONCE) if sealed else (self._plain, _SUM)
        stored = read_in_two(path, len(kind) + further, _MOST)
        if stored is None:
            return None
        begin, rest = stored
        if not begin.startswith(kind):
            raise FormatError(f"{path} is of another kind or version")
        proof = begin[len(kind) :]
        data = self._unboxed(rest, proof, self._key(replica)) if sealed else _inflated(rest, proof, size)
        if data is None:
            raise FormatError(f"{path} is damaged, or of another device's keys")
        return data

    def _key(self, replica: Replica) -> bytes:
        """Return the key of these files alone."""
        return hashlib.blake2b(digest_size=32, key=replica.device.row_key, person=self._person).digest()

    def _sealed_pieces(self, data: bytes, nonce: bytes, key: bytes) -> bytes:
        """Seal each piece under its own nonce, with the length of the whole, which precedes the pieces, as associated data."""
        length = len(data).to_bytes(_LENGTH, "little")
        pieces = (data[at : at + _PIECE] for at in range(0, max(1, len(data)), _PIECE))
        boxes = (
            self._box(piece, _nonce_of(nonce, number), key, length) for number, piece in enumerate(pieces)
        )
        return b"".join((length, *boxes))

    def _open_pieces(self, path: Path, key: bytes, size: Size | None) -> bytearray | None:
        pieces = read_in_pieces(path, len(self._sealed) + _NONCE + _LENGTH, _PIECE + _TAG, _MOST)
        begin = next(pieces, None)
        if begin is None:
            return None
        if not begin.startswith(self._sealed):
            raise FormatError(f"{path} is of another kind or version")
        nonce, length = begin[len(self._sealed) : -_LENGTH], begin[-_LENGTH:]
        data, number, piece = bytearray(), 0, None
        for number, box in enumerate(pieces):
            piece = self._unboxed(box, _nonce_of(nonce, number), key, length)
            if piece is None:
                break
            data += piece
            if size is not None and len(data) >= (expected := size(data)):
                return data[:expected]
        if piece is None or len(data).to_bytes(_LENGTH, "little") != length:
            raise FormatError(f"{path} is damaged, or of another device's keys")
        return data

    def _box(self, data: bytes, nonce: bytes, key: bytes, further: bytes = b"") -> bytes:
        return bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(data, self._sealed + further, nonce, key)

    def _unboxed(self, box: bytes, nonce: bytes, key: bytes, further: bytes = b"") -> bytes | None:
        try:
            return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                box, self._sealed + further, nonce, key
            )
        except (exceptions.CryptoError, exceptions.TypeError, ValueError):
            return None


def _nonce_of(nonce: bytes, number: int) -> bytes:
    """Return the nonce of a piece: that of the file with the number of the piece added to its end."""
    begin, counter = nonce[:-_COUNTING], int.from_bytes(nonce[-_COUNTING:], "little")
    return begin + ((counter + number) % (1 << 8 * _COUNTING)).to_bytes(_COUNTING, "little")


def _inflated(stream: bytes, proof: bytes, size: Size | None) -> bytes | None:
    if hashlib.sha256(stream).digest() != proof:
        return None
    inflater = zlib.decompressobj()
    try:
        if size is not None:
            data = inflater.decompress(stream, _PIECE)
            if (more := min(size(data), _MOST) - len(data)) > 0:
                data += inflater.decompress(inflater.unconsumed_tail, more)
            return data[: size(data)]
        data = inflater.decompress(stream, _MOST)
    except zlib.error:
        return None
    return data if inflater.eof and not inflater.unused_data else None
