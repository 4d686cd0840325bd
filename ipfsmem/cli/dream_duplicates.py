"""`ipfsmem dream duplicates`: memories that say nearly the same."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Asked, operation_command
from ipfsmem.cli.printing import table
from ipfsmem.operations.duplicates import Duplicates, duplicates

_HOW = {
    "same": "says the same as",
    "contained": "stands in",
    "alike": "is like",
    "meaning": "means the same as",
}


def _show(context: CommandContext, found: Duplicates, asked: Asked) -> None:
    table(
        ("memory", "", "memory", "in common"),
        [(one.key, _HOW[one.how], one.other, f"{one.similarity:.0%}") for one in found],
        styles=("bold", "dim", "bold", "dim"),
    )
    if not found:
        click.echo("No two memories say nearly the same.", err=True)


command = operation_command("duplicates", duplicates, _show)
