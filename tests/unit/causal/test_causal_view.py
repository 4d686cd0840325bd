"""The view of an entry (shown text, alternatives, authors) equals the shared vectors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipfsmem.causal.authorship import author_of_copy, author_of_replacement, is_own
from ipfsmem.causal.value import Entry, Value, dot
from ipfsmem.causal.view import ConflictCopy, in_view_order, merge_base, own_view, siblings, view_entry
from ipfsmem.errors import NotFoundError

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/view.json").read_text())
A, B, C = "a" * 16, "b" * 16, "c" * 16


def live(body: str, h: int, b: tuple[str, ...] = ()) -> Value:
    return Value(b=b, body=body, h=f"{h:016x}", kind="live")


@pytest.mark.parametrize("case", VECTORS["views"], ids=lambda case: case["why"])
def test_views_equal_the_vectors(case: Any) -> None:
    texts = {sha: VECTORS["texts"][sha].encode() for sha in case["at_hand"]}
    bases = {sha[:32]: text for sha, text in texts.items()}
    entry = msgspec.convert(case["entry"], Entry)
    for order in (list(entry), list(reversed(entry))):
        view = view_entry("tone", {d: entry[d] for d in order}, texts.get, bases.get)
        assert (None if view.data is None else view.data.decode()) == case["shown"]
        assert (view.body, view.dot, list(view.dots)) == (case["body"], case["represented_by"], case["dots"])
        assert (view.merged, view.forgotten) == (case["merged"], case["forgotten"])
        assert view.conflicts == tuple(msgspec.convert(case["conflicts"], list[ConflictCopy]))
        assert view.hidden == tuple(msgspec.convert(case["hidden"], list[ConflictCopy]))
        assert (list(view.not_fetched), view.missing_base) == (case["not_fetched"], case["missing_base"])
        assert view.complete == (not case["not_fetched"] and case["missing_base"] is None)


def test_reading_an_alternative_adds_its_dots() -> None:
    texts = {hashlib.sha256(t).hexdigest(): t for t in (b"one\n", b"two\n")}
    one, two = texts
    entry = {dot(A, 1): live(one, 2), dot(B, 1): live(two, 1), dot(C, 1): live(two, 0)}
    view = view_entry("tone", entry, texts.get, lambda known: None)
    assert [copy.file for copy in view.conflicts] == [f"tone.conflict-{two[:8]}.md"]
    assert view.conflicts[0].dot == dot(B, 1)
    assert view.rendered() == (dot(A, 1),)
    assert view.rendered(view.conflicts[0].file) == (dot(A, 1), dot(B, 1), dot(C, 1))
    with pytest.raises(NotFoundError, match="tone"):
        view.rendered("tone.conflict-00000000.md")


def test_two_alternatives_never_share_a_file_and_none_is_dropped() -> None:
    winner, first, second = "f" * 64, "1" * 64, "1" * 8 + "2" * 56
    entry = {dot(A, 1): live(winner, 9), dot(B, 1): live(first, 1), dot(C, 1): live(second, 2)}
    view = view_entry("tone", entry, lambda body: body.encode(), lambda known: None)
    assert [copy.body for copy in view.conflicts] == [second]
    assert [copy.body for copy in view.hidden] == [first]


def test_base_is_the_earliest_in_the_winners_list() -> None:
    x, y = "1" * 32, "2" * 32
    entry = {dot(A, 1): live("a" * 64, 9, (y, x)), dot(B, 1): live("b" * 64, 1, (x, y))}
    assert merge_base(siblings(entry)) == y
    entry[dot(A, 1)], entry[dot(B, 1)] = live("a" * 64, 1, (y, x)), live("b" * 64, 9, (x, y))
    assert merge_base(siblings(entry)) == x


def test_replaced_values_are_in_view_order() -> None:
    entry = {
        dot(A, 1): live("a" * 64, 1),
        dot(B, 1): live("b" * 64, 3),
        dot(C, 1): live("a" * 64, 2),
        dot(C, 2): Value(b=(), body=None, h="f" * 16, kind="forgotten"),
    }
    order = [dot(B, 1), dot(C, 1), dot(A, 1), dot(C, 2)]
    assert in_view_order(entry, reversed(order)) == [entry[d] for d in order]
    assert in_view_order(entry, [dot(A, 1), dot(A, 7)]) == [entry[dot(A, 1)]]


def mine(dev: str) -> bool:
    return VECTORS["persons"].get(dev) == VECTORS["reader"]


@pytest.mark.parametrize("case", VECTORS["own_views"], ids=lambda case: case["why"])
def test_views_of_own_texts_equal_the_vectors(case: Any) -> None:
    texts = {sha: text.encode() for sha, text in VECTORS["texts"].items()}
    bases = {sha[:32]: text for sha, text in texts.items()}
    entry = msgspec.convert(case["entry"], Entry)
    for order in (list(entry), list(reversed(entry))):
        shuffled = {d: entry[d] for d in order}
        view = own_view("tone", shuffled, lambda d, of: is_own(d, of, mine), texts.get, bases.get)
        assert (None if view.data is None else view.data.decode()) == case["shown"]
        assert (list(view.dots), view.merged, view.forgotten) == (
            case["dots"],
            case["merged"],
            case["forgotten"],
        )
        assert view.conflicts == tuple(msgspec.convert(case["conflicts"], list[ConflictCopy]))
        assert view.others == tuple(msgspec.convert(case["others"], list[ConflictCopy]))
        assert list(view.unheeded) == case["unheeded"]


@pytest.mark.parametrize("case", VECTORS["words"], ids=lambda case: case["why"])
def test_author_of_a_write_equals_the_vectors(case: Any) -> None:
    entry = msgspec.convert(case["entry"], Entry)
    assert author_of_replacement(entry, case["replaces"], case["body"], mine) == case["of"]


@pytest.mark.parametrize("case", VECTORS["carried"], ids=lambda case: f"{case['dot'][0]}-{case['of'][:7]}")
def test_author_of_a_copied_value_matches_its_vector(case: Any) -> None:
    assert (
        author_of_copy(case["dot"], msgspec.structs.replace(live("1" * 64, 1), author=case["of"]), mine)
        == case["result"]
    )
