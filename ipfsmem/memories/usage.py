"""Sums the usage and cost of models from timeline events.

An event of the type `usage` has agent, provider, model, input and output tokens, and the cost in millionths of a US dollar. Anybody
who can write events can write these, so the sums are not a bill.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from typing import Any, Final, Literal

import msgspec

from ipfsmem.errors import UsageError

#: The type of the events.
KIND: Final = "usage"
By = Literal["agent", "provider", "model", "day"]
#: Maximum characters of a name, and tokens and millionths of one event.
MAX_NAME: Final = 200
MOST: Final = 10**12
_COLUMNS: Final = ("time", "agent", "provider", "model", "input_tokens", "output_tokens", "cost_usd")


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a model. `cost`: in millionths of a US dollar."""

    at: str
    agent: str
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: int


class UsageTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The total usage of one name. `cost`: in millionths of a US dollar."""

    name: str
    uses: int
    input_tokens: int
    output_tokens: int
    cost: int


def as_name(text: str) -> str:
    """Return a valid form of a name; "a model" for an empty name."""
    return "".join(letter for letter in text if letter.isprintable())[:MAX_NAME] or "a model"


def usage_data(
    agent: str, provider: str, model: str, input_tokens: int, output_tokens: int, cost_usd: float
) -> dict[str, Any]:
    """Return the data of a new event. Numbers are limited to their bounds. Raises UsageError for an invalid name."""
    for kind, name in (("agent", agent), ("provider", provider), ("model", model)):
        if len(name) > MAX_NAME or not name.isprintable():
            raise UsageError(f"the {kind} has at most {MAX_NAME} printable characters")
    if not (provider or model):
        raise UsageError("say which provider or which model was used")
    return {
        "agent": agent,
        "provider": provider,
        "model": model,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cost_micros": round(cost_usd * 1_000_000),
    }


def used(events: Iterable[Mapping[str, Any]]) -> list[Used]:
    """Return the uses in some events. A value that is not a number is read as 0, because anybody may write such an event."""
    return [
        Used(
            at=str(one["ts"]),
            agent=_text(one.get("agent")),
            provider=_text(one.get("provider")),
            model=_text(one.get("model")),
            input_tokens=_number(one.get("input_tokens")),
            output_tokens=_number(one.get("output_tokens")),
            cost=_number(one.get("cost_micros")),
        )
        for one in events
        if one.get("type") == KIND
    ]


def totals(uses_noted: Iterable[Used], by: By, zone: tzinfo | None = UTC) -> list[UsageTotal]:
    """Return the sums by agent, provider, model or day: days in order, otherwise highest cost first. `zone`: the time zone of
    days."""
    sums: dict[str, list[int]] = {}
    for one in uses_noted:
        name = _day_of(one.at, zone) if by == "day" else getattr(one, by)
        into = sums.setdefault(name, [0, 0, 0, 0])
        for place, number in enumerate((1, one.input_tokens, one.output_tokens, one.cost)):
            into[place] += number
    rows = [
        UsageTotal(name=name, uses=uses, input_tokens=tokens_in, output_tokens=tokens_out, cost=cost)
        for name, (uses, tokens_in, tokens_out, cost) in sums.items()
    ]
    return sorted(rows, key=lambda one: (one.name,) if by == "day" else (-one.cost, one.name))


def _day_of(at: str, zone: tzinfo | None) -> str:
    from ipfsmem.memories.event_search import ms_of
    from ipfsmem.wording import local_day

    return str(local_day(ms_of(at, at[:10]), zone) or at[:10])


def as_csv(uses: Iterable[Used]) -> str:
    """Return the uses as CSV. A name that a spreadsheet would read as a formula gets a leading apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in uses:
        names = (_cell(name) for name in (one.agent, one.provider, one.model))
        writer.writerow((one.at, *names, one.input_tokens, one.output_tokens, dollars(one.cost)))
    return text.getvalue()


def dollars(micros: int) -> str:
    """Return millionths of a US dollar as dollars, without trailing zeros after the cents."""
    text = f"{micros // 1_000_000}.{micros % 1_000_000:06}"
    return text[:-4] + text[-4:].rstrip("0")


def _text(value: object) -> str:
    return value[:MAX_NAME] if isinstance(value, str) else ""


def _number(value: object) -> int:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST
    return int(value) if sound else 0  # type: ignore[call-overload]


def _cell(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
