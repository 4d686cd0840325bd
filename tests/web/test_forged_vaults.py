"""Both implementations read random forged vaults alike: rings, heads, states and roots that break any
rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interop.counterparts import built_web
from tests.support.effort import cases
from tests.support.forged_vaults import Forge, PlainForge, differences, forged

#: Seeds of sealed vaults that were once read differently: the only head is joined in part.
DIFFERED = (626, 632)


@pytest.mark.parametrize(
    ("kind", "seeds"),
    [(Forge, (*range(cases(20, 500)), *DIFFERED)), (PlainForge, range(cases(20, 60)))],
    ids=["sealed", "plain"],
)
def test_random_forged_vaults_are_seen_alike(kind: type[Forge], seeds: Sequence[int], tmp_path: Path) -> None:
    """`python -m bench.soak vaults` compares more of them."""
    built_web()
    assert differences(forged(seeds, kind), tmp_path) == []
