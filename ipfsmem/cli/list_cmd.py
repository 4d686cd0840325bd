"""`ipfsmem list`: every memory in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import is_terminal, style, table
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipfsmem.memories.memories import Listed


@cli_command("list", scoped=True, shows=True, stacks=True)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["user", "feedback", "project", "reference"]),
    help="Only memories of this type.",
)
@click.option("--tag", callback=not_empty, help="Only memories with this tag.")
def command(context: CommandContext, kind: str | None, tag: str | None) -> None:
    """List all memories: key, type, name, description.

    Marks: ! texts in conflict, m merged from several devices, ? not fetched yet. Not on a terminal: tabs, no headings.
    With --stack each line ends with the scope that it came from.
    """
    with context.memory() as memory:
        found = [
            item
            for item in (memory.stack(*context.stacked) if context.stacked else memory).list()
            if (kind is None or item.file.type == kind) and (tag is None or tag in item.file.tags)
        ]
    print_list(context, found)
    context.print_where_scope_went()


def print_list(context: CommandContext, found: Sequence[Listed], *, ours: bool = True) -> None:
    """Print memories as a table or as JSON. `ours`: they are of a memory of this device, so commands can be advised."""
    if context.json:
        from ipfsmem.results import MemoryLine

        context.emit([MemoryLine.of(item) for item in found])
        return
    if not found and is_terminal():
        told = advice("No memories yet. Write one: ipfsmem write KEY --body TEXT") if ours else "No memories."
        click.echo(told, err=True)
        return
    rows: list[tuple[str, ...]] = []
    said = bool(context.stacked) or len({item.scope for item in found}) > 1
    for item in found:
        marks = "!" * bool(item.conflicts) + "m" * item.merged + "?" * (not item.fetched)
        rows.append(
            (
                item.key,
                item.file.type,
                item.file.updated[:10],
                marks,
                item.file.name,
                item.file.description,
                *([item.scope] if said else []),
            )
        )
    table(
        ("key", "type", "updated", "", "name", "description", *(["scope"] if said else [])),
        rows,
        styles=("bold", "cyan", "dim", "yellow", "", "", *(["magenta"] if said else [])),
        shrink=(4, 5),
    )
    if is_terminal():
        marked = sum(bool(item.conflicts) for item in found)
        tail = f", {marked} with conflicts" if marked else ""
        if marked and ours:
            tail += advice(" (ipfsmem conflicts)")
        click.echo(style(count(len(found), "memory") + tail, dim=True), err=True)
