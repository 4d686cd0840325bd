"""`ipfsmem usage`: the use of models and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, style, table, write_bytes
from ipfsmem.memories.usage import Used, as_csv, dollars
from ipfsmem.operations.usage.add import add
from ipfsmem.operations.usage.budgets import Budgets, budgets
from ipfsmem.operations.usage.list import UsageList, list_
from ipfsmem.operations.usage.totals import UsageTotals, totals

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


@click.group("usage", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Model usage reported by your agents, on all devices. Costs are estimates, not an invoice."""


def _add(context: CommandContext, memory: Memory, arguments: Arguments) -> Used:
    use: Used = call(add, context, memory, arguments)
    arguments["over"] = [one for one in call(budgets, context, memory, arguments) if one.over]
    return use


def _show_added(context: CommandContext, use: Used, arguments: Arguments) -> None:
    click.echo(f"Recorded: {clean(use.model or use.provider)}, {dollars(use.cost)} USD.")
    for one in arguments["over"]:
        text = (
            f"{dollars(one.spent)} USD of this {one.period} (UTC) exceeds the limit of {dollars(one.limit)}"
        )
        click.echo(f"{style('note: ', fg='yellow')}{text}", err=True)


def _show_totals(context: CommandContext, sums: UsageTotals, arguments: Arguments) -> None:
    table(
        (sums.by, "uses", "tokens in", "tokens out", "USD"),
        [
            (
                one.name or "(not recorded)",
                str(one.uses),
                str(one.input_tokens),
                str(one.output_tokens),
                dollars(one.cost),
            )
            for one in sums
        ],
        styles=("bold", "dim", "", "", "cyan"),
        nothing="No recorded uses.",
    )


def _show_uses(context: CommandContext, uses: UsageList, arguments: Arguments) -> None:
    write_bytes(as_csv(uses).encode())


def _show_budgets(context: CommandContext, result: Budgets, arguments: Arguments) -> None:
    table(
        ("period", "spent", "limit", ""),
        [
            (
                one.period,
                dollars(one.spent),
                dollars(one.limit) if one.limit else "none",
                "over" if one.over else "",
            )
            for one in result
        ],
        styles=("bold", "", "dim", "red"),
    )


for _command in (
    operation_command("add", add, _show_added, run=_add),
    operation_command("show", totals, _show_totals),
    operation_command("export", list_, _show_uses, notes="The output is CSV; with --json a list."),
    operation_command("budget", budgets, _show_budgets, notes="`over` marks an exceeded limit."),
):
    command.add_command(_command)
