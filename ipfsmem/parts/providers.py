"""`memory.providers`: the providers of a vault: test, move, follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ipfsmem.bundle.program_events import Move
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import placed
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.syncing import Syncing
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.provider.choice import specs_of
from ipfsmem.provider.contract import Provider, access_policy, shown_spec
from ipfsmem.provider.opening import NotOpened, Providers
from ipfsmem.results import ProviderInfo
from ipfsmem.sync.engine import leading
from ipfsmem.sync.forwarding import unanswered_move
from ipfsmem.sync.interval import SyncInterval, free_interval
from ipfsmem.sync.names import member_names
from ipfsmem.sync.progress import Progress, no_progress


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

    def free_interval(self) -> SyncInterval:
        """Return the shortest interval of syncs that is free of charge at all providers, for all devices together; else a cheap one."""
        return free_interval(self._syncing.places.open, max(1, len(member_names(self._replica))))

    def policy(self, spec: str) -> dict[str, Any]:
        """Return the least-rights access policy of a bucket as JSON. ConfigError for providers without one."""
        return access_policy(spec)

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
    infos = []
    for spec, one in zip(specs or [""] * len(places.each), places.each, strict=True):
        name = name_of(one)
        last = next(iter(placed.newest_at(replica.db.connection, name, 1)), None)
        root, at = (last.answered, last.at) if last is not None else (None, None)
        if isinstance(one, NotOpened):
            infos.append(ProviderInfo.of_not_opened(one, root=root, at=at))
        else:
            infos.append(ProviderInfo.of(spec or name, name, one.capabilities, root=root, at=at))
    return infos


def name_of(one: Provider | NotOpened) -> str:
    """Return the display name of a provider: its spec if it is not open."""
    return one.spec if isinstance(one, NotOpened) else one.name


async def leading_providers(providers: MemoryProviders, progress: Progress = no_progress) -> list[str]:
    """Return the names of the providers that lead a new device to the version published last, by a list of pins, or by the names of
    the anchor and of this device. Providers that do not answer are omitted."""
    return await leading(providers._replica, providers._syncing.published_at().open, progress=progress)
