"""Finds the days that a query names in English: "on 3 May", "in 2025", "last week", 2026-05-03."""

from __future__ import annotations

from datetime import date

import msgspec

from ipfsmem.lazy_pattern import lazy_pattern

#: English names.
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAME = "|".join(MONTHS)
_iso = lazy_pattern(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_day_first = lazy_pattern(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_NAME})\b(?:,? (\d{{4}})\b)?")
_month_first = lazy_pattern(rf"\b({_NAME}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?")
_month = lazy_pattern(rf"\b({_NAME})(?: (?:of )?(\d{{4}})\b)?")
_month_after = lazy_pattern(r"\b(?:in|during|of|since|until|before|after|last|this|early|mid|late) $")
_year = lazy_pattern(r"\b(?:in|during|of|since|until|before|after) (\d{4})\b")
_ago = lazy_pattern(r"\b(\d{1,3}) (day|week)s? ago\b")
#: A query that names a day without digits contains one of these.
_DAY_WORDS = (*MONTHS, "today", "yesterday", "this ", "last ")
_near = lazy_pattern(r"\b(today|yesterday|(?:this|last) (?:week|month|year))\b")


class Days(msgspec.Struct, frozen=True):
    """The days that a query names: those from the first to the last, or all days with this day, month and year (None: any)."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    first: date | None = None
    last: date | None = None

    def __contains__(self, day: object) -> bool:
        if not isinstance(day, date):
            return False
        if self.first is not None and self.last is not None:
            return self.first <= day <= self.last
        return (
            self.year in (None, day.year) and self.month in (None, day.month) and self.day in (None, day.day)
        )


def days_named(question: str, today: date) -> list[Days]:
    """Return the days that a query names. A day outside the calendar matches no entry."""
    text = question.lower()
    if not [name for name in _DAY_WORDS if name in text] and not any(map(str.isdecimal, text)):
        return []  # most queries, without compiling a pattern
    days = [Days(int(one[1]), int(one[2]), int(one[3]) if one[3] else None) for one in _iso.finditer(text)]
    text = _iso.sub(" ", text)
    for form, day, month in ((_day_first, 1, 2), (_month_first, 2, 1)):
        for one in form.finditer(text):
            days.append(Days(int(one[3]) if one[3] else None, MONTHS.index(one[month]) + 1, int(one[day])))
        text = form.sub(" ", text)
    for one in _month.finditer(text):
        # "may" and "march" also have other meanings
        if one[2] or one[1] not in ("may", "march") or _month_after.search(text[: one.start()]):
            days.append(Days(int(one[2]) if one[2] else None, MONTHS.index(one[1]) + 1))
    days += [Days(int(one[1])) for one in _year.finditer(_month.sub(" ", text))]
    for one in _ago.finditer(text):
        days.append(_ago_days(int(one[1]), one[2], today))
    return days + [_near_days(one[1], today) for one in _near.finditer(text)]


def _ago_days(number: int, unit: str, today: date) -> Days:
    """Return the day `number` days ago, or the week around the day `number` weeks ago."""
    middle = _before(today, number * (7 if unit == "week" else 1))
    around = 3 if unit == "week" else 0
    return Days(first=_before(middle, around), last=_before(middle, -around))


def _near_days(words: str, today: date) -> Days:
    """Return today, yesterday, or this or the last week (from Monday on), month or year."""
    which, _, unit = words.partition(" ")
    if not unit:
        day = _before(today, which == "yesterday")
        return Days(first=day, last=day)
    last = which == "last"
    if unit == "year":
        return Days(today.year - last)
    if unit == "month":
        there = _before(today.replace(day=1), 1) if last else today
        return Days(there.year, there.month)
    monday = _before(today, today.weekday() + 7 * last)
    return Days(first=monday, last=_before(monday, -6))


def _before(day: date, days: int) -> date:
    """Return the day `days` before `day`, at the earliest the first day of the calendar."""
    ordinal = day.toordinal() - days
    return date.fromordinal(min(max(ordinal, 1), date.max.toordinal()))
