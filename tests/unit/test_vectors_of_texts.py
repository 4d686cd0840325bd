"""Vectors stored as bytes: cosines with and without NumPy, reported damage, and no mixing of models."""

from __future__ import annotations

import random
import sys
from math import sqrt

import pytest

from ipfsmem.errors import FormatError
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.vectors import MAX_DIMENSION, Vectors, quantised
from tests.support.extras import need_extra

ONE, OTHER = EmbedderIdentity("one", "here", "aa"), EmbedderIdentity("one", "there", "bb")


def drawn(count: int, dimension: int, seed: int) -> dict[bytes, list[float]]:
    chance = random.Random(seed)
    return {n.to_bytes(16): [chance.gauss(0, 1) * 10**-3 for _ in range(dimension)] for n in range(count)}


def exact(one: list[float], other: list[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def kept(texts: dict[bytes, list[float]], identity: EmbedderIdentity = ONE) -> Vectors:
    made = Vectors(identity)
    made.add(texts)
    return made


@pytest.fixture(params=["numpy", "plain"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy":
        need_extra("semantic", "numpy")
    else:
        monkeypatch.setitem(sys.modules, "numpy", None)
    return str(request.param)


def test_cosines_equal_those_of_the_numbers(how: str) -> None:
    texts = drawn(50, 384, 1)
    question = [a + b for a, b in zip(texts[bytes(16)], drawn(1, 384, 2)[bytes(16)], strict=True)]
    found = kept(texts).cosines(question)
    assert found.keys() == texts.keys()
    assert all(abs(found[id] - exact(vector, question)) < 0.01 for id, vector in texts.items())
    assert max(found, key=found.__getitem__) == bytes(16)
    assert all(-1 <= value <= 1 for value in kept(texts).cosines(texts[bytes(16)]).values())


def test_nearest_of_many_vectors_are_found(how: str) -> None:
    texts = drawn(3_000, 256, 3)
    for n in range(0, 3_000, 300):
        near = [
            a + 0.7 * b for a, b in zip(texts[n.to_bytes(16)], drawn(1, 256, n + 9)[bytes(16)], strict=True)
        ]
        found = kept(texts).cosines(near)
        best = max(found, key=found.__getitem__)
        assert best == n.to_bytes(16) and abs(found[best] - exact(texts[best], near)) < 0.01
        assert len(found) == 3_000


def test_only_requested_and_near_vectors_are_returned(how: str) -> None:
    texts = drawn(300, 64, 5)
    vectors = kept(texts)
    question = list(texts[bytes(16)])
    ready = vectors.comparable()
    rows = [-1, 7, 0, 250, -1, 3]
    found = ready.nearest(question, rows, -1.0, 9)
    assert found.keys() == {1, 2, 3, 5} and found[2] == pytest.approx(1)
    assert all(found[at] == pytest.approx(vectors.cosines(question)[rows[at].to_bytes(16)]) for at in found)
    assert ready.nearest(question, rows, 0.99, 9).keys() == {2}
    best = sorted(found, key=found.__getitem__)[-3:]
    assert ready.nearest(question, rows, -1.0, 3).keys() == set(best)
    assert ready.nearest(question, [], -1.0, 3) == ready.nearest(question, [-1], -1.0, 3) == {}
    same = ready.nearest(question, [0] * 5, -1.0, 2)
    assert same.keys() == {0, 1}
    assert vectors.comparable() is ready
    vectors.add({b"x" * 16: question})
    assert vectors.comparable() is not ready and ready.nearest(question, rows, 0.99, 9).keys() == {2}
    with pytest.raises(FormatError):
        ready.nearest([1.0], rows, 0, 9)


def test_nearest_of_very_many_vectors_are_found_by_their_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    need_extra("semantic", "numpy")
    texts = drawn(2_000, 200, 6)
    near = {
        n: [a + 0.5 * b for a, b in zip(texts[bytes(16)], drawn(1, 200, n)[bytes(16)], strict=True)]
        for n in range(40, 60)
    }
    texts |= {n.to_bytes(16): vector for n, vector in near.items()}
    whole = kept(texts).comparable().nearest(texts[bytes(16)], range(2_000), 0.5, 50)
    monkeypatch.setattr("ipfsmem.recall.vectors._MANY", 500)
    by_signs = kept(texts).comparable()
    assert by_signs.nearest(texts[bytes(16)], range(2_000), 0.5, 50) == pytest.approx(whole)
    assert whole.keys() == {0, *near}
    assert by_signs.nearest(texts[bytes(16)], range(2_000), -1.0, 1).keys() == {0}


def test_pairs_equal_a_comparison_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    need_extra("semantic", "numpy")
    monkeypatch.setattr("ipfsmem.recall.vectors._BLOCK", 7)
    texts = drawn(60, 8, 9)
    rows = list(range(59, 9, -1))
    found = {(one, two): cosine for one, two, cosine in kept(texts).comparable().pairs(rows, 0.5)}
    ids = [row.to_bytes(16) for row in rows]
    every = {(a, b): exact(texts[ids[a]], texts[ids[b]]) for a in range(50) for b in range(a + 1, 50)}
    assert found.keys() >= {pair for pair, cosine in every.items() if cosine >= 0.51} and found
    assert all(abs(every[pair] - cosine) < 0.01 for pair, cosine in found.items())


def test_vectors_round_trip_and_damage_is_reported() -> None:
    made = kept(drawn(20, 32, 4))
    data = made.dump()
    assert Vectors.restore(data).dump() == data
    assert Vectors.restore(Vectors(ONE).dump()).dump() == Vectors(ONE).dump()
    for cut in range(len(data)):
        with pytest.raises(FormatError):
            Vectors.restore(data[:cut])
    with pytest.raises(FormatError):
        Vectors.restore(data + b"x")


@pytest.mark.parametrize(
    "vector",
    [[], [0.0] * 8, [float("nan")] * 8, [float("inf")] + [1.0] * 7, [1.0] * 7, [1e-320] * 8, [1e308] * 8],
    ids=["none", "all 0", "nan", "infinite", "another length", "too small", "too large"],
)
def test_vector_without_direction_or_of_other_length_is_refused(vector: list[float]) -> None:
    made = kept(drawn(3, 8, 5))
    before = made.dump()
    with pytest.raises(FormatError):
        made.add({b"a" * 16: [1.0] * 8, b"b" * 16: vector})
    assert made.dump() == before
    if vector:
        with pytest.raises(FormatError):
            made.cosines(vector)
    with pytest.raises(FormatError):
        Vectors(ONE).add({b"a" * 16: [1.0] * (MAX_DIMENSION + 1)})


def test_vectors_of_another_model_or_length_are_ignored() -> None:
    made = kept(drawn(3, 8, 6))
    before = made.dump()
    made.take(kept(drawn(5, 8, 7), OTHER))
    made.take(kept(drawn(5, 16, 8)))
    assert made.dump() == before
    made.take(kept(drawn(5, 8, 9)))
    assert len(made) == 5 and made.dump().startswith(before[:3])
    made.keep([bytes(16)])
    assert list(made.ids) == [bytes(16)]


def test_quantised_vectors_keep_the_direction() -> None:
    assert quantised([0.5, -0.25, 0.0]) == bytes((127, 256 - 64, 0))


def test_empty_vectors_are_similar_to_nothing(how: str) -> None:
    gone = kept(drawn(2, 8, 1))
    gone.keep({})
    for none in (Vectors(ONE), gone):
        assert none.comparable().nearest([1.0] * 8, [], -1.0, 5) == {}
        assert none.comparable().pairs([], 0.5) == []
        assert none.cosines([1.0] * 8) == {}


@pytest.mark.parametrize("how", ["plain", "numpy"])
def test_vectors_added_and_removed_singly_equal_new_ones(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "plain":
        monkeypatch.setitem(sys.modules, "numpy", None)
    else:
        need_extra("semantic", "numpy")
    monkeypatch.setattr("ipfsmem.recall.vectors._MANY", 100)
    monkeypatch.setattr("ipfsmem.recall.vectors._EXACT", 100)
    rng = random.Random(7)
    question = [rng.gauss(0, 1) for _ in range(64)]
    store = Vectors(EmbedderIdentity("m", "v", "00"))
    for step in range(60):
        new = {rng.randbytes(16): [rng.gauss(0, 1) for _ in range(64)] for _ in range(rng.randrange(1, 8))}
        if step % 3 == 2:
            new |= {rng.choice(list(store.ids)): [rng.gauss(0, 1) for _ in range(64)]}
        store.add(new)
        if step % 4 == 3:
            store.drop(rng.sample(list(store.ids), 3))
        anew = Vectors.restore(store.dump())
        mine, theirs = store.comparable(), anew.comparable()
        assert mine.at.keys() == theirs.at.keys() == set(store.ids)
        if (
            how == "plain"
        ):  # of many only those with the best matching signs are exact, and of equal ones the first
            laid_out = [
                {id: (one._rows[row], *one._bits[row : row + 1]) for id, row in one.at.items()}
                for one in (mine, theirs)
            ]
            assert laid_out[0] == laid_out[1]
            continue
        found = []
        for one in (mine, theirs):
            ids = sorted(one.at)
            near = one.nearest(question, [one.at[id] for id in ids], -1.0, len(ids))
            found.append({ids[place]: cosine for place, cosine in near.items()})
        assert found[0] == pytest.approx(found[1], abs=1e-6)
