"""`ipfsmem log`: the published versions that this device made, joined or took over."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import WholeNumber
from ipfsmem.cli.printing import is_terminal, moment, table


@cli_command("log")
@click.option("--limit", type=WholeNumber(1), metavar="N", help="Only the newest N.")
def command(context: CommandContext, limit: int | None) -> None:
    """List published versions, newest first: when this device saw each, its number, which device made it, and its address.

    Any of them can be given to `ipfsmem diff`, `read --root` and `restore --root`.
    """
    with context.memory() as memory:
        entries = memory.versions.list()[:limit]
        members = memory.members.list()
    if context.json:
        context.emit(entries)
        return
    if not entries and is_terminal():
        click.echo(advice("Nothing was published yet. Publish: ipfsmem sync"), err=True)
        return
    from ipfsmem.memories.writers import member_names

    names = member_names(members)
    rows = [
        (
            moment(e.at_ms),
            str(e.c),
            names.get(e.device) or e.device,
            "this device" if e.own else "",
            e.root,
        )
        for e in entries
    ]
    table(("seen (UTC)", "no.", "device", "", "version"), rows, styles=("dim", "", "cyan", "dim", "bold"))
