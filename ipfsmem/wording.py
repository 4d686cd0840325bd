"""Words that depend on a number, for texts that people read."""

from __future__ import annotations


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 memory`, `2 memories`; `many` where that is neither `-s` nor `-ies`."""
    if many is None:
        many = one[:-1] + "ies" if one.endswith("y") else one + "s"
    return f"{number:,} {one if number == 1 else many}"
