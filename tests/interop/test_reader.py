"""A second reader, in JavaScript, written from docs/FORMAT.md alone: it reads every whole vault of the vectors as this program does.

It shares no code with the package and was written without looking at it (tests/interop/reader). Where it disagrees, one of the
two is wrong, or the document says too little.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.counterparts import need_program, npm_folder, run

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
CASES = json.loads((VECTORS / "vaults.json").read_text("utf-8"))["cases"]


def lines(script: str, argument: Path) -> list[dict[str, Any]]:
    """What a script of the reader prints, one JSON object a line."""
    said = run([need_program("node"), npm_folder("reader") / script, argument])
    return [json.loads(line) for line in said.splitlines()]


@pytest.fixture(scope="module")
def vaults() -> dict[str, dict[str, Any]]:
    """What the reader says of each vault."""
    return {one["name"]: one["said"] for one in lines("run.mjs", VECTORS / "vaults.json")}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_the_reader_sees_what_this_program_sees(
    case: dict[str, Any], vaults: dict[str, dict[str, Any]]
) -> None:
    assert vaults[case["name"]] == case["expect"]


def test_the_reader_agrees_with_the_vectors_of_single_rules() -> None:
    judged = lines("vectors.mjs", VECTORS)
    assert [one for one in judged if one["fails"]] == []
    assert len(judged) == 20 and all(one["rows"] for one in judged)
