"""Shortened histories never separate a call from its answer, and begin with a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.sessions.cutting import cut_at, trimmed
from ipfsmem.sessions.messages import read_message


def user(text: str = "?") -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str = "!") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "function": {"name": "look"}} for id in ids],
    }


def answer(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "42"}


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns of an agent: a request, rounds of calls and answers, and a final message."""
    found: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 12))):
        found.append(user())
        for _ in range(draw(st.integers(0, 4))):
            ids = [f"c{len(found)}.{n}" for n in range(draw(st.integers(1, 3)))]
            found += [call(*ids), *map(answer, draw(st.permutations(ids)))]
        found += [said()] * draw(st.integers(0, 2))
    return found


def answered(items: list[Mapping[str, Any]]) -> bool:
    """Return whether each answer follows its call, and all calls are present."""
    open_calls: set[str] = set()
    for item in items:
        message = read_message(item)
        if not set(message.answers) <= open_calls:
            return False
        open_calls |= set(message.calls)
    return True


@given(histories(), st.integers(0, 30))
def test_trimmed_history_is_short_and_begins_with_a_request(history: list[dict[str, Any]], most: int) -> None:
    kept = trimmed(history, most)
    assert len(kept) <= most and answered(list(kept))
    if kept:
        assert read_message(kept[0]).is_request
    if most and history:
        assert kept, "the turn that goes on is never lost as a whole"
    if len(history) <= most:
        assert kept == history
    # What is left out stands before what is kept, but for the request of a turn that is too long.
    assert kept == history[len(history) - len(kept) :] or kept[1:] == history[len(history) - len(kept) + 1 :]


@given(histories(), st.integers(-3, 60))
def test_cut_is_not_after_the_wanted_place_and_separates_no_call(
    history: list[dict[str, Any]], wanted: int
) -> None:
    at = cut_at([read_message(item) for item in history], wanted)
    assert 0 <= at <= max(0, wanted)
    assert answered(list(history[:at])) and answered(list(history[at:]))


def test_overlong_turn_keeps_its_request() -> None:
    turn = [user("Where?"), *(one for n in range(20) for one in (call(str(n)), answer(str(n))))]
    kept = trimmed(turn, 6)
    assert kept[0] == user("Where?") and kept[1:] == turn[-4:]
    assert trimmed(turn[1:], 6) == []


def test_history_never_begins_with_an_answer_without_name_or_call() -> None:
    history = [user(), call("a"), {"role": "tool", "content": "42"}, said()]
    read = [read_message(item) for item in history]
    assert cut_at(read, 2) == 0 and cut_at(read, 3) == 3
    assert trimmed([answer("nobody"), user(), said()], 2) == [user(), said()]


def test_items_of_unknown_form_may_be_cut_anywhere() -> None:
    assert trimmed([{"turn": n} for n in range(9)], 3) == [{"turn": 6}, {"turn": 7}, {"turn": 8}]
    assert trimmed([{"turn": 1}], 0) == []
