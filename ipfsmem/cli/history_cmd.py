"""`ipfsmem history KEY`: the texts that one memory has had, and where each can be read."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import clean, is_terminal, moment, size, style, table
from ipfsmem.wording import count


@cli_command("history", scoped=True)
@click.argument("key")
def command(context: CommandContext, key: str) -> None:
    """List the revisions of the memory KEY that this device can find, newest first.

    The columns: time and device of the write, SHA-256, size, state, and the newest version with this
    revision. Read a revision with `ipfsmem read KEY --root CID`, restore it with `ipfsmem restore KEY`.
    """
    with context.memory() as memory:
        found = memory.versions.of(key)
        published = memory.mode.published
        members = memory.members.list()
    from ipfsmem.memories.writers import member_names

    names = member_names(members)
    if context.json:
        context.emit(found)
        return
    lines = [
        (
            moment(one.written) or "imported",
            names.get(one.device) or one.device,
            (one.sha256[:16] if is_terminal() else one.sha256) if one.sha256 is not None else "forgotten",
            size(one.size) if one.size is not None else "" if one.sha256 is None else "not kept here",
            ", ".join(filter(None, (one.now, "" if one.own else "others' word"))),
            one.root or "",
        )
        for one in found.versions
    ]
    headings = ("written", "device", "SHA-256", "size", "now", "version")
    table(headings, lines, styles=("dim", "cyan", "bold", "", "green", "dim"), shrink=(1, 5))
    if not published:
        text = "Mode local publishes nothing, so older texts are not kept: only the last write can be undone."
        click.echo(style(text, dim=True), err=True)
    if found.roots_not_kept:
        text = f"{count(found.roots_not_kept, 'older version')} not kept on this device, so not looked at"
        click.echo(style(clean(text), dim=True), err=True)
