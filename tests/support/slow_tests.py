"""Measure the tests of the quick subset, and list those that it leaves out: `python -m tests.support.slow_tests`.

With the argument `long`: measure all tests, and list those that a short run leaves out (tests/at_length.py).

Processor time of a test and of the processes that it starts, alone in one process: other work on the machine does not change it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests import at_length, quick

#: Seconds of processor time from which a test is left out, with all its parameters.
LEAST = 0.1
#: Seconds from which a short run leaves one out.
LEAST_LONG = 0.3
#: Below tests/: laws, the packages on which all others rest, leaks, checks of the house and the documents.
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

#: Listed all the same: it measures all questions of a set, and the tests after it a third of them.
_NOT_ALWAYS = "unit/test_retrieval.py::test_asking_again_with_the_first_hop_finds_more_than_asking_once"


class Measured:
    """A plugin that records the most that each test function takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = sum(os.times()[:4])
        result = yield
        name = quick.function_of(item.nodeid)
        self.seconds[name] = max(self.seconds.get(name, 0.0), sum(os.times()[:4]) - before)
        return result


def main(arguments: list[str]) -> int:
    """Run the subset or all tests, none of them left out, and write the list. Returns the exit code of the run."""
    measured = Measured()
    if arguments == ["long"]:
        at_length.FUNCTIONS = frozenset()
        code = pytest.main(["-q", "-n", "0", str(quick.SLOW_FILE.parent)], plugins=[measured])
        file, least = at_length.FILE, LEAST_LONG
    else:
        quick.SLOW = frozenset()
        code = pytest.main(["-q", "-n", "0", "-m", "quick"], plugins=[measured])
        file, least = quick.SLOW_FILE, LEAST
    if code == 0:
        slow = {name for name, seconds in measured.seconds.items() if seconds >= least}
        if file == at_length.FILE:
            slow = {name for name in slow if not name.startswith(_ALWAYS) or name == _NOT_ALWAYS}
        file.write_text("".join(f"{name}\n" for name in sorted(slow)), encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
