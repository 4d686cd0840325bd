"""`memory.maintenance`: the daily deletion of old versions, the clock, and the passphrase of this device."""

from __future__ import annotations

from typing import Literal

import msgspec

from ipfsmem.causal.clock import corrected_hlc, hlc_ms
from ipfsmem.config import RetentionRule
from ipfsmem.device.identity import change_passphrase
from ipfsmem.device.state import StateHeader
from ipfsmem.errors import IncompleteError, StorageError, UsageError
from ipfsmem.mode import Mode
from ipfsmem.parts.part import MemoryPart
from ipfsmem.vault.owner import check_protection
from ipfsmem.vault.unlocking import lock_device


class MemoryMaintenance(MemoryPart):
    """What an open memory needs now and then."""

    def gc_daily(self, keep: RetentionRule | None) -> None:
        """Let superseded roots go once a day, with a sync, and keep what `keep` says; None: only `gc` lets go."""
        self._replica.save_config(msgspec.structs.replace(self._replica.config, collect=keep))

    def trust_clock(self) -> int:
        """Date new writes by this machine's clock again, though this device once wrote far in its future; by how many
        milliseconds it went back. What was written keeps its date, and goes before others' until it is written over.

        Raises UsageError when nothing is more than a day ahead: time catches up with that.
        """
        with self._replica.transaction():
            frame = self._replica.store.frame
            right = corrected_hlc(frame.hlc, self._replica.world.now())
            if right is None:
                raise UsageError(
                    "this device's writes are dated at most a day ahead of this machine's clock: nothing has to be put right",
                    hint="If the clock is behind, set it.",
                )
            self._replica.store.apply({}, StateHeader(frame.ctx, frame.seen, right))
        return hlc_ms(frame.hlc) - hlc_ms(right)

    def change_passphrase(self, new: str | Literal[False], old: str | None = None) -> None:
        """Put this device's keys under another passphrase. `old` is the present one, None when they have none.

        `new` False leaves them without one. Nothing else changes, on no other device. A copy of the key
        file that somebody kept still opens with the old one. Raises PassphraseError when `old` is wrong or `new` too
        easy, UsageError in a mode without such keys, StorageError: then the old one still holds. What was unlocked is locked then;
        IncompleteError when not all of that went away: the new one holds.
        """
        folder = self._replica.folder
        if not self._open.mode.published or folder is None:
            raise UsageError(
                f"a vault in mode {self._open.mode} has no keys to protect: whoever can read this disk can read it"
            )
        check_protection(Mode.ENCRYPTED_IPFS, new)
        change_passphrase(folder, old, new or None, self._replica.world.random)
        try:
            lock_device(folder)
        except StorageError as error:
            raise IncompleteError(f"the passphrase was changed, but {error}", hint=error.hint) from error
