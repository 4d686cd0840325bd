"""`ipfsmem dream duplicates`: memories with nearly the same text."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.printing import table
from ipfsmem.operations.duplicates import Duplicates, duplicates

_HOW = {
    "same": "has the same words as",
    "contained": "is contained in",
    "alike": "is like",
    "meaning": "has the same meaning as",
}


def _show(context: CommandContext, pairs: Duplicates, arguments: Arguments) -> None:
    table(
        ("memory", "", "memory", "in common"),
        [(one.key, _HOW[one.how], one.other, f"{one.similarity:.0%}") for one in pairs],
        styles=("bold", "dim", "bold", "dim"),
    )
    if not pairs:
        click.echo("No similar memories.", err=True)


command = operation_command("duplicates", duplicates, _show)
