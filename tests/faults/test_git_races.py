"""Writers that race for one branch and are killed, and many publishes in a row: the short form of `python
-m bench.soak git`."""

from __future__ import annotations

from bench.soak_git import run
from tests.interop.counterparts import need_program


def test_acknowledged_publishes_are_kept_and_the_copy_stays_small() -> None:
    need_program("git")
    assert run(1, count=1, seconds=0.0) == 0
