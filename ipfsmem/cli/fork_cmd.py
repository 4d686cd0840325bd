"""`ipfsmem fork`: a new vault with all data of this one."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean
from ipfsmem.errors import UsageError
from ipfsmem.wording import count


@cli_command("fork", scoped=True)
@click.argument("name", callback=not_empty)
@click.option(
    "--partial", is_flag=True, help="Exit with 0 although texts were omitted; they are still named."
)
def command(context: CommandContext, name: str, partial: bool) -> None:
    """Copy this vault, or one scope, into the new vault NAME.

    NAME is in mode local: plain files on this disk, never published. Both vaults are independent
    afterwards; the last event of NAME records its origin. Texts of others stay pending there until you
    approve them.
    """
    with context.memory() as memory:
        if memory.vault == name:
            raise UsageError(f"{name} is the vault itself", hint="Choose another NAME.")
        with memory.fork(name, partial=partial) as other:
            parts = [other, *map(other.scope, other.scopes.names())]
            listed = [line for part in parts for line in part.list()]
    pending = sum(not line.own for line in listed)
    if context.json:
        from ipfsmem.results import Forked

        context.emit(Forked(vault_name=name, forked=memory.vault, memories=len(listed), pending=pending))
        return
    click.echo(f"Created {clean(name)} with {count(len(listed), 'memory')} of {clean(memory.vault)}.")
    if pending:
        click.echo(
            advice(
                f"Of these, {count(pending, 'text is', 'texts are')} pending, so agents do not get them. Review them: ipfsmem approve --list --vault {name}"
            )
        )
