"""`recall.image`: the index of recall kept for the next process, so that it need not read every text again.

It is derived: whatever does not fit, a torn file, another key, another version, is removed, and whoever needs it makes it
anew. It says of itself which state it was made of; whether that is the present one, its reader decides. In a sealed memory it
is sealed under a key of its own that follows from this device's row key, and not compressed: the size of a compressed one
would tell whoever can add texts which words are there already. In plain modes, where the texts lie beside it, it is compressed.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from pathlib import Path
from typing import Final

import msgspec
from nacl import bindings, exceptions

from ipfsmem.device.atomic_files import read_file, write_atomic
from ipfsmem.device.replica import Replica
from ipfsmem.errors import FormatError, StorageError

IMAGE_FILE: Final = "recall.image"
#: Those of other stacks than the nameless scope alone, and how many files there are at most.
_OTHERS: Final = "recall-*.image"
_MOST_FILES: Final = 4
#: What a file begins with, by whether it is sealed; sealed ones are bound to it.
_SEALED, _PLAIN = b"ipfsmem recall image 1 sealed\n", b"ipfsmem recall image 1 plain\n"
_NONCE, _SUM = 24, 32
#: Bytes of a file, and of what it inflates to. A hundred thousand long texts come to about 60 MB.
_MOST: Final = 1024 * 1024 * 1024


class RecallImage(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """An index, what it was made of, and what its maker keeps beside it; all three are the maker's."""

    state: bytes
    rest: bytes
    #: As `Index.image` gives it.
    index: bytes


_decode = msgspec.msgpack.Decoder(RecallImage).decode


def save_image(replica: Replica, image: RecallImage, stack: str = "") -> bool:
    """Put the index of a stack of scopes in the place of the one before. Gives whether there is a place for one: not in mode `none`, in a memory that
    was opened to be read only, or without keys. Raises StorageError."""
    path = _path(replica, stack)
    if path is None or replica.read_only or (replica.config.mode.sealed and not replica.device.row_key):
        return False
    data = msgspec.msgpack.encode(image)
    if replica.config.mode.sealed:
        nonce = replica.world.random(_NONCE)
        box = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(data, _SEALED, nonce, _key(replica))
        stored = _SEALED + nonce + box
    else:
        stream = zlib.compress(data, 1)
        stored = _PLAIN + hashlib.sha256(stream).digest() + stream
    write_atomic(path, stored)
    others = [one for one in images(replica) if one != path]
    for old in sorted(others, key=_age, reverse=True)[_MOST_FILES - 1 :]:
        _remove(old)
    return True


def load_image(replica: Replica, stack: str = "") -> RecallImage | None:
    """The index of a stack of scopes that was kept last; None where there is none, or it does not open: then it is removed."""
    path = _path(replica, stack)
    try:
        return None if path is None else _open(replica, path)
    except (FormatError, StorageError):
        if path is not None and not replica.read_only:
            _remove(path)
        return None


def remove_images(replica: Replica) -> None:
    """Remove all kept indexes. What cannot be removed does not open either, or is not believed by its state."""
    if not replica.read_only:
        for path in images(replica):
            _remove(path)


def image_notice(replica: Replica) -> str:
    """What a person should know of the kept indexes; "" when they open, or there is none."""
    for path in images(replica):
        try:
            _open(replica, path)
        except (FormatError, StorageError) as error:
            return f"the kept index of recall is of no use and is made anew by the next recall: {error}"
    return ""


def images(replica: Replica) -> list[Path]:
    """The files of kept indexes."""
    return [] if replica.folder is None else [*replica.folder.glob(IMAGE_FILE), *replica.folder.glob(_OTHERS)]


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _path(replica: Replica, stack: str) -> Path | None:
    """Of a stack of scopes. Its name says nothing of theirs to who has no key."""
    if replica.folder is None or not stack:
        return None if replica.folder is None else replica.folder / IMAGE_FILE
    key = replica.device.row_key if replica.config.mode.sealed else b""
    name = hashlib.blake2b(stack.encode(), digest_size=8, key=key, person=b"ipfsmem/stack").hexdigest()
    return replica.folder / _OTHERS.replace("*", name)


def _key(replica: Replica) -> bytes:
    """The key of this file alone."""
    return hashlib.blake2b(digest_size=32, key=replica.device.row_key, person=b"ipfsmem/recall").digest()


def _open(replica: Replica, path: Path) -> RecallImage | None:
    """A kept index. Raises FormatError when the file does not fit, StorageError."""
    sealed = replica.config.mode.sealed
    if sealed and not replica.device.row_key:
        return None
    stored = read_file(path, _MOST)
    if stored is None:
        return None
    kind = _SEALED if sealed else _PLAIN
    if not stored.startswith(kind):
        raise FormatError(f"{path} is of another kind or version")
    rest = stored[len(kind) :]
    data = _unsealed(rest, _key(replica)) if sealed else _inflated(rest)
    if data is None:
        raise FormatError(f"{path} is damaged, or of another device's keys")
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError(f"{path} is of another version") from None


def _unsealed(rest: bytes, key: bytes) -> bytes | None:
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(rest[_NONCE:], _SEALED, rest[:_NONCE], key)
    except (exceptions.CryptoError, exceptions.TypeError, ValueError):
        return None


def _inflated(rest: bytes) -> bytes | None:
    if hashlib.sha256(rest[_SUM:]).digest() != rest[:_SUM]:
        return None
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(rest[_SUM:], _MOST)
    except zlib.error:
        return None
    return data if inflater.eof and not inflater.unused_data else None
