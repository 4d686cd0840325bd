"""`ipfsmem index status`: the stored index of recall."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.printing import size
from ipfsmem.operations.maintenance import SearchIndexStatus, index_status
from ipfsmem.wording import count


def _show(context: CommandContext, found: SearchIndexStatus, arguments: Arguments) -> None:
    click.echo(in_words(found))


def in_words(found: SearchIndexStatus) -> str:
    """Return one or two sentences for a person."""
    return " ".join(filter(None, (_of_words(found), _of_vectors(found))))


def _of_vectors(found: SearchIndexStatus) -> str:
    if not found.model:
        return ""
    still = f"; {found.without_vector:,} still without one" if found.without_vector else ""
    return f"{count(found.vectors, 'text has an embedding', 'texts have an embedding')} of the model {found.model}{still}."


def _of_words(found: SearchIndexStatus) -> str:
    if found.problem:
        return found.problem[:1].upper() + found.problem[1:].rstrip(".") + "."
    if not found.kept:
        return "No index exists: the vault is small, or nothing was searched yet. The next recall builds one if it helps."
    behind = f"; {count(found.behind, 'memory', 'memories')} changed since" if found.behind else ""
    lacking = f", {found.not_fetched:,} not fetched" if found.not_fetched else ""
    files = f" ({count(found.files, 'index', 'indexes')} in all)" if found.files > 1 else ""
    return f"The index has {count(found.memories, 'memory', 'memories')}{lacking}{behind}. It uses {size(found.bytes)}{files}."


# A vault on a full disk is read without its folder, where the index is.
command = operation_command("status", index_status, _show, reads=False)
