"""`memory.members`: recovery phrases, the recovery sheet, and what is known of revoked members."""

from __future__ import annotations

from ipfsmem import config as configuration
from ipfsmem.device.tables import meta
from ipfsmem.errors import IpfsmemError, UsageError
from ipfsmem.memories.after_revoke import Late, late_writes
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.providers import providers_in_use
from ipfsmem.parts.syncing import Syncing
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.removals import Removal, removals
from ipfsmem.vault.recovery import (
    NewWords,
    enrol_words,
    refuse_who_cannot_enrol,
    why_words_may_fail,
    words_of,
)
from ipfsmem.vault.sheet import RecoverySheet, make_sheet
from ipfsmem.wallet.recovery_words import to_words
from ipfsmem.wallet.root_keys import RootKeys


class MemoryMembers(MemoryPart):
    """The members of an open vault. Changes need `memory.unlock`."""

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

    async def new_words(self, *, progress: Progress = no_progress) -> NewWords:
        """Create a recovery phrase next to the existing ones, and publish its membership. Needs a root.

        Show it, and `revoke` older ones only afterwards, and only if `problem` is empty. Once it is a member, an error of a provider is
        not raised but in `problem`, and the next sync publishes it. Raises what `sync` raises before that,
        MembershipError if the unlocked keys are not a root, WrongWalletError.
        """
        root = self._syncing.require_root()
        refuse_who_cannot_enrol(self._replica.ring, root)
        before = await self._syncing.sync(progress=progress)
        refuse_who_cannot_enrol(self._replica.ring, root)
        older = words_of(self._replica.ring)
        secret = self._replica.world.random(32)
        words = RootKeys.from_recovery(secret)
        label = enrol_words(self._replica, root, words)
        report, vault = None, self._replica.config.vault
        assert vault is not None
        try:
            report = await self._syncing.sync(progress=progress)
            report.after(before)
            problem = await why_words_may_fail(
                words,
                vault.tag,
                self._syncing.published_at().open,
                report.notices,
                self._replica.world,
                sealed=self._open.mode.sealed,
            )
        except IpfsmemError as error:
            self._open.when_changed()
            problem = str(error)
            report = report or before
        return NewWords(member_id(words.admin_public), label, to_words(secret), older, problem, report)

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
