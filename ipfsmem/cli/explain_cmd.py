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


def _show(context: CommandContext, explanation: Explained, arguments: Arguments) -> None:
    place = f"{explanation.scope}/{explanation.key}" if explanation.scope else explanation.key
    if explanation.place:
        outcome = f"is number {explanation.place:,} of {count(explanation.hits, 'hit')}, {count(explanation.searched, 'memory')} searched"
    else:
        outcome = f"is not found: {explanation.reason}"
    click.echo(clean(f"{place} {outcome}."))
    if not explanation.own:
        click.echo("It is pending, and comes after all of your own texts.")
    for line in sum_of(explanation.parts, explanation.before_parts if explanation.before else None):
        click.echo(style(line, dim=True))
    if explanation.before:
        click.echo(clean(f"The second column is {explanation.before}, the hit before it."))
    if explanation.words:
        click.echo(f"It contains {clean(', '.join(explanation.words))}.")
    if explanation.missing:
        click.echo(f"It does not contain {clean(', '.join(explanation.missing))}.")


command = operation_command("explain", why, _show)
