"""`ipfsmem hide`: memories out of sight on this device."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.errors import UsageError
from ipfsmem.wording import count


@cli_command("hide", scoped=True)
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--back", is_flag=True, help="Show them again.")
@click.option("--all", "every", is_flag=True, help="With --back: all hidden memories.")
def command(context: CommandContext, keys: tuple[str, ...], back: bool, every: bool) -> None:
    """Hide memories from lists, recall and context on this device; --back shows them again.

    Nothing is deleted, other devices are not affected, and `read` still returns hidden memories. A new
    write shows a memory again.
    """
    if every and (keys or not back):
        raise UsageError("--all requires --back, and excludes keys")
    if not keys and not every:
        raise UsageError("give a KEY" + (", or --all" if back else ""))
    with context.memory() as memory:
        if back:
            done = memory.hidden.bring_back(None if every else keys)
        else:
            done = memory.hidden.add(keys)
    if context.json:
        context.emit(done)
    elif back:
        click.echo(f"{count(len(done), 'memory')} no longer hidden.")
    else:
        click.echo(advice(f"{count(len(done), 'memory')} hidden on this device. See: ipfsmem list --hidden"))
