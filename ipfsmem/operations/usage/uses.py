"""Shared code of the operations on model usage: the days as arguments, and the recorded uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.memories.usage import Used, used
from ipfsmem.operation import Cli, Except, ForModels, View

if TYPE_CHECKING:
    from datetime import tzinfo

Since = Annotated[
    str | None,
    Meta(min_length=1, max_length=64, description="First day: 2026-04-14, yesterday, 7d."),
    Cli("from", metavar="DAY", moment=True),
    ForModels("From this UTC day on, such as 2026-04-14."),
]
Until = Annotated[
    str | None,
    Meta(min_length=1, max_length=64, description="Last day, inclusive."),
    Cli("to", metavar="DAY", moment=True),
    ForModels("Up to this UTC day, included."),
]
Zone = Annotated[
    str | None,
    Meta(
        min_length=1,
        max_length=64,
        description="Time zone of the days, such as America/Los_Angeles; UTC without one.",
    ),
    Except(("cli", "mcp")),
]


def zone_from(tz: str | None) -> tzinfo:
    """The time zone of an argument. Raises UsageError."""
    from datetime import UTC

    from ipfsmem.wording import zone_of

    return UTC if tz is None else zone_of(tz)


def uses_of(view: View, since: str | None, until: str | None, tz: str | None) -> list[Used]:
    """The uses of the scope that a call works on, in order. Raises UsageError."""
    from ipfsmem.operations.events import days_between, noted

    days = days_between(view.opened, since, until, zone_from(tz))
    return used([one.event for one in noted(view.opened, view.scopes, days)])
