"""`ipfsmem version`: print the version."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command


@cli_command("version", secrets=False)
def command(context: CommandContext) -> None:
    """Print the version of ipfsmem."""
    from importlib.metadata import version

    number = version("ipfsmem")
    if context.json:
        from ipfsmem.results import Version

        context.emit(Version(version=number))
    else:
        click.echo(f"ipfsmem {number}")
