"""Both implementations see the same in random vaults of liars: rings, heads, states and roots that break any rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.counterparts import built_web
from tests.support.effort import cases
from tests.support.forged_vaults import Forge, PlainForge, differences, forged


@pytest.mark.parametrize(
    ("kind", "count"), [(Forge, cases(20, 500)), (PlainForge, cases(20, 60))], ids=["sealed", "plain"]
)
def test_random_forged_vaults_are_seen_alike(kind: type[Forge], count: int, tmp_path: Path) -> None:
    """`python -m bench.soak vaults` looks at more of them."""
    built_web()
    assert differences(forged(range(count), kind), tmp_path) == []
