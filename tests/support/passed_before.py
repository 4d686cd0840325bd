"""Tests that an earlier run passed and a thorough run would repeat without a difference.

`.ci/run` runs the README's test command first, then all tests at length. RECORD names the file to which a run adds the tests
that passed, SKIP the file whose tests a run leaves out. Tests that draw their cases (tests/support/effort.py) are never left
out: a thorough run draws more.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

RECORD, SKIP = "PYTEST_RECORD_PASSED", "PYTEST_SKIP_PASSED"


def read(path: Path) -> frozenset[str]:
    """Return the ids in a file of passed tests, without the group that pytest-xdist adds to them."""
    ids = path.read_text("utf-8").splitlines()
    return frozenset(ids) | {before for before, _, _ in (one.rpartition("@") for one in ids) if before}


def draws(module: ModuleType) -> bool:
    """Whether a test module, or a module of the tests that it imports from, draws cases."""
    return any(map(_names_effort, {module.__name__, *_imported(vars(module).values())}))


def _imported(values: Iterable[object]) -> set[str]:
    """The modules below tests/ from which the values come."""
    names = {
        value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        for value in values
    }
    return {name for name in names if isinstance(name, str) and name.startswith("tests.")}


@functools.cache
def _names_effort(name: str) -> bool:
    source = inspect.getsource(sys.modules[name])
    return "effort" in source or "hypothesis" in source.lower()
