"""Sync of an open vault: `memory.sync`, `memory.autosync`, `memory.unlock`, and what other parts need to publish.

It holds the open providers and the unlocked root keys. Only coroutines use the network.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import get_ident

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.device.state import DamagedStateError
from ipfsmem.errors import (
    ConfigError,
    IpfsmemError,
    MembershipError,
    PublicError,
    StorageError,
    UsageError,
)
from ipfsmem.memories.secret_check import SecretCheck, in_words
from ipfsmem.open_vault.folder_watching import watched_folders
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.lock_watching import lock_watch, while_unlocked
from ipfsmem.open_vault.method_group import MethodGroup
from ipfsmem.open_vault.versions import unpublished_kinds
from ipfsmem.provider.car_file import CarFile
from ipfsmem.provider.choice import ProviderChoice, each_of
from ipfsmem.provider.contract import Provider
from ipfsmem.provider.opening import ProviderPool, Providers
from ipfsmem.published.layout import Layout, PlainLayout, SealedLayout
from ipfsmem.sync.agent_cards import refuse_expired, refuse_revoked
from ipfsmem.sync.background import Background, OnAttempt
from ipfsmem.sync.company import Company
from ipfsmem.sync.engine import pull, restore, sync
from ipfsmem.sync.local_repair import repair_state
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.schedule import Pace
from ipfsmem.sync.unjoined_heads import held_heads
from ipfsmem.vault.owner import OwnerKey, Unlock, check_root, owner_key, stored_root
from ipfsmem.vault.unlocking import lock_device
from ipfsmem.wallet.root_keys import RootKeys


@contextlib.contextmanager
def followed_by(*steps: Callable[[], object]) -> Iterator[None]:
    """Do the steps after a sync, also a failed one, and each step also after another one failed. Raise the first error."""
    first: BaseException | None = None
    try:
        yield
    except BaseException as error:
        first = error
    for step in steps:
        try:
            step()
        except IpfsmemError as error:
            first = first or error
    if first is not None:
        raise first


class Syncing(MethodGroup):
    """The providers, root keys and syncs of an open vault."""

    WHEN_CLOSED = frozenset({"close", "aclose"})

    def __init__(self, opened: VaultHandle) -> None:
        super().__init__(opened)
        self.background: Background | None = None
        #: Opens providers from their specs, and closes those again.
        self.pool = ProviderPool(opened.replica.folder.parent if opened.replica.folder else None)
        #: The open providers, and the reasons why others could not be opened.
        self.places = Providers()
        #: The unlocked root keys of the wallet or recovery phrase; None if locked.
        self.root: RootKeys | None = None
        #: Called once when it is closed.
        self.when_closed: Callable[[], None] = lambda: None
        opened.when_changed = self._wrote
        opened.when_locked = self.close

    def _wrote(self) -> None:
        if self.background is not None:
            self.background.wrote()

    def hold(self, pool: ProviderPool, providers: list[Provider], root: RootKeys | None) -> None:
        """Take ownership of open providers and unlocked root keys, while a vault is created or brought back."""
        self.pool, self.places, self.root = pool, Providers((*providers,)), root

    def use(self, provider: ProviderChoice) -> None:
        """Publish at these providers while the vault is open; None changes nothing. Raises ConfigError."""
        if opened := self.pool.open_all(each_of(provider)):
            self.places = Providers((*opened,))

    def unlock(self, unlock: OwnerKey | None = None) -> None:
        """See `Memory.unlock`."""
        address = None
        key = None if unlock is None else owner_key(unlock)
        if isinstance(key, Unlock):
            address = "0x" + key.signer.address.hex()
            root: RootKeys | None = key.for_vault_of(self._replica.config.vault).root(twice=False)
        else:
            root = key or stored_root(self._replica)
        if root is None:
            raise MembershipError(
                "this device does not have the owner key of this vault",
                hint="Pass the wallet or the recovery phrase.",
            )
        check_root(self._replica.config, root, self._replica.ring, address)
        self.root = root

    def lock(self) -> None:
        """See `Memory.lock`."""
        self.root = None

    def require_root(self) -> RootKeys:
        if self._replica.ring is None:
            raise UsageError(f"a vault in mode {self._open.mode} has no members")
        if self.root is None:
            raise MembershipError(
                "this requires the wallet or the recovery phrase",
                hint="Pass --wallet or the recovery phrase first (in Python: unlock()).",
            )
        return self.root

    async def sync(
        self,
        provider: ProviderChoice = None,
        *,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        car: str | Path | None = None,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Do the operation `sync`."""
        if provider is not None and self._open.mode.on_disk:
            self.use(provider)
        if not self._open.mode.on_disk:
            return SyncReport()  # nothing leaves this process, and every call is valid
        if self._replica.as_agent:
            return await while_unlocked(self._open, "sync", self.pull(progress or no_progress))
        places = self.published_at()
        saved = None if car is None else CarFile(Path(car))
        self.agree(public_ok)
        with self._open.lock:
            self._open.refuse_closed("sync")
            self._open.sync_threads.append(get_ident())
        try:
            return await while_unlocked(
                self._open, "sync", self._sync_or_repair(places, allow, progress or no_progress, saved)
            )
        finally:
            self._open.sync_threads.remove(get_ident())

    async def pull(self, progress: Progress) -> SyncReport:
        """Do the whole sync of an agent, which publishes nothing. Raises MembershipError if its key expired or was revoked."""
        places = self.published_at()
        try:
            report = await pull(self._replica, places.open, not_opened=places.not_opened, progress=progress)
        finally:
            refuse_revoked(self._replica)
        refuse_expired(self._replica)
        report.conflicts = len(self._open.memories.conflicts_everywhere())
        return report

    async def _sync_or_repair(
        self, places: Providers, allow: Iterable[str], progress: Progress, saved: CarFile | None
    ) -> SyncReport:
        await repair_state(self._replica, places.open)
        try:
            return await self._sync_once(places, allow, progress, saved)
        except DamagedStateError:
            if not await repair_state(self._replica, places.open):
                raise
        return await self._sync_once(places, allow, progress, saved)

    async def _sync_once(
        self, places: Providers, allow: Iterable[str], progress: Progress, saved: CarFile | None
    ) -> SyncReport:
        before = dict(self._replica.store.frame.ctx)
        self._open.scan()
        check = self.secret_check(allow)
        with followed_by(self._open.render, self._detach_if_revoked, partial(self.erase_forgotten, before)):
            report = await sync(
                self._replica,
                places.open if saved is None else [*places.open, saved],
                self.layout(check),
                not_opened=places.not_opened,
                root=self.root,
                named_root=None if saved is None else saved.root,
                progress=progress,
            )
        if saved is not None:
            _tell_unused(saved, report, held_heads(self._replica))
        for text in in_words(check.found):
            report.say("secret", f"{text}: encrypted and published, but should it be in a memory?")
        if self._open.files is not None:
            not_taken_in = self._open.files.not_taken_in()
            report.not_taken_in = len(not_taken_in)
            for one in (*not_taken_in, *self._open.files.missing()):
                report.say("folder", one)
        report.conflicts = len(self._open.memories.conflicts_everywhere())
        return report

    def erase_forgotten(self, before: Mapping[str, int]) -> None:
        """Erase the stored vectors of memories that other devices deleted, of all models; `before`: known writes of each device before the merge.
        Raises StorageError, LockedError."""
        if self._replica.store.frame.ctx != before:
            from ipfsmem.memories.kept_vectors import erase_forgotten  # most syncs join nothing

            with self._open.lock:
                erase_forgotten(self._open.memories)

    async def bring_back(
        self,
        root: RootKeys,
        progress: Progress,
        *,
        named_root: CID | None = None,
        damaged_ok: bool = False,
        finders: Company | None = None,
    ) -> SyncReport:
        """Do the first sync of a vault that is restored; the root keys stay unlocked. See `Memory.recover`."""
        self.root = root
        self._open.scan()
        agreed = not self._open.mode.public or self._replica.config.public
        layout = self.layout(self.secret_check(())) if agreed else None
        report = await restore(
            self._replica,
            self.published_at().open,
            layout,
            root=root,
            named_root=named_root,
            damaged_ok=damaged_ok,
            progress=progress,
            finders=finders,
        )
        self._open.render()  # only a complete restore: a failed one leaves no texts behind
        report.conflicts = len(self._open.memories.conflicts_everywhere())
        return report

    def require_published(self) -> None:
        if not self._open.mode.published:
            raise UsageError(
                f"a vault in mode {self._open.mode} is never published",
                hint="Create one that is: ipfsmem init --vault NEW. Then: ipfsmem export --dir DIR, then ipfsmem import DIR --vault NEW.",
            )

    def published_at(self) -> Providers:
        """Return the providers of this vault. Those that could not be opened are retried."""
        self.require_published()
        self.places = self.pool.open_again(self.places)
        if not self.places.each:
            raise ConfigError(
                "no provider is set",
                hint="Pass one with --provider (in Python: provider=), for instance a folder.",
            )
        return self.places

    def layout(self, check: SecretCheck) -> Layout:
        if self._open.mode.public:
            return PlainLayout(self._open.memories, check)
        return SealedLayout(check)

    def secret_check(self, allow: Iterable[str]) -> SecretCheck:
        return SecretCheck(strict=self._open.mode.public, allow=frozenset(allow))

    def agree(self, public_ok: bool) -> None:
        """Record the consent to publish an unencrypted vault; without it nothing leaves this device."""
        if not self._open.mode.public or self._replica.config.public:
            return
        if not public_ok:
            raise PublicError(
                f"the vault {self._open.vault_name} is in mode ipfs: everyone can read published data, permanently"
            )
        self._replica.save_config(msgspec.structs.replace(self._replica.config, public=True))

    def _detach_if_revoked(self) -> None:
        """Unlink the folders of a revoked device, whose files stay (format section 6), and lock its keys, so that a finder of the device
        needs the passphrase. A running sync reports first."""
        with self._open.lock:
            if (
                self._open.is_revoked
                and self._replica.lock_watch is not None
                and self._replica.folder is not None
            ):
                with contextlib.suppress(StorageError):  # a running sync stops by itself
                    lock_device(self._replica.folder)
                if self.background is None:
                    self._replica.lock_watch = None
            if self._open.files is not None and self._open.is_revoked:
                for facts in self._open.files.folders():
                    with contextlib.suppress(
                        StorageError
                    ):  # the folder stays linked, and `status` reports why
                        self._open.files.detach(facts.path)

    @contextlib.asynccontextmanager
    async def autosync(
        self,
        *,
        idle: float = 30.0,
        most: float = 600.0,
        every: float | None = 300.0,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        on_attempt: OnAttempt | None = None,
    ) -> AsyncIterator[None]:
        """Sync in the background of this event loop while the block runs; times in seconds.

        Syncs `idle` after the last write, at most `most` after the first, and every `every` seconds for writes of others,
        beginning at once (None: after writes only). A write never waits for it. `flush` publishes at once; the end of the
        block publishes pending changes. `public_ok` and `allow` as for `sync`.

        While no provider answers it retries after `idle`, then twice that, up to `most`. Any other error needs a
        person: it is retried with the next write or after `every`, and raised by `flush` and at the end of the block
        unless a sync succeeded by then. `on_attempt` is called after every attempt with its report or error; without
        it errors are logged as warnings. An exception of `on_attempt` ends the syncs and is raised at the end of the block.

        Edits in a linked folder are imported at once with the extra `watch`, else within five seconds, and a sync begins
        without waiting for `idle`, after a pause as long as the last syncs took. Synced texts are in the folder within a second.

        If unlocked keys are locked again, the syncs end: a running one is cancelled, the keys are
        dropped within a second, `on_attempt` is told, and PassphraseError is raised at the end of the block.

        Raises UsageError, ConfigError, PublicError at once if no sync could succeed.
        """
        allow = frozenset(allow)
        pace = Pace(idle, most, every, asyncio.get_running_loop().time())
        if self.background is not None:
            raise UsageError("this vault is already being synced automatically")
        if self._open.mode.on_disk:
            self.published_at()
            self.agree(public_ok)
        background = Background(lambda: self.sync(allow=allow), pace, on_attempt)
        self.background = background
        background.begin()
        if self._open.mode.published and self.unpublished():
            background.wrote()  # left by an earlier process
        try:
            try:
                async with (
                    lock_watch(self._open, background.give_up),
                    watched_folders(self._open, background.edited),
                ):
                    yield
            except (Exception, asyncio.CancelledError) as error:
                # The caller must see the error of the block; pending changes are published anyway.
                try:
                    await self._end(background)
                except IpfsmemError as other:
                    error.add_note(f"pending changes could not be published: {other}")
                raise
            await self._end(background)
        finally:
            self.background = None

    async def _end(self, background: Background) -> None:
        locked = not self._open.still_unlocked() or self._open.locked != ""
        try:
            await background.stop(finish=not locked and self.unpublished())
        finally:
            self._open.refuse_closed("autosync")
            await self.flush()

    async def flush(self) -> SyncReport | None:
        """Publish pending changes during `autosync`. See `Memory.flush`."""
        background = self.background
        assert background is not None
        self._open.scan()
        waiting = self.unpublished() or background.failure is not None
        return await background.sync_now() if waiting else None

    def unpublished(self) -> bool:
        """Tell whether there are unpublished changes."""
        return bool(unpublished_kinds(self._replica))

    def close(self) -> None:
        """Drop the root keys, and close the providers that were opened by their specs."""
        self.root = None
        self.pool.close()
        self.when_closed()

    async def aclose(self) -> None:
        """Do `close`, and wait until connections are closed."""
        self.root = None
        await self.pool.aclose()


def _tell_unused(saved: CarFile, report: SyncReport, cids: Container[CID]) -> None:
    """Report if the version in a file was not used, or is held back, next to the rest of the sync."""
    if saved.root in cids:
        report.waits = saved.name
        report.say("equivocation", f"the content of {saved.name} is kept on this device until then")
        return
    for notice in report.notices:
        if notice.kind == "head-refused" and str(saved.root) in f"{notice.text} {notice.detail}":
            report.not_used = saved.name
            report.say("head-refused", f"this sync merged nothing from {saved.name}")
            return
