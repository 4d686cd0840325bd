"""`ipfsmem restore KEY`: an older text of a memory, written again."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.errors import UsageError


@cli_command("restore", scoped=True)
@click.argument("key")
@click.option(
    "--root",
    metavar="CID",
    help="The text in this version: an address from `ipfsmem history` or `ipfsmem vault log`.",
)
@click.option("--text", metavar="SHA256", help="The text with this SHA-256, or a prefix.")
@click.option(
    "--seen", metavar="HASH", help="Refuse unless the current text has this hash (`ipfsmem read --json`)."
)
def command(context: CommandContext, key: str, root: str | None, text: str | None, seen: str | None) -> None:
    """Restore an earlier revision of the memory KEY, in place of the current text or its deletion.

    `restore` is a write like any other: other devices get it with their next sync, and `ipfsmem undo`
    undoes it.
    """
    if root is None and text is None:
        raise UsageError(
            "give exactly one of --root CID and --text SHA256",
            hint=f"List the revisions: ipfsmem history {key}",
        )
    with context.memory() as memory:
        written = memory.versions.restore(root, key, text=text, seen=seen)
    if context.json:
        context.emit(written)
    else:
        click.echo(written.sha256)
