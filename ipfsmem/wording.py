"""Words that depend on a number or on a moment, for texts that people read; and moments as people say them."""

from __future__ import annotations

import re
from typing import Final

from ipfsmem.errors import UsageError

_BACK: Final = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_DAY: Final = 86_400_000
_MILLISECONDS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": _DAY, "w": 7 * _DAY}


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 memory`, `2 memories`; `many` where that is neither `-s` nor `-ies`."""
    if many is None:
        many = one[:-1] + "ies" if one.endswith("y") else one + "s"
    return f"{number:,} {one if number == 1 else many}"


def moment(ms: int | None) -> str:
    """Milliseconds since 1970 as date and time in UTC; empty for None. Whoever may write can date a text later than dates go."""
    from datetime import UTC, datetime

    if ms is None:
        return ""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    except (OverflowError, ValueError, OSError):
        return "after the year 9999"


def moment_of(said: str, now: int) -> int:
    """Milliseconds since 1970 (UTC) of a day, a moment (RFC 3339; UTC where it says no zone), `today` or `yesterday` (UTC), or a
    time back from `now`, as `24h` or `7d`. Raises UsageError."""
    from datetime import UTC, datetime

    text = said.strip().lower()
    if text in ("today", "yesterday"):
        return now - now % _DAY - (_DAY if text == "yesterday" else 0)
    if (back := _BACK.fullmatch(text)) is not None:
        return now - int(back[1]) * _MILLISECONDS[back[2]]
    try:
        found = datetime.fromisoformat(text.upper())
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{said[:40]!a} is no moment: say 24h, 7d, yesterday, 2026-04-14 or 2026-04-14T09:30:00Z"
        ) from None


def day_of(said: str, now: int) -> str:
    """The UTC day, as `2026-04-14`, of a moment as people say one (`moment_of`). Raises UsageError."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(moment_of(said, now) / 1000, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        raise UsageError(f"{said[:40]!a} is before the days that are counted") from None
