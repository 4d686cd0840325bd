"""Writers that race for one branch and are killed: the short form of `python -m bench.soak git`."""

from __future__ import annotations

from bench.soak_git import run
from tests.interop.counterparts import need_program


def test_acknowledged_publish_of_a_killed_writer_is_kept() -> None:
    need_program("git")
    assert run(1, count=1, seconds=0.0) == 0
