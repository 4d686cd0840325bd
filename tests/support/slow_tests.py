"""Measure the tests of the quick subset, and list those that it leaves out: `python -m tests.support.slow_tests`.

Processor time of a test and of the processes that it starts, alone in one process: other work on the machine does not change it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests import quick

#: Seconds of processor time from which a test is left out, with all its parameters.
LEAST = 0.1


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


def main() -> int:
    """Run the subset whole, and write the list. Returns the exit code of the run."""
    measured = Measured()
    quick.SLOW = frozenset()
    code = pytest.main(["-q", "-n", "0", "-m", "quick"], plugins=[measured])
    if code == 0:
        slow = sorted(name for name, seconds in measured.seconds.items() if seconds >= LEAST)
        quick.SLOW_FILE.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
