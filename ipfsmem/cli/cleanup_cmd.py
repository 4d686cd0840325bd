"""`ipfsmem cleanup`: what is old on this device and can be made anew, or only tells of the past, taken away."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import duration
from ipfsmem.cli.printing import clean, size, table
from ipfsmem.wording import count


@cli_command("cleanup")
@click.option(
    "--older-than",
    callback=duration,
    required=True,
    metavar="TIME",
    help="So old it is: 30d, 12h; 1h at least.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
def command(context: CommandContext, older_than: float, dry_run: bool) -> None:
    """Take away what is older than TIME on this device and is made anew when it is needed, or only tells of the past.

    Kept indexes of recall, what killed processes left, operations of the list (vault log --operations) and notices of earlier syncs. No text, no
    version, no key and nothing that can still be undone: of none of it this is the only copy. Old versions: ipfsmem gc.
    """
    with context.memory() as memory:
        done = memory.maintenance.cleanup(older_than, dry_run=dry_run)
    if context.json:
        context.emit(done)
        return
    table(
        ("file", "size"),
        [(clean(name), size(had)) for name, had in done.files.items()],
        styles=("bold", "dim"),
    )
    verb = "Would go" if dry_run else "Gone"
    click.echo(
        f"{verb}: {count(len(done.files), 'file')} ({size(done.bytes)}), {count(done.operations, 'operation')} of the list, "
        f"{count(done.notices, 'notice')} of earlier syncs."
    )
