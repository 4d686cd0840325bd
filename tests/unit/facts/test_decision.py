"""Laws of adding a fact to the existing ones, and of hiding facts, on values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.facts.categories import category_of, fact_key, kind_of, sanitised, type_of
from ipfsmem.facts.decision import Candidate, decide
from ipfsmem.facts.limits import Order, Ranked, beyond, place_of
from tests.support.effort import cases


def held_against(
    new: str, *there: str, category: str = "preference", meaning: float | None = None
) -> tuple[str, str, bool]:
    decision = decide(new, "preference", [Candidate(one, one, category, meaning) for one in there])
    return decision.action, decision.key, decision.conflict


def test_fact_with_a_different_word_is_another_fact() -> None:
    """As "tea" and "team sports"."""
    assert held_against("user likes tea", "user likes team sports") == ("added", "", False)
    assert held_against("user likes team sports", "user likes tea")[0] == "added"


def test_contained_fact_is_not_added_and_containing_fact_replaces() -> None:
    assert held_against("User likes tea.", "the user likes tea with milk")[0] == "kept"
    assert held_against("The user likes tea with milk", "user likes tea") == (
        "updated",
        "user likes tea",
        False,
    )
    assert held_against("USER  likes, tea!", "user likes tea")[0] == "kept"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("user likes tea", "it is not true that user likes tea"),
        ("the server runs on port 8080 behind the proxy of the office in the old building at the harbour of this town", "the server runs on port 8081 behind the proxy of the office in the old building at the harbour of this town"),
        ("we do not deploy on fridays", "we do deploy on fridays"),
    ],
)  # fmt: skip
def test_negation_or_another_number_is_never_the_same_fact(new: str, old: str) -> None:
    assert held_against(new, old)[0] != "kept" and held_against(old, new)[0] != "kept"


def test_contradiction_is_flagged_when_added_or_replacing() -> None:
    assert held_against("User does not like tea with milk", "User likes tea with milk")[::2] == (
        "added",
        True,
    )
    assert held_against("we never deploy the big app on fridays", "we deploy the big app on fridays") == (
        "updated", "we deploy the big app on fridays", True,
    )  # fmt: skip


def test_another_category_needs_a_higher_similarity() -> None:
    old = "the build of this project takes ten minutes on the big machine"
    new = "the build of this project takes ten minutes on the big old grey steel machine today"
    assert held_against(new, old)[0] == "updated"
    assert held_against(new, old, category="workflow")[0] == "added"


def test_vectors_decide_similarity_where_they_exist() -> None:
    assert held_against("I drink Darjeeling", "user likes tea", meaning=0.96)[0] == "kept"
    assert held_against("I drink Darjeeling now", "user likes tea", meaning=0.75)[0] == "updated"
    assert held_against("I drink Darjeeling", "user likes tea", meaning=0.75)[::2] == ("added", False)
    assert held_against("user likes a tea", "user likes tea", meaning=-0.2)[0] == "added"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The production cluster of the shop runs Postgres 15 in the Frankfurt region", "The staging cluster of the shop runs Postgres 15 in the Frankfurt region"),
        ("Berta may read and approve the invoices of the shop in Berlin", "Anna may read and approve the invoices of the shop in Berlin"),
        ("the standup of the whole backend team is every day at 11", "the standup of the whole backend team is every day at 10"),
    ],
)  # fmt: skip
def test_facts_that_differ_in_one_word_are_both_kept_and_flagged(new: str, old: str) -> None:
    assert held_against(new, old) == ("added", old, True) and held_against(old, new) == ("added", new, True)
    assert held_against(f"{new} now", old)[0] == "updated"


words = st.lists(
    st.sampled_from(["user", "likes", "tea", "team", "not", "milk", "8080", "ünï", "茶"]), max_size=8
).map(" ".join)


@settings(max_examples=cases(25, 500))
@given(words, st.lists(words, max_size=5))
def test_decision_names_an_existing_fact_and_repeats_as_kept(new: str, there: list[str]) -> None:
    action, key, _ = held_against(new, *there)
    assert key in (*there, "") and (action == "added" or key in there)
    if new.strip():
        assert held_against(new, *there, new)[0] == "kept"


@settings(max_examples=cases(25, 500))
@given(st.text(max_size=60))
def test_fact_is_one_line_without_leading_dashes(said: str) -> None:
    text = sanitised(said)
    assert text == sanitised(text) and not text.startswith(("-", " ")) and "\n" not in text


def test_categories_have_one_form_and_keep_letters_of_every_script() -> None:
    said = ["User Prefs!", "Ünïcode", "日本語", "", "a: ' \" % _ / b"]
    assert [category_of(one) for one in said] == ["user_prefs", "ünïcode", "日本語", "general", "a_b"]
    assert [type_of("fact", one) for one in ("preference", "personal_fact", "anything")] == ["feedback", "user", "reference"]  # fmt: skip
    assert (
        kind_of("procedure", "") == "procedure"
        and kind_of("user", "") is None
        and kind_of("user", "x") == "fact"
    )
    assert fact_key("a") != fact_key("a", "episode")


ENTRIES = [
    Ranked("a", "2026-01-01", "9", 0.9, 0.5),
    Ranked("b", "2026-01-02", "3", 0.1, 0.9),
    Ranked("c", "2026-01-03", "1", 0.5, 0.1, important=True),
    Ranked("d", "2026-01-04", "2", 0.7, 0.2),
]


@pytest.mark.parametrize(
    ("order", "gone"),
    [("first", "abd"), ("oldest", "dba"), ("confidence", "bda"), ("salience", "dab")],
)
def test_each_order_hides_its_own_facts_and_important_ones_last(order: Order, gone: str) -> None:
    places = [place_of(one, order) for one in ENTRIES]
    assert [one.key for one in beyond(places, 1)] == list(gone)
    assert beyond(places, 4) == [] == beyond(places, 0)


@settings(max_examples=cases(25, 500))
@given(
    st.lists(st.tuples(st.text(max_size=3), st.floats(0, 1)), max_size=20, unique_by=lambda one: one[0]),
    st.integers(1, 20),
)
def test_beyond_leaves_as_many_facts_as_the_limit_allows(made: list[tuple[str, float]], most: int) -> None:
    """Acceptance check 5: one store kept none of one."""
    found = [place_of(Ranked(key, "", key, confidence), "confidence") for key, confidence in made]
    assert len(found) - len(beyond(found, most)) == min(most, len(found))
