"""`ipfsmem reindex`: make the index of recall anew."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.index_cmd import in_words


@cli_command("reindex")
def command(context: CommandContext) -> None:
    """Make the index of recall anew of all texts, and keep it.

    Nothing needs this: each recall brings the index up to date, and one that is damaged is made anew.
    """
    with context.memory() as memory:
        found = memory.maintenance.reindex()
    if context.json:
        context.emit(found)
    else:
        click.echo(in_words(found))
