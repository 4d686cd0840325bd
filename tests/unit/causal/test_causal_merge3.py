"""The three-way merge of lines, header fields and memory files equals the shared vectors, within its
limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.causal.merge3 import lines_of, merge_fields, merge_lines, merge_memory

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/merge3.json").read_text())


def merged(base: str, a: str, b: str) -> str | None:
    lines = merge_lines(list(base), list(a), list(b))
    return None if lines is None else "".join(lines)


def test_examples_of_the_format_merge_as_documented() -> None:
    assert merged("abcde", "aBcde", "abcdEf") == "aBcdEf"
    assert merged("xaxbx", "xxbx", "xaxbyx") == "xxbyx"
    assert merged("abc", "aBc", "abC") is None


def test_merged_lines_equal_the_vectors() -> None:
    assert len(VECTORS["lines"]) >= 300
    for case in VECTORS["lines"]:
        assert merged(case["base"], case["a"], case["b"]) == case["merged"], case


@pytest.mark.parametrize("case", VECTORS["fields"], ids=lambda case: case["why"])
def test_merged_fields_equal_the_vectors(case: Any) -> None:
    found = merge_fields(dict(case["base"]), dict(case["a"]), dict(case["b"]))
    assert (None if found is None else [list(item) for item in found.items()]) == case["merged"]


@pytest.mark.parametrize("case", VECTORS["memories"], ids=lambda case: case["why"])
def test_merged_memories_equal_the_vectors(case: Any) -> None:
    found = merge_memory(case["base"].encode(), case["a"].encode(), case["b"].encode())
    assert (None if found is None else found.decode()) == case["merged"]


def test_invalid_file_is_not_merged() -> None:
    case = VECTORS["not_utf8_hex"]
    assert merge_memory(*(bytes.fromhex(case[side]) for side in ("base", "a", "b"))) is None
    assert merge_memory(b"", b"x" * (960 * 1024 + 1), b"") is None


def test_result_over_the_limits_is_not_merged() -> None:
    base = "---\nname: n\n---\n"
    a = base.replace("n\n---", f"n\nx1: {'1' * 3000}\n---")
    b = base.replace("n\n---", f"n\nx2: {'2' * 3000}\n---")
    assert merge_memory(base.encode(), a.encode(), b.encode()) is None


@pytest.mark.parametrize("case", VECTORS["limit"]["cases"], ids=str)
def test_number_of_compared_line_pairs_is_limited(case: Any) -> None:
    n, m = case["n"], case["m"]
    base = [f"x{i}" for i in range(n)]
    a, b = ["a"] * (m - n) + base, [*base, "b"]
    assert merge_lines(base, a, b) == ([*a, "b"] if case["clean"] else None)
    assert merge_lines(base, b, a) == ([*a, "b"] if case["clean"] else None)


def test_text_is_split_into_lines() -> None:
    assert lines_of("") == []
    assert lines_of("a\n\nb") == ["a", "", "b"]
