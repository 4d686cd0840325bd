"""`memory.members`: devices, wallets and recovery phrases with access to a vault: list, add, revoke, rename, rotate."""

from __future__ import annotations

import msgspec

from ipfsmem import config as configuration
from ipfsmem.causal.clock import next_hlc
from ipfsmem.device.tables import meta
from ipfsmem.errors import (
    FormatError,
    IpfsmemError,
    NotFoundError,
    OpenError,
    ProviderError,
    SignatureError,
    UsageError,
)
from ipfsmem.memories.after_revoke import Late, late_writes
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.providers import providers_in_use
from ipfsmem.parts.syncing import Syncing
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.ring import operations
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.removals import Removal, called, removal_key, removals, whose_word
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.revoke_notices import words_of_label, words_of_revoke, words_of_what_stands
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

#: Errors of a pull caused by published data.
_PUBLISHED = (FormatError, NotFoundError, OpenError, SignatureError)


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

    def words_unconfirmed(self) -> bool:
        """Tell whether a recovery phrase was shown on a terminal and never confirmed."""
        return self._replica.db.get_meta(meta.UNCONFIRMED_WORDS) is not None

    def is_revoked(self) -> bool:
        """Tell whether this device is known to be revoked."""
        return self._open.is_revoked

    def late_writes(self) -> list[Late]:
        """Return writes of revoked members beyond those accepted at their revocation, for review (format section 4)."""
        return late_writes(self._replica)

    def removed(self) -> list[Removal]:
        """Return the removed members that a root had added, and who removed them."""
        return removals(self._replica.ring)

    async def revoke(
        self, member: str, *, stands: bool = True, progress: Progress = no_progress
    ) -> SyncReport:
        """Revoke a device with all its ids, and encrypt under a new key from now on.

        Pulls first and publishes in the same step. Needs `unlock`. The device keeps what it has already. Members added by a revoked recovery
        phrase or wallet stay, and the report names them (`stands`); with `stands` off they are revoked, too. Unusable data at
        a provider does not prevent it (`not-pulled`). The report has what was done (`revoked`). Raises UsageError for this device
        itself, MembershipError for a root and for members that this root may not revoke, ProviderError: nothing was done then, or
        the hint names what is unpublished.
        """
        root = self._syncing.require_root()
        self._refuse_itself(member)
        failed: IpfsmemError | None = None
        before: SyncReport | None = None
        try:
            before = await self._syncing.sync(progress=progress)
        except _PUBLISHED as error:
            failed = error  # the member to be revoked may have caused it
        self._refuse_itself(member)
        with self._replica.transaction():
            ring = self._replica.ring
            if ring is None and failed is not None:
                raise failed
            assert ring is not None
            frame = self._replica.store.frame
            ek = None if ring.plain else self._replica.world.random(32)
            at = next_hlc(frame.hlc, self._replica.world.now())
            family = ring.view.ids_of(ring.view.family_of(member))
            labels = [p.label for one in family if (p := ring.view.members.get(one))]
            grown = operations.revoke(
                ring, root.admin, member, at=at, counters=frame.ctx, ek=ek, stands=stands
            )
            self._replica.set_ring(grown)
            # It is in this command's own report; other devices say it at their next sync.
            target = grown.view.family_of(member)
            self._replica.note_shown(removal_key(target, member_id(root.admin_public)))
        enrolled = operations.members_admitted_by(ring, member)
        report = await self._brought_out("the revoke", progress, before)
        if failed is not None:
            report.say(
                "not-pulled",
                f"the latest versions of others could not be merged before the revoke ({failed}), so it is based on the local "
                "ones. Later texts of the revoked device wait for your decision: ipfsmem conflicts",
            )
        report.say("revoked", words_of_revoke(labels, family, plain=ring.plain))
        stay = {one: label for one, label in enrolled.items() if one in grown.view.members}
        said = {one.id: one.label for one in removals(ring) if not one.lasting and target in one.by}
        still = {one: label for one, label in said.items() if one in grown.view.revoked_by}
        if stay or still:
            report.say("stands", words_of_what_stands(stay, still, target))
        if gone := {one: label for one, label in enrolled.items() if one not in stay}:
            report.say("fell", f"out with it, for it alone let them in: {called(gone)}")
        if back := {one: label for one, label in said.items() if one in grown.view.members}:
            report.say(
                "back",
                f"back, for it alone had removed them: {called(back)}. Each goes on with its next sync. One that should be out, "
                "a lost one for instance: ipfsmem member revoke ID",
            )
        return report

    def _refuse_itself(self, member: str) -> None:
        """Refuse a device that revokes itself: it would create the new key, and so know it."""
        ring = self._replica.ring
        if ring is not None and ring.view.family_of(member) == ring.view.family_of(self._open.device):
            raise UsageError(
                f"{member} is this device, and a device cannot revoke itself: it would know the new key",
                hint=f"On another device of this memory: ipfsmem member revoke {ring.view.family_of(member)} --wallet FILE "
                "(in Python: unlock(), then members.revoke()).",
            )

    async def _brought_out(self, what: str, progress: Progress, before: SyncReport | None) -> SyncReport:
        """Publish the last statement of the ring; the report includes the sync `before` it. A failure says that the statement is stored on this
        device and unpublished."""
        try:
            report = await self._syncing.sync(progress=progress)
            report.after(before)
            return report
        except (ProviderError, *_PUBLISHED) as error:
            self._open.when_changed()
            error.hint = f"{what[:1].upper()}{what[1:]} is created on this device and not published yet. Publish it with: ipfsmem sync"
            raise

    async def rotate(self, *, progress: Progress = no_progress) -> SyncReport:
        """Encrypt under a new key from now on. Needs `unlock`; stored bodies keep their key."""
        root = self._syncing.require_root()
        before = await self._syncing.sync(progress=progress)
        with self._replica.transaction():
            ring = self._replica.ring
            assert ring is not None
            ring = operations.rotate(ring, root.admin, self._replica.world.random(32))
            self._replica.set_ring(ring)
        report = await self._brought_out("the new key", progress, before)
        key = ring.view.sealing
        if key is not None and not report.blocked:
            report.say(
                "rotated",
                f"new texts are encrypted with key no. {key.epoch}; other devices use it from their next sync on. "
                "Earlier texts keep their key, and anyone who has it can read them",
            )
        return report

    async def relabel(self, member: str, label: str, *, progress: Progress = no_progress) -> SyncReport:
        """Change the label of a device, wallet or recovery phrase. Needs `unlock` with a root.

        Raises MembershipError for a root other than the unlocked one, and without a root where one is required, FormatError.
        """
        root = self._syncing.require_root()
        before = await self._syncing.sync(progress=progress)
        with self._replica.transaction():
            ring = self._replica.ring
            assert ring is not None
            at = next_hlc(self._replica.store.frame.hlc, self._replica.world.now())
            grown = operations.relabel(ring, root.admin, member, label, since=at)
            self._replica.set_ring(grown)
            family = grown.view.family_of(member)
            was, now = ring.view.members[family], grown.view.members[family]
            mine = family == grown.view.family_of(self._open.device)
        if mine:  # for a later enrolment of this device
            self._replica.save_config(msgspec.structs.replace(self._replica.config, label=label))
        report = await self._brought_out("the label", progress, before)
        report.say("label", words_of_label(was, now, whose_word(ring, was.by)))
        return report

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
