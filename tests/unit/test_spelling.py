"""A misspelled word of a question finds what was meant, and a word that stands somewhere is never taken for another."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.recall.ranking import Document, Index, rank
from ipfsmem.recall.spelling import spelled
from tests.support.plain_ranking import plainly_spelled

letters = st.sampled_from("abceé1абвάβ")
words = st.text(letters, min_size=1, max_size=7) | st.text("ab", min_size=4, max_size=6)


@given(st.lists(words, max_size=4), st.dictionaries(words, st.integers(1, 3)))
def test_each_term_is_as_a_look_at_all_terms_says(asked: list[str], having: dict[str, int]) -> None:
    found = spelled(asked, lambda term: having.get(term, 0))
    assert found == [plainly_spelled(term, having) for term in asked]
    assert all(one == other for one, other in zip(asked, found, strict=True) if one in having)


@pytest.mark.parametrize(
    "slip", ["gryehound", "greyhond", "greyhouned", "grayhound", "GREYHOUMD", "Где собкаа"]
)
def test_a_slip_finds_what_was_meant(slip: str) -> None:
    index = Index(
        [
            Document("dog", "A greyhound is called Biscuit", memory=True),
            Document("собака", "Где собака", memory=True),
            Document("boat", "The boat is blue", memory=True),
        ]
    )
    (hit,) = rank(index, slip, today=date(2026, 11, 26))
    assert hit.id == ("dog" if slip.isascii() else "собака")


def test_a_word_that_stands_somewhere_a_short_one_and_a_long_text_stay() -> None:
    having = {"house": 1, "horse": 5, "cart": 1}
    assert spelled(["house", "card"], lambda term: having.get(term, 0)) == ["house", "card"]
    assert spelled(["hoise"], lambda term: having.get(term, 0)) == ["horse"]
    many = [f"word{'x' * n}" for n in range(12)] + ["hoise"]
    assert spelled(many, lambda term: having.get(term, 0)) == many


def test_of_a_question_with_a_slip_a_model_that_read_the_slip_says_less() -> None:
    texts = [
        Document("harbour", "the harbour is dredged", memory=True),
        Document("port", "wine", memory=True),
    ]
    index = Index([*texts, *(Document(f"{n}", f"word{n}", memory=True) for n in range(9))])
    meaning = {"harbour": 0.3, "port": 0.9}
    parts = [
        {hit.id: hit.parts for hit in rank(index, question, today=date(2026, 11, 26), meaning=meaning)}
        for question in ("harbour", "harbuor")
    ]
    assert parts[1]["port"]["meaning"] == 1.5 < parts[0]["port"]["meaning"] == 3.75
    assert parts[0].keys() == parts[1].keys()
    assert rank(index, "harbuor", today=date(2026, 11, 26), meaning=meaning)[0].id == "harbour"
