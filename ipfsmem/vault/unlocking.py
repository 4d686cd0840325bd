"""Unlock this device's keys for a time, and lock them: `ipfsmem unlock` and `ipfsmem lock`.

Concerns the device keys, protected by a passphrase. `Memory.unlock` unlocks a vault's root (a wallet or
recovery phrase), which is never held here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ipfsmem.config import LocalVaultConfig, settings
from ipfsmem.device.codec import Codec, PlainCodec, SealedCodec
from ipfsmem.device.identity import Device, load_device, passphrase_protected
from ipfsmem.device.replica import Environment, require_config
from ipfsmem.errors import ConfigError, PassphraseError, UsageError
from ipfsmem.locations import BACKGROUND_LOCK, VECTORS_LOCK

if TYPE_CHECKING:  # keys without a passphrase are never unlocked, and need none of its modules
    from ipfsmem.device.unlocked import LockWatch

#: Default and maximum duration in seconds.
DEFAULT_UNLOCK_S: Final = 8 * 3600
MAX_UNLOCK_S: Final = 366 * 86_400


def unlock_device(
    folder: Path,
    passphrase: str | None,
    seconds: int = DEFAULT_UNLOCK_S,
    *,
    environment: Environment | None = None,
) -> int:
    """Hold the keys of the vault in `folder` for `seconds`, for every process of this user.

    Returns the expiry in milliseconds since 1970 UTC, which replaces an earlier one even if sooner. Raises
    NotFoundError, UsageError when keys cannot be held here or have no passphrase, PassphraseError,
    StorageError.
    """
    from ipfsmem.device.unlocked import hold, require_place

    environment = environment or Environment()
    if not 1 <= seconds <= MAX_UNLOCK_S:
        raise UsageError(
            f"keys can be unlocked for 1 second to {MAX_UNLOCK_S // 86400} days (got {seconds} seconds)"
        )
    require_config(folder)
    refuse_open_keys(folder)
    require_place()
    if passphrase is None:
        raise PassphraseError("unlocking requires the passphrase")
    device = load_device(folder, passphrase)
    return hold(folder, device, seconds, now=environment.now, random=environment.random).until


def refuse_open_keys(folder: Path) -> None:
    """Raise UsageError for keys without a passphrase: they cannot be unlocked or locked."""
    if not passphrase_protected(folder):
        raise UsageError(
            "the keys of this device have no passphrase, so they are never locked",
            hint="Set one: ipfsmem key passphrase.",
        )


def lock_device(folder: Path) -> bool:
    """Remove what `unlock_device` holds, in whatever state; return whether there was something.

    A process that syncs or makes vectors in the background, with the passphrase, ends too. Running processes drop their keys within a second. Raises StorageError for what could not be removed;
    NotFoundError, ConfigError when there is no such vault and nothing was held for one.
    """
    from ipfsmem.device.unlocked import drop

    for name in (VECTORS_LOCK, BACKGROUND_LOCK):
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    was_unlocked = drop(folder)
    if not was_unlocked:
        require_config(folder)
    return was_unlocked


def lock_lost_devices() -> list[Path]:
    """Remove what `unlock_device` holds for vaults that were moved or deleted; return their former folders.

    Raises StorageError for what could not be removed.
    """
    from ipfsmem.device.unlocked import drop_lost

    return drop_lost()


def unlocked_until(folder: Path, environment: Environment | None = None) -> int | None:
    """Return the expiry of the unlocked keys of the vault in `folder`, in ms since 1970 UTC; None if locked."""
    from ipfsmem.device.unlocked import UnlockedKeys, held

    keys = held(folder, (environment or Environment()).now)
    return keys.until if isinstance(keys, UnlockedKeys) else None


def open_device(
    folder: Path, passphrase: str | None, environment: Environment
) -> tuple[Device, LockWatch | None]:
    """Return the keys of the vault in `folder`: with the passphrase, else the unlocked ones with the watch over them.

    Raises PassphraseError, FormatError, StorageError.
    """
    if passphrase is None and passphrase_protected(folder):
        from ipfsmem.device.unlocked import UnlockedKeys, held

        keys = held(folder, environment.now)
        if isinstance(keys, UnlockedKeys):
            return keys.device, keys.watch
        if keys.why:
            raise PassphraseError(f"a passphrase is needed; {keys.why}")
    return load_device(folder, passphrase), None


def needs_passphrase(folder: Path, environment: Environment | None = None) -> bool:
    """Tell whether a vault needs its passphrase now: its keys have one and are not unlocked."""
    if not passphrase_protected(folder):
        return False
    from ipfsmem.device.unlocked import NotHeld, held

    return isinstance(held(folder, (environment or Environment()).now), NotHeld)


def codec_for(config: LocalVaultConfig, device: Device, environment: Environment) -> Codec:
    """Return the codec of a mode."""
    if not config.mode.sealed:
        return PlainCodec()
    if config.vault is None:
        raise ConfigError("an encrypted vault without a vault id: its ipfsmem.json was changed by hand")
    return SealedCodec(
        bytes.fromhex(config.vault.tag), device.row_key, environment.random, compress=settings().compresses
    )
