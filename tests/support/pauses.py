"""Shortens the pauses between a provider's attempts, for tests of the outcome after all attempts failed."""

from __future__ import annotations

import asyncio

import pytest
from ipfsmem_providers.http.policy import Timing

#: Divisor of a pause.
_SHORTER = 100


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Shorten each pause of a provider in this process to a hundredth."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / _SHORTER)

    defaults = {**Timing._field_defaults, "sleep": sleep}
    patch.setattr(Timing.__new__, "__defaults__", tuple(defaults.values()))
