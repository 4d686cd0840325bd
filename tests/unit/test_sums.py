"""Sums of many entries at once: within the stated bounds, and with the same best entries as exact sums."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.recall import sums as module
from ipfsmem.recall.sums import ScoreBounds, Shares
from tests.support.effort import cases


class Given(Shares):
    """A term with these shares."""

    def __init__(self, given: dict[int, float]) -> None:
        self.given = given
        self.numbers = list(given)

    @property
    def shares(self) -> Collection[float]:
        return self.given.values()

    def share(self, number: int) -> float:
        return self.given.get(number, 0.0)


def drawn(rng: Random, size: int) -> list[Shares]:
    """Return some terms: rare and common ones, with high and low shares, many of which are equal."""
    rows: list[Shares] = []
    for _ in range(rng.randint(1, rng.choice((2, 6, 64)))):
        worth = rng.choice((1e-6, 0.01, 1.0, 7.0, 11.0)) * 2.2
        having = rng.sample(
            range(1, size), min(size - 1, rng.choice((0, 1, 3, size // 200, size // 9, size)))
        )
        steps = rng.choice((1, 3, 1_000_000))
        rows.append(Given({number: worth * rng.randint(1, steps) / steps for number in sorted(having)}))
    return rows


@pytest.mark.parametrize("undecided", [0, 3_000])
@settings(max_examples=cases(40, 600), deadline=None)
@given(st.integers(0, 1 << 32))
def test_best_entries_equal_those_of_the_exact_sums(undecided: int, seed: int) -> None:
    rng = Random(seed)
    size = rng.choice((2, 9, 300, 2_500))
    rows, only = drawn(rng, size), None
    if rng.random() < 0.5:
        only = frozenset(rng.sample(range(1, size), (size - 1) // rng.choice((1, 2, 40))))
    exact, has = [0.0] * size, [0] * size
    for bit, row in enumerate(rows):
        for number, share in zip(row.numbers, row.shares, strict=True):
            exact[number] += share
            has[number] |= 1 << bit
    may = [number for number in range(1, size) if has[number] and (only is None or number in only)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_UNDECIDED", undecided)
        sums = ScoreBounds([(1 << bit, row) for bit, row in enumerate(rows)], size)
        for most in (1, 40, 1_000):
            for last in (False, True):
                best = sorted(sorted(may, reverse=last), key=exact.__getitem__, reverse=True)[:most]
                found = sums.best(most, lambda number: number, last=last, only=only)
                assert len(found) == len(best) and set(found) == set(best)
        assert sorted(sums.seen(only)) == may
        for number in range(1, size):
            assert sums.exact(number) == exact[number] and sums.has(number) == has[number]
            assert sums.at_most(number) >= exact[number]
        assert sums.top(may) == max([exact[number] for number in may], default=0.0)
        if may:
            assert sums.least(may) >= min(exact[number] for number in may)
            order = sums.in_order(may)
            assert [*map(sums.at_most, order)] == sorted(map(sums.at_most, may), reverse=True)
            assert [most for _, most in sums.at_most_of(order)] == [*map(sums.at_most, order)]
