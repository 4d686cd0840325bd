"""`ipfsmem index status`: the stored index of recall."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.printing import size
from ipfsmem.operations.maintenance import SearchIndexStatus, index_status
from ipfsmem.wording import count


def _show(context: CommandContext, status: SearchIndexStatus, arguments: Arguments) -> None:
    click.echo(in_words(status))


def in_words(status: SearchIndexStatus) -> str:
    """Return one or two sentences for a person."""
    return " ".join(filter(None, (_of_words(status), _of_vectors(status))))


def _of_vectors(status: SearchIndexStatus) -> str:
    if not status.model:
        return ""
    still = f"; {status.without_vector:,} still without one" if status.without_vector else ""
    return f"{count(status.vectors, 'text has an embedding', 'texts have an embedding')} of the model {status.model}{still}."


def _of_words(status: SearchIndexStatus) -> str:
    if status.problem:
        return status.problem[:1].upper() + status.problem[1:].rstrip(".") + "."
    if not status.kept:
        return "No index exists: the vault is small, or nothing was searched yet. The next recall builds one if it helps."
    behind = f"; {count(status.behind, 'memory', 'memories')} changed since" if status.behind else ""
    lacking = f", {status.not_fetched:,} not fetched" if status.not_fetched else ""
    files = f" ({count(status.files, 'index', 'indexes')} in all)" if status.files > 1 else ""
    return f"The index has {count(status.memories, 'memory', 'memories')}{lacking}{behind}. It uses {size(status.bytes)}{files}."


# A vault on a full disk is read without its folder, where the index is.
command = operation_command("status", index_status, _show, reads=False)
