"""Whether it is time to dream: what has to be true before a dream begins by itself, asked in order, the cheapest first."""

from __future__ import annotations

import msgspec

_HOUR = 3_600_000


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. `hours` since the last dream that ended well; `sessions` that were written to since."""

    hours: float = 24.0
    sessions: int = 3


def closed(gates: Gates, *, enabled: bool, chosen: bool, now: int, last: int, sessions: int) -> str:
    """Why no dream begins by itself now, in words; "" when one does.

    `enabled`: the settings allow it; `chosen`: it was switched on for this memory on this device; `now` and `last`, the end of the last
    dream that ended well (0: never), in milliseconds since 1970 UTC; `sessions`: how many were written to since.
    """
    if not enabled:
        return "the settings do not allow it"
    if not chosen:
        return "it is not switched on for this memory on this device"
    # A clock that was put back must not keep dreams away for years: then the hours count as over.
    passed = (now - last) / _HOUR
    if last and 0 <= passed < gates.hours:
        return f"the last dream was {passed:.1f} h ago, and {gates.hours:g} h are to pass"
    if sessions < gates.sessions:
        return f"{sessions} of {gates.sessions} sessions were written to since the last dream"
    return ""
