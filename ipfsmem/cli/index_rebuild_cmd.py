"""`ipfsmem index rebuild`: rebuild the index of recall."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.index_status_cmd import in_words
from ipfsmem.operations.maintenance import SearchIndexStatus, reindex

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


def _progress() -> Callable[[int, int], None] | None:
    """Return a progress line of embedded texts, for a terminal; a model takes minutes for thousands."""
    if not sys.stderr.isatty():
        return None

    def told(there: int, all: int) -> None:
        click.echo(f"\r{there:,} of {all:,} texts have embeddings", nl=there == all, err=True)

    return told


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> SearchIndexStatus:
    status: SearchIndexStatus = call(
        reindex, context, memory, {"progress": None if context.json else _progress()}
    )
    return status


def _show(context: CommandContext, status: SearchIndexStatus, arguments: Arguments) -> None:
    click.echo(in_words(status))


def _end(context: CommandContext, status: SearchIndexStatus, arguments: Arguments) -> None:
    if status.problem:
        click.get_current_context().exit(7)


command = operation_command(
    "rebuild",
    reindex,
    _show,
    run=_run,
    end=_end,
    notes="Ctrl-C interrupts it. The exit code is 7 if missing embeddings could not be computed.",
)
