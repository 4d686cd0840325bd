"""Store files derived from the state, such as an index of recall, for the next process.

A truncated file, or a file with another key or version, is removed, and the caller rebuilds it. In a sealed vault,
files are sealed under a key derived from this device's row key, and not compressed: the size of a compressed file
would reveal its words to anyone who can add texts. Files that each query opens are sealed in pieces, since opening a
large file at once needs three times its memory and takes longer. In plain modes, where the texts are on the disk too,
files are compressed. The caller defines the content and decides whether it is current.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nacl import bindings, exceptions

from ipfsmem.device.atomic_files import StagedFile, read_in_pieces, read_in_two_parts
from ipfsmem.device.replica import Replica
from ipfsmem.errors import FormatError

_NONCE, _SUM = 24, 32
#: Bytes of a piece, of its tag, of the total length, and of the counter at the end of a nonce.
_PIECE, _TAG, _LENGTH, _COUNTING = 64 * 1024, 16, 8, 8
#: Maximum bytes of a file, and of its inflated content. An index of a hundred thousand long texts has about 60 MB.
_MAX_BYTES: Final = 1024 * 1024 * 1024
#: Returns the number of bytes needed of a file, given its first bytes.
Size = Callable[[bytes | bytearray], int]


class DerivedFiles:
    """Reads and writes files of one kind. `person`: the purpose of their key, at most 16 bytes."""

    def __init__(self, begins: bytes, person: bytes, *, level: int = 1, in_pieces: bool = False) -> None:
        """`level`: compression level of plain files, 0 for none. `in_pieces`: whether sealed files consist of pieces."""
        #: The magic prefixes of sealed and plain files; a sealed file is bound to its prefix.
        self._sealed, self._plain = begins + b" sealed\n", begins + b" plain\n"
        self._person, self._level, self._in_pieces = person, level, in_pieces

    def save(self, replica: Replica, path: Path | None, data: bytes, *, durable: bool = True) -> bool:
        """Replace the file; `durable=False`: without fsync. Returns False if it cannot be stored: without a path, in
        a vault that was opened read-only, or without keys. Raises StorageError."""
        prepared = self.prepare(replica, path, data, durable=durable)
        if prepared is None:
            return False
        prepared.put()
        return True

    def prepare(
        self, replica: Replica, path: Path | None, data: bytes, *, durable: bool = True
    ) -> StagedFile | None:
        """Write the replacement that `save` makes without the final rename; None if it cannot be stored. Raises
        StorageError."""
        sealed = replica.config.mode.sealed
        if path is None or replica.read_only or (sealed and not replica.device.row_key):
            return None
        if sealed:
            nonce = replica.environment.random(_NONCE)
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
        """Return the content of the file; None if it is missing, or without keys.

        `size`: return only the start, with the number of bytes that `size` returns for the first bytes; the rest of a
        file in pieces is not read. Raises FormatError if the file is invalid, StorageError.
        """
        sealed = replica.config.mode.sealed
        if path is None or (sealed and not replica.device.row_key):
            return None
        if sealed and self._in_pieces:
            return self._open_pieces(path, self._key(replica), size)
        kind, further = (self._sealed, _NONCE) if sealed else (self._plain, _SUM)
        stored = read_in_two_parts(path, len(kind) + further, _MAX_BYTES)
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
        """Return the key of files of this kind."""
        return hashlib.blake2b(digest_size=32, key=replica.device.row_key, person=self._person).digest()

    def _sealed_pieces(self, data: bytes, nonce: bytes, key: bytes) -> bytes:
        """Seal each piece under its own nonce. The total length precedes the pieces and is their associated data."""
        length = len(data).to_bytes(_LENGTH, "little")
        pieces = (data[at : at + _PIECE] for at in range(0, max(1, len(data)), _PIECE))
        boxes = (
            self._box(piece, _nonce_of(nonce, number), key, length) for number, piece in enumerate(pieces)
        )
        return b"".join((length, *boxes))

    def _open_pieces(self, path: Path, key: bytes, size: Size | None) -> bytearray | None:
        pieces = read_in_pieces(path, len(self._sealed) + _NONCE + _LENGTH, _PIECE + _TAG, _MAX_BYTES)
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
    """Return the nonce of a piece: the file's nonce with the piece's number added to its last bytes."""
    begin, counter = nonce[:-_COUNTING], int.from_bytes(nonce[-_COUNTING:], "little")
    return begin + ((counter + number) % (1 << 8 * _COUNTING)).to_bytes(_COUNTING, "little")


def _inflated(stream: bytes, proof: bytes, size: Size | None) -> bytes | None:
    if hashlib.sha256(stream).digest() != proof:
        return None
    inflater = zlib.decompressobj()
    try:
        if size is not None:
            data = inflater.decompress(stream, _PIECE)
            if (more := min(size(data), _MAX_BYTES) - len(data)) > 0:
                data += inflater.decompress(inflater.unconsumed_tail, more)
            return data[: size(data)]
        data = inflater.decompress(stream, _MAX_BYTES)
    except zlib.error:
        return None
    return data if inflater.eof and not inflater.unused_data else None
