"""`ipfsmem folder detach DIR`: unlink a folder; every file in it stays."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean
from ipfsmem.wording import count


@cli_command("detach")
@click.argument("folder", metavar="DIR", callback=not_empty)
@click.option("--gone", is_flag=True, help="Unlink it although DIR does not exist.")
def command(context: CommandContext, folder: str, gone: bool) -> None:
    """Unlink the folder DIR. Its files stay as they are and are no longer synced.

    Recent edits are read first. A text that was set aside and could not be read becomes a conflict copy.
    """
    with context.memory() as memory:
        done = memory.folders.detach(folder, gone=gone)
    if context.json:
        context.emit(done)
    else:
        click.echo(f"{clean(folder)} is unlinked; its files stay as they are.")
        if done.brought_out:
            click.echo(
                f"{count(len(done.brought_out), 'text')} that had been set aside became conflicts: {clean(', '.join(done.brought_out))}"
            )
    done.raise_if_incomplete()
