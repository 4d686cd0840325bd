"""Every trace that broke an earlier draft, and every way to lose data, has a test whose name has its
number."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
EVERY = json.loads((Path(__file__).parent / "traces.json").read_text("utf-8"))
TRACES = [trace for trace in EVERY if "part" not in trace]
#: The later parts of the format, each named by a letter.
LATER = [trace for trace in EVERY if "part" in trace]


@functools.cache
def _numbers(kind: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for match in re.finditer(
            rf"^(?:async )?def (test_{kind}(\d\d)_\w+)", path.read_text("utf-8"), re.MULTILINE
        ):
            found.setdefault(int(match[2]), []).append(f"{path.name}::{match[1]}")
    return found


NAMED = _numbers("trace_")


def test_list_of_traces_is_complete() -> None:
    assert [trace["number"] for trace in TRACES] == list(range(1, 47))


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: str(trace["number"]))
def test_each_trace_has_a_test(trace: dict[str, object]) -> None:
    number = trace["number"]
    assert isinstance(number, int)
    assert NAMED.get(number), f"no test_trace_{number:02}_...: {trace['title']}"


def test_each_way_to_lose_data_has_a_test() -> None:
    assert set(_numbers("loss_")) == set(range(1, 12))


def test_later_parts_are_complete() -> None:
    parts: dict[str, list[int]] = {}
    for trace in LATER:
        parts.setdefault(trace["part"], []).append(trace["number"])
    assert {
        part: numbers == list(range(1, len(numbers) + 1)) for part, numbers in parts.items()
    } == dict.fromkeys(parts, True)
    assert len(parts["E"]) == 20


@pytest.mark.parametrize("trace", LATER, ids=lambda trace: f"{trace['part']}{trace['number']}")
def test_each_trace_of_a_later_part_has_a_test(trace: dict[str, object]) -> None:
    part, number = str(trace["part"]).lower(), trace["number"]
    assert isinstance(number, int)
    assert _numbers(f"trace_{part}").get(number), f"no test_trace_{part}{number:02}_...: {trace['title']}"
