"""`ipfsmem timeline show`: the events of a scope, in order."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import data_of, is_terminal, local_text, table
from ipfsmem.errors import IncompleteError
from ipfsmem.operations.timeline import EventPage, read
from ipfsmem.wording import count


def _ask(context: CommandContext, arguments: Arguments) -> None:
    arguments["tz"] = "local"


def _show(context: CommandContext, page: EventPage, arguments: Arguments) -> None:
    if not page and is_terminal():
        chosen = any(arguments[name] is not None for name in ("since", "until", "type", "cursor"))
        none = (
            "No events of this type and time."
            if chosen
            else advice("No events. Add one: ipfsmem timeline add TYPE key=value")
        )
        click.echo(none, err=True)
        return
    rows = [
        (_when(event["ts"]), str(event["type"]), data_of(event), *([scope] if context.stacked else []))
        for event, scope in zip(page.events, page.scopes, strict=True)
    ]
    table(
        ("when", "type", "data", *(["scope"] if context.stacked else [])),
        rows,
        styles=("dim", "cyan", "", *(["magenta"] if context.stacked else [])),
    )


def _end(context: CommandContext, page: EventPage, arguments: Arguments) -> None:
    if page.missing:
        raise IncompleteError(
            f"{count(page.missing, 'part')} of the timeline {'is' if page.missing == 1 else 'are'} not on this device, or damaged: "
            "their events were not shown",
            hint="Run: ipfsmem sync. Then try again.",
        )


def _when(ts: str) -> str:
    at = local_text(ts)
    return at if not is_terminal() else at[:19].replace("T", " ")


command = operation_command(
    "show",
    read,
    _show,
    ask=_ask,
    end=_end,
    notes="""\
The oldest event is first. Days and times are in this machine's time zone (TZ).

The exit code is 7 if a part of the timeline is damaged or not on this device: its events are not
shown.""",
)
