"""`ipfsmem vacuum`: what this memory takes on this disk, compacted."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import size, table


@cli_command("vacuum")
def command(context: CommandContext) -> None:
    """Compact what this memory takes on this disk: the database and the kept vectors. Nothing of the memory changes.

    It needs as much room again while it runs, and other commands wait for it.
    """
    with context.memory() as memory:
        done = memory.maintenance.vacuum()
    if context.json:
        context.emit(done)
        return
    table(
        ("file", "before", "after"),
        [(name, size(had), size(done.after.get(name, 0))) for name, had in done.before.items()],
        styles=("bold", "dim", ""),
    )
    click.echo(f"{size(max(done.freed, 0))} freed.")
