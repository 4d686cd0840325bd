"""`memory.providers`: the providers of a vault: test, move, follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import config as configuration
from ipfsmem.bundle.program_events import MAX_SPEC, MOVED, Move, moved_data
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import placed
from ipfsmem.errors import (
    ConfigError,
    IncompleteError,
    NotFoundError,
    ProviderError,
    ProviderUnavailable,
    UsageError,
)
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.syncing import Syncing
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.provider.choice import specs_of
from ipfsmem.provider.contract import Provider, access_policy, lasting_spec, shown_spec
from ipfsmem.provider.opening import NotOpened, ProviderPool, Providers
from ipfsmem.provider.probe import Step, probe
from ipfsmem.published.layout import Layout
from ipfsmem.results import ProviderInfo
from ipfsmem.sync.engine import leading, look_there, move, sync
from ipfsmem.sync.forwarding import note_answer, unanswered_move
from ipfsmem.sync.interval import SyncInterval, free_interval
from ipfsmem.sync.moving import Moved
from ipfsmem.sync.names import member_names
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS
from ipfsmem.vault.sheet import public_spec


class MemoryProviders(MemoryPart):
    """The providers of an open vault."""

    def __init__(self, opened: VaultHandle, syncing: Syncing) -> None:
        super().__init__(opened)
        self._syncing = syncing

    @property
    def in_use(self) -> list[Provider]:
        """Return the open providers."""
        return self._syncing.places.open

    def use(self, providers: Sequence[Provider]) -> None:
        """Publish at these providers while this vault is open; its configuration does not change."""
        self._syncing.places = Providers((*providers,))

    async def test(self, provider: str | Provider) -> list[Step]:
        """Test a provider with real requests: upload, list, download, names, unpin. It sees nothing of the vault."""
        pool = ProviderPool(self._syncing.pool.home)
        (opened,) = pool.open_all([provider])
        try:
            return await probe(opened, now_ms=self._replica.world.now(), random=self._replica.world.random)
        finally:
            await pool.aclose()

    def free_interval(self) -> SyncInterval:
        """Return the shortest interval of syncs that is free of charge at all providers, for all devices together; else a cheap one."""
        return free_interval(self._syncing.places.open, max(1, len(member_names(self._replica))))

    def policy(self, spec: str) -> dict[str, Any]:
        """Return the least-rights access policy of a bucket as JSON. ConfigError for providers without one."""
        return access_policy(spec)

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
        """Copy all live data to `target`, check it there, and only then publish there instead of at `source`
        (None: of all others). Nothing is deleted at the old providers; an interrupted move can be repeated. Raises ConfigError for a
        `source` that is not a provider of this vault.
        """
        if source is not None:
            self._check_source(source, target)
        old = self._syncing.published_at()
        self._syncing.agree(public_ok)
        self._open.scan()
        (opened,) = self._syncing.pool.open_all([target])
        layout = self._syncing.layout(self._syncing.secret_check(allow))
        moved = await move(
            self._replica,
            old.open,
            layout,
            opened,
            keep_roots=keep_roots,
            keep_days=keep_days,
            not_opened=old.not_opened,
            root=self._syncing.root,
            progress=progress,
        )
        before = [*self._replica.config.providers]
        if isinstance(target, str):
            left = (source, lasting_spec(source or ""))
            stay = [spec for spec in before if source is not None and spec not in left]
            remember_providers(self._replica, [*stay, target])
            self._syncing.places = self._syncing.pool.open([*stay, target])
            gone = [spec for spec in before if spec not in self._replica.config.providers]
        else:
            self._syncing.places = Providers((opened,))
            gone = before
        left_behind = [_name_of(one) for one in old.each if one not in self._syncing.places.each]
        if not left_behind:
            return moved
        to = lasting_spec(target) if isinstance(target, str) else target.name
        report = await self._leave_word(old.open, opened, gone or left_behind, to, layout, progress)
        last = report.root if report is not None else None
        told = placed.providers_of(self._replica.db.connection, last) if last is not None else set()
        return msgspec.structs.replace(
            moved,
            roots=[*moved.roots, *([last] if last is not None and last not in moved.roots else [])],
            forwarding_at=[name for name in left_behind if name in told],
            no_forwarding_at=[name for name in left_behind if name not in told],
        )

    def _check_source(self, source: str, target: str | Provider) -> None:
        known = [*self._replica.config.providers] or [one.name for one in self._syncing.places.open]
        if source not in known and lasting_spec(source) not in known:
            raise ConfigError(
                f"{shown_spec(source)} is not a provider of this vault",
                hint=f"Its providers: {', '.join(map(shown_spec, known)) or 'none'}. Or move without --from, to leave all of them (in Python: source=None).",
            )
        if isinstance(target, str) and lasting_spec(source) == lasting_spec(target):
            raise UsageError("the source and the target are the same provider")

    async def _leave_word(
        self,
        old: list[Provider],
        new: Provider,
        left: list[str],
        to: str,
        layout: Layout,
        progress: Progress,
    ) -> SyncReport | None:
        """Publish a forwarding record with the last root at the old and the new providers; None if none accepted it."""
        self._open.timeline("").note(MOVED, moved_data(tuple(map(self.shown, left)), self.shown(to)))
        self._open.scan()
        everywhere = [*(provider for provider in old if provider is not new), new]
        try:
            return await sync(self._replica, everywhere, layout, root=self._syncing.root, progress=progress)
        except ProviderError:
            return None  # all is at the new place by now; the next sync brings this there
        finally:
            self._open.render()

    def shown(self, spec: str) -> str:
        """Return a spec for the timeline: without secrets, and in a public vault without paths of this device."""
        shown = public_spec(spec, configuration.settings().providers)[:MAX_SPEC]
        folder = Path(spec).is_absolute() or spec.startswith("directory:")
        return "directory" if self._open.mode.public and folder else shown

    async def follow(
        self,
        spec: str | None = None,
        *,
        public_ok: bool = False,
        allow: Iterable[str] = (),
        progress: Progress = no_progress,
    ) -> SyncReport:
        """Follow a move by another device: publish at its new provider, and stop at the old ones.

        `spec`: spec of that provider on this device (None: as in the forwarding record). Nothing changes before the provider returned
        this vault and a sync with both providers succeeded. Raises NotFoundError without a move, or if the provider does not have
        the vault, ConfigError, ProviderError, and IncompleteError if it did not accept new data.
        """
        places = self._syncing.published_at()
        move = unanswered_move(self._replica)
        if move is None:
            raise NotFoundError(
                "no device has moved this vault",
                hint="To publish elsewhere: ipfsmem vault move.",
            )
        self._syncing.agree(public_ok)
        chosen = lasting_spec(spec or move.to)
        try:
            opened = await self._where_it_is(chosen, progress)
        except (ConfigError, ProviderUnavailable) as error:
            if spec is None:
                error.hint = (
                    f"{error.hint} If it has another name here: ipfsmem provider follow SPEC.".lstrip()
                )
            raise
        self._open.scan()
        everywhere = [*(provider for provider in places.open if provider is not opened), opened]
        layout = self._syncing.layout(self._syncing.secret_check(allow))
        try:
            report = await sync(
                self._replica,
                everywhere,
                layout,
                not_opened=places.not_opened,
                root=self._syncing.root,
                progress=progress,
            )
        finally:
            self._open.render()
        if report.blocked or opened.name in report.not_placed:
            why = (n.text for n in report.notices if n.kind == report.blocked or opened.name in n.text)
            raise IncompleteError(
                f"{opened.name} does not have everything of this vault yet, so this device publishes where it did: "
                f"{next(why, 'it could not be asked')}",
                hint="When it takes uploads again: ipfsmem provider follow",
            )
        self._move_to(chosen, move)
        return report

    async def _where_it_is(self, spec: str, progress: Progress) -> Provider:
        """Return the open provider, after it returned this vault. Raises NotFoundError, ConfigError, ProviderError."""
        (opened,) = self._syncing.pool.open_all([spec])
        await look_there(self._replica, opened, root=self._syncing.root, progress=progress)
        return opened

    def _move_to(self, spec: str, move: Move) -> None:
        """Publish there from now on, and no longer at the providers that were left."""
        known = [*self._replica.config.providers]
        stay = [one for one in known if self.shown(one) not in move.left]
        if len(known) == 1:
            stay = []  # the one place of this device, whatever it is called here
        remember_providers(self._replica, [*(one for one in stay if one != spec), spec])
        self._syncing.places = self._syncing.pool.open(self._replica.config.providers)
        with self._replica.transaction():
            note_answer(self._replica, move)

    def decline(self) -> Move:
        """Stay at the present providers although another device moved the vault; that move is not reported again."""
        move = unanswered_move(self._replica)
        if move is None:
            raise NotFoundError("no device has moved this vault")
        with self._replica.transaction():
            note_answer(self._replica, move)
        return move

    def moved(self) -> Move | None:
        """Return an unanswered move by another device; None without one."""
        return unanswered_move(self._replica)


def remember_providers(replica: Replica, specs: list[str]) -> None:
    """Store the specs of the providers of a vault."""
    replica.save_config(msgspec.structs.replace(replica.config, providers=specs_of(specs)))


def provider_names(replica: Replica, syncing: Syncing) -> list[str]:
    """Return the names of the providers of a vault, without secrets."""
    return [*map(shown_spec, replica.config.providers)] or [one.name for one in syncing.places.open]


def providers_in_use(replica: Replica, syncing: Syncing) -> list[ProviderInfo]:
    """Return the providers in use, their capabilities, and the last version that this device published at each."""
    specs = replica.config.providers
    places = syncing.pool.open(specs) if specs else syncing.places
    found = []
    for spec, one in zip(specs or [""] * len(places.each), places.each, strict=True):
        name = _name_of(one)
        last = next(iter(placed.newest_at(replica.db.connection, name, 1)), None)
        root, at = (last.answered, last.at) if last is not None else (None, None)
        if isinstance(one, NotOpened):
            found.append(ProviderInfo.of_not_opened(one, root=root, at=at))
        else:
            found.append(ProviderInfo.of(spec or name, name, one.capabilities, root=root, at=at))
    return found


def _name_of(one: Provider | NotOpened) -> str:
    """Return the display name of a provider: its spec if it is not open."""
    return one.spec if isinstance(one, NotOpened) else one.name


async def leading_providers(providers: MemoryProviders, progress: Progress = no_progress) -> list[str]:
    """Return the names of the providers that lead a new device to the version published last, by a list of pins, or by the names of
    the anchor and of this device. Providers that do not answer are omitted."""
    return await leading(providers._replica, providers._syncing.published_at().open, progress=progress)
