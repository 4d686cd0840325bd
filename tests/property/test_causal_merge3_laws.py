"""The fast three-way merge equals the plain one and is symmetric."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.causal.merge3 import matches, merge_lines


def _load() -> ModuleType:
    path = Path(__file__).parents[1] / "unit" / "causal" / "plain_merge.py"
    spec = importlib.util.spec_from_file_location("plain_merge", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plain = _load()
texts = st.one_of(st.text("ab", max_size=16), st.text("abcdefgh", max_size=24), st.text(max_size=8))


@settings(deadline=None)
@given(texts, texts)
def test_line_matches_equal_the_plain_table(base: str, side: str) -> None:
    assert matches(base, side) == plain.plain_matches(base, side)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str, str]:
    base = draw(texts)
    sides = []
    for _ in range(2):
        side = base
        for _ in range(draw(st.integers(0, 3))):
            i = draw(st.integers(0, len(side)))
            side = side[:i] + draw(st.text("abX", max_size=2)) + side[i + draw(st.integers(0, 2)) :]
        sides.append(side)
    return base, sides[0], sides[1]


@settings(deadline=None)
@given(edits())
def test_merge_equals_the_plain_one_and_is_symmetric(case: tuple[str, str, str]) -> None:
    base, a, b = (list(text) for text in case)
    found = merge_lines(base, a, b)
    assert found == plain.plain_merge(base, a, b)
    assert found == merge_lines(base, b, a)
    assert merge_lines(base, a, base) == a
    assert merge_lines(base, a, a) == a
