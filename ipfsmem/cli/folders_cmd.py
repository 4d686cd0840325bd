"""`ipfsmem folders`: list, pause and resume the linked folders of this memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands, not_empty
from ipfsmem.cli.printing import clean, table
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.results import FolderAccepted, FolderPaused


@click.group("folders", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Linked folders: plain files on this device, kept in step with this memory. Link one with: ipfsmem attach DIR"""


@cli_command("list", short_help="List the linked folders.")
def list_command(context: CommandContext) -> None:
    """List the linked folders with their scope, number of files and state (ok, paused, not there)."""
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
        nothing=advice("No folder is a working copy. Make one: ipfsmem attach DIR"),
    )


@cli_command("pause", short_help="Pause a linked folder.")
@click.argument("folder", metavar="DIR", callback=not_empty)
def pause_command(context: CommandContext, folder: str) -> None:
    """Stop reading and writing DIR until `accept` or `put-back`, for instance before a checkout, a search and replace or a
    restore."""
    from ipfsmem.results import FolderPaused

    with context.memory() as memory:
        memory.folders.pause(folder)
    _said(context, FolderPaused(path=folder), "is paused: its files are not read or written.")


@cli_command("accept", short_help="Resume a paused folder and take in its files.")
@click.argument("folder", metavar="DIR", callback=not_empty)
def accept_command(context: CommandContext, folder: str) -> None:
    """Take in every file of DIR as an edit, earlier texts too. Missing files follow the usual rule for deletes."""
    from ipfsmem.results import FolderAccepted

    with context.memory() as memory:
        memory.folders.accept(folder)
    _said(context, FolderAccepted(path=folder), "is resumed with its own files.")


@cli_command("put-back", short_help="Resume a paused folder and restore its files.")
@click.argument("folder", metavar="DIR", callback=not_empty)
def put_back_command(context: CommandContext, folder: str) -> None:
    """Write the memories into every file of DIR, missing ones too. A text that was never remembered is kept as a conflict copy."""
    with context.memory() as memory:
        number = memory.folders.put_back(folder)
    if context.json:
        from ipfsmem.results import FolderPutBack

        context.emit(FolderPutBack(path=folder, put_back=number))
    else:
        click.echo(f"{clean(folder)} is resumed with the remembered texts: {count(number, 'file')} put back.")


def _said(context: CommandContext, done: FolderPaused | FolderAccepted, text: str) -> None:
    if context.json:
        context.emit(done)
    else:
        click.echo(f"{clean(done.path)} {text}")


for made in (list_command, pause_command, accept_command, put_back_command):
    command.add_command(made)
