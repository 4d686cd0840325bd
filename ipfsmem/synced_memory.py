"""`SyncedMemory`: what a memory does with its providers and its owner's keys: sync, collect, move, publish all the time,
revoke, rotate, new recovery words. Making and opening one is `Memory`.

Coroutines are the only ones that touch a provider.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Self

import msgspec

from ipfsmem import config as configuration
from ipfsmem.bundle.program_events import MAX_SPEC, MOVED, Move, moved_data
from ipfsmem.causal.clock import next_hlc
from ipfsmem.config import Keep
from ipfsmem.content.cid import CID
from ipfsmem.device.identity import change_passphrase
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import DamagedStateError
from ipfsmem.device.tables import placed
from ipfsmem.errors import (
    ConfigError,
    FormatError,
    IpfsmemError,
    MembershipError,
    NotFoundError,
    OpenError,
    ProviderError,
    ProviderUnavailable,
    PublicError,
    SignatureError,
    UsageError,
)
from ipfsmem.local_memory import LocalMemory
from ipfsmem.memories.secret_check import SecretCheck
from ipfsmem.mode import Mode
from ipfsmem.parts.vaults import MemoryVaults
from ipfsmem.provider.contract import Provider, lasting_spec
from ipfsmem.provider.opening import NotOpened, ProviderPool, Providers
from ipfsmem.provider.probe import Step, probe
from ipfsmem.published.layout import PlainLayout, SealedLayout
from ipfsmem.results import ProviderInfo, Salvage
from ipfsmem.ring import operations
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.background import Background, Told
from ipfsmem.sync.collection import Collection, Rules
from ipfsmem.sync.commits import Layout
from ipfsmem.sync.engine import check, collect, look_there, move, restore, salvage, sync
from ipfsmem.sync.forwarding import answer, waiting
from ipfsmem.sync.moving import Moved
from ipfsmem.sync.presence import Presence
from ipfsmem.sync.removals import called, removals, told_as, whose_word
from ipfsmem.sync.report import Progress, SyncReport, no_progress
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS
from ipfsmem.sync.revoke_notices import words_of_label, words_of_revoke, words_of_what_stands
from ipfsmem.sync.schedule import Pace
from ipfsmem.sync.state_back import bring_state_back
from ipfsmem.vault.opening import (
    Unlock,
    check_protection,
    check_root,
    kept_root,
)
from ipfsmem.vault.recovery import NewWords, enrol_words, may_make_words, why_not_everywhere, words_of
from ipfsmem.vault.sheet import RecoverySheet, make_sheet, shown_spec
from ipfsmem.wallet.recovery_words import to_words
from ipfsmem.wallet.root_keys import RootKeys

#: What a pull can end with for what somebody published.
_PUBLISHED = (FormatError, NotFoundError, OpenError, SignatureError)
list_ = list  # `Memory.list` hides the builtin inside the class
#: One provider or several: specs such as a folder's path or `pinata`, or open ones.
Where = str | Provider | Sequence[str | Provider] | None


class SyncedMemory(LocalMemory):
    """A memory that is open, with its providers."""

    def __init__(self, namespace: str, replica: Replica) -> None:
        """Use `create` or `load`."""
        super().__init__(namespace, replica)
        #: Further vaults of this memory's wallet.
        self.vaults = MemoryVaults(replica)
        self._root: RootKeys | None = None
        self._background: Background | None = None
        self._pool = ProviderPool(replica.folder.parent if replica.folder else None)

    def unlock(self, unlock: Unlock | RootKeys | None = None) -> None:
        """Hold the wallet's or recovery root until `close`: for enrolling, rotating, revoking, moving the anchor.

        None takes the root that this device keeps of a vault without a wallet. Raises WrongWalletError when this memory
        belongs to another wallet, MembershipError when nothing is kept.
        """
        address = None
        if isinstance(unlock, Unlock):
            address = "0x" + unlock.signer.address.hex()
            unlock = unlock.known(self.replica.config.vault).root(twice=False)
        root = unlock or kept_root(self.replica)
        if root is None:
            raise MembershipError(
                "this device does not keep the first key of this memory",
                hint="Give the wallet or the recovery words.",
            )
        check_root(self.replica.config, root, self.replica.ring, address)
        self._root = root

    @property
    def unlocked(self) -> bool:
        """Whether the wallet or recovery root is held."""
        return self._root is not None

    def change_passphrase(
        self, new: str | None, old: str | None = None, *, unprotected: bool = False
    ) -> None:
        """Put this device's keys under another passphrase. `old` is the present one, None when they have none.

        `new` None with `unprotected` leaves them without one. Nothing else changes, on no other device. A copy of the key
        file that somebody kept still opens with the old one. Raises PassphraseError when `old` is wrong or `new` too
        easy, UsageError in a mode without such keys, StorageError: then the old one still holds.
        """
        folder = self.replica.folder
        if not self.mode.published or folder is None:
            raise UsageError(
                f"a memory in mode {self.mode} has no keys to protect: whoever can read this disk can read it"
            )
        check_protection(Mode.ENCRYPTED_IPFS, passphrase=new, unprotected=unprotected)
        change_passphrase(folder, old, new, self.replica.world.random)

    def close(self) -> None:
        """Let go of files, secrets and the providers that were opened here from their specs.

        In a running event loop connections end when the loop comes to it; `aclose`, or `async with`, waits for that.
        """
        if self._borrowed:
            return
        self._root = None
        self._pool.close()
        super().close()

    async def aclose(self) -> None:
        """`close`, and the connections of this event loop are closed when it returns."""
        if not self._borrowed:
            await self._pool.aclose()
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    # -- members ---------------------------------------------------------------------------------------------

    async def revoke(
        self, member: str, *, stands: bool = True, progress: Progress = no_progress
    ) -> SyncReport:
        """End a device's membership, with all ids that it went on under, and seal under a new key from now on.

        Joins first and publishes in the same step. Needs `unlock`. What the device already holds it keeps. Of recovery
        words, or another wallet, whom they enrolled stays a member, and the report names them (`stands`); with `stands`
        off they are out too. What somebody published and nobody can use does not stand in its way (`not-pulled`). The report says what was done (`revoked`). Raises UsageError for this device itself, MembershipError for a root and for
        whom this root may not revoke, ProviderError: then nothing was done, or the hint says what waits.
        """
        root = self._unlocked()
        self._refuse_itself(member)
        failed: IpfsmemError | None = None
        before: SyncReport | None = None
        try:
            before = await self.sync(progress=progress)
        except _PUBLISHED as error:
            failed = error  # it may be the doing of the very member that is to go
        self._refuse_itself(member)
        with self.replica.transaction():
            ring = self.replica.ring
            if ring is None and failed is not None:
                raise failed
            assert ring is not None
            frame = self.replica.store.frame
            ek = None if ring.plain else self.replica.world.random(32)
            at = next_hlc(frame.hlc, self.replica.world.now())
            family = ring.view.ids_of(ring.view.family_of(member))
            labels = [p.label for one in family if (p := ring.view.members.get(one))]
            grown = operations.revoke(
                ring, root.admin, member, at=at, counters=frame.ctx, ek=ek, stands=stands
            )
            self.replica.set_ring(grown)
            # It is in this command's own report; other devices say it at their next sync.
            target = grown.view.family_of(member)
            self.replica.tell(told_as(target, member_id(root.admin_public)))
        enrolled = operations.members_let_in_by(ring, member)
        report = await self._brought_out("the revoke", progress, before)
        if failed is not None:
            report.say(
                "not-pulled",
                f"what others published last could not be taken in before the revoke ({failed}), so it was made with what was "
                "known here. What the revoked device wrote beyond that waits for your word: ipfsmem conflicts",
            )
        report.say("revoked", words_of_revoke(labels, family, plain=ring.plain))
        stay = {one: label for one, label in enrolled.items() if one in grown.view.members}
        said = {one.id: one.label for one in removals(ring) if not one.lasting and target in one.by}
        still = {one: label for one, label in said.items() if one in grown.view.put_out_by}
        if stay or still:
            report.say("stands", words_of_what_stands(stay, still, target))
        if gone := {one: label for one, label in enrolled.items() if one not in stay}:
            report.say("fell", f"out with it, for it alone let them in: {called(gone)}")
        if back := {one: label for one, label in said.items() if one in grown.view.members}:
            report.say(
                "back",
                f"back, for it alone had removed them: {called(back)}. Each goes on with its next sync. One that should be out, "
                "a lost one for instance: ipfsmem keys revoke ID",
            )
        return report

    def _refuse_itself(self, member: str) -> None:
        """A device that revokes itself would make the key that seals from then on, and go on knowing it."""
        ring = self.replica.ring
        if ring is not None and ring.view.family_of(member) == ring.view.family_of(self.device):
            raise UsageError(
                f"{member} is this device, and a device does not revoke itself: it would know the new key",
                hint=f"On another device of this memory: ipfsmem keys revoke {ring.view.family_of(member)} --wallet FILE "
                "(in Python: unlock(), then revoke()).",
            )

    async def _brought_out(self, what: str, progress: Progress, before: SyncReport | None) -> SyncReport:
        """Publish what was just said in the ring; the report tells of the sync `before` it too. A failure says that it is said
        here and waits."""
        try:
            report = await self.sync(progress=progress)
            report.after(before)
            return report
        except (ProviderError, *_PUBLISHED) as error:
            error.hint = f"{what[:1].upper()}{what[1:]} is made on this device and not published yet. Publish it with: ipfsmem sync"
            raise

    async def rotate(self, *, progress: Progress = no_progress) -> SyncReport:
        """Seal under a new key from now on. Needs `unlock`; bodies keep the key that they were sealed under."""
        root = self._unlocked()
        before = await self.sync(progress=progress)
        with self.replica.transaction():
            ring = self.replica.ring
            assert ring is not None
            ring = operations.rotate(ring, root.admin, self.replica.world.random(32))
            self.replica.set_ring(ring)
        report = await self._brought_out("the new key", progress, before)
        key = ring.view.sealing
        if key is not None and not report.blocked:
            report.say(
                "rotated",
                f"what is written from now on is encrypted with key no. {key.epoch}; other devices use it from their next sync on. "
                "Texts that are there already keep the key that they have, and whoever has that one can read them",
            )
        return report

    async def relabel(self, member: str, label: str, *, progress: Progress = no_progress) -> SyncReport:
        """Give a device (or wallet, or words) another label, for people. Needs `unlock` with a root.

        Raises MembershipError for a root other than the unlocked one and when only a root's word counts, FormatError.
        """
        root = self._unlocked()
        before = await self.sync(progress=progress)
        with self.replica.transaction():
            ring = self.replica.ring
            assert ring is not None
            at = next_hlc(self.replica.store.frame.hlc, self.replica.world.now())
            grown = operations.relabel(ring, root.admin, member, label, since=at)
            self.replica.set_ring(grown)
            family = grown.view.family_of(member)
            was, now = ring.view.members[family], grown.view.members[family]
            mine = family == grown.view.family_of(self.device)
        if mine:  # under which this device is enrolled anew, should it ever be
            self.replica.save_config(msgspec.structs.replace(self.replica.config, label=label))
        report = await self._brought_out("the label", progress, before)
        report.say("label", words_of_label(was, now, whose_word(ring, was.by)))
        return report

    async def new_words(self, *, progress: Progress = no_progress) -> NewWords:
        """Make 24 new recovery words beside those that work already, and publish what lets them in. Needs a root.

        Show them, and only then `revoke` older ones, and only when `problem` is empty. Once they are enrolled no
        failure of a provider is raised: it is the `problem`, and the next sync brings them out. Raises before that
        whatever `sync` raises, MembershipError when what is unlocked is no root, WrongWalletError.
        """
        root = self._unlocked()
        may_make_words(self.replica.ring, root)
        before = await self.sync(progress=progress)
        may_make_words(self.replica.ring, root)
        older = words_of(self.replica.ring)
        secret = self.replica.world.random(32)
        words = RootKeys.from_recovery(secret)
        label = enrol_words(self.replica, root, words)
        report, vault = None, self.replica.config.vault
        assert vault is not None
        try:
            report = await self.sync(progress=progress)
            report.after(before)
            problem = await why_not_everywhere(
                words,
                vault.tag,
                self._published_at().open,
                report.notices,
                self.replica.world,
                sealed=self.mode.sealed,
            )
        except IpfsmemError as error:
            problem = str(error)
            report = report or before
        return NewWords(member_id(words.admin_public), label, to_words(secret), older, problem, report)

    def _unlocked(self) -> RootKeys:
        if self.replica.ring is None:
            raise UsageError(f"a memory in mode {self.mode} has no members")
        if self._root is None:
            raise MembershipError(
                "this takes the wallet or the recovery words",
                hint="Unlock first: give --wallet, or the words (in Python: unlock()).",
            )
        return self._root

    # -- network ---------------------------------------------------------------------------------------------

    async def sync(
        self,
        provider: Where = None,
        *,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> SyncReport:
        """Pull what others published, join it, publish what is new. Raises ProviderError; nothing local is lost.

        In mode `ipfs` everything published is public for good. `public_ok` agrees to that, once; without it the first
        sync raises PublicError. What looks like a secret raises SecretsError unless its place (a memory's key, or
        `timeline/<day>`) is in `allow`; what others published was joined by then. In mode `encrypted-ipfs` it is a notice.
        """
        if provider is not None and self.mode.on_disk:
            self._use(provider)
        if not self.mode.on_disk:
            return SyncReport()  # nothing leaves this process, and every call is accepted
        places = self._published_at()
        self._agree(public_ok)
        await bring_state_back(self.replica, places.open)
        try:
            return await self._sync_once(places, allow, progress)
        except DamagedStateError:
            if not await bring_state_back(self.replica, places.open):
                raise
        return await self._sync_once(places, allow, progress)

    async def _sync_once(self, places: Providers, allow: Iterable[str], progress: Progress) -> SyncReport:
        self.scan()
        check = self._secret_check(allow)
        try:
            report = await sync(
                self.replica,
                places.open,
                self._layout(check),
                not_opened=places.not_opened,
                root=self._root,
                progress=progress,
            )
        finally:
            self.render()
            self._let_go_when_revoked()
        for suspect in check.found:
            report.say("secret", f"{suspect}: encrypted and published, but should it be in a memory?")
        report.conflicts = len(self._memories.conflicts_everywhere())
        return report

    async def salvage(
        self,
        *,
        dry_run: bool = False,
        pick: Iterable[str] = (),
        public_ok: bool = False,
        allow: Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> Salvage:
        """Bring back what can be read of damaged heads, in this device's own name, and publish it.

        What the hashes under a head's commit prove comes back by itself. `pick` are entry names of `found.loose`: texts
        that their devices signed, but of which no hash proves that they were the latest. `dry_run` changes nothing here.
        Raises what `sync` raises.
        """
        places = self._published_at()
        layout = None
        if not dry_run:
            self._agree(public_ok)
            layout = self._layout(self._secret_check(allow))
        self.scan()
        try:
            found, done, report = await salvage(
                self.replica,
                places.open,
                layout,
                picked=frozenset(pick),
                not_opened=places.not_opened,
                root=self._root,
                progress=progress,
            )
        finally:
            self.render()
        report.conflicts = len(self._memories.conflicts())
        return Salvage(dry_run=dry_run, found=found, done=done, report=report)

    async def _bring_back(
        self, root: RootKeys, progress: Progress, *, given: CID | None = None, damaged_ok: bool = False
    ) -> SyncReport:
        """The first sync of a restored memory; the root stays unlocked. See `Memory.recover`."""
        self._root = root
        self.scan()
        agreed = not self.mode.public or self.replica.config.public
        layout = self._layout(self._secret_check(())) if agreed else None
        try:
            report = await restore(
                self.replica,
                self._published_at().open,
                layout,
                root=root,
                given=given,
                damaged_ok=damaged_ok,
                progress=progress,
            )
        finally:
            self.render()
        report.conflicts = len(self._memories.conflicts_everywhere())
        return report

    async def gc(
        self,
        *,
        dry_run: bool = False,
        keep_roots: int = KEEP_ROOTS,
        keep_days: int = KEEP_DAYS,
        drop_guarded: Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> Collection:
        """Unpin superseded roots and drop blocks that only they needed; says for each root why it stays or goes.

        `drop_guarded`: these mass deletes were right, so the root before each may go like any other, now or when its time
        comes: each named by that root, or by the device (label or id) in whose published state it came, or "all". Raises
        NotFoundError for what names none, before anything goes.
        """
        rules = Rules(dry_run, keep_roots, keep_days, each_name(drop_guarded))
        places = self._published_at()
        return await collect(self.replica, places.open, rules, progress, not_opened=places.not_opened)

    def collect_by_itself(self, keep: Keep | None) -> None:
        """Let superseded roots go once a day, with a sync, and keep what `keep` says; None: only `gc` lets go."""
        self.replica.save_config(msgspec.structs.replace(self.replica.config, collect=keep))

    async def check_providers(
        self, *, repair: bool = False, full: bool = False, progress: Progress = no_progress
    ) -> list_[Presence]:
        """Whether everything that lives is at each provider: every block asked for and structure read, with `full` all
        read. `repair` sends again what is missing there and is here, also what was given up before.

        What a provider cannot say is in its row, not raised.
        """
        places = self._published_at()
        return await check(
            self.replica,
            places.open,
            repair=repair,
            full=full,
            not_opened=places.not_opened,
            progress=progress,
        )

    async def test_provider(self, provider: str | Provider) -> list_[Step]:
        """Try a provider out, really: upload, listing, reading back, names, unpin. It is shown nothing of the memory."""
        pool = ProviderPool(self._pool.home)
        (opened,) = pool.open_all([provider])
        try:
            return await probe(opened, now_ms=self.replica.world.now(), random=self.replica.world.random)
        finally:
            await pool.aclose()

    def providers(self) -> list_[ProviderInfo]:
        """The providers in use, what each can do, and what this device placed there last."""
        specs = self.replica.config.providers
        places = self._pool.open(specs) if specs else self._places
        found = []
        for spec, one in zip(specs or [""] * len(places.each), places.each, strict=True):
            name = _name_of(one)
            last = next(iter(placed.newest_at(self.replica.db.connection, name, 1)), None)
            root, at = (last.answered, last.at) if last is not None else (None, None)
            if isinstance(one, NotOpened):
                found.append(ProviderInfo.of_not_opened(one, root=root, at=at))
            else:
                found.append(ProviderInfo.of(spec or name, name, one.capabilities, root=root, at=at))
        return found

    def recovery_sheet(self) -> RecoverySheet:
        """What to print and keep on paper to get this memory back. No secret is in it; local.

        Raises UsageError in a mode without a vault.
        """
        vault = self.replica.config.vault
        if vault is None:
            raise UsageError(
                f"a memory in mode {self.mode} has no vault, so nothing brings it back from elsewhere",
                hint="Keep a copy of it: ipfsmem export --out FILE.",
            )
        places = [(info.spec, info.root, info.at) for info in self.providers()]
        return make_sheet(self.namespace, self.replica, vault, places, configuration.settings().providers)

    def add_provider(self, spec: str) -> None:
        """Publish there too from the next sync on. Raises ConfigError when there is no such provider."""
        self._require_published()
        spec = lasting_spec(spec)
        (opened,) = self._pool.open_all([spec])
        if spec not in self.replica.config.providers:
            self._places = Providers((*self._places.each, opened))
        self._remember([*self.replica.config.providers, spec])

    def remove_provider(self, spec: str) -> None:
        """Do not publish there any more. What is there stays there. Raises ConfigError when it is not one of ours."""
        known = [*self.replica.config.providers]
        spec = spec if spec in known else lasting_spec(spec)
        if spec not in known:
            raise ConfigError(
                f"{spec} is not a provider of this memory",
                hint=f"Its providers: {', '.join(known) or 'none'}",
            )
        known.remove(spec)
        self._remember(known)
        self._places = self._pool.open(known)

    async def move(
        self,
        target: str | Provider,
        *,
        source: str | None = None,
        keep_roots: int = KEEP_ROOTS,
        keep_days: int = KEEP_DAYS,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> Moved:
        """Bring everything that lives to `target`, check it there, and only then publish there instead of at `source`
        (None: instead of everywhere else). Nothing is taken away from where it was; may be run again when cut off."""
        old = self._published_at()
        self._agree(public_ok)
        self.scan()
        (opened,) = self._pool.open_all([target])
        layout = self._layout(self._secret_check(allow))
        moved = await move(
            self.replica,
            old.open,
            layout,
            opened,
            keep_roots=keep_roots,
            keep_days=keep_days,
            not_opened=old.not_opened,
            root=self._root,
            progress=progress,
        )
        before = list_(self.replica.config.providers)
        if isinstance(target, str):
            left = (source, lasting_spec(source or ""))
            stay = [spec for spec in before if source is not None and spec not in left]
            self._remember([*stay, target])
            self._places = self._pool.open([*stay, target])
            gone = [spec for spec in before if spec not in self.replica.config.providers]
        else:
            self._places = Providers((opened,))
            gone = before
        left_behind = [_name_of(one) for one in old.each if one not in self._places.each]
        if not left_behind:
            return moved
        to = lasting_spec(target) if isinstance(target, str) else target.name
        report = await self._leave_word(old.open, opened, gone or left_behind, to, layout, progress)
        last = report.root if report is not None else None
        told = placed.providers_of(self.replica.db.connection, last) if last is not None else set()
        return msgspec.structs.replace(
            moved,
            roots=[*moved.roots, *([last] if last is not None and last not in moved.roots else [])],
            told=[name for name in left_behind if name in told],
            untold=[name for name in left_behind if name not in told],
        )

    async def _leave_word(
        self,
        old: list_[Provider],
        new: Provider,
        left: list_[str],
        to: str,
        layout: Layout,
        progress: Progress,
    ) -> SyncReport | None:
        """Publish a forwarding record as part of the last root, at the old places and at the new one; None when no place
        took it now."""
        self._timeline.note(MOVED, moved_data(tuple(map(self._shown, left)), self._shown(to)))
        self.scan()
        everywhere = [*(provider for provider in old if provider is not new), new]
        try:
            return await sync(self.replica, everywhere, layout, root=self._root, progress=progress)
        except ProviderError:
            return None  # all is at the new place by now; the next sync brings this there
        finally:
            self.render()

    def _shown(self, spec: str) -> str:
        """A spec as it may stand in the timeline: no secret, and in a public memory no path of this device."""
        shown = shown_spec(spec, configuration.settings().providers)[:MAX_SPEC]
        folder = Path(spec).is_absolute() or spec.startswith("directory:")
        return "directory" if self.mode.public and folder else shown

    async def follow(
        self,
        spec: str | None = None,
        *,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> SyncReport:
        """Go where another device moved this memory: publish there, and no more at the places that it left.

        `spec`: what that provider is called here (None: as the forwarding record has it). Nothing changes before it
        showed this memory and a sync with both places worked. Raises NotFoundError when nobody moved it, or nothing of
        it is there, ConfigError, ProviderError.
        """
        places = self._published_at()
        move = waiting(self.replica)
        if move is None:
            raise NotFoundError(
                "no device of this memory has moved it elsewhere",
                hint="To publish elsewhere: ipfsmem providers move.",
            )
        self._agree(public_ok)
        chosen = lasting_spec(spec or move.to)
        try:
            (opened,) = self._pool.open_all([chosen])
            await look_there(self.replica, opened, root=self._root, progress=progress)
        except (ConfigError, ProviderUnavailable) as error:
            if spec is None:
                error.hint = (
                    f"{error.hint} If it has another name here: ipfsmem providers follow SPEC.".lstrip()
                )
            raise
        self.scan()
        everywhere = [*(provider for provider in places.open if provider is not opened), opened]
        layout = self._layout(self._secret_check(allow))
        try:
            report = await sync(
                self.replica,
                everywhere,
                layout,
                not_opened=places.not_opened,
                root=self._root,
                progress=progress,
            )
        finally:
            self.render()
        known = list_(self.replica.config.providers)
        stay = [one for one in known if self._shown(one) not in move.left]
        if len(known) == 1:
            stay = []  # the one place of this device, whatever it is called here
        self._remember([*(one for one in stay if one != chosen), chosen])
        self._places = self._pool.open(self.replica.config.providers)
        with self.replica.transaction():
            answer(self.replica, move)
        return report

    def decline(self) -> Move:
        """Stay where this device publishes, though another one moved the memory; it is not told again of that move."""
        move = waiting(self.replica)
        if move is None:
            raise NotFoundError("no device of this memory has moved it elsewhere")
        with self.replica.transaction():
            answer(self.replica, move)
        return move

    def moved(self) -> Move | None:
        """Where another device moved this memory, while nobody here has answered that; None when that is so."""
        return waiting(self.replica)

    def _remember(self, specs: list_[str]) -> None:
        self.replica.save_config(msgspec.structs.replace(self.replica.config, providers=specs_of(specs)))

    def _require_published(self) -> None:
        if not self.mode.published:
            raise UsageError(
                f"a memory in mode {self.mode} is not published",
                hint="Make one that is, beside it: ipfsmem init -n NEW. Then: ipfsmem export --dir DIR, then ipfsmem import DIR -n NEW.",
            )

    def _published_at(self) -> Providers:
        """Where this memory is published. What could not be opened before is tried once more."""
        self._require_published()
        self._places = self._pool.open_again(self._places)
        if not self._places.each:
            raise ConfigError(
                "no provider is set",
                hint="Give one with --provider (in Python: provider=), for instance a folder.",
            )
        return self._places

    def _layout(self, check: SecretCheck) -> Layout:
        if self.mode.public:
            return PlainLayout(self._memories, check)
        return SealedLayout(check)

    def _secret_check(self, allow: Iterable[str]) -> SecretCheck:
        return SecretCheck(strict=self.mode.public, allow=frozenset(allow))

    def _agree(self, public_ok: bool) -> None:
        """Nothing of a plain memory leaves this device before somebody has said that it may."""
        if not self.mode.public or self.replica.config.public:
            return
        if not public_ok:
            raise PublicError(
                f"the memory {self.namespace} is in mode ipfs: everyone can read what is published, for good"
            )
        self.replica.save_config(msgspec.structs.replace(self.replica.config, public=True))

    @contextlib.asynccontextmanager
    async def autosync(
        self,
        *,
        idle: float = 30.0,
        most: float = 600.0,
        every: float | None = 300.0,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        told: Told | None = None,
    ) -> AsyncIterator[Self]:
        """Keep in sync while the block runs, in the background of this event loop; times in seconds.

        Syncs `idle` after the last write, at most `most` after the first, and `every` so often for what others wrote,
        beginning at once (None: after writes only). A write never waits for it. `flush` publishes at once; leaving the
        block publishes what still waits. `public_ok` and `allow` as for `sync`.

        While nobody answers it tries again after `idle`, then twice that, up to `most`. Any other failure needs a
        person: it is tried again with the next write or after `every`, and raised by `flush` and at the end of the block
        unless a sync has worked by then. `told` is called after every attempt, with its report or its failure; without
        it such failures are logged as warnings. What `told` raises ends the syncing and is raised at the block's end.

        Raises UsageError, ConfigError, PublicError at once where no sync could work.
        """
        allow = frozenset(allow)
        pace = Pace(idle, most, every, asyncio.get_running_loop().time())
        if self._background is not None:
            raise UsageError("this memory is kept in sync already")
        if self.mode.on_disk:
            self._published_at()
            self._agree(public_ok)
        background = Background(lambda: self.sync(allow=allow), pace, told)
        self._background = background
        background.begin()
        try:
            try:
                yield self
            except (Exception, asyncio.CancelledError) as error:
                # What went wrong in the block is what its caller must see; what waits is published all the same.
                try:
                    await self._end(background)
                except IpfsmemError as other:
                    error.add_note(f"what waits could not be published: {other}")
                raise
            await self._end(background)
        finally:
            self._background = None

    async def _end(self, background: Background) -> None:
        try:
            await background.stop(finish=self._unpublished())
        finally:
            await self.flush()

    async def flush(self) -> SyncReport | None:
        """Publish now what is waiting; None when nothing is. In `autosync` also tries again what failed there for good,
        so that it is raised."""
        self.scan()
        background = self._background
        if background is None:
            return await self.sync() if self._unpublished() else None
        waiting = self._unpublished() or background.failure is not None
        return await background.sync_now() if waiting else None

    def _changed(self) -> None:
        if self._background is not None:
            self._background.wrote()

    def _use(self, provider: Where) -> None:
        """Publish there from now on, as long as this memory is open. Raises ConfigError."""
        if opened := self._pool.open_all(each_of(provider)):
            self._places = Providers((*opened,))


def each_name(given: Iterable[str]) -> tuple[str, ...]:
    """Names that may be given as one text."""
    return (given,) if isinstance(given, str) else tuple(given)


def _name_of(one: Provider | NotOpened) -> str:
    """What people know a provider by: of one that is not open nothing but its spec is known."""
    return one.spec if isinstance(one, NotOpened) else one.name


def each_of(provider: Where) -> list[str | Provider]:
    if provider is None:
        return []
    return [provider] if isinstance(provider, str | Provider) else list(provider)


def specs_of(provider: Where) -> tuple[str, ...]:
    """What the configuration remembers; an open provider cannot be written down."""
    return tuple(dict.fromkeys(lasting_spec(one) for one in each_of(provider) if isinstance(one, str)))
