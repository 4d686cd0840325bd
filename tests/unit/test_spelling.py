"""A misspelled or foreign word of a question finds the intended word; an existing word is never replaced."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.recall.postings import Postings, TermNumbers
from ipfsmem.recall.ranking import Document, Index, rank
from ipfsmem.recall.spelling import alike, likened, spelled, vocabulary_of
from ipfsmem.recall.terms import split, terms
from tests.support.plain_ranking import plainly_likened, plainly_spelled

letters = st.sampled_from("abceé1абвάβ")
words = st.text(letters, min_size=1, max_size=7) | st.text("ab", min_size=4, max_size=6)


@given(st.lists(words, max_size=4), st.dictionaries(words, st.integers(1, 3)))
def test_corrected_terms_equal_a_scan_of_all_terms(asked: list[str], having: dict[str, int]) -> None:
    found = spelled(asked, lambda term: having.get(term, 0))
    assert found == [plainly_spelled(term, having) for term in asked]
    assert found == spelled(asked, lambda term: having.get(term, 0), lambda some: having.keys() & set(some))
    assert all(one == other for one, other in zip(asked, found, strict=True) if one in having)


@given(st.lists(words, max_size=4), st.dictionaries(words, st.integers(0, 3)))
def test_similar_foreign_terms_equal_a_scan_of_all_terms(asked: list[str], having: dict[str, int]) -> None:
    found = likened(asked, lambda term: having.get(term, 0), lambda term: alike(term, vocabulary_of(having)))
    assert found == [plainly_likened(term, having) for term in asked]


#: A memory in one language, and questions in others.
FACTS = [
    "The configuration of the gateway lives in a file",
    "Authentication uses tokens that expire",
    "Maria is allergic to penicillin",
    "The photographer for the ceremony is Lindqvist",
    "Пароль администратора хранится в сейфе",
    "The boat is blue",
]


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Wo liegt die Konfiguration?", 0),
        ("¿Dónde está la configuración?", 0),
        ("Comment fonctionne l'authentification ?", 1),
        ("Wogegen ist sie allergisch?", 2),
        ("¿Quién es el fotógrafo de la ceremonia?", 3),
        ("Де зберігається пароль адміністраторів?", 4),
    ],
)
@pytest.mark.parametrize("opened", [False, True])
def test_foreign_word_finds_a_similar_word(question: str, fact: int, opened: bool) -> None:
    index = Index(Document(str(n), one, memory=True) for n, one in enumerate(FACTS))
    if opened:
        index = Index.from_image(index.image())
        index.add(Document("6", "Nothing is like it", memory=True))
    assert rank(index, question, today=date(2026, 11, 26))[0].id == str(fact)


def test_removed_term_is_unknown_and_terms_are_read_only_for_unknown_word() -> None:
    numbers = TermNumbers()
    postings = Postings(numbers)
    for one in ("configuration", "configuring", "boat"):
        postings.add(numbers.of(split(one)))
    assert likened(terms("Konfiguration"), postings.having, postings.alike) == ["configur"]
    assert likened(terms("configuration boat 20261128 abcdef1234"), postings.having, pytest.fail) == [
        "configur",
        "boat",
        "20261128",
        "abcdef1234",
    ]
    postings.remove(1)
    postings.remove(2)
    assert likened(terms("Konfiguration"), postings.having, postings.alike) == ["konfigur"]
    postings.add(numbers.of(split("konfigurieren")))
    assert likened(terms("Konfiguration"), postings.having, postings.alike) == ["konfigurieren"]


@pytest.mark.parametrize("name", ["C", "C++", "C#", "F", "F#"])
def test_names_that_differ_in_a_sign_are_different(name: str) -> None:
    index = Index(
        Document(one, f"The parser is written in {one}, and tested.", memory=True)
        for one in ("C", "C++", "C#", "F", "F#")
    )
    asked = f"Which parser is written in {name}?"
    first, second, *_ = rank(index, asked, today=date(2026, 11, 26))
    assert first.id == name and second.parts["cover"] < first.parts["cover"]
    assert [hit.id for hit in rank(index, name, today=date(2026, 11, 26))] == [name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C/C++17, C#12. F#", ["c", "c++", "17", "c#", "12", "f#"]),
        ("使用C++开发", ["使用", "c++", "开发"]),
        ("Ｃ＋＋ grade A+", ["c++", "grade", "a+"]),
        ("x+=1; a+b; c+1; # c; page#c#d abc# foo_c++", None),
    ],
)
def test_sign_belongs_to_the_single_letter_before_it(text: str, expected: list[str] | None) -> None:
    if expected is None:
        assert [one for one in split(text) if not one.isalnum()] == ["c++"]
    else:
        assert split(text) == expected


@pytest.mark.parametrize(
    "slip", ["gryehound", "greyhond", "greyhouned", "grayhound", "GREYHOUMD", "Где собкаа"]
)
def test_misspelled_word_finds_the_intended_one(slip: str) -> None:
    index = Index(
        [
            Document("dog", "A greyhound is called Biscuit", memory=True),
            Document("собака", "Где собака", memory=True),
            Document("boat", "The boat is blue", memory=True),
        ]
    )
    (hit,) = rank(index, slip, today=date(2026, 11, 26))
    assert hit.id == ("dog" if slip.isascii() else "собака")


def test_existing_short_and_long_query_words_are_not_corrected() -> None:
    having = {"house": 1, "horse": 5, "cart": 1}
    assert spelled(["house", "card"], lambda term: having.get(term, 0)) == ["house", "card"]
    assert spelled(["hoise"], lambda term: having.get(term, 0)) == ["horse"]
    many = [f"word{'x' * n}" for n in range(12)] + ["hoise"]
    assert spelled(many, lambda term: having.get(term, 0)) == many


def test_misspelled_question_ranks_like_the_correct_one() -> None:
    texts = [
        Document("harbour", "the harbour is dredged", memory=True),
        Document("port", "wine", memory=True),
    ]
    index = Index([*texts, *(Document(f"{n}", f"word{n}", memory=True) for n in range(9))])
    meaning = {"harbour": 0.3, "port": 0.9}
    right, misspelled = (
        [(hit.id, hit.parts) for hit in rank(index, question, today=date(2026, 11, 26), meaning=meaning)]
        for question in ("harbour", "harbuor")
    )
    assert misspelled == right
    assert [id for id, _ in right] == ["harbour", "port"]
