"""`ipfsmem folders`: the working copies of this memory, and what counts when one went back to earlier texts."""

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
    """The folders of plain files on this device that belong to this memory."""


@cli_command("list", short_help="Where the plain files are.")
def list_command(context: CommandContext) -> None:
    """List the working copies: where they are, whose scope, how many files, and whether one is paused or not there."""
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


@cli_command("pause", short_help="Leave a folder alone for now.")
@click.argument("folder", metavar="DIR", callback=not_empty)
def pause_command(context: CommandContext, folder: str) -> None:
    """Take nothing in from DIR and write nothing to it, until `accept` or `put-back`. Before a large operation on it, for
    instance: a checkout, a search and replace, a restore."""
    from ipfsmem.results import FolderPaused

    with context.memory() as memory:
        memory.folders.pause(folder)
    _said(context, FolderPaused(path=folder), "is paused: nothing is taken in there and nothing written.")


@cli_command("accept", short_help="What stands in a paused folder counts.")
@click.argument("folder", metavar="DIR", callback=not_empty)
def accept_command(context: CommandContext, folder: str) -> None:
    """Take everything that stands in DIR for edits, earlier texts too. Files that are missing follow the usual rule for deletes."""
    from ipfsmem.results import FolderAccepted

    with context.memory() as memory:
        memory.folders.accept(folder)
    _said(context, FolderAccepted(path=folder), "counts as it stands, and goes on.")


@cli_command("put-back", short_help="What is remembered counts.")
@click.argument("folder", metavar="DIR", callback=not_empty)
def put_back_command(context: CommandContext, folder: str) -> None:
    """Write what is remembered into every file of DIR, missing ones too. A text that was never remembered is kept beside, as a
    conflict copy."""
    with context.memory() as memory:
        number = memory.folders.put_back(folder)
    if context.json:
        from ipfsmem.results import FolderPutBack

        context.emit(FolderPutBack(path=folder, put_back=number))
    else:
        click.echo(f"{clean(folder)} is as it is remembered: {count(number, 'file')} put back.")


def _said(context: CommandContext, done: FolderPaused | FolderAccepted, text: str) -> None:
    if context.json:
        context.emit(done)
    else:
        click.echo(f"{clean(done.path)} {text}")


for made in (list_command, pause_command, accept_command, put_back_command):
    command.add_command(made)
