"""Words that depend on a number or on a moment, for texts that people read."""

from __future__ import annotations


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
