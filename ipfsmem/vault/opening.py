"""Open a vault on this device, even a damaged one: configuration, device keys, database.

`finding` resolves a wallet or recovery phrase to its vault.
"""

from __future__ import annotations

from pathlib import Path

from ipfsmem.device.creation import note_finished_in_database
from ipfsmem.device.database_file import DATABASE, orphan_copies
from ipfsmem.device.replica import Environment, Replica, require_config
from ipfsmem.vault.unlocking import codec_for, open_device


def open_replica(folder: Path, passphrase: str | None, environment: Environment) -> Replica:
    """Open a vault on this device; without a passphrase, with its unlocked keys.

    Raises NotFoundError, PassphraseError, StorageError.
    """
    config = require_config(folder)
    device, watch = open_device(folder, passphrase, environment)
    replica = Replica(folder, config, device, codec_for(config, device, environment), environment, make=False)
    replica.lock_watch = watch
    try:
        note_finished_in_database(replica)
        if replica.was_moved() and config.vault is None:
            # Without a published vault no other device knows this id, so the copy continues under a new one.
            with replica.transaction():
                replica.set_device(device.successor(environment.random))
                replica.note_place()
        if orphan_copies(folder):
            from ipfsmem.vault.rescue import merge_left_copies  # only after a rare accident

            merge_left_copies(replica)
    except BaseException:
        replica.close()
        raise
    return replica


def open_damaged(folder: Path, passphrase: str | None, environment: Environment) -> Replica:
    """Return the readable part of a vault with a damaged database, in this process only; `lost` names the rest.

    Nothing is written to the disk. Raises NotFoundError, PassphraseError, StorageError if nothing can be read.
    """
    config = require_config(folder)
    device, watch = open_device(folder, passphrase, environment)
    codec = codec_for(config, device, environment)
    from ipfsmem.vault.rescue import rescue  # only a damaged vault needs it

    rescued = rescue(folder / DATABASE, device, codec, sealed=config.mode.sealed)
    replica = Replica(None, config, device, codec, environment, db=rescued.db)
    replica.lock_watch = watch
    replica.lost = rescued.lost
    if config.vault is not None and replica.ring is None:
        replica.own_without_ring = frozenset({device.id, replica.device.id, replica.enrolled().id})
        replica.lost += ("the authors are unknown: only texts that this device signed are treated as yours",)
    replica.read_only = f"the readable part of {folder}"
    return replica
