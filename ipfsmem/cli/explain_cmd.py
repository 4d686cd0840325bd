"""`ipfsmem explain KEY WORDS`: the rank of one memory for a query, and the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.printing import clean, style
from ipfsmem.cli.recall_cmd import sum_of
from ipfsmem.operations.why import why
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memories.recall import Explained


def _show(context: CommandContext, found: Explained, arguments: Arguments) -> None:
    place = f"{found.scope}/{found.key}" if found.scope else found.key
    if found.place:
        where = f"is number {found.place:,} of {count(found.hits, 'hit')}, {count(found.searched, 'memory')} searched"
    else:
        where = f"is not found: {found.reason}"
    click.echo(clean(f"{place} {where}."))
    if not found.own:
        click.echo("It is pending, and comes after all of your own texts.")
    for line in sum_of(found.parts, found.before_parts if found.before else None):
        click.echo(style(line, dim=True))
    if found.before:
        click.echo(clean(f"The second column is {found.before}, the hit before it."))
    if found.words:
        click.echo(f"It contains {clean(', '.join(found.words))}.")
    if found.missing:
        click.echo(f"It does not contain {clean(', '.join(found.missing))}.")


command = operation_command("explain", why, _show)
