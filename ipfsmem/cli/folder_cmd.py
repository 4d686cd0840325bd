"""`ipfsmem folder list`, `pause` and `resume`: list, pause and resume the linked folders of this vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, table
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.results import FolderAccepted, FolderPaused


@cli_command("list", short_help="List the linked folders")
def list_command(context: CommandContext) -> None:
    """List the linked folders with their scope, number of files and state (ok, paused, missing)."""
    with context.memory() as memory:
        found = memory.folders.list()
    if context.json:
        context.emit(found)
        return
    table(
        ("folder", "scope", "files", "state"),
        [
            (
                clean(one.path),
                clean(one.scope) or "-",
                str(one.files),
                one.state if one.state == "ok" else f"{one.state}: {clean(one.note)}",
            )
            for one in found
        ],
        styles=("bold", "cyan", "dim"),
        nothing=advice("No linked folders. Link one: ipfsmem folder attach DIR"),
    )


@cli_command("pause", short_help="Pause a linked folder")
@click.argument("folder", metavar="DIR", callback=not_empty)
def pause_command(context: CommandContext, folder: str) -> None:
    """Stop syncing the folder DIR until `ipfsmem folder resume`, for example before a checkout, a search
    and replace or a restore.
    """
    from ipfsmem.results import FolderPaused

    with context.memory() as memory:
        memory.folders.pause(folder)
    _said(context, FolderPaused(path=folder), "is paused: its files are not read or written.")


@cli_command("resume", short_help="Resume a paused folder")
@click.argument("folder", metavar="DIR", callback=not_empty)
@click.option(
    "--keep",
    type=click.Choice(["folder", "vault"]),
    required=True,
    help="Side to keep where they differ.",
)
def resume_command(context: CommandContext, folder: str, keep: str) -> None:
    """Resume syncing the paused folder DIR.

    With --keep folder, every file of DIR becomes an edit, older texts too; missing files follow the
    usual rule for deletions. With --keep vault, the memories overwrite every file and restore missing
    ones, and an unknown text becomes a conflict copy.
    """
    if keep == "vault":
        with context.memory() as memory:
            number = memory.folders.put_back(folder)
        if context.json:
            from ipfsmem.results import FolderPutBack

            context.emit(FolderPutBack(path=folder, put_back=number))
        else:
            click.echo(
                f"{clean(folder)} is resumed with the vault's texts: {count(number, 'file')} restored."
            )
        return
    from ipfsmem.results import FolderAccepted

    with context.memory() as memory:
        memory.folders.accept(folder)
    _said(context, FolderAccepted(path=folder), "is resumed with the folder's texts.")


def _said(context: CommandContext, done: FolderPaused | FolderAccepted, text: str) -> None:
    if context.json:
        context.emit(done)
    else:
        click.echo(f"{clean(done.path)} {text}")
