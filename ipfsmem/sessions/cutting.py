"""Finds where a conversation may be cut: never between a tool's call and its answer, and for a model at the beginning of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ipfsmem.sessions.messages import Item, Message, read_message

T = TypeVar("T", bound=Item)


def whole_from(messages: Sequence[Message]) -> list[bool]:
    """Return for each index, and the end, whether no answer from there on belongs to an earlier call."""
    whole = [True] * (len(messages) + 1)
    called: dict[str, int] = {}
    caller = -1
    for place, message in enumerate(messages):
        for answered in message.answers:
            since = called.get(answered, caller)
            # An answer without a call cannot come first.
            for between in range(since + 1, place + 1):
                whole[between] = False
        for call in message.calls:
            called[call] = place
        if message.calls or message.tools:
            caller = place
    return whole


def cut_at(messages: Sequence[Message], wanted: int) -> int:
    """Return the last index up to `wanted` at which a turn begins; if the first turn is longer, the last index that separates no
    call from its answer and follows more than the request. 0 if there is none."""
    whole = whole_from(messages)
    turns = (place for place in range(wanted, 0, -1) if whole[place] and messages[place].is_request)
    calls = (place for place in range(wanted, 1, -1) if whole[place])
    return next(turns, next(calls, 0)) if 0 < wanted < len(messages) else 0


def trimmed(items: Sequence[T], most: int) -> list[T]:
    """Return the last `most` items at most, from the beginning of a turn on.

    If a turn is longer than `most`, its request is followed by its end, without answers to missing calls. Items of unknown shapes
    may be cut anywhere.
    """
    first = max(0, len(items) - max(0, most))
    messages = [read_message(item) for item in items]
    if not any(message.role for message in messages):
        return list(items[first:])
    whole = whole_from(messages)
    for place in range(first, len(items)):
        if messages[place].is_request and whole[place]:
            return list(items[place:])
    request = next((n for n in range(first - 1, -1, -1) if messages[n].is_request), None)
    if most < 1 or request is None:
        return []
    rest = next((n for n in range(first + 1, len(items) + 1) if whole[n]), len(items))
    return [items[request], *items[rest:]]
