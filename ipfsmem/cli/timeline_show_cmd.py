"""`ipfsmem timeline show`: what happened, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import WholeNumber, days_here, not_empty
from ipfsmem.cli.printing import data_of, is_terminal, local_text, table
from ipfsmem.errors import IncompleteError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.parts.timeline import Noted


@cli_command("show", scoped=True, shows=True, stacks=True, reads=True)
@click.option("--since", callback=not_empty, metavar="DAY", help="First day: 2026-04-14, yesterday, 7d.")
@click.option("--until", callback=not_empty, metavar="DAY", help="Last day, inclusive.")
@click.option("--type", "kind", callback=not_empty, help="Only events of this type.")
@click.option("--limit", type=WholeNumber(1), metavar="N", help="Only the last N events.")
def command(
    context: CommandContext, since: str | None, until: str | None, kind: str | None, limit: int | None
) -> None:
    """Show the events of all devices, oldest first. Days and times are in this machine's time zone (TZ).

    The exit code is 7 if a part of the timeline is damaged or not on this device: its events are not
    shown.
    """
    days = days_here(since, until)
    from ipfsmem.parts.timeline import Noted

    with context.memory() as memory:
        if context.stacked:
            stack = memory.stack(*context.stacked)
            noted, missing = stack.timeline(days, None), stack.timeline_missing(days, None)
        else:
            noted = [Noted(context.scope or "", event) for event in memory.timeline.read(days, tz=None)]
            missing = memory.timeline.missing(days, tz=None)
    chosen = bool(days) or kind is not None
    noted = [one for one in noted if kind is None or one.event["type"] == kind]
    if limit is not None:
        noted = noted[-limit:]
    _show(context, noted, chosen)
    if missing:
        raise IncompleteError(
            f"{count(missing, 'part')} of the timeline {'is' if missing == 1 else 'are'} not on this device, or damaged: their "
            "events were not shown",
            hint="Run: ipfsmem sync. Then try again.",
        )


def _show(context: CommandContext, noted: list[Noted], chosen: bool) -> None:
    if context.json:
        if not context.stacked:
            context.emit_open([one.event for one in noted])
            return
        # An event may have a field of that name, so the scope stands beside it.
        context.emit(noted)
        return
    if not noted and is_terminal():
        none = (
            "No events of this type and time."
            if chosen
            else advice("No events. Add one: ipfsmem timeline add TYPE key=value")
        )
        click.echo(none, err=True)
        return
    rows = [
        (
            _when(one.event["ts"]),
            str(one.event["type"]),
            data_of(one.event),
            *([one.scope] if context.stacked else []),
        )
        for one in noted
    ]
    table(
        ("when", "type", "data", *(["scope"] if context.stacked else [])),
        rows,
        styles=("dim", "cyan", "", *(["magenta"] if context.stacked else [])),
    )


def _when(ts: str) -> str:
    at = local_text(ts)
    return at if not is_terminal() else at[:19].replace("T", " ")
