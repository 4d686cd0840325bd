"""Near-duplicate texts: the result equals a comparison of every pair, without comparing every pair."""

from __future__ import annotations

from array import array
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory
from ipfsmem.recall import duplicates as module
from ipfsmem.recall.duplicates import LEAST_WORDS, Pair, duplicates
from ipfsmem.recall.terms import split, terms
from tests.support.extras import need_extra

spoken = st.lists(
    st.sampled_from(
        [
            "the",
            "boat",
            "boats",
            "lies",
            "at",
            "pier",
            "seven",
            "and",
            "eight",
            "Ünder",
            "東京都",
            "blue",
            "red",
        ]
    ),
    max_size=12,
).map(" ".join)


def by_every_pair(texts: dict[str, str], least: float) -> list[Pair]:
    """Return the same by its definition, slowly."""
    found, first = [], dict[tuple[str, ...], str]()
    for id in sorted(texts):
        words = tuple(split(texts[id]))
        if words in first:
            found.append(Pair(first[words], id, "same", 1.0))
        elif words:
            first[words] = id
    for one, a in ((id, words) for words, id in first.items()):
        for other, b in ((id, words) for words, id in first.items()):
            left, right = set(terms(texts[one])), set(terms(texts[other]))
            share = len(left & right) / len(left | right) if left & right else 0.0
            inside = len(a) >= LEAST_WORDS and left and any(b[n : n + len(a)] == a for n in range(len(b)))
            if one != other and inside:
                found.append(Pair(one, other, "contained", share))
            elif one < other and share >= least - 1e-9:
                back = len(b) >= LEAST_WORDS and right and any(a[n : n + len(b)] == b for n in range(len(a)))
                if not back:
                    found.append(Pair(one, other, "alike", share))
    return sorted(found, key=lambda pair: (pair.how != "same", -pair.similarity, pair.one, pair.other))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), spoken, max_size=8),
    st.sampled_from([0.5, 0.6, 0.7, 0.75, 0.8, 1.0]),
)
def test_duplicates_equal_those_of_a_comparison_of_every_pair(texts: dict[str, str], least: float) -> None:
    assert duplicates(texts, least) == by_every_pair(texts, least)


@given(
    st.lists(
        st.tuples(st.frozensets(st.integers(0, 12)), st.integers(1, 4), st.integers(0, 40)),
        min_size=1,
        max_size=90,
    )
)
def test_similar_texts_are_the_same_with_and_without_numpy(
    rows: list[tuple[frozenset[int], int, int]],
) -> None:
    need_extra("semantic", "numpy")
    sought = [module._Candidates(array("I", sorted(rare)), shared, first) for rare, shared, first in rows]
    found = list(module._near_by_arrays(sought))
    assert sorted(found) == sorted(module._near(sought)) and len(set(found)) == len(found)


@given(st.lists(st.frozensets(st.sampled_from(range(1, 9))), max_size=12))
def test_prepared_texts_are_the_same_with_and_without_numpy(rows: list[frozenset[int]]) -> None:
    need_extra("semantic", "numpy")
    first = [(f"words {n}", str(n % 7)) for n in range(len(rows))]
    given = first, [array("I", row) for row in rows], ["", *"hgfedcba"]
    for least in (3, 5_000):
        with patch.object(module, "_MANY", least), patch.object(module, "_BITS", 8 * least):
            assert module._ready_by_arrays(*given) == module._ready(*given)


def test_not_every_pair_of_many_texts_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand notes of one form, two of which differ in one word."""
    texts = {
        f"n{n}": f"The station {n} lies at kilometre {n * 7 % 1000} of line {n % 31}" for n in range(10_000)
    }
    texts |= {
        "x": "Anna plays the viola in an orchestra of Porto on each Thursday",
        "y": "Anna plays the viola in an orchestra of Lisboa on each Thursday",
    }
    compared = 0

    def counted(one: module._Text, other: module._Text) -> float:
        nonlocal compared
        compared += 1
        return share(one, other)

    share = module._share
    monkeypatch.setattr(module, "_share", counted)
    found = duplicates(texts, 0.75)
    assert [(pair.one, pair.other) for pair in found if pair.one == "x"] == [("x", "y")]
    assert compared < 100 * len(texts)


def test_memories_with_nearly_equal_texts_are_found(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        memory.write("tune", "Plays the viola on Thursdays.", description="about music")
        memory.write("tune-2", "plays the VIOLA, on thursdays!", description="something else")
        memory.write("more", "Anna plays the viola on Thursdays, and the cello.")
        memory.write("tea", "Green tea.")
        memory.scope("work").write("tune", "Plays the viola on Thursdays.")
        found = memory.duplicates()
        assert [(one.key, one.other, one.how, one.scope) for one in found] == [
            ("tune", "tune-2", "same", ""),
            ("tune", "more", "contained", ""),
        ]
        assert memory.duplicates(similarity=1.0) == found and not memory.scope("work").duplicates()
        for bad in (0.4, 1.01, -1.0, float("nan")):
            with pytest.raises(UsageError, match=r"similarity must be 0\.5-1"):
                memory.duplicates(similarity=bad)
