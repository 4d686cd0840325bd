"""`ipfsmem undo`: undo the last change of this device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.printing import clean, moment
from ipfsmem.operations.undo import undo

if TYPE_CHECKING:
    from ipfsmem.memories.undo import Undone


def _show(context: CommandContext, result: Undone, arguments: Arguments) -> None:
    place = f"{result.scope}/{result.key}" if result.scope else result.key
    now = "it shows a merge of concurrent edits" if result.merged else "its earlier text is back"
    if result.sha256 is None:
        now = "the memory no longer exists"
    click.echo(f"Undone: {result.undone} of {clean(place)}, {moment(result.at)}; {now}.")


command = operation_command("undo", undo, _show)
