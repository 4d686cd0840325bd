"""Measure the tests of the quick subset and list those to exclude: `python -m tests.support.slow_tests`.

With the argument `long`: measure all tests and list those that a short run excludes (tests/at_length.py).
Measured is the processor time of a test and its child processes, alone in one process, which other load
does not change."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from statistics import fmean

import pytest

from tests import at_length, quick

#: Processor time in seconds from which a test is excluded, with all its parameters.
LEAST = 0.1
#: Limits in seconds for a short run: the slowest case of any test, and the mean of a test that is neither a
#: play nor a law of many providers or operations, and that no document names.
LEAST_LONG, LEAST_LONG_MEAN = 0.3, 0.12
#: Limit of the mean for these packages, which have many similar tests.
LEAST_LONG_MANY, _MANY = (
    0.1,
    ("unit/providers/", "unit/sync/", "unit/files/", "unit/published/", "unit/memories/"),
)
_PLAYS_AND_LAWS = (
    "faults/", "traces/", "interop/test_cid", "interop/test_contract", "interop/test_killed", "unit/memories/test_operation", "unit/provider/test_contract",
    "unit/providers/test_bucket_policy", "unit/providers/test_contract", "unit/providers/test_sick", "unit/sessions/",
)  # fmt: skip
#: Below tests/: laws, the packages on which all others depend, leaks, checks of structure and documents.
_ALWAYS = (
    "property/",
    "unit/causal/",
    "unit/device/",
    "unit/ring/",
    "unit/test_",
    "cli/test_hint",
    "unit/memories/test_no_leak",
    "unit/api/test_no_leak",
    "unit/api/test_access_of_operations",
)

#: Listed nevertheless: benchmarks, and a test that measures all questions of a set, because later tests
#: measure a third of them.
_NOT_ALWAYS = (
    "unit/test_bench.py",
    "unit/test_retrieval.py::test_second_recall_with_the_first_hop_finds_more",
)


class Measured:
    """A plugin that records the time of each case of a test function."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = sum(os.times()[:4])
        result = yield
        name = quick.function_of(item.nodeid)
        self.seconds.setdefault(name, []).append(sum(os.times()[:4]) - before)
        return result


def long_tests(seconds: Mapping[str, list[float]]) -> set[str]:
    """Return the functions that a short run excludes; it keeps at least one of each file."""
    root = quick.SLOW_FILE.parents[1]
    documents = "".join(
        path.read_text("utf-8") for path in (root / "SECURITY.md", *sorted((root / "docs").rglob("*.md")))
    )
    found = set()
    for name, cases in seconds.items():
        may_be_long = not name.startswith(_PLAYS_AND_LAWS) and f"{name.rpartition('::')[2]}`" not in documents
        least = LEAST_LONG_MANY if name.startswith(_MANY) else LEAST_LONG_MEAN
        if max(cases) >= LEAST_LONG or (may_be_long and fmean(cases) >= least):
            found.add(name)
    found = {name for name in found if not name.startswith(_ALWAYS) or name.startswith(_NOT_ALWAYS)}
    files: dict[str, list[str]] = {}
    for name in seconds:
        files.setdefault(name.partition("::")[0], []).append(name)
    for names in files.values():
        shortest = min(names, key=lambda name: max(seconds[name]))
        if found.issuperset(names) and max(seconds[shortest]) < LEAST_LONG:
            found.remove(shortest)
    return found


def main(arguments: list[str]) -> int:
    """Run the subset or all tests without exclusions, and write the list. Returns the exit code of the
    run."""
    measured = Measured()
    if arguments == ["long"]:
        at_length.FUNCTIONS = frozenset()
        code = pytest.main(["-q", "-n", "0", str(quick.SLOW_FILE.parent)], plugins=[measured])
        file = at_length.FILE
    else:
        quick.SLOW = frozenset()
        code = pytest.main(["-q", "-n", "0", "-m", "quick"], plugins=[measured])
        file = quick.SLOW_FILE
    if code == 0:
        slow = {name for name, cases in measured.seconds.items() if max(cases) >= LEAST}
        if file == at_length.FILE:
            slow = long_tests(measured.seconds)
        file.write_text("".join(f"{name}\n" for name in sorted(slow)), encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
