"""`ipfsmem duplicates`: memories that say nearly the same."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import Number
from ipfsmem.cli.printing import table

_HOW = {
    "same": "says the same as",
    "contained": "stands in",
    "alike": "is like",
    "meaning": "means the same as",
}


@cli_command("duplicates", scoped=True, shows=True, stacks=True)
@click.option(
    "--similarity",
    type=Number(0.5, 1),
    default=0.8,
    show_default=True,
    metavar="SHARE",
    help="The share of their words that two have in common at least.",
)
def command(context: CommandContext, similarity: float) -> None:
    """Show the memories that say nearly the same: in all words, one word for word in the other, or in most of their words; with a model
    also those that mean nearly the same. Nothing is changed; what is not wanted goes with `ipfsmem forget`.
    """
    with context.memory() as memory:
        read = memory.stack(*context.stacked) if context.stacked else memory
        found = read.duplicates(similarity=similarity)
    if context.json:
        context.emit(found)
        return
    table(
        ("memory", "", "memory", "in common"),
        [(one.key, _HOW[one.how], one.other, f"{one.similarity:.0%}") for one in found],
        styles=("bold", "dim", "bold", "dim"),
    )
    if not found:
        click.echo("No two memories say nearly the same.", err=True)
