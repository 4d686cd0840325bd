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


def _show(context: CommandContext, done: Undone, arguments: Arguments) -> None:
    place = f"{done.scope}/{done.key}" if done.scope else done.key
    now = "it shows a merge of concurrent edits" if done.merged else "its earlier text is back"
    if done.sha256 is None:
        now = "the memory no longer exists"
    click.echo(f"Undone: {done.undone} of {clean(place)}, {moment(done.at)}; {now}.")


command = operation_command("undo", undo, _show)
