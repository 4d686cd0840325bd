"""One verdict on every deflate stream, also with JavaScript's inflaters: the streams of deflate.json in Node.

Node's zlib and the platform's stream come with Node; pako and fflate are tested if they can be installed."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.counterparts import missing, need_program, npm_folder, run

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
FILE = HERE.parents[1] / "fixtures" / "vectors" / "deflate.json"
STREAMS: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["streams"]
#: Streams that zlib refuses and fflate 0.8 accepts, each for a missing check of the code: the reason why
#: format section 3 says more than "one raw deflate stream".
FFLATE_TAKES = {
    "a stored block whose length is not repeated",
    "length code 286 of the fixed code",
    "length code 287 of the fixed code",
    "distance code 31 of the fixed code",
    "287 lengths",
    "288 lengths",
    "31 distances",
    "32 distances",
    "codes of lengths that leave room",
    "codes of letters that leave room",
    "the first length repeats the one before",
    "repeated lengths pass their number",
}


@functools.cache
def verdicts(script: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run([need_program("node"), script, FILE]).splitlines()]


def expected(row: dict[str, Any]) -> dict[str, Any] | None:
    spec = row["payload"]
    return None if spec is None else {"letter": spec["text"], "length": spec["times"], "pure": True}


@pytest.mark.parametrize("judge", ["zlib", "platform"])
def test_node_gives_the_same_verdicts(judge: str) -> None:
    need_program("node")
    for row, said in zip(STREAMS, verdicts(HERE / "node" / "deflate.mjs"), strict=True):
        assert said[judge] == expected(row), row["name"]


def test_pako_gives_the_same_verdicts() -> None:
    for row, said in zip(STREAMS, _installed("pako"), strict=True):
        assert said["pako"] == expected(row), row["name"]


def test_fflate_alone_accepts_invalid_streams() -> None:
    """A second implementation must not rely on it."""
    takes = set()
    for row, said in zip(STREAMS, _installed("fflate"), strict=True):
        if said["fflate"] != expected(row):
            assert row["payload"] is None, row["name"]
            takes.add(row["name"])
    assert takes == FFLATE_TAKES


def _installed(judge: str) -> list[dict[str, Any]]:
    found = verdicts(npm_folder("node") / "deflate.mjs")
    if judge not in found[0]:
        missing(f"{judge} is not installed")
    return found
