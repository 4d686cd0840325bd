"""Pauses of providers between attempts, for tests of what happens after all attempts failed."""

from __future__ import annotations

import asyncio

import pytest
from ipfsmem_providers.http.policy import Timing

#: How much shorter a pause is than in production.
_SHORTER = 100


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Let each pause of a provider in this process take a hundredth of its time."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / _SHORTER)

    defaults = {**Timing._field_defaults, "sleep": sleep}
    patch.setattr(Timing.__new__, "__defaults__", tuple(defaults.values()))
