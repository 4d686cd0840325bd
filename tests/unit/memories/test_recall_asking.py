"""Recall with several phrasings, a time range in words, or a person; refusals name the next step."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.errors import UsageError
from ipfsmem.memories.time_ranges import TimeRange, since_until, time_range
from ipfsmem.memory import Memory
from ipfsmem.operations.recall import Recalled, RecallHit
from ipfsmem.recall.fusion import fused
from ipfsmem.recall.recipe import Hit
from ipfsmem.wording import ALWAYS, FOREVER, zone_of
from tests.support.device_lab import Lab
from tests.support.tools_lab import Model

CALIFORNIA = zone_of("America/Los_Angeles")
#: A Saturday.
NOW = int(datetime(2026, 11, 28, 17, tzinfo=UTC).timestamp() * 1000)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=CALIFORNIA).timestamp() * 1000)


def texts(found: Recalled) -> list[str]:
    """Return the found texts, best first."""
    return [hit.key if isinstance(hit, RecallHit) else hit.text for hit in found.in_order()]


@pytest.fixture
def memory() -> Memory:
    return Memory.load("alex", "none")


@pytest.mark.parametrize(
    ("said", "begin", "end"),
    [
        ("yesterday", "2026-11-27", "2026-11-28"),
        ("last week", "2026-11-16", "2026-11-23"),
        ("this month", "2026-11-01", "2026-12-01"),
        ("in may 2023", "2023-05-01", "2023-06-01"),
        ("2023-05", "2023-05-01", "2023-06-01"),
        ("2023", "2023-01-01", "2024-01-01"),
        ("8 May 2023", "2023-05-08", "2023-05-09"),
        ("May 8th, 2023", "2023-05-08", "2023-05-09"),
        ("dec", "2025-12-01", "2026-01-01"),  # the last one that has begun
        ("29 feb", "2024-02-29", "2024-03-01"),
        ("friday", "2026-11-27", "2026-11-28"),
        ("saturday", "2026-11-28", "2026-11-29"),
        ("last saturday", "2026-11-21", "2026-11-22"),
        ("3 days ago", "2026-11-25", "2026-11-26"),
        ("2 months ago", "2026-09-01", "2026-10-01"),
        ("since friday", "2026-11-27", None),
        ("after may 2023", "2023-06-01", None),
        ("last 3 months", "2026-08-28", None),
        ("from 2023-05-01 to 2023-05-14", "2023-05-01", "2023-05-15"),
        ("between may and june 2024", "2024-05-01", "2024-07-01"),
        ("20260508", "2026-05-08", "2026-05-09"),
        ("2026-w48", "2026-11-23", "2026-11-30"),
        ("2026-W48-2", "2026-11-24", "2026-11-25"),
        ("2026-03-08", "2026-03-08", "2026-03-09"),  # of 23 hours
        ("2026-11-01", "2026-11-01", "2026-11-02"),  # of 25 hours
    ],
)
def test_time_range_in_words_uses_local_days(said: str, begin: str, end: str | None) -> None:
    wanted = TimeRange(ms(begin), FOREVER if end is None else ms(end))
    assert time_range(said, NOW, CALIFORNIA) == wanted


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("2026-11-27T10", 3_600), ("2026-11-27T10:00", 60), ("2026-11-27 10:00:00", 1), ("20261127T100000.000", 0.001)],
)  # fmt: skip
def test_time_in_digits_is_as_long_as_its_precision(said: str, seconds: float) -> None:
    begin = ms("2026-11-27") + 10 * 3_600_000
    assert time_range(said, NOW, CALIFORNIA) == (begin, begin + int(seconds * 1_000))
    assert time_range(f"{said}-08:00", NOW) == (begin, begin + int(seconds * 1_000))
    assert time_range(f"since {said}", NOW, CALIFORNIA) == (begin, FOREVER)
    assert time_range(f"from {said} to 2026-11-27T11:00", NOW, CALIFORNIA) == (begin, begin + 3_600_001)


def test_relative_time_range_begins_at_the_current_time() -> None:
    for said in ("7d", "since 7d", "past 7 days", "last 1 week"):
        assert time_range(said, NOW, CALIFORNIA) == (NOW - 7 * 86_400_000, FOREVER)
    assert time_range("until yesterday", NOW, CALIFORNIA) == (ALWAYS, ms("2026-11-28"))
    assert time_range("before june 2024", NOW, CALIFORNIA) == (ALWAYS, ms("2024-06-01"))
    assert since_until("friday", "friday", "last 3 months", NOW, CALIFORNIA) == (
        ms("2026-11-27"),
        ms("2026-11-28"),
    )


@pytest.mark.parametrize(
    "said",
    ["", "soon", "since", "31 feb 2023", "2023-13", "0000", "friday week", "since since may", "9" * 99 + "d", "last 9999 years", "x" * 101, "{}", "may {0}"],
)  # fmt: skip
def test_words_without_a_time_are_refused_with_examples(said: str) -> None:
    with pytest.raises(UsageError) as refused:
        time_range(said, NOW, CALIFORNIA)
    examples = (
        (refused.value.hint or "")
        .removeprefix("For example: ")
        .removesuffix(".")
        .replace(" or from", ", from")
    )
    for example in examples.split(", "):
        assert time_range(example, NOW, CALIFORNIA).begin < NOW
    with pytest.raises(UsageError):
        since_until(said, None, None, NOW)


@given(st.text(max_size=30))
def test_any_text_is_a_time_range_or_refused(said: str) -> None:
    try:
        found = time_range(said, NOW, CALIFORNIA)
    except UsageError:
        return
    assert found.begin >= 0 or found.begin < found.end


def test_range_that_ends_before_it_begins_is_refused(memory: Memory) -> None:
    memory.write("a", "tea")
    with pytest.raises(UsageError, match="ends before it begins"):
        memory.recall("tea", since="today", until="yesterday")
    with pytest.raises(UsageError, match="ends before it begins"):
        memory.recall("tea", when="from 2026-05-02 to 2026-05-01")


def test_fused_hit_has_its_best_relative_score() -> None:
    one = [Hit("b", 8.0, {"words": 6.0, "file": 2.0}), Hit("c", 2.0, {"words": 2.0})]
    other = [Hit("a", 4.0, {"words": 4.0}), Hit("c", 3.0, {"words": 1.0, "cover": 2.0})]
    made = fused([one, other])
    assert made == fused([other, one])
    assert [(hit.id, hit.score) for hit in made] == [("a", 1.0), ("b", 1.0), ("c", 0.75)]
    assert made[2].parts == {"words": 0.25, "cover": 0.5}
    assert fused([one]) == [
        Hit(hit.id, hit.score / 8, {k: v / 8 for k, v in hit.parts.items()}) for hit in one
    ]
    assert fused([[], one]) == fused([one]) and fused([[], []]) == []


def test_two_phrasings_find_both_hops(memory: Memory) -> None:
    for n in range(30):
        memory.write(f"n{n}", f"Note {n} about the weekly market and its stalls")
    memory.write("brother", "The brother of Ana is called Tomas")
    memory.write("tomas", "Tomas keeps bees on the roof")
    both = texts(
        memory.recall("Who is Ana's brother?", queries=["What does Tomas keep on the roof?"], limit=2)
    )
    assert sorted(both) == ["brother", "tomas"]
    hits = memory.recall("Ana", queries=["Tomas bees"], explain=True).hits
    assert {hit.key: set(hit.words) for hit in hits} == {
        "tomas": {"tomas", "bees"},
        "brother": {"ana", "tomas"},
    }
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.parts.values())) and hit.parts["words"] > 0


@pytest.mark.parametrize("tz", ["America/Los_Angeles", "Pacific/Auckland", "UTC"])
def test_day_filter_includes_messages_between_local_midnights(
    tmp_path: Path, tz: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", tz)
    if not hasattr(time, "tzset"):
        pytest.skip("this system cannot change its time zone")
    time.tzset()
    try:
        memory = Memory.load("alex", "none")
        zone = zone_of(tz)
        midnight = datetime(2023, 5, 8, tzinfo=zone)
        at = {
            "the evening before": midnight - timedelta(milliseconds=1),
            "the first moment": midnight,
            "the last moment": midnight + timedelta(days=1, milliseconds=-1),
            "the next day": midnight + timedelta(days=1),
        }
        memory.sessions.add(
            "talk",
            [
                {
                    "role": "user",
                    "content": f"tea on {name}",
                    "timestamp": when.astimezone(UTC).isoformat(timespec="milliseconds"),
                }
                for name, when in at.items()
            ],
        )
        inside = {"tea on the first moment", "tea on the last moment"}
        for how in (
            {"when": "2023-05-08"},
            {"when": "8 may 2023"},
            {"since": "2023-05-08", "until": "2023-05-08"},
        ):
            assert set(texts(memory.recall("tea", kind="message", **how))) == inside, how  # type: ignore[arg-type]
        assert len(memory.recall("tea", kind="message", until="2023-05-08").moments) == 3
        assert len(memory.recall("tea", kind="message", since="2023-05-08").moments) == 3
    finally:
        monkeypatch.undo()
        time.tzset()


def test_recall_by_speaker_finds_only_the_speakers_messages(memory: Memory) -> None:
    memory.sessions.add(
        "talk",
        [
            {"role": "user", "content": "Ana: I planted tomatoes near the wall"},
            {"role": "user", "content": "Ben: Ana planted tomatoes, I planted beans"},
            {"role": "assistant", "content": "Tomatoes like the sun"},
        ],
    )
    memory.note("said", text="tomatoes again", speaker="Ana Lopez")
    memory.note("said", text="tomatoes for Ana", speaker="Ben", to="Ana")
    memory.write("note", "Ana likes tomatoes")
    said = texts(memory.recall("tomatoes", kind="all", by="ana"))
    assert len(said) == 2 and said[0] != said[1]
    assert all("Ana: I planted" in one or '"Ana Lopez"' in one for one in said)
    assert texts(memory.recall("tomatoes", kind="message", by="assistant")) == ["Tomatoes like the sun"]
    about = texts(memory.recall("tomatoes", kind="all", about="Ana"))
    assert "note" in about and "Tomatoes like the sun" not in about and len(about) == 5
    with pytest.raises(UsageError, match="is called 'Carla'") as refused:
        memory.recall("tomatoes", kind="all", by="Carla")
    assert "Writers" in (refused.value.hint or "")


def test_recall_filters_return_no_other_scope_expired_or_hidden_memory(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    memory = lab.create("a")
    memory.write("old", "Ana drank tea", fields={"expires": "2020-01-01"})
    memory.write("away", "Ana drank tea")
    memory.hidden.add(["away"])
    memory.write("here", "Ana drank tea")
    memory.scope("secret").write("there", "Ana drank tea")
    memory.scope("secret").sessions.add("talk", [{"role": "user", "content": "Carla: tea with Ana"}])
    files = {"version": "memory/0.1", "files": {"theirs.md": "Ana drank tea"}, "timeline": []}
    memory.bundles.import_(json.dumps(files), foreign=True)
    label = memory.recall("tea").hits[0].by
    for how in ({"by": label}, {"about": "Ana"}, {"when": "today"}, {"since": "7d", "until": "today"}):
        for more in ((), ("Ana", "who drank tea")):
            found = memory.recall("tea", queries=more, kind="all", **how)  # type: ignore[arg-type]
            assert [hit.key for hit in found.hits if hit.own] == ["here"], how
            assert found.moments == ()
    with pytest.raises(UsageError, match="is called 'Carla'"):
        memory.recall("tea", kind="all", by="Carla")
    assert memory.scope("secret").recall("tea", kind="message", by="Carla").moments


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs a query"),
        ({"queries": []}, "needs a query"),
        ({"queries": "tea"}, "list of texts"),
        ({"queries": [f"tea {n}" for n in range(9)]}, "queries has 9 items, at most 8"),
        ({"query": "tea", "queries": ["..."]}, "the query has no words"),
        ({"query": "tea", "about": "..."}, "about has no words"),
        ({"query": "tea", "when": "soonish"}, "is not a time range"),
    ],
)
def test_recall_with_invalid_time_or_person_is_refused_in_words(
    memory: Memory, given: dict[str, Any], said: str
) -> None:
    memory.write("a", "tea")
    with pytest.raises(UsageError, match=said):
        memory.recall(**given)


def test_recall_tool_accepts_phrasings_a_range_and_a_person(memory: Memory) -> None:
    memory.write("brother", "The brother of Ana is called Tomas")
    memory.write("tomas", "Tomas keeps bees")
    model = Model(memory)
    found = model("recall", queries=["brother of Ana", "what does Tomas keep"], when="today", about="Tomas")
    assert {hit["key"] for hit in found.structured["hits"]} == {"brother", "tomas"}
    assert model("recall", query="bees", when="before 2020").structured["hits"] == []
    assert "is not a time range" in model.refused("recall", query="bees", when="soonish")
    assert "needs a query" in model.refused("recall", limit=3)
