"""`ipfsmem vault log`: the published versions that this device knows; with --operations what was done with the memory here."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import WholeNumber, moment_in_words, not_empty
from ipfsmem.cli.printing import is_terminal, moment, table
from ipfsmem.errors import UsageError


@cli_command("log")
@click.option(
    "--limit",
    type=WholeNumber(1),
    metavar="N",
    help="Maximum number, newest first (default: all; 25 with --operations).",
)
@click.option("--operations", is_flag=True, help="List the operations on this vault on this device.")
@click.option(
    "--operation",
    "name",
    callback=not_empty,
    metavar="NAME",
    help="Only operations of this name, such as write, or session for all operations on sessions.",
)
@click.option("--scope", metavar="NAME", help="Only operations on this scope.")
@click.option(
    "--since",
    callback=moment_in_words,
    metavar="TIME",
    help="Only operations since this time: 24h, yesterday, a date, a time.",
)
def command(
    context: CommandContext,
    limit: int | None,
    operations: bool,
    name: str | None,
    scope: str | None,
    since: str | None,
) -> None:
    """List published versions, newest first: when this device saw each, number, device and address.

    Pass an address to `ipfsmem vault diff`, `read --root` or `restore --root`.

    With --operations: list the operations on this device with interface and caller, newest first. The
    list contains no texts.
    """
    if operations:
        _operations(context, name, scope, since, limit or 25)
        return
    if name is not None or scope is not None or since is not None:
        raise UsageError("--operation, --scope and --since require --operations")
    from ipfsmem.memories.writers import member_names, members_of

    with context.memory() as memory:
        entries = memory.versions.list()[:limit]
        members = members_of(memory.replica)
    if context.json:
        context.emit(entries)
        return
    if not entries and is_terminal():
        click.echo(advice("Nothing was published yet. Publish: ipfsmem sync"), err=True)
        return
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
    table(
        ("seen", "no.", "device", "", "version"),
        rows,
        styles=("dim", "", "cyan", "dim", "bold"),
        nothing="No published versions are known here.",
    )


def _operations(
    context: CommandContext, name: str | None, scope: str | None, since: str | None, limit: int
) -> None:
    from ipfsmem.cli.derived import call
    from ipfsmem.operations.audit_log import list_

    arguments = {"operation": name, "scope": scope, "since": since, "limit": limit}
    with context.memory() as memory:
        operations = call(list_, context, memory, arguments)
    if context.json:
        context.emit(operations)
        return
    table(
        ("when", "operation", "about", "scope", "by", "", "outcome"),
        [
            (moment(one.at), one.operation, one.key, one.scope, one.face, one.by, one.outcome)
            for one in operations
        ],
        styles=("dim", "bold", "", "cyan", "", "dim", "red"),
        shrink=(2, 5),
        nothing="No recorded operations match.",
    )
