"""`ipfsmem list`: every memory in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, is_terminal, moment, style, table
from ipfsmem.errors import UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipfsmem.memories.memories import Listed


@cli_command("list", scoped=True, shows=True, stacks=True, reads=True)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["user", "feedback", "project", "reference", "procedure", "episode"]),
    help="Only memories of this type.",
)
@click.option("--tag", callback=not_empty, help="Only memories with this tag.")
@click.option("--hidden", is_flag=True, help="What is hidden on this device, and why.")
def command(context: CommandContext, kind: str | None, tag: str | None, hidden: bool) -> None:
    """List all memories: key, type, name, description.

    Marks: ! texts in conflict, m merged from several devices, ? not fetched yet. Not on a terminal: tabs, no headings.
    With --stack each line ends with the scope that it came from.
    """
    if hidden:
        _print_hidden(context, filtered=bool(kind or tag))
        return
    with context.memory() as memory:
        every = (memory.stack(*context.stacked) if context.stacked else memory).list()
        found = [
            item
            for item in every
            if (kind is None or item.file.type == kind) and (tag is None or tag in item.file.tags)
        ]
    chosen = "".join((f" of type {kind}" if kind else "", f" with the tag {tag}" if tag else ""))
    print_list(context, found, nothing=f"There is no memory{clean(chosen)}." if every else "")
    context.print_where_scope_went()


def _print_hidden(context: CommandContext, *, filtered: bool) -> None:
    if filtered or context.stacked:
        raise UsageError(
            "--hidden shows all that is hidden in one scope: leave --type, --tag and --stack out"
        )
    with context.memory() as memory:
        found = memory.hidden.list()
    if context.json:
        context.emit(found)
        return
    table(
        ("key", "hidden", "why"),
        [(one.key, moment(one.at), one.why) for one in found],
        styles=("bold", "dim", ""),
        shrink=(2,),
        nothing="Nothing is hidden.",
    )
    if found and is_terminal():
        click.echo(advice("Have them in sight again: ipfsmem hide --back KEY"), err=True)


def print_list(
    context: CommandContext, found: Sequence[Listed], *, ours: bool = True, nothing: str = ""
) -> None:
    """Print memories as a table or as JSON. `ours`: they are of a memory of this device, so commands can be advised; `nothing`: what a
    person is told where none of those that there are was meant."""
    if context.json:
        from ipfsmem.results import MemoryLine

        context.emit([MemoryLine.of(item) for item in found])
        return
    if not found and is_terminal():
        none = advice("No memories yet. Write one: ipfsmem write KEY --body TEXT") if ours else "No memories."
        click.echo(nothing or none, err=True)
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
