"""Parses time ranges as people and models write them: "last week", "may 2023", "7d", "since friday", "from 2023-05-01 to
2023-05-14"."""

from __future__ import annotations

import re
from datetime import date, timedelta, tzinfo
from typing import Final, NamedTuple

import msgspec

from ipfsmem.errors import UsageError
from ipfsmem.memories.query_words import MAX_RANGE
from ipfsmem.recall.dates import MONTHS, Days, days_named
from ipfsmem.wording import ALWAYS, FOREVER, local_day, local_days, moment_of

_HINT: Final = (
    "For example: 7d, yesterday, last week, last 3 months, friday, may 2023, 2023-05-08, since friday, before june 2024 or "
    "from 2023-05-01 to 2023-05-14."
)
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH: Final = "|".join(MONTHS)
_short = re.compile(rf"\b({'|'.join(name[:3] for name in MONTHS)}|sept)\b\.?")
_named = re.compile(
    rf"\d{{4}}(?:-\d\d(?:-\d\d)?)?|(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? )?(?:{_MONTH})(?:,? (?:of )?\d{{4}})?|"
    rf"(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|today|yesterday|(?:this|last) (?:week|month|year)|\d{{1,3}} (?:day|week)s? ago"
)
_both = re.compile(r"(?:from (.+) (?:to|until|till) (.+)|between (.+) and (.+))")
_one_end = re.compile(r"(since|from|after|until|till|up to|before) (.+)")
_weekday = re.compile(rf"(last )?({'|'.join(_WEEKDAYS)})")
_last = re.compile(r"(?:last|past) (\d{1,4}) (minute|hour|day|week|month|year)s?")
#: Numbers in words before a unit; no word is one.
_NUMBERS: Final = {
    word: number
    for number, words in enumerate(
        (
            "a|an|one",
            "a couple of|two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ),
        1,
    )
    for word in words.split("|")
}
_UNIT: Final = "(?:minute|hour|day|week|month|year)"
_number = re.compile(rf"\b({'|'.join(sorted(_NUMBERS, key=len, reverse=True))}) (?={_UNIT}s?\b)")
_one = re.compile(rf"^(past|last(?= (?:minute|hour|day)$)) (?={_UNIT}$)")
_weekend = re.compile(r"(?:(this|last) )?weekend")
_last_named = re.compile(rf"last ({_MONTH})")
_year_after, _any_year = re.compile(r",? \d{4}$"), re.compile(r"\b\d{4}\b")
_back = re.compile(r"\d+[a-z]")
#: A day or a week in digits, or a day with a time and an offset (ISO 8601).
_written = re.compile(
    r"\d{4}(?:(-?)\d\d\1\d\d|(-?)w\d\d(?P<weekday>\2\d)?)(?:[t ](?P<hour>[01]\d|2[0-3])"
    r"(?P<minute>(:?)[0-5]\d(?P<second>\6[0-5]\d(?P<part>[.,]\d{1,9})?)?)?(?:z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?"
)
_ago = re.compile(r"(\d{1,4}) (minute|hour|month|year)s? ago")


class TimeRange(NamedTuple):
    """The first millisecond of a range, and the first after it, both since 1970 UTC."""

    begin: int = ALWAYS
    end: int = FOREVER

    def within(self, other: TimeRange) -> TimeRange:
        """Return the intersection. Raises UsageError if it is empty."""
        both = TimeRange(max(self.begin, other.begin), min(self.end, other.end))
        if both.begin >= both.end:
            raise UsageError(
                "the time range is empty: it ends before it begins; give a beginning before the end, or one of them"
            )
        return both


EVER: Final = TimeRange()


def time_range(said: str, now: int, zone: tzinfo | None = None, *, form: str = "{}") -> TimeRange:
    """Parse a time range. `now`: in milliseconds since 1970 UTC. `zone`: the time zone of days, weeks (from Monday), months and
    years; None: this machine's. `form`: a template for the text, such as "since {}". Without a year, the last such date that has
    begun. Raises UsageError."""
    text = (
        " ".join(form.format(said.lower()).split())
        .removeprefix("in ")
        .removeprefix("on ")
        .removeprefix("during ")
    )
    if len(said) > MAX_RANGE:
        raise UsageError(f"a time range has at most {MAX_RANGE} characters", hint=_HINT)
    try:
        if both := _both.fullmatch(text):
            first, last = both[1] or both[3], both[2] or both[4]
            if (year := _year_after.search(last)) and not _any_year.search(first):
                first += year[0]
            begin, end = _point(first, now, zone).begin, _point(last, now, zone).end
            return TimeRange(begin).within(TimeRange(end=end))
        if one := _one_end.fullmatch(text):
            there = _point(one[2], now, zone)
            match one[1]:
                case "since" | "from":
                    return TimeRange(there.begin)
                case "after":
                    return TimeRange(there.end)
                case "before":
                    return TimeRange(end=there.begin)
                case _:
                    return TimeRange(end=there.end)
        there = _point(text, now, zone)
        if there.end != there.begin + 1:
            return there
        if one := _written.fullmatch(text):
            return TimeRange(there.begin, there.begin + _size_of(one))
        # A range back from now has no end, so that entries of a device whose clock is ahead are in it.
        return TimeRange(there.begin)
    except (_NotNamed, ValueError, OverflowError):
        raise UsageError(f"{said[:40]!a} is not a time range", hint=_HINT) from None


def since_until(
    since: str | None, until: str | None, when: str | None, now: int, zone: tzinfo | None = None
) -> TimeRange:
    """Return the intersection of the given ranges: from the beginning of `since`, to the end of `until`, within `when`. Raises
    UsageError."""
    range_ = EVER
    for text, form in ((since, "since {}"), (until, "until {}"), (when, "{}")):
        if text is not None:
            range_ = range_.within(time_range(text, now, zone, form=form))
    return range_


class _NotNamed(Exception):
    """The text is not a time range."""


def _point(text: str, now: int, zone: tzinfo | None) -> TimeRange:
    """Parse one end of a range: days, or a point in time."""
    text = _short.sub(lambda one: next(name for name in MONTHS if name.startswith(one[1][:3])), text)
    text = _number.sub(lambda one: f"{_NUMBERS[one[1]]} ", text.removeprefix("the "))
    text = _one.sub(r"\1 1 ", text)
    if text == "day before yesterday":
        text = "2 days ago"
    today = local_day(now, zone)
    if today is None:
        raise _NotNamed
    if one := _weekday.fullmatch(text):
        back = (today.weekday() - _WEEKDAYS.index(one[2])) % 7
        day = today - timedelta(days=back or (7 if one[1] else 0))
        return _days(day, day, zone)
    if one := _weekend.fullmatch(text):
        before = one[1] == "last" or (one[1] is None and today.weekday() < 5)
        saturday = today + timedelta(days=5 - today.weekday() - 7 * before)
        return _days(saturday, saturday + timedelta(days=1), zone)
    if one := _last_named.fullmatch(text):
        month = MONTHS.index(one[1]) + 1
        return _of_days(Days(today.year - (month >= today.month), month), today, zone)
    if one := _last.fullmatch(text):
        return _moment(_back_from(today, now, int(one[1]), one[2], zone))
    if one := _ago.fullmatch(text):
        number, unit = int(one[1]), one[2]
        if unit in ("minute", "hour"):
            return _moment(_back_from(today, now, number, unit, zone))
        months = today.year * 12 + today.month - 1 - number * (12 if unit == "year" else 1)
        return _of_days(Days(months // 12, months % 12 + 1 if unit == "month" else None), today, zone)
    if _named.fullmatch(text):
        (days,) = days_named(f"in {text}", today)
        return _of_days(days, today, zone)
    written = _written.fullmatch(text)
    if written is None and not _back.fullmatch(text):
        raise _NotNamed
    try:
        moment = moment_of(text, now, zone)
    except UsageError:
        raise _NotNamed from None
    if written is None or written["hour"]:
        return _moment(moment)
    first = local_day(moment, zone)
    if first is None:
        raise _NotNamed
    is_week = "w" in text and not written["weekday"]
    return _days(first, first + timedelta(days=6 if is_week else 0), zone)


def _back_from(today: date, now: int, number: int, unit: str, zone: tzinfo | None) -> int:
    """Return the time `number` units before now; for months and years the same calendar day, or the last day of the month."""
    if unit in ("minute", "hour", "day", "week"):
        return moment_of(f"{number}{unit[0]}", now, zone)
    months = today.year * 12 + today.month - 1 - number * (12 if unit == "year" else 1)
    first = date(months // 12, months % 12 + 1, 1)
    return _days(min(first + timedelta(days=today.day - 1), _last_of_month(first)), today, zone).begin


def _moment(ms: int) -> TimeRange:
    return TimeRange(ms, ms + 1)


def _size_of(written: re.Match[str]) -> int:
    """Return the precision of a time in digits (an hour, a minute, a second or less), in milliseconds."""
    return (
        1 if written["part"] else 1_000 if written["second"] else 60_000 if written["minute"] else 3_600_000
    )


def _last_of_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _of_days(days: Days, today: date, zone: tzinfo | None) -> TimeRange:
    """Return the range of a day, month or year; without a year, of the last one that has begun."""
    if days.first is not None and days.last is not None:
        return _days(days.first, days.last, zone)
    if days.year is None:
        month = days.month or 1
        # The 29th of February does not exist in every year.
        for year in range(today.year, today.year - 9, -1):
            try:
                begun = date(year, month, days.day or 1)
            except ValueError:
                continue
            if begun <= today:
                return _of_days(msgspec.structs.replace(days, year=year), today, zone)
        raise _NotNamed
    first = date(days.year, days.month or 1, days.day or 1)
    if days.day is not None:
        return _days(first, first, zone)
    return _days(first, _last_of_month(first) if days.month else date(days.year, 12, 31), zone)


def _days(first: date, last: date, zone: tzinfo | None) -> TimeRange:
    there = local_days(first.isoformat(), last.isoformat(), zone)
    return TimeRange(there.begin, there.end)
