"""`memory.members`: the recovery sheet, and what is known of recovery phrases and revoked members."""

from __future__ import annotations

from ipfsmem import config as configuration
from ipfsmem.device.tables import meta
from ipfsmem.errors import UsageError
from ipfsmem.memories.after_revoke import Late, late_writes
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.providers import providers_in_use
from ipfsmem.parts.syncing import Syncing
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.sync.removals import Removal, removals
from ipfsmem.vault.sheet import RecoverySheet, make_sheet


class MemoryMembers(MemoryPart):
    """The members of an open vault."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing

    def note_words(self, *, confirmed: bool) -> None:
        """Record whether the recovery phrase shown last was confirmed by typing some of its words; `status` says if not."""
        name = meta.UNCONFIRMED_WORDS
        with self._replica.transaction():
            if confirmed:
                meta.forget(self._replica.db.connection, [name])
            else:
                self._replica.db.set_meta(name, b"1")

    def is_revoked(self) -> bool:
        """Tell whether this device is known to be revoked."""
        return self._open.is_revoked

    def late_writes(self) -> list[Late]:
        """Return writes of revoked members beyond those accepted at their revocation, for review (format section 4)."""
        return late_writes(self._replica)

    def removed(self) -> list[Removal]:
        """Return the removed members that a root had added, and who removed them."""
        return removals(self._replica.ring)

    def recovery_sheet(self) -> RecoverySheet:
        """Return a text to print that explains how to recover this vault. It has no secret; needs no network.

        Raises UsageError in a mode without a vault.
        """
        vault = self._replica.config.vault
        if vault is None:
            raise UsageError(
                f"a vault in mode {self._open.mode} is never published, so it has no recovery sheet",
                hint="Keep a copy: ipfsmem export --out FILE.",
            )
        places = [(info.spec, info.root, info.at) for info in providers_in_use(self._replica, self._syncing)]
        return make_sheet(
            self._open.namespace, self._replica, vault, places, configuration.settings().providers
        )
