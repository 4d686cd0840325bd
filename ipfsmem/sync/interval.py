"""The interval of syncs that the providers of a vault serve without charge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ipfsmem.provider.contract import Metered, Provider

#: Intervals to choose from, in seconds.
INTERVALS: Final = (300, 600, 900, 1_800, 3_600)
#: US$ a month that all devices together may cost where no interval is free.
_LITTLE: Final = 0.01
_MONTH: Final = 30 * 86_400


class SyncInterval(msgspec.Struct, frozen=True, kw_only=True):
    """An interval between syncs, and the cost of those that find no change."""

    seconds: int
    #: US$ a month for all devices of the vault, estimated from published prices.
    cost: float
    #: The providers with prices.
    metered: list[str]
    devices: int


def free_interval(providers: Sequence[Provider], devices: int) -> SyncInterval:
    """Return the shortest interval that is free for `devices` devices; else that costs little, else the longest."""
    priced = [provider for provider in providers if isinstance(provider, Metered)]
    metered = [provider for provider in priced if provider.idle_cost(_MONTH)]  # one a second
    intervals = [
        SyncInterval(
            seconds=seconds,
            cost=sum(provider.idle_cost(devices * _MONTH / seconds) for provider in metered),
            metered=[provider.name for provider in metered if isinstance(provider, Provider)],
            devices=devices,
        )
        for seconds in INTERVALS
    ]
    free = (one for one in intervals if not one.cost)
    little = (one for one in intervals if one.cost <= _LITTLE)
    return next(free, None) or next(little, intervals[-1])
