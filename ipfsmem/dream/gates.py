"""Checks the conditions for an automatic dream, cheapest first."""

from __future__ import annotations

import msgspec

_HOUR = 3_600_000


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """The settings: `hours` since the last successful dream; `sessions` written since."""

    hours: float = 24.0
    sessions: int = 3


def closed(gates: Gates, *, enabled: bool, chosen: bool, now: int, last: int, sessions: int) -> str:
    """Return why no automatic dream may start now; "" if one may.

    `enabled`: whether the settings allow it; `chosen`: whether it was enabled for this vault on this device; `now`, and `last`, the
    end of the last successful dream (0: never), in milliseconds since 1970 UTC; `sessions`: number of sessions written since.
    """
    if not enabled:
        return "the settings do not allow it"
    if not chosen:
        return "it is off for this vault on this device"
    # If the clock was set back, the hours are considered over, so that dreams are not prevented for years.
    passed = (now - last) / _HOUR
    if last and 0 <= passed < gates.hours:
        return f"the last dream was {passed:.1f} h ago; the minimum interval is {gates.hours:g} h"
    if sessions < gates.sessions:
        return f"{sessions} of {gates.sessions} sessions were written to since the last dream"
    return ""
