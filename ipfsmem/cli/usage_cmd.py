"""`ipfsmem usage`: what models were used for and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import Subcommands, WholeNumber, not_empty, utc_days
from ipfsmem.cli.printing import clean, style, table, write_bytes
from ipfsmem.memories.usage import BYS, dollars

if TYPE_CHECKING:
    from ipfsmem.memories.usage import By

_DAYS = (
    click.option(
        "--from",
        "since",
        callback=not_empty,
        metavar="DAY",
        help="From this UTC day on: 2026-04-14, yesterday, 7d.",
    ),
    click.option("--to", "until", callback=not_empty, metavar="DAY", help="Up to this UTC day, included."),
)


@click.group("usage", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Model usage reported by your agents, on all devices. Costs are estimates, not an invoice."""


@cli_command("add", scoped=True, short_help="Record one use of a model")
@click.option("--provider", default="", help="Provider of the model.")
@click.option("--model", default="", help="Name of the model.")
@click.option("--agent", default="", help="Agent that used the model.")
@click.option("--input", "input_tokens", type=WholeNumber(0), default=0, metavar="N", help="Input tokens.")
@click.option("--output", "output_tokens", type=WholeNumber(0), default=0, metavar="N", help="Output tokens.")
@click.option("--cost", type=float, default=0.0, metavar="USD", help="Cost in US dollars.")
def add_command(
    context: CommandContext,
    provider: str,
    model: str,
    agent: str,
    input_tokens: int,
    output_tokens: int,
    cost: float,
) -> None:
    """Record one use of a model as an event of the timeline."""
    with context.memory() as memory:
        made = memory.usage.add(
            provider=provider,
            model=model,
            agent=agent,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost_usd=cost,
        )
        over = [] if context.json else [one for one in memory.usage.budgets() if one.over]
    if context.json:
        context.emit(made)
    else:
        click.echo(f"Recorded: {clean(made.model or made.provider)}, {dollars(made.cost)} USD.")
        for one in over:
            text = f"{dollars(one.spent)} USD of this {one.period} (UTC) exceeds the limit of {dollars(one.limit)}"
            click.echo(f"{style('note: ', fg='yellow')}{text}", err=True)
    context.print_where_scope_went()


@cli_command("show", scoped=True, shows=True, short_help="Show totals")
@click.option("--by", type=click.Choice(BYS), default="model", show_default=True, help="Group by.")
@_DAYS[0]
@_DAYS[1]
def show_command(context: CommandContext, by: By, since: str | None, until: str | None) -> None:
    """Show totals: name, uses, input tokens, output tokens, US dollars."""
    days = utc_days(since, until)
    with context.memory() as memory:
        found = memory.usage.totals(by, days)
    if context.json:
        context.emit(found)
        return
    table(
        (by, "uses", "tokens in", "tokens out", "USD"),
        [
            (
                one.name or "(not said)",
                str(one.uses),
                str(one.input_tokens),
                str(one.output_tokens),
                dollars(one.cost),
            )
            for one in found
        ],
        styles=("bold", "dim", "", "", "cyan"),
        nothing="No recorded uses.",
    )


@cli_command("export", scoped=True, shows=True, short_help="Print every use as CSV")
@_DAYS[0]
@_DAYS[1]
def export_command(context: CommandContext, since: str | None, until: str | None) -> None:
    """Print a CSV row for each use; with --json a list."""
    days = utc_days(since, until)
    with context.memory() as memory:
        if context.json:
            context.emit(memory.usage.list(days))
        else:
            write_bytes(memory.usage.csv(days).encode())


@cli_command("budget", scoped=True, shows=True, short_help="Show spending and limits")
def budget_command(context: CommandContext) -> None:
    """Show the cost of today and this month (UTC) and the limits in the settings. `over` marks an exceeded
    limit; nothing is stopped.
    """
    with context.memory() as memory:
        found = memory.usage.budgets()
    if context.json:
        context.emit(found)
    else:
        table(
            ("period", "spent", "limit", ""),
            [
                (
                    one.period,
                    dollars(one.spent),
                    dollars(one.limit) if one.limit else "none",
                    "over" if one.over else "",
                )
                for one in found
            ],
            styles=("bold", "", "dim", "red"),
        )


for _command in (add_command, show_command, export_command, budget_command):
    command.add_command(_command)
