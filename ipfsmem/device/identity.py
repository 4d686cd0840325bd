"""Create, store and load the keys of this device, and identify the location of its files.

The keys are in one file, protected by a passphrase unless the user chose otherwise. A device whose files are in a new
location is a copy, and must take a new id before it writes (format section 5); this module only identifies the
location.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import msgspec
from nacl import bindings, exceptions

from ipfsmem.device.atomic_files import read_file, write_atomic
from ipfsmem.device.connection import DAMAGED_HINT
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import FormatError, OpenError, StorageError
from ipfsmem.file_durability import flush_to_disk, retry_while_held_open
from ipfsmem.seal.primitives import Signer25519, x25519_public
from ipfsmem.seal.secret_file import is_protected, protect, unprotect

KEY_FILE = "device.key"
#: Files with the id of a machine, and the file in the home directory for machines without one.
MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
MACHINE_FILE = ".machine"
Random = Callable[[int], bytes]


class Device(msgspec.Struct, frozen=True, dict=True):
    """The secrets of one device: Ed25519 seed, X25519 secret, key of local rows; 32 bytes each.

    `root_key` is a fourth one on the device that created a vault without a wallet: it seals the root. Empty on every other
    device, and wherever the keys came without the passphrase: `unlock` never returns it.
    """

    sign_seed: bytes
    box_secret: bytes
    row_key: bytes
    root_key: bytes = b""

    def __repr__(self) -> str:
        return f"Device(id={self.id!r})"

    @cached_property
    def signer(self) -> Signer25519:
        """The signer of values, pairs, commits and the device's own name."""
        return Signer25519(self.sign_seed)

    @cached_property
    def sign_public(self) -> bytes:
        """Ed25519 public key."""
        return self.signer.public

    @cached_property
    def box_public(self) -> bytes:
        """X25519 public key."""
        return x25519_public(self.box_secret)

    @cached_property
    def id(self) -> str:
        """First 16 hex digits of SHA-256(sign) (format section 4)."""
        return sha256(self.sign_public).hexdigest()[:16]

    def with_keys(self, keys: bytes) -> Device:
        """Return the same device with these keys: a signing seed (32 bytes), optionally followed by a box secret."""
        return Device(keys[:32], keys[32:] or self.box_secret, self.row_key, self.root_key)

    def with_box(self, random: Random) -> Device:
        """Return the same device and id with a new box key, needed if another family of the ring uses the old one."""
        return Device(self.sign_seed, random(32), self.row_key, self.root_key)

    def successor(self, random: Random) -> Device:
        """Return the same device under a new id: another signing key, the same box and row keys."""
        return Device(random(32), self.box_secret, self.row_key, self.root_key)

    def without_secrets(self) -> Device:
        """Return the id and the public keys, which can neither sign nor open."""
        bare = Device(b"", b"", b"")
        vars(bare).update(id=self.id, sign_public=self.sign_public, box_public=self.box_public)
        return bare


def new_device(random: Random, *, root_key: bytes = b"") -> Device:
    """Return a device with new secrets. `root_key`: the key that seals the root of a vault without a wallet."""
    return Device(random(32), random(32), random(32), root_key)


def save_device(folder: Path, device: Device, passphrase: str | None, random: Random) -> None:
    """Write the key file (mode 0600)."""
    secret = device.sign_seed + device.box_secret + device.row_key + device.root_key
    write_atomic(folder / KEY_FILE, protect(secret, passphrase, salt=random(16), nonce=random(24)))


def passphrase_protected(folder: Path | None) -> bool:
    """Return whether this device's key file is under a passphrase. Raises FormatError if it is damaged, StorageError."""
    path = None if folder is None else folder / KEY_FILE
    data = read_file(path, 64 * 1024) if path is not None else None
    try:
        return data is not None and is_protected(data)
    except FormatError as error:
        raise type(error)(f"{path}: {error}") from None


def load_device(folder: Path, passphrase: str | None) -> Device:
    """Read the key file. Raises PassphraseError, FormatError, StorageError if it is missing."""
    path = folder / KEY_FILE
    data = read_file(path, 64 * 1024)
    if data is None:
        raise StorageError(
            f"{path} is missing: this device has lost its keys",
            hint=DAMAGED_HINT,
        )
    try:
        secret = unprotect(data, passphrase)
    except FormatError as error:
        raise type(error)(f"{path}: {error}") from None
    if len(secret) not in (96, 128):
        raise FormatError(f"{path} holds {len(secret)} bytes of secrets, 96 or 128 expected")
    return Device(secret[:32], secret[32:64], secret[64:96], secret[96:])


def change_passphrase(folder: Path, old: str | None, new: str | None, random: Random) -> None:
    """Protect the same secrets with another passphrase. Raises PassphraseError, FormatError or StorageError, and changes nothing
    then."""
    with file_lock(folder / "lock"):
        save_device(folder, load_device(folder, old), new, random)


def seal_row(row_key: bytes, row: bytes, nonce: bytes) -> bytes:
    """Seal a row for this disk only, under the device's own key (XChaCha20-Poly1305, `nonce` 24 random bytes)."""
    return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(row, b"row", nonce, row_key)


def open_row(row_key: bytes, stored: bytes) -> bytes:
    """Open a sealed row. Raises OpenError."""
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(stored[24:], b"row", stored[:24], row_key)
    except (exceptions.CryptoError, exceptions.TypeError, ValueError):
        raise OpenError("a row of this memory is damaged, or does not belong to this device's keys") from None


def place(database: Path) -> str:
    """Return a hash of the location of this device's files: the machine's id and the database's inode.

    A machine without an id gets one in the home directory. Network addresses are not used: those of containers change
    with each start.
    """
    inode = database.stat().st_ino
    return sha256(f"{_machine(database.parent.parent)} {inode}".encode()).hexdigest()


def forget_machine(home: Path) -> None:
    """Remove the machine id of a home directory that contains no other file, after an abandoned attempt."""
    with contextlib.suppress(OSError):
        if [path.name for path in home.iterdir()] == [MACHINE_FILE]:
            (home / MACHINE_FILE).unlink()


def _machine(home: Path) -> str:
    for path in MACHINE_IDS:
        try:
            text = (
                Path(path).read_bytes().decode("ascii").strip()
            )  # opened in binary mode: text mode would load another module
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return text
    return _kept_id(home)


def _kept_id(home: Path) -> str:
    """Return a random id in the home directory, stored with the inode of its file: in a copy the inode differs, and the copy gets
    another id. "" if no file can be written; then only the database's inode tells copies apart."""
    path = home / MACHINE_FILE
    for _ in range(2):
        try:
            id_kept, inode = (read_file(path, 256) or b"").decode("ascii").split()
            if int(inode) == path.lstat().st_ino:
                return id_kept
        except (OSError, ValueError, StorageError):
            pass
        with contextlib.suppress(OSError):
            _keep_new_id(path)
    return ""


def _keep_new_id(path: Path) -> None:
    """Write a new id, replacing one that was copied from elsewhere."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{os.urandom(16).hex()} {os.fstat(file.fileno()).st_ino}\n")
            file.flush()
            flush_to_disk(file.fileno())
        retry_while_held_open(lambda: Path(name).replace(path))
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
