"""Unlocking this device's keys for a time, and locking them again: what `ipfsmem unlock` and `ipfsmem lock` do.

This is about the keys of the device, which its passphrase protects. The root of a vault, a wallet or recovery words, is unlocked by
`Memory.unlock` and never held here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.device.identity import Device, load_device, passphrase_protected
from ipfsmem.device.replica import World, require_config
from ipfsmem.device.unlocked import (
    Held,
    LockWatch,
    NotHeld,
    drop,
    drop_lost,
    held,
    hold,
    require_place,
)
from ipfsmem.errors import PassphraseError, UsageError

#: For how long, in seconds, unless somebody says it; and at most.
USUALLY: Final = 8 * 3600
AT_MOST: Final = 366 * 86_400


def unlock_device(
    folder: Path, passphrase: str | None, seconds: int = USUALLY, *, world: World | None = None
) -> int:
    """Hold the keys of the memory in `folder` for so many seconds, for every process of this user; until when, in milliseconds
    since 1970 UTC.

    What was unlocked before ends then too, be it sooner. Raises NotFoundError, UsageError where there is no place to hold keys or
    they are under no passphrase, PassphraseError, StorageError.
    """
    world = world or World()
    if not 1 <= seconds <= AT_MOST:
        raise UsageError(
            f"keys are unlocked for at least a second and at most {AT_MOST // 86400} days, not for {seconds} seconds"
        )
    require_config(folder)
    refuse_open_keys(folder)
    require_place()
    if passphrase is None:
        raise PassphraseError("the passphrase is needed to unlock with")
    device = load_device(folder, passphrase)
    return hold(folder, device, seconds, now=world.now, random=world.random).until


def refuse_open_keys(folder: Path) -> None:
    """Raises UsageError for keys under no passphrase: nothing unlocks them, and nothing locks them."""
    if not passphrase_protected(folder):
        raise UsageError(
            "the keys of this device are under no passphrase: they are open as they are",
            hint="Put them under one with: ipfsmem key passphrase.",
        )


def lock_device(folder: Path) -> bool:
    """Take away what `unlock_device` holds, whatever state it is in; whether there was something. Processes that run on with it
    drop their keys within a second.

    Raises StorageError for what did not go; NotFoundError, ConfigError when there is no such memory, and nothing was held for one.
    """
    was_unlocked = drop(folder)
    if not was_unlocked:
        require_config(folder)
    return was_unlocked


def lock_lost_devices() -> list[Path]:
    """Take away what `unlock_device` holds for memories that are not any more where they were unlocked; where that was. Raises
    StorageError for what did not go."""
    return drop_lost()


def unlocked_until(folder: Path, world: World | None = None) -> int | None:
    """Until when the keys of the memory in `folder` are unlocked, in milliseconds since 1970 UTC; None when they are not."""
    found = held(folder, (world or World()).now)
    return found.until if isinstance(found, Held) else None


def open_device(folder: Path, passphrase: str | None, world: World) -> tuple[Device, LockWatch | None]:
    """The keys of the memory in `folder`: with the passphrase, else as they are unlocked, with the watch over that.

    Raises PassphraseError, FormatError, StorageError.
    """
    if passphrase is None and passphrase_protected(folder):
        found = held(folder, world.now)
        if isinstance(found, Held):
            return found.device, found.watch
        if found.why:
            raise PassphraseError(f"a passphrase is needed; {found.why}")
    return load_device(folder, passphrase), None


def needs_passphrase(folder: Path, world: World | None = None) -> bool:
    """Whether a memory opens only with its passphrase now: its keys are under one, and not unlocked."""
    return passphrase_protected(folder) and isinstance(held(folder, (world or World()).now), NotHeld)
