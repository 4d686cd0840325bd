"""Writers that race for one branch and are killed: the short form of `python -m bench.soak git`."""

from __future__ import annotations

import pytest

from bench.soak_git import run
from tests.support.effort import THOROUGH


@pytest.mark.parametrize("seed", [1, 2] if THOROUGH else [1])
def test_acknowledged_publish_of_a_killed_writer_is_kept(seed: int) -> None:
    assert run(seed, count=0, seconds=8.0) == 0
