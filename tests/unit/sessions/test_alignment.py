"""New messages of a history that is whole, truncated, repetitive, merged, or mixed with those of other devices."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.sessions.alignment import all_atoms, items_from, stored_atoms, without_summary


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(texts)]


def new(
    stored: list[dict[str, Any]], given: list[dict[str, Any]], foreign: frozenset[int] = frozenset()
) -> Any:
    known = all_atoms((item, n not in foreign) for n, item in enumerate(stored))
    compared = all_atoms((item, True) for item in given)
    return items_from(given, stored_atoms(known, compared))


@given(
    st.lists(st.sampled_from(["ok", "done"]), max_size=12),
    st.lists(st.sampled_from(["ok", "done"]), max_size=4),
)
def test_whole_history_adds_only_its_new_end(old: list[str], more: list[str]) -> None:
    before, history = said(*old), said(*old, *more)
    assert new(before, history) == history[len(before) :]


@given(st.integers(0, 10))
def test_history_truncated_at_its_beginning_adds_its_end(cut: int) -> None:
    history = said(*map(str, range(12)))
    assert new(history[:11], history[cut:]) == history[11:]


def test_request_before_the_end_of_its_turn_is_recognised() -> None:
    history = said(*map(str, range(12)))
    assert new(history, [history[0], *history[8:], *said("x")]) == said("x")


def test_messages_of_other_devices_may_be_missing() -> None:
    stored = said("a", "b", "c", "d", "e", "f")
    history = [stored[0], stored[1], stored[4]]
    assert new(stored, [*history, *said("x")], frozenset({2, 3, 5})) == said("x")


def test_new_conversation_with_an_equal_beginning_is_new() -> None:
    assert new(said("hello", "hi", "where", "there"), said("hello", "hi")) == said("hello", "hi")
    assert new(said("hello", "hi"), said("hello", "hi", "hello", "hi")) == said("hello", "hi")
    # Another device's messages alone prove nothing about this program's history.
    assert new(said("hello", "hi", "x"), said("hello"), frozenset({0, 1, 2})) == said("hello")


@pytest.mark.parametrize("instructions", [None, "Short."])
def test_requests_merged_by_a_framework_add_their_new_parts(instructions: str | None) -> None:
    def request(*texts: str) -> dict[str, Any]:
        parts = [{"part_kind": "user-prompt", "content": text} for text in texts]
        return {"kind": "request", "parts": parts, "instructions": instructions, "run_id": texts[-1]}

    assert new([request("a"), request("b")], [request("a", "b", "c")]) == [request("c")]
    assert without_summary([request("sum", "c")], frozenset({"sum"})) == [request("c")]
