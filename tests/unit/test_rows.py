"""docs/ROWS.md names every row of the four systems once, with its state, and only tests that there are."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "ROWS.md").read_text("utf-8")
ROWS = re.findall(
    r"^\| ([IRAL])(\d+) \| (.+?) \| (.+?) \| (works|differs|not) \| (.*?) \| (.*?) \|$", TEXT, re.M
)
#: How many rows each of them has.
MANY = {"I": 18, "R": 26, "A": 26, "L": 32}


def test_every_row_is_there_once_in_order() -> None:
    assert [(letter, int(number)) for letter, number, *_ in ROWS] == [
        (letter, number) for letter, most in MANY.items() for number in range(1, most + 1)
    ]


def test_what_works_or_differs_names_a_test_and_every_test_is_there() -> None:
    for letter, number, _, _, state, differs, named in ROWS:
        tests = re.findall(r"`([^`]+)`", named)
        assert bool(tests) == (state != "not"), letter + number
        assert differs or state == "works", letter + number
        for one in tests:
            file, _, name = one.partition("::")
            path = ROOT / "tests" / file
            assert path.exists(), one
            assert not name or re.search(rf"^(async )?def {name}\(", path.read_text("utf-8"), re.M), one


def test_the_counts_are_those_of_the_rows() -> None:
    counted = Counter((letter, state) for letter, _, _, _, state, _, _ in ROWS)
    said = re.findall(r"^\| \w+ \(([IRAL])\) \| (\d+) \| (\d+) \| (\d+) \|$", TEXT, re.M)
    assert said == [(letter, *(str(counted[letter, state]) for state in ("works", "differs", "not"))) for letter in MANY]  # fmt: skip
