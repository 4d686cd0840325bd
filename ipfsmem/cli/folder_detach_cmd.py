"""`ipfsmem folder detach DIR`: unlink a folder; every file in it stays."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.printing import clean
from ipfsmem.operations.folders import FolderDetached, detach
from ipfsmem.wording import count


def _show(context: CommandContext, done: FolderDetached, arguments: Arguments) -> None:
    click.echo(f"{clean(done.path)} is unlinked; its files stay as they are.")
    if done.brought_out:
        click.echo(
            f"{count(len(done.brought_out), 'text')} that had been set aside became conflicts: {clean(', '.join(done.brought_out))}"
        )


def _end(context: CommandContext, done: FolderDetached, arguments: Arguments) -> None:
    done.raise_if_incomplete()


command = operation_command("detach", detach, _show, end=_end)
