"""Writes fixtures/vectors/time_ranges.json: time ranges in words and their meaning in UTC. Run it from the
checkout after a change of their meaning: `python -m tests.unit.memories.make_time_range_vectors`; a test
compares."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipfsmem.errors import UsageError
from ipfsmem.memories.time_ranges import since_until, time_range

TARGET = Path(__file__).parents[3] / "fixtures" / "vectors" / "time_ranges.json"
ABOUT = (
    "Ranges of time as people say them, seen from a moment 'now', in UTC: no part of the format, and the same in every face. A range is its "
    "first millisecond since 1970 and the first after it; null: the words name none, or nothing lies in it."
)
#: A Saturday, the last day of a leap year's February, and the first moment of a year.
MOMENTS = ["2026-11-28T19:46:00+00:00", "2024-02-29T12:00:00+00:00", "2027-01-01T00:00:00+00:00"]
SAID = [
    "7d", "24h", "90m", "30s", "2w", "today", "yesterday", "this week", "last week", "this month", "last month", "last year", "this year",
    "monday", "on friday", "last friday", "saturday", "last saturday", "last 3 days", "past 2 hours", "last 18 months", "last 1 year", "the last 5 weeks",
    "3 days ago", "2 weeks ago", "1 month ago", "5 months ago", "2 years ago", "90 minutes ago", "4 hours ago",
    "two weeks ago", "a month ago", "an hour ago", "a couple of days ago", "twelve months ago", "the last two weeks", "past three days", "the past month", "in the past week", "last hour", "past year", "last day",
    "the day before yesterday", "weekend", "the weekend", "this weekend", "last weekend", "since last weekend", "last november", "last nov", "last december", "last january", "between two weeks ago and yesterday",
    "thirteen days ago", "a couple weeks", "a may", "last weekends", "the day before", "last november 2023", "past weekend",
    "may", "in may", "during june", "march", "may 2023", "sept 2023", "sep. 2023", "Dec 2024", "december of 2024", "3 may", "3rd of may 2023", "May 3, 2023", "29 february", "feb 29 2023", "30 february",
    "2023", "2023-05", "2023-05-08", "2023-13", "2023-02-30", "0000-01-01", "9999-12-31", "9999", "0001-01-01",
    "2023-05-08T10:00", "2023-05-08 10:00:00.123456Z", "2023-05-08T10:00:00+02:00", "2023-05-08T10:00-0130", "2023-05-08T25:00",
    "20230508", "2023-W19", "2023w19", "2023-W19-1", "2023W197", "2020-W53", "2021-W53", "2024-W00", "2023-W19-8", "2023-W19-0", "0001-W01", "0001-W01-1", "9999-W52", "9999-W53-1",
    "2023-0508", "202305-08", "2023-W191", "2023W19-1", "20230230", "202305", "20231301", "0000W01",
    "20230508T10", "20230508T1000", "20230508 100005", "20230508T100005,5Z", "2023-W19-1T10:00", "2023-W19T10:00+0530", "2023W191 23:59:59.9999-02", "2023-05-08T1000", "2023-05-08T10:0005", "2023-05-08T1000:05",
    "2023-05-08_10:00", "2023-05-08T24:00", "2023-05-08T10:60", "2023-05-08T10:00:60", "2023-05-08T10:00+24:00", "2023-05-08T10:00+02:60", "2023-05-08T10:00+02:00:30", "2023-05-08T10:00:00.1234567890", "2023-05-08Z", "2023-05-08T",
    "since 20230508", "after 20230508", "after 2023-W19", "until 2023W19", "before 2023-W19-3", "from 20230501 to 20230514", "between 2023-W19 and 2023-W20", "after 2023-05-08T10:00", "2023-05-08T10:00:00.999Z", "1900-05-08T10:00:07.004Z",
    "since friday", "since 2023-05-08T10:00:00Z", "from may 2023", "after 2023", "until yesterday", "till may 2023", "up to today", "before june 2024", "since 3 days ago", "before 7d",
    "from 2023-05-01 to 2023-05-14", "between may and june 2023", "between may 2023 and june 2023", "from monday until today", "from june 2024 to may 2024", "from 2023 till last month", "from 1 may to 3 may",
    "  Since   FRIDAY ", "in the last 2 days", "on the 3 may", "soon", "", "last", "friday 13", "may june", "99999d", "999999w", "last 9999 years", "in in may", "x" * 101,
]  # fmt: skip
TOGETHER: list[dict[str, str]] = [
    {"since": "2023-05-01", "until": "2023-05-14"}, {"since": "may", "when": "last month"}, {"until": "2023", "when": "2023-05"},
    {"since": "2024", "until": "2023"}, {"since": "7d", "until": "today"}, {},
]  # fmt: skip


def build() -> dict[str, Any]:
    """The whole file."""
    rows, together = [], []
    for at in MOMENTS:
        now = int(datetime.fromisoformat(at).timestamp() * 1000)
        for said in SAID:
            try:
                rows.append({"now": now, "said": said, "range": list(time_range(said, now, UTC))})
            except UsageError:
                rows.append({"now": now, "said": said, "range": None})
        for one in TOGETHER:
            try:
                found = list(since_until(one.get("since"), one.get("until"), one.get("when"), now, UTC))
            except UsageError:
                together.append({"now": now, **one, "range": None})
            else:
                together.append({"now": now, **one, "range": found})
    return {"about": ABOUT, "ranges": rows, "together": together}


def text(data: dict[str, Any]) -> str:
    """The file for these contents."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(build()), "utf-8")
