"""`ipfsmem vault list`: the vaults on this device."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, moment, table


@cli_command("list", secrets=False, short_help="List the vaults on this device.")
def command(context: CommandContext) -> None:
    """List the vaults on this device: name, mode, providers, and whether their keys are locked."""
    from ipfsmem.vaults_here import vaults_here

    vaults = vaults_here(context.home)
    if context.json:
        context.emit(vaults)
        return
    rows = []
    for one in vaults:
        if one.unlocked_until is not None:
            state = f"unlocked until {moment(one.unlocked_until)}"
        else:
            state = "locked" if one.protected else "no passphrase"
        places = clean(", ".join(one.providers)) or "published nowhere"
        rows.append((one.name, str(one.mode or "?"), places, advice(clean(one.problem)) or state))
    table(("vault", "mode", "providers", "keys"), rows, styles=("bold", "cyan", "", "dim"))
    if not vaults:
        click.echo(f"No vaults in {clean(str(context.home))}.", err=True)
