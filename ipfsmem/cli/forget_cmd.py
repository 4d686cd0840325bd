"""`ipfsmem forget KEY`: the user's wish, on every device."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import NotFoundError


@cli_command("forget", scoped=True)
@click.argument("key")
@click.option("--reason", default="", help="Why; it is kept in the timeline.")
@click.option("--if-match", metavar="SHA256", help="Refuse unless the text now has this SHA-256.")
def command(context: CommandContext, key: str, reason: str, if_match: str | None) -> None:
    """Forget the memory KEY, on every device, edits that were made meanwhile included.

    The wish is noted in the timeline. Versions that were published before still hold the text, encrypted, until they are let
    go of (`ipfsmem gc`). In mode ipfs what was published stays public.
    """
    with context.memory() as memory:
        if not memory.forget(key, reason=reason, if_match=if_match):
            there = memory.scopes.having(key) if context.scope is None else []
            raise NotFoundError(
                f"there is no memory {key}" + (" in what is everybody's" if there else ""),
                hint=f"It stands in a scope: ipfsmem forget {key} --scope {there[0]}"
                if there
                else "See what there is with: ipfsmem list.",
            )
        folders, public = memory.folders.list(), memory.mode.public and memory.status().root is not None
        told = when_others_learn(memory.mode)
    if context.json:
        from ipfsmem.results import Forgotten

        context.emit(Forgotten(key=key))
    else:
        click.echo(f"{key} is forgotten here{told}.")
        if public:
            click.echo(
                "What was published stays public: whoever has an address of before, or a copy, can read it for good.",
                err=True,
            )
        if folders:
            click.echo(
                "An editor's swap file, the trash and backups of its folder may still have the text.",
                err=True,
            )
