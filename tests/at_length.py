"""Tests that `pytest` omits in a short run of whole folders, and `.ci/run` runs: those of length_tests.txt.

They play long histories, kill processes step by step, or cover every pair, and would take half of a run.
They run when their file or name is given, and in every thorough run (tests/support/effort.py)."""

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
    """Return whether a run of these paths omits the functions."""
    return not thorough and all(map(os.path.isdir, arguments))


def is_long(nodeid: str) -> bool:
    """Return whether the test is one of these functions."""
    return function_of(nodeid) in FUNCTIONS
