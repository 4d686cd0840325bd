"""`ipfsmem restore KEY`: write an earlier text of a memory again."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.operations.revisions import restore


def _show(context: CommandContext, written: MemoryRecord, arguments: Arguments) -> None:
    click.echo(written.sha256)


command = operation_command("restore", restore, _show)
