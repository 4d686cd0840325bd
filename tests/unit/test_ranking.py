"""Ranked entries: terms and BM25 equal SQLite FTS5, and properties of any ranking."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from importlib.util import find_spec
from math import isclose, log
from random import Random
from types import SimpleNamespace
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import ConfigError
from ipfsmem.recall import passages as passages_module
from ipfsmem.recall import postings as postings_module
from ipfsmem.recall import ranking
from ipfsmem.recall.dates import days_named
from ipfsmem.recall.image import ImageError
from ipfsmem.recall.passages import passages
from ipfsmem.recall.porter import stem
from ipfsmem.recall.postings import Postings, TermNumbers
from ipfsmem.recall.ranking import (
    USUAL,
    WEIGHTS,
    Document,
    Hit,
    Index,
    RankingWeights,
    rank,
    recency,
    salience,
    weigh,
)
from ipfsmem.recall.recipe import best_first
from ipfsmem.recall.terms import STOP_WORDS, fold, split, terms
from ipfsmem.wordlist import word_list
from tests.support.effort import cases
from tests.support.extras import need_extra
from tests.support.plain_ranking import plain_rank, same_hits

WORDS = word_list()
TODAY = date(2026, 11, 23)
ENDINGS = (
    "",
    "s",
    "es",
    "ed",
    "ing",
    "ly",
    "ness",
    "ational",
    "ization",
    "iveness",
    "ement",
    "ion",
    "ally",
    "able",
    "y",
    "ies",
)
each_way = pytest.mark.parametrize("arrays", [False, True], ids=["plainly", "with NumPy"])
OPERATORS = '"', "NEAR(a b)", "a AND", "*", "col:x", "-", "^a", "(", "' OR 1=1 --"


@contextmanager
def ranked(arrays: bool) -> Iterator[pytest.MonkeyPatch]:
    """Rank every index with NumPy, or none."""
    if arrays:
        need_extra("semantic", "numpy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_by_arrays", lambda index: arrays)
        yield patch


def fts5(rows: list[str]) -> sqlite3.Connection:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
    base.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", enumerate(rows, 1))
    return base


def test_stems_equal_those_of_fts5() -> None:
    words = [word + ending for word in WORDS for ending in ENDINGS]
    base = fts5(words)
    base.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
    theirs = {words[doc - 1]: term for term, doc in base.execute("SELECT term, doc FROM v")}
    assert len(theirs) > 30_000
    assert {w: (stem(w), theirs[w]) for w in theirs if stem(w) != theirs[w]} == {}


def test_bm25_equals_fts5_and_the_formula() -> None:
    telling = [word for word in WORDS if word not in STOP_WORDS][:60]
    rows = [" ".join(telling[(n * n + k * k * 7) % 60] for k in range(5 + n % 11)) for n in range(200)]
    numbers = TermNumbers()
    postings = Postings(numbers)
    for row in rows:
        postings.add(numbers.of(split(row)))
    base, compared = fts5(rows), 0
    for word in telling:
        ours = postings.scores([stem(word)])
        theirs = dict(base.execute("SELECT rowid, -bm25(t) FROM t WHERE t MATCH ?", (f'"{word}"',)))
        assert ours.keys() == theirs.keys()
        for number, score in ours.items():
            length = len(rows[number - 1].split())
            times = [stem(one) for one in rows[number - 1].split()].count(stem(word))
            average = sum(len(row.split()) for row in rows) / len(rows)
            worth = max(1e-6, log((len(rows) - len(ours) + 0.5) / (len(ours) + 0.5)))
            plain = worth * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / average))
            assert isclose(score, theirs[number], rel_tol=1e-9) and isclose(score, plain, rel_tol=1e-9)
            compared += 1
    assert compared > 300


def test_terms_of_other_scripts_are_split() -> None:
    assert terms("The Crème brûlées") == ["creme", "brule"]
    assert terms("東京都 の") == ["東京", "京都", "の"]
    assert terms("Привет, שלום") == ["привет", "שלום"]
    assert terms("🙂 — …") == []
    assert terms("المكتبة والمكتبة بالمكتبة للمكتبة") == ["مكتبة"] * 4
    assert terms("الآن لله ألم") == ["الان", "لله", "الم"]  # too short to be omitted


def test_question_about_a_distance_prefers_a_number() -> None:
    talk = ["Did you run?", "I ran 12 miles today.", "Good."]
    index = Index(Document(str(n), one, group="d") for n, one in enumerate(talk))
    assert {hit.id for hit in rank(index, "How far did you run?", today=TODAY) if "number" in hit.parts} == {
        "1"
    }
    assert not any("number" in hit.parts for hit in rank(index, "Why did you run?", today=TODAY))


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("what happened in May?", date(2025, 5, 9), date(2025, 6, 1)),
        ("in May 2024", date(2024, 5, 9), date(2025, 5, 9)),
        ("on 3 May", date(2024, 5, 3), date(2024, 5, 4)),
        ("on March 3rd, 2026", date(2026, 3, 3), date(2025, 3, 3)),
        ("in 2025", date(2025, 1, 1), date(2026, 1, 1)),
        ("2026-11-22", date(2026, 11, 22), date(2026, 11, 23)),
        ("since 2026-11", date(2026, 11, 1), date(2026, 10, 31)),
        ("last week", date(2026, 11, 16), date(2026, 11, 23)),
        ("this week", date(2026, 11, 23), date(2026, 11, 22)),
        ("last month", date(2026, 10, 31), date(2026, 11, 1)),
        ("last year", date(2025, 2, 2), date(2026, 2, 2)),
        ("yesterday", date(2026, 11, 22), date(2026, 11, 23)),
        ("5 days ago", date(2026, 11, 18), date(2026, 11, 19)),
        ("2 weeks ago", date(2026, 11, 12), date(2026, 11, 14)),
    ],
)
def test_days_named_in_a_question_are_recognised(question: str, inside: date, outside: date) -> None:
    named = days_named(question, TODAY)
    assert any(inside in days for days in named) and not any(outside in days for days in named)


def test_may_and_march_are_also_other_words() -> None:
    assert days_named("who may march here with 12 men", TODAY) == []


def test_impossible_dates_match_no_day() -> None:
    assert not any(TODAY in days for days in days_named("on 99 May 0000, 2026-99-99", TODAY))


text = st.text("abc é東京?\n'\"*:-1", max_size=30) | st.sampled_from(
    ["the cat sat", "two dogs run in May", "Where is it?", *OPERATORS]
)
documents = st.lists(
    st.builds(
        Document,
        id=st.sampled_from("abcdefgh"),
        text=text,
        header=text,
        group=st.sampled_from(["", "x", "y"]),
        at=st.none() | st.dates(),
        memory=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda one: one.id,
)
spoken = st.lists(
    st.sampled_from(
        [
            "alpha",
            "alphabet",
            "beta",
            "c++",
            "c#",
            "gamma",
            "delta",
            "the",
            "plane",
            "2024",
            "monday",
            "running",
            "runs",
            "two",
            "twó",
            "東京都",
            "this",
            "x",
            "y",
            "z",
        ]
    ),
    max_size=9,
).map(" ".join)
#: As agents answer: many lines and sentences, one of which is the answer.
long_spoken = st.builds(
    lambda some, end, times: end.join(some * times),
    st.lists(spoken, min_size=1, max_size=7),
    st.sampled_from([". ", "\n", "。", " "]),
    st.sampled_from([9, 40]),
)
entries = st.lists(
    st.builds(
        Document,
        id=st.integers(0, 99).map(str),
        text=st.tuples(spoken | spoken | long_spoken, st.sampled_from(["", "?", "."])).map("".join),
        header=st.sampled_from(["", "", "alpha", "beta x"]),
        group=st.sampled_from(["", "g", "h", "i"]),
        at=st.none() | st.integers(0, 900).map(lambda days: TODAY - timedelta(days)),
        memory=st.sampled_from([False, False, True]),
        salience=st.floats(0, 1),
    ),
    max_size=30,
    unique_by=lambda one: one.id,
)
asked = st.tuples(
    st.sampled_from(["", "", "when ", "how many ", "what was in 2025 ", "last month ", "alhpabet "]), spoken
).map("".join)
meanings = st.none() | st.dictionaries(st.sampled_from("abcdefghz"), st.floats(-1, 1))


@each_way
@settings(max_examples=cases(60, 1000), deadline=None)
@given(
    all_of_them=documents,
    question=st.text(max_size=30) | text,
    meaning=meanings,
    removed=st.lists(st.sampled_from("abcdefgh")),
)
def test_ranking_is_total_and_a_patched_index_equals_a_new_one(
    arrays: bool,
    all_of_them: list[Document],
    question: str,
    meaning: dict[str, float] | None,
    removed: list[str],
) -> None:
    index = Index(all_of_them)
    with ranked(arrays):
        rank(index, question, today=TODAY)  # what it keeps for the next question must not outlast a change
        for id in removed:
            index.remove(id)
        anew = Index(one for one in all_of_them if one.id not in removed)
        assert index.image() == anew.image()
        assert rank(index, question, today=TODAY, limit=99) == rank(anew, question, today=TODAY, limit=99)
        hits = rank(index, question, today=TODAY, limit=99, meaning=meaning)
        assert hits == rank(anew, question, today=TODAY, limit=99, meaning=meaning)
        assert rank(index, question, today=TODAY, limit=2, meaning=meaning) == hits[:2]
    with ranked(False):
        assert same_hits(hits, rank(index, question, today=TODAY, limit=99, meaning=meaning))
    assert [hit[:2] for hit in hits] == [hit[:2] for hit in sorted(hits, key=lambda h: (-h.score, h.id))]
    assert len({hit.id for hit in hits}) == len(hits)
    for hit in hits:
        assert hit.score == round(sum(hit.parts.values()), 10)
        for part, value in hit.parts.items():
            most = max(WEIGHTS["own"], WEIGHTS["alone"]) if part in ("words", "meaning") else WEIGHTS[part]
            assert 0 <= value / most <= 1 + 1e-9


def test_equal_scores_of_different_parts_are_ordered_by_id() -> None:
    made = [Hit("b", 0.1 + 0.2, {"words": 0.1, "cover": 0.2}), Hit("a", 0.3, {"words": 0.3})]
    assert [(hit.id, hit.score) for hit in best_first(made, 2)] == [("a", 0.3), ("b", 0.3)]


@settings(max_examples=cases(40, 500), deadline=None)
@given(entries, entries, st.lists(st.integers(0, 99).map(str), max_size=20), asked)
def test_index_image_ranks_and_is_patched_like_its_index(
    before: list[Document], more: list[Document], removed: list[str], question: str
) -> None:
    index = Index(before)
    opened = Index.from_image(index.image())
    for one in (index, opened):
        for id in removed:
            one.remove(id)
        for document in more:
            one.add(document)
    hits = rank(index, question, today=TODAY, limit=99)
    assert rank(opened, question, today=TODAY, limit=99) == hits
    assert opened.image() == index.image()
    assert (
        len(opened)
        == len(index)
        == len({one.id for one in (*before, *more)} - (set(removed) - {m.id for m in more}))
    )


@contextmanager
def sorted_by(arrays: bool) -> Iterator[None]:
    """Sort all terms with NumPy, or none."""
    with patch.object(postings_module, "_SORTED", 0 if arrays else 1 << 60):
        yield


@settings(max_examples=cases(25, 300), deadline=None)
@given(entries, entries, entries, st.lists(st.integers(0, 99).map(str), max_size=20), asked)
def test_terms_are_sorted_the_same_with_and_without_numpy(
    first: list[Document], second: list[Document], third: list[Document], removed: list[str], question: str
) -> None:
    def made(*arrays: bool) -> tuple[bytes, list[Hit], bytes]:
        index = Index()
        for way, some in zip(arrays, (first, second, third), strict=True):
            with sorted_by(way):
                for one in some:
                    index.add(one)
                for id in removed[len(some) % 3 :: 3]:
                    index.remove(id)
                hits = rank(index, question, today=TODAY, limit=99)
        with sorted_by(arrays[0]):
            image = index.image()
            return image, hits, Index.from_image(image).image()

    plain = made(False, False, False)
    for ways in ((True, True, True), (False, True, False), (True, False, True)):
        assert made(*ways) == plain


IMAGE_OF = [
    Document("a", "alpha beta 2024", group="g", at=TODAY),
    Document("b", "alpha " * 700 + "gamma?", group="g"),
    Document("c", "delta", header="alpha name", memory=True, at=TODAY),
    Document("e", "first line of it\n" * 40 + "omega\n" + "the rest\n" * 40, group="g"),
]


def damaged(*replaced: tuple[int, object], rows: tuple[int, object] | None = None) -> bytes:
    """Return the image with some of its fields replaced; `rows`: one of the postings' fields."""
    fields = msgspec.msgpack.decode(Index(IMAGE_OF).image())
    for at, value in replaced:
        fields[at] = value
    if rows is not None:
        fields[8][rows[0]] = rows[1]
    return msgspec.msgpack.encode(fields)


@each_way
def test_index_image_with_repeated_or_unordered_entries_still_answers(arrays: bool) -> None:
    many = [Document(f"{n:04}", "common rare" if n % 300 < 2 else "common") for n in range(3_000)]
    fields = msgspec.msgpack.decode(Index(many).image())
    numbers = array("H", fields[8][3])
    for damaged_numbers in (numbers[::-1], array("H", [1]) * len(numbers)):
        fields[8][3] = damaged_numbers.tobytes()
        index = Index.from_image(msgspec.msgpack.encode(fields))
        with ranked(arrays):
            for question in ("rare", "common rare"):
                assert rank(index, question, today=TODAY, limit=5_000)


def test_damaged_rows_give_the_same_image_with_and_without_numpy() -> None:
    numbers, seen = array("H", msgspec.msgpack.decode(Index(IMAGE_OF).image())[8][3]), set()
    for image in (
        damaged(),
        damaged(rows=(3, numbers[::-1].tobytes())),
        damaged(rows=(3, array("H", [60_000, *numbers[1:]]).tobytes())),
        damaged(rows=(0, "\nzeta" * 14 + "\n")),
        damaged(rows=(1, array("I", [0, *[10] * 12, 70]).tobytes())),
    ):
        try:
            with sorted_by(False):
                plain = Index.from_image(image).image()
        except ImageError:
            continue
        with sorted_by(True):
            assert Index.from_image(image).image() == plain
        seen.add(plain)
    assert len(seen) > 2


@pytest.mark.parametrize("there", [(), (1,), (1, 2, 3), (4, 3, 4)])
@pytest.mark.parametrize("not_there", [0, 5, 0xFFFF])
@each_way
def test_index_image_with_unknown_entry_numbers_answers_without_them(
    arrays: bool, not_there: int, there: tuple[int, ...]
) -> None:
    size = len(msgspec.msgpack.decode(Index(IMAGE_OF).image())[8][3]) // 2
    numbers = array("H", [*there, *[not_there] * (size - len(there))])
    index = Index.from_image(damaged(rows=(3, numbers.tobytes())))
    index.add(Document("new", "beta words"))
    with ranked(arrays):
        hits = rank(index, "alpha beta gamma delta omega words", today=TODAY)
    assert "new" in {hit.id for hit in hits} <= {"a", "b", "c", "e", "new"}
    assert Index.from_image(index.image()).image() == index.image()


@each_way
def test_index_image_with_wrong_counts_or_terms_still_answers(arrays: bool) -> None:
    nothing = msgspec.msgpack.decode(Index(IMAGE_OF).image())
    nothing[8][4] = bytes(len(nothing[8][4]))[: len(nothing[8][3]) // 2]
    for image in (
        damaged(rows=(0, "\n" * 71)),
        damaged(rows=(0, "\nzeta" * 14 + "\n")),
        msgspec.msgpack.encode(nothing),
        damaged(rows=(1, array("I", [0, *[10] * 12, 70]).tobytes())),
    ):
        index = Index.from_image(image)
        index.add(Document("new", "beta words"))
        with ranked(arrays):
            hits = rank(index, "alpha beta gamma delta omega words betta", today=TODAY)
        assert "new" in {hit.id for hit in hits} <= {"a", "b", "c", "e", "new"}


def test_passages_cover_a_text_in_order_and_are_short() -> None:
    assert passages("a. " * 300) == ["a. " * 300]
    text = "A sentence of some length stands here.\n" * 30 + "x" * 2_000 + "\n" + "東京都。" * 300
    found = passages(text)
    assert "".join(found) == text
    assert [len(one) > 600 for one in found] == ["x" in one for one in found] and len(found) > 4
    assert not found[0].startswith(" ") and found[0].endswith("here.\n")


@given(st.text("ab .!?\n\t\r。！？é", max_size=40))
def test_passages_end_at_lines_and_sentences(text: str) -> None:
    ends = re.finditer(r"\n+|[.!?][ \t\r\n]+|[。！？]", text)
    assert [one.span() for one in passages_module._end.finditer(text)] == [one.span() for one in ends]


def test_index_image_stores_high_counts_and_no_text() -> None:
    image = Index(IMAGE_OF).image()
    assert damaged() == image and b"alpha alpha" not in image
    row = Index.from_image(image).words.row("alpha")
    assert list(row.counts) == [1, 700, 1] and list(row.numbers) == [1, 2, 3]


@pytest.mark.parametrize(
    "image",
    [
        b"",
        b"\xff",
        msgspec.msgpack.encode([]),
        damaged((0, 5)),  # of a later version
        damaged((1, [])),
        damaged((1, ["", "a", "a", "c"])),
        damaged((1, ["", "a", "", "c"])),
        damaged((1, ["", "a", "b"])),
        damaged((3, b"")),
        damaged((3, b"\0" * 12 + b"\xff" * 4)),  # a day that no calendar has
        damaged((4, b"\0\0" * 3 + b"\xff\xff")),
        damaged((5, b"\0\0\0\x40")),
        damaged((7, b"\0" * 12 + b"\x02\0\0\0")),  # a missing group
        damaged((7, b"\1" + b"\0" * 15)),
        damaged(rows=(0, "\nalpha\n")),
        damaged(rows=(0, ["alpha"])),
        damaged(rows=(1, b"")),
        damaged(rows=(1, b"\1" * 24)),
        damaged(rows=(2, b"\0" * 24)),
        damaged(rows=(2, b"\xff" * 24)),
        damaged(rows=(4, b"")),
        damaged(rows=(4, b"\1" * 500)),
        damaged(rows=(5, b"\0" * 15)),
    ],
)
def test_inconsistent_index_image_is_refused(image: bytes) -> None:
    with pytest.raises(ImageError):
        Index.from_image(image)
    assert issubclass(ImageError, ValueError)


@settings(max_examples=cases(100, 2000), deadline=None)
@given(st.data())
def test_damaged_index_image_is_refused_or_still_answers(data: st.DataObject) -> None:
    image = bytearray(Index(IMAGE_OF).image())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(image) - 1))
        if data.draw(st.booleans()):
            image[at] = data.draw(st.integers(0, 255))
        else:
            del image[at : at + data.draw(st.integers(1, 9))]
    try:
        index = Index.from_image(bytes(image))
    except ImageError:
        return
    index.add(Document("d", "beta alpha gamma", group="g"))
    index.remove("a")
    assert len(rank(index, "alpha beta gamma delta name", today=TODAY)) <= 4
    index.image()


def test_replaced_entries_use_no_permanent_space() -> None:
    index = Index(IMAGE_OF)
    for n in range(5_000):
        index.add(Document("d", f"beta {n}", group="h"))
    assert len(index.ids) < 2_000 and len(index) == len(IMAGE_OF) + 1
    assert [hit.id for hit in rank(index, "4999", today=TODAY)] == ["d"]


def test_answer_is_found_by_the_question_before_it() -> None:
    talk = [
        "Good morning! How was it?",
        "Which colour has the bicycle?",
        "It is green, I painted it again.",
        "Nice.",
        "And the weather was good.",
    ]
    index = Index(Document(str(n), one, group="d1") for n, one in enumerate(talk))
    asked, answer, *_ = rank(index, "colour of the bicycle", today=TODAY)
    assert (asked.id, answer.id) == ("1", "2") and "words" not in answer.parts
    assert answer.parts["answer"] == WEIGHTS["answer"] and "answer" not in asked.parts


@each_way
def test_long_answer_is_found_by_its_matching_line(arrays: bool) -> None:
    """Short turns with the same word do not answer the question."""
    lines = [f"Step {n}: open the {WORDS[n]} and close the {WORDS[n + 50]}." for n in range(80)]
    lines[60] = "The certificate renews itself through certbot every sixty days, and certbot reloads nginx."
    talk = [
        "How do I set up the box?",
        "\n".join(lines),
        "Thanks.",
        "Any certificate?",
        "Ok.",
        "Days go by.",
        "Fine.",
    ]
    index = Index(Document(str(n), one, group="talk") for n, one in enumerate(talk))
    with ranked(arrays):
        hits = rank(index, "when does certbot renew the certificate", today=TODAY)
    found = next(hit for hit in hits if hit.id == "1")
    assert found.parts["words"] == max(hit.parts.get("words", 0.0) for hit in hits)
    assert found.parts["cover"] == WEIGHTS["cover"] and found.parts["long"] < 0


def test_speaker_and_day_of_a_turn_are_searched() -> None:
    at = date(2023, 5, 8)
    turns = [
        Document("ann", "I bought a kayak", "Ann", "g", at),
        Document("bob", "I bought a kayak", "Bob", "g", at),
    ]
    other = Document("other", "I bought a kayak", "Ann", "h", date(2023, 6, 9))
    index = Index([*turns, other])
    first, *rest = rank(index, "what did Bob buy", today=TODAY)
    assert (
        first.id == "bob"
        and first.parts["by"] == WEIGHTS["by"]
        and not any("by" in hit.parts for hit in rest)
    )
    assert {hit.id for hit in rank(index, "8 may", today=TODAY)} >= {"ann", "bob"}
    dated = {hit.id: hit.parts.get("words", 0.0) for hit in rank(index, "kayak of 8 May", today=TODAY)}
    assert dated["ann"] == dated["bob"] > dated["other"] > 0


def test_memory_files_rank_by_words_then_priority_and_age() -> None:
    old = Document("old", "Deploys go out on Friday", at=date(2026, 1, 1), memory=True)
    new = msgspec.structs.replace(old, id="new", at=TODAY)
    kept = msgspec.structs.replace(old, id="important", salience=salience("user", 0, important=True))
    named = msgspec.structs.replace(old, id="named", header="deploys")
    found = [hit.id for hit in rank(Index([old, new, kept, named]), "deploys", today=TODAY)]
    assert found[0] == "named" and found[-1] == "old" and len(found) == 4
    assert rank(Index([old]), "nothing of it", today=TODAY) == []
    assert recency(0) == 1 and recency(7) == 0.5 and recency(-3) == 1
    assert salience("feedback", 9) == 1 and isclose(salience("project", 1), 0.65)


likeness = st.none() | st.dictionaries(st.integers(0, 99).map(str), st.floats(-1, 1), max_size=20)
#: Weights in settings: some parts replaced, or none at all.
weights = st.builds(
    weigh,
    st.dictionaries(
        st.sampled_from(sorted(WEIGHTS)), st.sampled_from([0.0, 0.25, 1.0, 7.0, 100.0]), max_size=6
    )
    | st.just(dict.fromkeys(WEIGHTS, 0.0))
    | st.just({"question": 4.0}),
    st.sampled_from([7.0, 0.01, 365.0]),
)


@each_way
@settings(max_examples=cases(60, 1500), deadline=None)
@given(
    documents=entries,
    question=asked,
    meaning=likeness,
    limit=st.integers(0, 12),
    limits=st.sampled_from([(5_000, 1_000, 40), (0, 4, 1), (0, 1, 9)]),
    weighed=st.just(USUAL) | weights,
    only=st.none() | st.sets(st.integers(0, 99).map(str), min_size=30),
)
def test_hits_equal_those_of_the_documented_formula(
    arrays: bool,
    documents: list[Document],
    question: str,
    meaning: dict[str, float] | None,
    limit: int,
    limits: tuple[int, ...],
    weighed: RankingWeights,
    only: set[str] | None,
) -> None:
    look_all, look_best, look_groups = limits
    with ranked(arrays) as patch:
        patch.setattr(ranking, "_ALL", look_all)
        patch.setattr(ranking, "_BEST", look_best)
        patch.setattr(ranking, "_BEST_GROUPS", look_groups)
        index = Index(documents)
        may = None if only is None else frozenset(n for id in only if (n := index.number(id)) is not None)
        ours = rank(index, question, today=TODAY, limit=limit, meaning=meaning, weighed=weighed, only=may)
    theirs = plain_rank(
        documents,
        question,
        today=TODAY,
        meaning=meaning,
        look_all=look_all,
        look_best=look_best,
        look_groups=look_groups,
        weighed=weighed,
        only=only,
    )
    assert len(ours) == min(limit, len(theirs))
    assert same_hits(ours, theirs), (ours, theirs)


@each_way
@settings(max_examples=cases(10, 200), deadline=None)
@given(st.integers(0, 1 << 32))
def test_pruned_ranking_of_hundreds_of_entries_equals_the_full_formula(arrays: bool, seed: int) -> None:
    rng = Random(seed)
    words = [word for word in WORDS if word not in STOP_WORDS][:60]
    often, lengthy = [1 / (n + 2) for n in range(len(words))], rng.choice((20, 20, 600))
    documents = [
        Document(
            f"{n:03}",
            " ".join(rng.choices([*words, "end.\n"], [*often, 0.1], k=rng.choice((3, 9, 30, lengthy))))
            + rng.choice(["", "?", " 2024"]),
            header=" ".join(rng.choices(words, often, k=2)) if rng.random() < 0.3 else "",
            group=f"talk {rng.randint(0, n // 12)}",
            at=TODAY - timedelta(rng.randint(0, 400)),
            memory=rng.random() < rng.choice((0.0, 0.4)),
            salience=rng.random(),
        )
        for n in range(300)
    ]
    question = " ".join(rng.choices(words, k=rng.choice((1, 2, 5, 9)))) + rng.choice(["", " when", " in may"])
    meaning = {one.id: rng.random() for one in rng.sample(documents, 60)} if rng.random() < 0.4 else None
    only = {one.id for one in documents if rng.random() < 0.6} if rng.random() < 0.4 else None
    limits = rng.choice([(5_000, 1_000, 40), (100, 40, 4), (100, 5, 2)])
    with ranked(arrays) as patch:
        for name, value in zip(("_ALL", "_BEST", "_BEST_GROUPS"), limits, strict=True):
            patch.setattr(ranking, name, value)
        index = Index(documents)
        may = None if only is None else frozenset(n for id in only if (n := index.number(id)) is not None)
        ours = rank(index, question, today=TODAY, meaning=meaning, only=may)
    look_all, look_best, look_groups = limits
    theirs = plain_rank(
        documents,
        question,
        today=TODAY,
        meaning=meaning,
        look_all=look_all,
        look_best=look_best,
        look_groups=look_groups,
        only=only,
    )
    assert len(ours) == min(10, len(theirs))
    assert same_hits(ours, theirs), (ours, theirs)


def test_invalid_weights_are_refused() -> None:
    with pytest.raises(ConfigError, match="no part 'colour'"):
        weigh({"colour": 1.0})
    with pytest.raises(ConfigError, match="the weight of words is 0 or more"):
        weigh({"words": -1.0})
    assert weigh({"before": 2.0, "length": 1.0}) == USUAL  # former parts: settings remain valid
    assert weigh({}) == USUAL and weigh({"question": -3.0}, 14.0).half_life == 14


@given(st.text() | text)
def test_folding_removes_all_combining_characters(any_text: str) -> None:
    apart = unicodedata.normalize("NFKD", any_text.casefold())
    assert fold(any_text) == "".join(c for c in apart if not unicodedata.combining(c)).casefold()


def test_best_of_many_entries_are_found_and_numpy_loads_on_frequent_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [Document(f"{n:05}", f"common word {n % 97}", memory=True) for n in range(5_200)]
    index = Index([*many, Document("z", "common needle", memory=True)])
    monkeypatch.setattr(ranking, "sys", SimpleNamespace(modules={}))
    first = [rank(index, "needle common", today=TODAY) for _ in range(4)]
    assert index.arrays is None
    later = rank(index, "needle common", today=TODAY)
    assert later[0].id == "z" and first == 4 * [later]
    assert (index.arrays is not None) == (find_spec("numpy") is not None)


@pytest.mark.parametrize(
    "question", ["", " ", "🙂", "the", *OPERATORS, "x" * 300_000, "東" * 5_000, "\x00\ud800"]
)
def test_any_question_is_answered_without_an_error(question: str) -> None:
    index = Index([Document("a", "some text", group="g"), Document("b", "東京 שלום", memory=True)])
    assert all(hit.id in "ab" for hit in rank(index, question, today=TODAY))


@pytest.mark.parametrize(("entries", "first"), [(1_999, None), (2_000, 11), (10_000, 3), (20_000, 2)])
def test_numpy_is_loaded_when_questions_without_it_are_slower(
    monkeypatch: pytest.MonkeyPatch, entries: int, first: int | None
) -> None:
    monkeypatch.setattr(ranking, "numpy_is_there", lambda: True)
    monkeypatch.setattr(ranking, "sys", SimpleNamespace(modules={}))

    class Many(Index):
        def __len__(self) -> int:
            return entries

    index = Many()
    by_arrays = []
    for asked in range(1, 15):
        index.asked = asked
        if ranking._by_arrays(index):
            by_arrays.append(asked)
    assert (by_arrays[0] if by_arrays else None) == first
