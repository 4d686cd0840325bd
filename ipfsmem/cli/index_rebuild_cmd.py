"""`ipfsmem index rebuild`: rebuild the index of recall."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.index_status_cmd import in_words


def _progress() -> Callable[[int, int], None] | None:
    """Return a progress line of embedded texts, for a terminal; a model takes minutes for thousands."""
    if not sys.stderr.isatty():
        return None

    def told(there: int, all: int) -> None:
        click.echo(f"\r{there:,} of {all:,} texts have embeddings", nl=there == all, err=True)

    return told


@cli_command("rebuild")
def command(context: CommandContext) -> None:
    """Rebuild the index that recall searches from all texts, and save it.

    If recall uses a model, texts without an embedding get one, newest first; Ctrl-C keeps the finished
    ones.

    This is rarely needed: each recall updates the index and rebuilds a damaged one. The exit code is 7
    if missing embeddings could not be computed.
    """
    with context.memory() as memory:
        found = memory.maintenance.reindex(None if context.json else _progress())
    if context.json:
        context.emit(found)
    else:
        click.echo(in_words(found))
    if found.problem:
        click.get_current_context().exit(7)
