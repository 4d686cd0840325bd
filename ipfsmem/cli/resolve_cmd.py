"""`ipfsmem resolve KEY`: one text in the place of all that stand in conflict."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.values import read_text
from ipfsmem.errors import ChangedError, NotFoundError, UsageError


@cli_command("resolve", scoped=True)
@click.argument("key")
@click.option("--seen", metavar="HASH", help="Hash of the texts that you saw, from `ipfsmem conflicts KEY`.")
@click.option("--keep", is_flag=True, help="Keep the current text, or the deletion.")
@click.option("--take", metavar="FILE", help="Choose this alternative: its name from `ipfsmem conflicts`.")
@click.option(
    "--file",
    callback=not_empty,
    metavar="PATH",
    help="Use this whole file, header included; - is standard input.",
)
def command(
    context: CommandContext, key: str, seen: str | None, keep: bool, take: str | None, file: str | None
) -> None:
    """Resolve the conflict of KEY: the chosen text replaces the texts that you saw, on every device.

    A text that arrived later is kept: --seen is then out of date, and nothing is replaced.
    """
    look = f"Look first: ipfsmem conflicts {key}"
    if sum((keep, take is not None, file is not None)) != 1:
        raise UsageError("choose one: --keep, --take FILE or --file PATH", hint=look)
    data = read_text(file, "the text") if file is not None else None
    if data is not None and not data.strip():
        raise UsageError(
            "the text is empty, so nothing was replaced",
            hint=f"To keep what is shown: --keep. To take the memory away, afterwards: ipfsmem forget {key}",
        )
    with context.memory() as memory:
        item = next((item for item in memory.conflicts() if item.key == key), None)
        if item is None:
            raise NotFoundError(f"{key} has no conflict", hint="List all: ipfsmem conflicts.")
        if seen is None:
            raise UsageError(
                "say what you looked at: --seen HASH", hint=f"{look} (it prints the line to use)"
            )
        if len(seen) < 8 or not item.seen.startswith(seen.lower()):
            raise ChangedError(f"{key} is not what you looked at; nothing was replaced", hint=look)
        if take is not None:
            copy = memory.read(key, conflict=take)
            assert copy is not None  # a name that is unknown was refused
            data = copy.data
        written = memory.resolve(key, data, seen=item)
    if context.json:
        from ipfsmem.results import Resolved

        sha256 = written.sha256 if written is not None else None
        context.emit(Resolved(key=key, sha256=sha256, replaced=item.files))
    else:
        click.echo(written.sha256 if written is not None else f"{key} stays forgotten.")
