"""`ipfsmem folder detach DIR`: unlink a folder; every file in it stays."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.printing import clean
from ipfsmem.operations.folders import FolderDetached, detach
from ipfsmem.wording import count


def _show(context: CommandContext, folder: FolderDetached, arguments: Arguments) -> None:
    click.echo(f"{clean(folder.path)} is unlinked; its files stay as they are.")
    if folder.brought_out:
        click.echo(
            f"{count(len(folder.brought_out), 'text')} that had been set aside became conflicts: {clean(', '.join(folder.brought_out))}"
        )


def _end(context: CommandContext, folder: FolderDetached, arguments: Arguments) -> None:
    folder.raise_if_incomplete()


command = operation_command("detach", detach, _show, end=_end)
