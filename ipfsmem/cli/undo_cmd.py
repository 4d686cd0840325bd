"""`ipfsmem undo`: what this device did last, taken back."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import clean, moment


@cli_command("undo")
def command(context: CommandContext) -> None:
    """Undo the last write, forget, resolve, restore or undo that was made on this device with this program.

    What it took away stands there again, as long as nobody has written there since. Twice is as good as never.
    """
    with context.memory() as memory:
        done = memory.undo()
    if context.json:
        from ipfsmem.results import ChangeUndone

        context.emit(ChangeUndone.of(done))
        return
    place = f"{done.scope}/{done.key}" if done.scope else done.key
    now = "it shows what it showed before" if done.shown is not None else "there is no such memory now"
    click.echo(f"Undone: {done.operation} of {clean(place)}, {moment(done.at)}; {now}.")
