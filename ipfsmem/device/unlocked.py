"""Hold the keys of a device that its user unlocked for a time, so that hooks and tool calls need no passphrase.

They are the three keys of the key file, never a root, recovery phrase or passphrase, wrapped (XChaCha20-Poly1305)
under a random key. The wrapped half is a file in the user's runtime directory, the wrapping key is in the kernel's
keyring of this user, elsewhere in the system's: one half alone reveals nothing, and the end of either ends both. The
wrapping includes the expiry, and is bound to the folder, the key file and the user, so a copy of the vault, or one
with a changed passphrase, does not open. Times are also measured by a clock that cannot be set, so setting the other
back extends nothing. The path in the wrapped half is in the clear, to find the remains of a vault that was moved
away.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from nacl import bindings, exceptions

from ipfsmem.device import kernel_keyring
from ipfsmem.device.atomic_files import open_regular, read_file, reason, write_atomic
from ipfsmem.device.identity import KEY_FILE, Device
from ipfsmem.device.lock import file_lock
from ipfsmem.device.runtime_folder import is_ours, made_runtime_folder, runtime_folder
from ipfsmem.device.since_boot import ClockReading, moment
from ipfsmem.errors import IpfsmemError, LockedError, StorageError, UsageError

#: The first bytes of the wrapped half. The next byte says where the wrapping key is, then follow the length of the vault's path
#: (two bytes, big-endian), the path, the nonce and the ciphertext.
_MAGIC: Final = b"ipfsmem unlocked 1 "
_KERNEL, _SYSTEM = b"K", b"S"
_NONCE: Final = 24
_MAX_BYTES: Final = 64 * 1024
#: Maximum difference of the two clocks, in milliseconds, where nothing else tells one start of the machine from the next.
_CLOCK_SLACK: Final = 60_000
_LOCKED: Final = "the keys of this device were locked again"
_ENDED: Final = "the keys of this device are locked again: the unlock time is over"


class _Span(msgspec.Struct, frozen=True):
    """The period in which keys may be used, by both clocks."""

    begins: ClockReading
    ends: ClockReading

    def over_at(self, now: ClockReading) -> bool:
        """Return whether the span has ended. A restart of the machine ends it too; without an id of the start, the start time by
        the clocks shows it."""
        begins, ends = self.begins, self.ends
        if now.boot != begins.boot or not begins.up <= now.up < ends.up or now.wall >= ends.wall:
            return True
        started = (now.wall - now.up) - (begins.wall - begins.up)
        return not now.boot and abs(started) > _CLOCK_SLACK


class _UnlockedRecord(msgspec.Struct, frozen=True):
    """The wrapped content: the keys, and their span."""

    sign_seed: bytes
    box_secret: bytes
    row_key: bytes
    span: _Span

    def __repr__(self) -> str:
        return "_Record()"


class UnlockedKeys(msgspec.Struct, frozen=True):
    """Keys that are unlocked now, until when (milliseconds since 1970 UTC), and the watch over that."""

    device: Device
    until: int
    watch: LockWatch

    def __repr__(self) -> str:
        return f"Held({self.device!r}, until={self.until})"


class NotHeld(msgspec.Struct, frozen=True):
    """No keys are unlocked. `why`: why a wrapped file was rejected, in words; "" if absent."""

    why: str = ""


class LockWatch:
    """Watches whether keys that a process took are still unlocked. A check costs some microseconds. It holds no key itself."""

    def __init__(self, folder: Path, path: Path, now: Callable[[], int], cached: _HeldFile) -> None:
        self._folder, self._path, self._now = folder, path, now
        self._file, self._place, self._span = cached.file, cached.place, cached.record.span
        self._keys = _fingerprint(cached.record)

    @property
    def until(self) -> int:
        """The end, in milliseconds since 1970 UTC."""
        return self._span.ends.wall

    @property
    def begins(self) -> int:
        """The beginning, in milliseconds since 1970 UTC."""
        return self._span.begins.wall

    def why_locked(self) -> str:
        """Return why the keys may not be used any more, in words; "" while they may.

        An `unlock` of the same keys meanwhile moves the end. A system keyring is not asked again: it may show a person a window.
        """
        try:
            identity = _identity(self._path.lstat())
        except OSError:
            return _ENDED if self._span.over_at(moment(self._now())) else _LOCKED
        if identity != self._file:
            again = _take(self._folder, self._now)
            if isinstance(again, str) or _fingerprint(again.record) != self._keys:
                return _LOCKED
            self._file, self._span = again.file, again.record.span
        if self._span.over_at(moment(self._now())):
            return _ENDED
        if self._place == _KERNEL:
            try:
                gone = kernel_keyring.read(_key_name(self._path)) is None
            except OSError:
                gone = True
            return _LOCKED if gone else ""
        return ""


class _HeldFile(msgspec.Struct, frozen=True):
    """The content of a wrapped file, and which file that was."""

    record: _UnlockedRecord
    file: tuple[int, int, int]
    place: bytes

    def __repr__(self) -> str:
        return "_HeldFile()"


def require_place() -> None:
    """Raise UsageError where unlocked keys cannot be held; creates nothing."""
    runtime_folder()
    if not kernel_keyring.has_kernel_keyring():
        from ipfsmem.device import system_keyring

        system_keyring.require_system_keyring()


def hold(
    folder: Path, device: Device, seconds: int, *, now: Callable[[], int], random: Callable[[int], bytes]
) -> UnlockedKeys:
    """Hold the keys of the vault in `folder` for `seconds`. Raises UsageError where they cannot be held, StorageError,
    LockedError."""
    require_place()
    place = _KERNEL if kernel_keyring.has_kernel_keyring() else _SYSTEM
    begins = moment(now())
    ends = msgspec.structs.replace(begins, wall=begins.wall + seconds * 1000, up=begins.up + seconds * 1000)
    record = _UnlockedRecord(device.sign_seed, device.box_secret, device.row_key, _Span(begins, ends))
    key, nonce = random(32), random(_NONCE)
    head = _head_for(place, folder)
    with file_lock(folder / "lock"):  # two at once would keep the key of one and the file of the other
        try:
            path = made_runtime_folder() / _name(folder)
        except OSError as error:
            raise StorageError(f"the runtime directory cannot be written: {reason(error)}") from None
        _remove_halves_made(path)
        _put(place, _key_name(path), key, seconds)
        wrapped = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
            msgspec.json.encode(record), head + _bound_to(folder), nonce, key
        )
        write_atomic(path, head + nonce + wrapped)
    keys = held(folder, now)
    if isinstance(keys, NotHeld):
        raise StorageError(
            "the keys were locked again during the unlock" + (f": {keys.why}" if keys.why else "")
        )
    return keys


def held(folder: Path, now: Callable[[], int]) -> UnlockedKeys | NotHeld:
    """Return the keys of the vault in `folder` if they are unlocked. A file that is not ours is never trusted."""
    cached = _take(folder, now)
    if isinstance(cached, str):
        return NotHeld(cached)
    record = cached.record
    if record.span.over_at(moment(now())):
        _remove_ended(folder, now)
        return NotHeld()
    device = Device(record.sign_seed, record.box_secret, record.row_key)
    return UnlockedKeys(
        device, record.span.ends.wall, LockWatch(folder, runtime_folder() / _name(folder), now, cached)
    )


def drop(folder: Path) -> bool:
    """Remove both halves, whatever state they are in; returns whether there was one. Raises StorageError for what could not be
    removed."""
    return _drop(_name(folder), folder)


def drop_lost() -> list[Path]:
    """Remove the keys held for vaults that were moved, removed or replaced; returns their paths. Raises StorageError for what
    could not be removed."""
    try:
        paths = sorted(runtime_folder().iterdir())
    except (UsageError, OSError):
        return []
    return [folder for path in paths if (folder := _drop_if_lost(path)) is not None]


def _drop_if_lost(path: Path) -> Path | None:
    """Remove one wrapped half, and its key, if its vault is gone from its path; returns that path. None: it is there, is being
    unlocked at this moment, or cannot be checked."""
    try:
        read = _parts(_read_own(path)[0])
        if read is None or path.name != _name(read.folder):
            return None
        if os.path.lexists(read.folder / KEY_FILE):
            with file_lock(read.folder / "lock", wait=0):
                key = _get(read.place, _key_name(path))
                if key is None or read.opened(read.folder, key) is not None:
                    return None
    except (OSError, IpfsmemError, ValueError):
        return None
    return read.folder if _drop(path.name, read.folder) else None


def _drop(name: str, folder: Path) -> bool:
    try:
        path: Path | None = runtime_folder() / name
    except UsageError:
        path = None  # logged out since, or in another way: the file is gone, and the key is still removed
    place = _place_of(path) if path is not None else b""
    failed: list[str] = []
    there = False
    if path is not None:
        try:
            path.unlink()
            there = True
        except FileNotFoundError:
            pass
        except OSError as error:
            failed.append(f"{path}: {reason(error)}")
        with contextlib.suppress(LockedError, StorageError), file_lock(folder / "lock", wait=0):
            _remove_halves_made(path)
    if kernel_keyring.has_kernel_keyring():
        try:
            there = kernel_keyring.remove(_key_name(Path(name))) or there
        except OSError as error:
            failed.append(f"the kernel's keyring: {reason(error)}")
    elif place != _KERNEL:
        from ipfsmem.device import system_keyring

        try:
            there = system_keyring.remove(_key_name(Path(name))) or there
        except UsageError:
            pass  # no such store here, so nothing is in it
        except StorageError as error:
            failed.append(str(error))
    if failed:
        raise StorageError(
            f"some cached keys could not be removed: {'; '.join(failed)}",
            hint="Remove them by hand, or restart the machine.",
        )
    return there


UNLOCK_HINT: Final = "Unlock them again with: ipfsmem unlock. Or enter the passphrase at the prompt, or pass it in IPFSMEM_PASSPHRASE or with --passphrase-fd."


def _take(folder: Path, now: Callable[[], int]) -> _HeldFile | str:
    """Return the keys wrapped for this vault, or why there are none."""
    try:
        path = runtime_folder() / _name(folder)
        read = _read_own(path)
    except FileNotFoundError:
        return ""
    except UsageError:
        return ""  # no runtime directory here
    except OSError as error:
        return f"the cached keys cannot be read: {reason(error)}"
    except StorageError as error:
        return f"the cached keys are not used: {error}"
    data, file = read
    parts = _parts(data)
    if parts is None:
        return f"{path} was not written by unlock"
    try:
        key = _get(parts.place, _key_name(path))
    except (OSError, IpfsmemError) as error:
        return f"the key of the cached keys cannot be read: {error}"
    if key is None:
        return ""  # it ended; or this is a container that shares the directory but not the keyring: leave the file
    record = parts.opened(folder, key)
    if record is None:
        return f"{path} is damaged, or was made for something else"
    return _HeldFile(record, file, parts.place)


class _Parts(msgspec.Struct, frozen=True):
    """A wrapped half in its parts. `folder`: the vault that it names."""

    head: bytes
    place: bytes
    folder: Path
    wrapped: bytes

    def opened(self, folder: Path, key: bytes) -> _UnlockedRecord | None:
        """Return the keys wrapped for a vault; None if they were wrapped for another vault, an earlier state of it, or with
        another key."""
        nonce, sealed = self.wrapped[:_NONCE], self.wrapped[_NONCE:]
        try:
            plain = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                sealed, self.head + _bound_to(folder), nonce, key
            )
            return msgspec.json.decode(plain, type=_UnlockedRecord)
        except (exceptions.CryptoError, exceptions.TypeError, ValueError, StorageError):
            return None


def _head_for(place: bytes, folder: Path) -> bytes:
    path = os.fsencode(folder.resolve())
    return _MAGIC + place + len(path).to_bytes(2, "big") + path


def _parts(data: bytes) -> _Parts | None:
    """Return the parts of a wrapped half, None if it is invalid."""
    begin = len(_MAGIC) + 3
    end = begin + int.from_bytes(data[begin - 2 : begin], "big")
    place = data[len(_MAGIC) : begin - 2]
    if not data.startswith(_MAGIC) or place not in (_KERNEL, _SYSTEM) or len(data) < end + _NONCE:
        return None
    return _Parts(data[:end], place, Path(os.fsdecode(data[begin:end])), data[end:])


def _read_own(path: Path) -> tuple[bytes, tuple[int, int, int]]:
    """Read a file of this user that no one else may read, in a folder of the same kind. Raises OSError, StorageError."""
    if not path.parent.exists():
        raise FileNotFoundError
    if not is_ours(path.parent):
        raise StorageError(f"{path.parent} is not a folder of this user alone")
    fd = open_regular(path, os.O_RDONLY)
    try:
        status = os.fstat(fd)
        if sys.platform != "win32" and (
            status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077
        ):
            raise StorageError(f"{path} is not a file of this user alone")
        return os.read(fd, _MAX_BYTES), _identity(status)
    finally:
        os.close(fd)


def _remove_ended(folder: Path, now: Callable[[], int]) -> None:
    """Remove an ended unlock; not during an unlock, and nothing that was unlocked meanwhile."""
    with (
        contextlib.suppress(OSError, LockedError, StorageError, UsageError),
        file_lock(folder / "lock", wait=0),
    ):
        again = _take(folder, now)
        if not isinstance(again, str) and again.record.span.over_at(moment(now())):
            drop(folder)


def _remove_halves_made(path: Path) -> None:
    """Remove the partial files of killed processes. No process writes now: the caller has the lock."""
    for begun in path.parent.glob(f".{path.name}.*.tmp"):
        with contextlib.suppress(OSError):
            begun.unlink()


def _place_of(path: Path) -> bytes:
    with contextlib.suppress(OSError, StorageError):
        parts = _parts(_read_own(path)[0])
        return parts.place if parts is not None else b""
    return b""


def _put(place: bytes, name: str, key: bytes, seconds: int) -> None:
    if place == _SYSTEM:
        from ipfsmem.device import system_keyring

        system_keyring.put(name, key)
        return
    try:
        kernel_keyring.put(name, key, seconds + 1)  # the kernel counts whole seconds, and must not end first
    except OSError as error:
        raise StorageError(f"the kernel's keyring refused: {reason(error)}") from None


def _get(place: bytes, name: str) -> bytes | None:
    if place == _KERNEL:
        return kernel_keyring.read(name)
    from ipfsmem.device import system_keyring

    return system_keyring.read(name)


def _name(folder: Path) -> str:
    """Return the name of both halves, from the path alone: they can be found, and end, even if the folder is gone."""
    return sha256(os.fsencode(folder.resolve())).hexdigest()[:32]


def _key_name(path: Path) -> str:
    return f"ipfsmem:{path.name}"


def _of_folder(folder: Path) -> bytes:
    """Return the identity of this folder at this path. A copy of it differs, elsewhere or at the same path."""
    path = folder.resolve()
    try:
        status = path.stat()
    except OSError:
        return os.fsencode(path)
    return os.fsencode(path) + f"\0{status.st_dev} {status.st_ino}".encode()


def _bound_to(folder: Path) -> bytes:
    """Return what the wrapping is bound to: the folder at its path, the key file in its state, this user."""
    user = os.geteuid() if sys.platform != "win32" else 0
    key_file = read_file(folder / KEY_FILE, 64 * 1024) or b""
    return sha256(_of_folder(folder) + b"\0" + sha256(key_file).digest() + f"\0{user}".encode()).digest()


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _fingerprint(record: _UnlockedRecord) -> bytes:
    return sha256(record.sign_seed + record.box_secret + record.row_key).digest()
