"""Checks the reason for a removal before anything is removed, as it is recorded afterwards."""

from __future__ import annotations

from typing import Final

from ipfsmem.errors import UsageError

#: Maximum characters of a reason, which operations check.
MAX_REASON: Final = 1_000


def check_reason(reason: str) -> str:
    """Return the reason. Raises UsageError if it cannot be recorded."""
    if not isinstance(reason, str):
        raise UsageError(f"a reason is text, not {type(reason).__name__}")
    if any("\ud800" <= c <= "\udfff" for c in reason):
        raise UsageError(
            "the reason holds half a character (a lone surrogate)",
            hint="Nothing was removed. Leave that character out of the reason.",
        )
    return reason
