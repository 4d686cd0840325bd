"""Tests that `pytest` leaves out in a short run of whole folders, and `.ci/run` runs: those of length_tests.txt.

They play long stories, kill processes one step after the other, or go over every pair of something, and would take half of the
time of a run. Whoever names their file or one of them runs them, and so does every thorough run (tests/support/effort.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.quick import function_of
from tests.support import effort

FILE: Final = Path(__file__).with_name("length_tests.txt")
#: Functions, as `quick.function_of` names them, measured by `python -m tests.support.slow_tests long`.
FUNCTIONS = frozenset(FILE.read_text("utf-8").splitlines())


def is_short_run(arguments: Iterable[str], thorough: bool = effort.THOROUGH) -> bool:
    """Whether a run of these paths leaves the functions out."""
    return not thorough and all(map(os.path.isdir, arguments))


def is_long(nodeid: str) -> bool:
    """Whether the test is one of these functions."""
    return function_of(nodeid) in FUNCTIONS
