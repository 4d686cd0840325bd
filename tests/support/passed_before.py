"""Tests that an earlier run passed and that a thorough run would repeat without a difference.

`.ci/run` runs the README's test command first, then all tests at length. RECORD names the file to which a
run adds passed tests, SKIP the file whose tests a run leaves out. Two kinds are never left out: tests that
draw cases (tests/support/effort.py), and tests of the extras, which the README's command does not install."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

import pytest

from tests.support.mentions import Name, modules_of, reachable

RECORD, SKIP = "PYTEST_RECORD_PASSED", "PYTEST_SKIP_PASSED"
#: A test that mentions one of these modules draws cases.
_DRAWING = ("tests.support.effort", "hypothesis")
#: A file with one of these words asks whether an extra is installed, or which modules are loaded.
_OF_EXTRAS = re.compile(
    r"need_extra|importorskip|find_spec|sys\.modules|IPFSMEM_EMBEDDINGS|watchfiles|numpy|coincurve|minilm"
)
#: Further files, below tests/, in which the package behaves differently with an extra that they do not name.
WITH_EXTRAS: Final = (
    "cli/test_cli_folders.py",
    "cli/test_cli_init_questions.py",
    "cli/test_cli_sync_every.py",
    "cli/test_cli_unlock.py",
    "cli/test_streams.py",
    "cli/test_unlocked_processes.py",
    "unit/files/test_working_folders.py",
    "unit/memories/test_kept_index.py",
    "unit/memories/test_recall_asking.py",
)


def read(path: Path) -> frozenset[str]:
    """Return the ids in a file of passed tests, without the group that pytest-xdist adds to them."""
    ids = path.read_text("utf-8").splitlines()
    return frozenset(ids) | {before for before, _, _ in (one.rpartition("@") for one in ids) if before}


def repeats(item: pytest.Item) -> bool:
    """Return whether a thorough run with the extras can find more in a test than one without."""
    return meets_extras(item.path) or draws(item)


@functools.cache
def meets_extras(path: Path) -> bool:
    """Return whether tests of a file may have another result when the extras are installed."""
    return path.as_posix().endswith(WITH_EXTRAS) or bool(_OF_EXTRAS.search(path.read_text("utf-8")))


def draws(item: pytest.Item) -> bool:
    """Return whether a test, its fixtures, or anything in tests/ and bench/ that these mention, draws
    cases."""
    if not isinstance(item, pytest.Function):
        return True
    module = item.module.__name__
    named = [(module, item.nodeid.split("::")[1].partition("[")[0])]
    named += [(module, "pytestmark"), (module, "pytest_generate_tests")]
    named += [
        (one.func.__module__, one.func.__qualname__)
        for found in item._fixtureinfo.name2fixturedefs.values()
        for one in found
    ]
    return any(name_draws(Name(module, name.partition(".")[0])) for module, name in named)


@functools.cache
def name_draws(name: Name) -> bool:
    """Return whether a top-level name of a test module mentions, directly or indirectly, a module that
    draws cases."""
    return any(one.startswith(_DRAWING) for one in modules_of(reachable(name)))
