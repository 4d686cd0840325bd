"""`ipfsmem promote KEY`: a person's word that a text of others is their own from now on."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command


@cli_command("promote", scoped=True)
@click.argument("key")
@click.option(
    "--copy", metavar="FILE", help="Which text, where there are several: a name from `ipfsmem conflicts`."
)
def command(context: CommandContext, key: str, copy: str | None) -> None:
    """Make a text of others your own word: the memory KEY, or one copy of it. It takes the place of what is shown.

    Read it first: what you promote is what your agents are given.
    """
    with context.memory() as memory:
        written = memory.promote(key, copy=copy)
    if context.json:
        from ipfsmem.results import Promoted

        context.emit(Promoted(key=key, sha256=written.sha256))
    else:
        click.echo(written.sha256)
