"""Snapshots of providers for one sync, and this device's caches of what they answered earlier."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.provider.contract import Provider, Snapshots


def begin_snapshots(replica: Replica, providers: Sequence[Provider], *, cached: bool) -> None:
    """Begin a snapshot at each provider that takes them. `cached`: with what earlier runs read. A file that was
    read then may be lost by now, though it is listed, so that is not enough to check, repair or remove anything."""
    taking = _taking(providers)
    caches = _caches(replica) if taking and cached else {}
    for name, provider in taking.items():
        provider.begin_snapshot(caches.get(name, b""))


def end_snapshots(replica: Replica, providers: Sequence[Provider]) -> None:
    """End the snapshots and store the caches. Outside any transaction."""
    taking = _taking(providers)
    caches = {name: provider.end_snapshot() for name, provider in taking.items()}
    if taking and caches != _caches(replica):
        with replica.transaction():
            replica.db.set_meta(meta.PROVIDER_CACHES, msgspec.json.encode(caches))


def _taking(providers: Sequence[Provider]) -> dict[str, Snapshots]:
    return {provider.name: provider for provider in providers if isinstance(provider, Snapshots)}


def _caches(replica: Replica) -> dict[str, bytes]:
    stored = replica.db.get_meta(meta.PROVIDER_CACHES)
    try:
        return read_json(stored, type=dict[str, bytes]) if stored else {}
    except msgspec.DecodeError:
        return {}
