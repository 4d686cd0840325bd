"""Numbers and times in texts for people, and times as people write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from datetime import date, datetime, tzinfo

_BACK: Final = lazy_pattern(r"(\d{1,6})([smhdw])", re.ASCII)
_DAY: Final = 86_400_000
#: The end of the calendar, in ms since 1970.
FOREVER: Final = 253_402_300_800_000
#: The start of the calendar, year 1, in ms since 1970.
ALWAYS: Final = -62_135_596_800_000
_MILLISECONDS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": _DAY, "w": 7 * _DAY}


def count(number: int, one: str, many: str | None = None) -> str:
    """Return `1 memory` or `2 memories`. `many`: the plural, unless it ends in `-s` or `-ies`."""
    if many is None:
        many = one[:-1] + "ies" if one.endswith("y") else one + "s"
    return f"{number:,} {one if number == 1 else many}"


def moment(ms: int | None, zone: tzinfo | None = None) -> str:
    """Return milliseconds since 1970 as date and time in `zone` (None: UTC); "" for None. Writers may set dates beyond the calendar."""
    from datetime import UTC, datetime

    if ms is None:
        return ""
    try:
        return datetime.fromtimestamp(ms / 1000, zone or UTC).replace(tzinfo=None).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return "after the year 9999"


def local_moment(ms: int | None) -> str:
    """Return the same in the time zone of this machine (`TZ`)."""
    from datetime import datetime

    try:
        return "" if ms is None else datetime.fromtimestamp(ms / 1000).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return moment(ms)


def local_iso(ts: str) -> str:
    """Convert an ISO 8601 time (without an offset: UTC) to this machine's time zone with its offset; return other texts unchanged."""
    from datetime import UTC, datetime

    try:
        parsed = datetime.fromisoformat(ts)
        local = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone()
    except (OverflowError, ValueError, OSError):
        return ts
    return local.isoformat(timespec="milliseconds") if local.utcoffset() else ts


def moment_of(said: str, now: int, zone: tzinfo | None = None) -> int:
    """Return milliseconds since 1970 of a day, a time (RFC 3339), `today`, `yesterday`, or a time before `now` such as `24h` or `7d`.

    Days, and times without an offset, are in `zone`; None: that of this machine (`TZ`). Raises UsageError.
    """
    from datetime import datetime, timedelta

    text = said.strip().lower()
    if (back := _BACK.fullmatch(text)) is not None:
        return now - int(back[1]) * _MILLISECONDS[back[2]]
    try:
        if text in ("today", "yesterday"):
            day = datetime.fromtimestamp(now / 1000, zone).replace(tzinfo=None)
            at = datetime(day.year, day.month, day.day) - timedelta(days=text == "yesterday")
        else:
            at = datetime.fromisoformat(text.upper())
        return _ms(at, zone)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{said[:40]!a} is not a moment: say 24h, 7d, yesterday, 2026-04-14 or 2026-04-14T09:30:00Z"
        ) from None


def _ms(at: datetime, zone: tzinfo | None) -> int:
    """Return a time in ms, in `zone` if it has no offset. A time that a clock change skips is the time of that change."""
    from datetime import UTC

    try:
        return _floored(at if at.tzinfo else at.replace(tzinfo=zone))
    except (OverflowError, OSError, ValueError):
        # Within a day of the ends of the calendar there is no local time everywhere.
        return _floored(at.replace(tzinfo=UTC))


def _floored(at: datetime) -> int:
    # Before 1970, int() of a product with a rounding error would round towards zero, to the next millisecond.
    return round(at.timestamp() * 1_000_000) // 1000


def local_day(ms: int, zone: tzinfo | None = None) -> date | None:
    """Return the day of a time in `zone` (None: that of this machine); None beyond the calendar."""
    from datetime import datetime

    try:
        return datetime.fromtimestamp(ms / 1000, zone).date()
    except (OverflowError, ValueError, OSError):
        return None


def day_of(text: str, now: int, zone: tzinfo | None = None) -> str:
    """Return the day, such as `2026-04-14`, of a time that `moment_of` accepts. Raises UsageError."""
    day = local_day(moment_of(text, now, zone), zone)
    if day is None:
        raise UsageError(f"{text[:40]!a} is out of range")
    return day.isoformat()


def zone_of(name: str) -> tzinfo:
    """Return the time zone of an IANA name, such as `America/Los_Angeles`. Raises UsageError."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise UsageError(
            f"unknown time zone {name[:60]!a}", hint="Give an IANA name, such as Europe/Berlin or UTC."
        ) from None


class LocalDays(msgspec.Struct, frozen=True):
    """Days of a time zone, first and last included. `utc`: the first and last UTC day that they overlap."""

    utc: tuple[str, str]
    begin: int
    end: int

    def holds(self, ms: int) -> bool:
        """Tell whether a time is in one of these days."""
        return self.begin <= ms < self.end


def local_days(first: str, last: str, zone: tzinfo | None = None) -> LocalDays:
    """Return the days from `first` to `last` (`2026-04-14`) in `zone` (None: that of this machine). Raises UsageError."""
    from datetime import UTC, date, timedelta

    begin = moment_of(first, 0, zone)
    try:
        after = (date.fromisoformat(last) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        after = ""
    end = moment_of(after, 0, zone) if after else FOREVER
    utc = [local_day(ms, UTC) for ms in (begin, end - 1)]
    return LocalDays((str(utc[0] or date.min), str(utc[1] or date.max)), begin, end)
