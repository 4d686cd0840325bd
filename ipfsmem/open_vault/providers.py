"""The providers of an open vault: their specs, names, and what this device published there."""

from __future__ import annotations

import msgspec

from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import placed
from ipfsmem.open_vault.syncing import Syncing
from ipfsmem.provider.choice import specs_of
from ipfsmem.provider.contract import Provider, shown_spec
from ipfsmem.provider.opening import NotOpened
from ipfsmem.results import ProviderInfo


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
