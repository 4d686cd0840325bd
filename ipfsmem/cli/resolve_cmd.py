"""`ipfsmem resolve KEY`: one text in the place of all that stand in conflict."""

from __future__ import annotations

import click

from ipfsmem.cli.here import Here, ours, read_text
from ipfsmem.errors import NotFoundError, UsageError


@ours("resolve")
@click.argument("key")
@click.option("--keep", is_flag=True, help="Keep the text that is shown.")
@click.option("--take", metavar="FILE", help="Take this copy: its name from `ipfsmem conflicts`.")
@click.option("--file", metavar="PATH", help="Take this whole file, header and all; - is standard input.")
def command(here: Here, key: str, keep: bool, take: str | None, file: str | None) -> None:
    """Settle the conflict of KEY: the chosen text replaces all others, on every device.

    Copies that other devices write meanwhile stay.
    """
    if sum((keep, take is not None, file is not None)) != 1:
        raise UsageError(
            "choose one: --keep, --take FILE or --file PATH", hint=f"Look first: ipfsmem conflicts {key}"
        )
    data = read_text(file, "the text") if file is not None else None
    with here.memory() as memory:
        copies = next((files for name, files, _ in memory.conflicts() if name == key), None)
        if copies is None:
            raise NotFoundError(f"{key} has no conflict", hint="List all: ipfsmem conflicts.")
        if take is not None:
            data = memory.read_conflict(key, take).data
        written = memory.resolve(key, data, copies=copies)
    if here.json:
        here.emit({"key": key, "sha256": written.sha256, "replaced": copies})
    else:
        click.echo(written.sha256)
