"""The conditions for an automatic dream, checked in order, cheapest first."""

from __future__ import annotations

import msgspec

_HOUR = 3_600_000


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """The settings: `hours` since the last successful dream; `sessions` written since."""

    hours: float = 24.0
    sessions: int = 3


def closed(gates: Gates, *, enabled: bool, chosen: bool, now: int, last: int, sessions: int) -> str:
    """Return why no automatic dream begins now, in words; "" if one does.

    `enabled`: the settings allow it; `chosen`: it was enabled for this vault on this device; `now` and `last`, the end of the
    last successful dream (0: never), in milliseconds since 1970 UTC; `sessions`: how many were written since.
    """
    if not enabled:
        return "the settings do not allow it"
    if not chosen:
        return "it is off for this vault on this device"
    # A clock that was set back must not prevent dreams for years: then the hours count as over.
    passed = (now - last) / _HOUR
    if last and 0 <= passed < gates.hours:
        return f"the last dream was {passed:.1f} h ago; the minimum interval is {gates.hours:g} h"
    if sessions < gates.sessions:
        return f"{sessions} of {gates.sessions} sessions were written to since the last dream"
    return ""
