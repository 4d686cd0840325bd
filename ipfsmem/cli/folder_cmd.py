"""`ipfsmem folder list`, `pause` and `resume`: list, pause and resume the linked folders of this vault."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, table
from ipfsmem.operations.folders import FolderList, FolderPaused, FolderResumed, list_, pause, resume
from ipfsmem.wording import count


def _show_list(context: CommandContext, folders: FolderList, arguments: Arguments) -> None:
    table(
        ("folder", "scope", "files", "state"),
        [
            (
                clean(one.path),
                clean(one.scope) or "-",
                str(one.files),
                one.state if one.state == "ok" else f"{one.state}: {clean(one.note)}",
            )
            for one in folders
        ],
        styles=("bold", "cyan", "dim"),
        nothing=advice("No linked folders. Link one: ipfsmem folder attach DIR"),
    )


def _show_paused(context: CommandContext, folder: FolderPaused, arguments: Arguments) -> None:
    click.echo(f"{clean(folder.path)} is paused: its files are not read or written.")


def _show_resumed(context: CommandContext, folder: FolderResumed, arguments: Arguments) -> None:
    if folder.kept == "folder":
        click.echo(f"{clean(folder.path)} is resumed with the folder's texts.")
    else:
        restored = count(folder.put_back, "file")
        click.echo(f"{clean(folder.path)} is resumed with the vault's texts: {restored} restored.")


list_command = operation_command("list", list_, _show_list, reads=False)
pause_command = operation_command("pause", pause, _show_paused)
resume_command = operation_command("resume", resume, _show_resumed)
