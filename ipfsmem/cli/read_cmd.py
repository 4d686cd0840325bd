"""`ipfsmem read KEY`: one memory, exactly as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import clean_lines, is_terminal, write_bytes
from ipfsmem.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from ipfsmem.memories.readings import Reading
    from ipfsmem.memory import Memory


@cli_command("read", scoped=True, stacks=True, reads=True)
@click.argument("key")
@click.option("--body", "only_body", is_flag=True, help="Leave the header out.")
@click.option(
    "--conflict", metavar="FILE", help="A conflict copy instead: its name from `ipfsmem conflicts`."
)
@click.option(
    "--root", metavar="CID", help="As it was in a published version: an address from `ipfsmem history`."
)
def command(
    context: CommandContext, key: str, only_body: bool, conflict: str | None, root: str | None
) -> None:
    """Print the memory KEY, byte for byte.

    Without --scope or --stack it is looked for in what is everybody's, then in the one scope that has it.
    --json adds its SHA-256 (for write --if-match), the scope and device that it came from, and its conflicts.
    """
    if context.stacked and (conflict is not None or root is not None):
        raise UsageError("--stack reads what is shown now, so it takes neither --conflict nor --root")
    if conflict is not None and root is not None:
        raise UsageError("--conflict and --root exclude each other")
    with context.memory() as memory:
        if context.stacked:
            reading = memory.stack(*context.stacked).read(key)
        elif conflict is not None:
            reading = memory.read_conflict(key, conflict)
        else:
            reading = memory.read(key, root=root)
            if reading is None and root is None and context.scope is None:
                reading = _where_it_stands(memory, key)
        near = _near(context, memory, key) if reading is None else ""
    if reading is None:
        raise NotFoundError(
            f"there is no memory {key}{near}",
            hint=context.scope_notice or "See what there is with: ipfsmem list.",
        )
    print_memory(context, reading, only_body=only_body)
    if reading.scope != (context.scope or "") and not context.json:
        click.echo(f"from the scope {reading.scope}", err=True)


def _near(context: CommandContext, memory: Memory, key: str) -> str:
    """The keys that were probably meant, in words; "" where none is near."""
    from difflib import get_close_matches

    listed = (memory.stack(*context.stacked) if context.stacked else memory).list()
    near = get_close_matches(key, [one.key for one in listed], n=3)
    return f"; perhaps {' or '.join(near)}" if near else ""


def _where_it_stands(memory: Memory, key: str) -> Reading | None:
    """What the one scope shows that has it, where nobody named a scope. Raises UsageError where several have it."""
    there = memory.scopes.having(key)
    if len(there) > 1:
        raise UsageError(
            f"{key} stands in several scopes: {', '.join(there)}",
            hint=f"Say which one: ipfsmem read {key} --scope {there[0]}",
        )
    return memory.scope(there[0]).read(key) if there else None


def print_memory(context: CommandContext, reading: Reading, *, only_body: bool) -> None:
    """Print a memory byte for byte, or as JSON."""
    key, file = reading.key, reading.file
    if context.json:
        context.emit(reading)
        return
    data = (file.body + "\n").encode() if only_body else reading.data
    if is_terminal():
        click.echo(clean_lines(data.decode()), nl=False)
    else:
        write_bytes(data)
    if reading.conflicts:
        within = f" --scope {reading.scope}" if context.stacked and reading.scope else ""
        from ipfsmem.cli.hint_commands import advice

        click.echo(
            advice(f"also: {', '.join(reading.conflicts)} (ipfsmem conflicts {key}{within})"), err=True
        )
