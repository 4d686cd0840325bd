"""`ipfsmem list`: every memory in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.addressed import advice
from ipfsmem.cli.here import Here, ours
from ipfsmem.cli.printing import count, is_terminal, style, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipfsmem.memories.memories import Listed


@ours("list", scoped=True, shows=True, stacks=True)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["user", "feedback", "project", "reference"]),
    help="Only memories of this type.",
)
@click.option("--tag", help="Only memories with this tag.")
def command(here: Here, kind: str | None, tag: str | None) -> None:
    """List all memories: key, type, name, description.

    Marks: ! texts in conflict, m merged from several devices, ? not fetched yet. Not on a terminal: tabs, no headings.
    With --stack each line ends with the scope that it came from.
    """
    with here.memory() as memory:
        found = [
            item
            for item in (memory.stack(*here.stacked) if here.stacked else memory).list()
            if (kind is None or item.file.type == kind) and (tag is None or tag in item.file.tags)
        ]
    tell(here, found)
    here.tell_where()


def tell(here: Here, found: Sequence[Listed]) -> None:
    """Print memories as a table or as JSON."""
    if here.json:
        from ipfsmem.results import MemoryLine

        here.emit([MemoryLine.of(item) for item in found])
        return
    if not found and is_terminal():
        click.echo(advice("No memories yet. Write one: ipfsmem write KEY --body TEXT"), err=True)
        return
    rows: list[tuple[str, ...]] = []
    said = bool(here.stacked) or len({item.scope for item in found}) > 1
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
        tail = advice(f", {marked} with conflicts (ipfsmem conflicts)") if marked else ""
        click.echo(style(count(len(found), "memory") + tail, dim=True), err=True)
