"""Summaries: covered and remaining messages, and the messages for a program;
a malformed summary mark covers nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.sessions.compaction import (
    PlacedItem,
    Summary,
    as_message,
    extract,
    is_mark,
    resumed,
    summarised,
    summary_mark,
    title_mark,
    told,
    what_to_cover,
)
from ipfsmem.sessions.messages import Message, read_message
from ipfsmem.sessions.transcript import as_markdown, preview_of, title_of

A, B = "a" * 16, "b" * 16


def turns(number: int, device: str = A, since: int = 0) -> list[PlacedItem]:
    """Return `number` turns of a question and an answer."""
    return [
        PlacedItem((since + 2 * n + m, device, 0), {"role": role, "content": f"{role} {n}"})
        for n in range(number)
        for m, role in enumerate(("user", "assistant"))
    ]


def covering(entries: list[PlacedItem], number: int) -> list[PlacedItem]:
    """Append a summary that covers the first `number` uncovered messages."""
    session = told(entries)
    summary = summarised(session, number, lambda messages, _: f"{len(messages)} said", "a test", 500)
    return [*entries, PlacedItem((entries[-1].place[0] + 1, A, 0), summary_mark(summary))]


def test_resume_begins_with_the_summary_of_covered_messages() -> None:
    entries = covering(turns(50), 80)
    session = told(entries)
    assert session.summary is not None and session.summary.messages == 80
    assert len(session.after) == 20 and len(session.messages) == 100
    # A resumed session starts at the beginning of a turn, so one message is dropped.
    given = resumed(session, 20)
    assert len(given) == 19 and read_message(given[0]).text.endswith("80 said")
    assert given[1] == {"role": "user", "content": "user 41"}
    assert resumed(session, 100)[1:] == [one.item for one in entries[80:100]]


def test_messages_added_by_another_device_meanwhile_are_not_covered() -> None:
    entries = sorted([*covering(turns(30), 40), *turns(1, B, since=5)])
    session = told(entries)
    assert [one.item["content"] for one in session.after[:2]] == ["user 0", "assistant 0"]
    assert {one.place[1] for one in session.after[:2]} == {B} and len(session.after) == 22


def test_later_summary_is_computed_from_all_covered_messages() -> None:
    entries = covering(turns(50), 80)
    again = told(covering(entries, 10))
    assert again.summary is not None and again.summary.text == "90 said"
    assert again.summary.messages == 90 and len(again.after) == 10


@given(
    st.integers(0, 120),
    st.integers(2, 90),
    st.integers(1, 40),
    st.sampled_from([0, 30, 200]),
)
def test_compaction_starts_and_ends_at_its_limits(number: int, most: int, keep: int, tokens: int) -> None:
    keep = min(keep, most - 1)
    session = told(turns(number))
    covered = what_to_cover(session, messages=most, keep=keep, tokens=tokens)
    words = sum(len(one.item["content"]) for one in session.messages)
    if 2 * number <= most and not (tokens and words > tokens):
        assert covered == 0
    elif 2 * number > most:
        # The beginning of a turn, so one message more may stay.
        assert 2 * number - covered >= min(keep, 2 * number) or tokens
        assert 2 * number - covered <= keep + 1
    assert covered % 2 == 0 and 0 <= covered < max(1, 2 * number)


def test_session_has_a_title_and_a_preview() -> None:
    entries = turns(2)
    assert title_of(told(entries)) == "user 0" and preview_of(told(entries)) == "assistant 1"
    named = [
        PlacedItem((0, A, 0), title_mark("The boat")),
        *entries,
        PlacedItem((99, A, 0), title_mark("Boats")),
    ]
    assert title_of(told(named)) == "Boats" and len(told(named).messages) == 4
    assert title_of(told([])) == "Untitled" and preview_of(told([])) == ""
    long = [PlacedItem((0, A, 0), {"role": "user", "content": "very " * 40})]
    assert len(title_of(told(long))) == 80 and title_of(told(long)).endswith("…")


def test_markdown_export_quotes_messages() -> None:
    entries = covering(
        [PlacedItem((5, A, 0), {"role": "user", "content": "# Not a heading\n\n## Nor this"})], 1
    )
    page = as_markdown(told(entries), lambda ms: f"at {ms}")
    assert page.startswith(
        "# # Not a heading ## Nor this\n\n## User, at 5\n\n> # Not a heading\n>\n> ## Nor this\n"
    )
    assert "## Summary of 1 message, by a test" in page


def test_summary_uses_the_message_format_of_its_session() -> None:
    summary = Summary("short", {}, 3, "x")
    assert as_message(summary, [{"role": "user", "content": ""}])["role"] == "user"
    plain = read_message(as_message(summary, []))
    pydantic = read_message(as_message(summary, [{"kind": "request", "parts": []}]))
    assert plain == pydantic and plain.is_request and plain.text.endswith("\n\nshort")


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just(A), inside, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["summary", "covers", "messages", "by", "title"]), JSON, max_size=5))
def test_malformed_summary_mark_covers_nothing(said: dict[str, Any]) -> None:
    mark = {"ipfsmem": said}
    session = told([*turns(3), PlacedItem((99, A, 0), mark)])
    assert is_mark(mark) and len(session.messages) == 6
    if session.summary is None:
        assert len(session.after) == 6
    resumed(session, 5)
    as_markdown(session, str)


def test_item_with_more_than_a_mark_is_a_message() -> None:
    assert not is_mark({"ipfsmem": {"title": "x"}, "role": "user"}) and not is_mark({"ipfsmem": "x"})


def test_extract_quotes_sentences_in_order_within_its_limit() -> None:
    messages = [
        Message("user", "The boat lies at pier 7. Hello there."),
        Message("assistant", "Noted: the boat lies at pier 7."),
        Message("user", "The boat is blue."),
        Message("assistant", "", ("look",), ("c",)),
        Message("tool", "secret answer"),
    ]
    whole = extract(messages, 4_000).splitlines()
    assert whole[0] == "Tools that were called: look 1 time."
    assert whole[1] == "user: The boat lies at pier 7." and "secret answer" not in "".join(whole)
    assert [line for line in whole if "boat" in line] == whole[1:2] + [
        line for line in whole[2:] if "boat" in line
    ]
    short = extract(messages, 100)
    assert len(short) <= 100 and "boat" in short and "Hello" not in short
    assert extract([], 100) == ""


@given(st.lists(st.text(max_size=300), max_size=12), st.integers(0, 600))
def test_summary_is_never_longer_than_its_limit(texts: list[str], room: int) -> None:
    assert len(extract([Message("user", text) for text in texts], room)) <= room
