"""Python, TypeScript and the plain reader parse every input alike: headers, keys, CIDs, lines, cards and
exports, mutated from a seed.

A difference becomes a vector in `fixtures/vectors`. The long form: `python -m bench.soak parsers`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop.counterparts import built_web, need_program, run
from tests.support.effort import cases
from tests.support.parsers import OF_PROVIDERS, PIECES, differences


def test_parsers_of_both_languages_agree_on_mutated_inputs(tmp_path: Path) -> None:
    node = need_program("node")
    found = differences(node, built_web() / "parsers.js", tmp_path, seed=2026, count=cases(4_000, 60_000))
    assert found[:5] == []


def test_parsers_of_both_languages_agree_on_answers_of_providers(tmp_path: Path) -> None:
    node, count = need_program("node"), cases(200, 2_000)
    found = differences(node, built_web() / "parsers.js", tmp_path, 2027, count, OF_PROVIDERS)
    assert found[:5] == []


def test_readers_agree_on_headers_of_pieces_of_yaml(tmp_path: Path) -> None:
    node, count = need_program("node"), cases(3_000, 30_000)
    found = differences(node, built_web() / "parsers.js", tmp_path, 2028, count, (PIECES,))
    assert found[:5] == []


def test_random_exports_are_imported_the_same_in_both_languages(tmp_path: Path) -> None:
    node, count = need_program("node"), cases(2_000, 30_000)
    found = differences(node, built_web() / "parsers.js", tmp_path, 2029, count, ("export",))
    assert found[:5] == []


@pytest.mark.parametrize("byte", [0, 1, 4, 255])
def test_pack_followed_by_megabytes_of_garbage_is_read_in_one_pass(tmp_path: Path, byte: int) -> None:
    file = tmp_path / "inputs.jsonl"
    file.write_text(json.dumps(["pack", [byte, 8 << 20]]), "utf-8")
    assert json.loads(run([need_program("node"), built_web() / "parsers.js", file])) == [
        True,
        True,
        False,
        None,
    ]
