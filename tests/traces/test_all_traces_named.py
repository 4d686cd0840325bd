"""Every trace that broke an earlier draft has a test whose name has its number, and so has every way to lose data."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TRACES = json.loads((Path(__file__).parent / "traces.json").read_text("utf-8"))


def _numbers(kind: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                match = re.match(rf"test_{kind}_(\d\d)_", node.name)
                if match:
                    found.setdefault(int(match[1]), []).append(f"{path.name}::{node.name}")
    return found


NAMED = _numbers("trace")


def test_the_list_is_whole() -> None:
    assert [trace["number"] for trace in TRACES] == list(range(1, 47))


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: str(trace["number"]))
def test_a_trace_has_a_test(trace: dict[str, object]) -> None:
    number = trace["number"]
    assert isinstance(number, int)
    assert NAMED.get(number), f"no test_trace_{number:02}_...: {trace['title']}"


def test_every_way_to_lose_data_has_a_test() -> None:
    assert set(_numbers("loss")) == set(range(1, 12))
