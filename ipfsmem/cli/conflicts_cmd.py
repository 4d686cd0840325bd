"""`ipfsmem conflicts`: texts that were written at the same time and could not be merged. All of them are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, clean_lines, is_terminal, style
from ipfsmem.cli.vault_diff_cmd import differences
from ipfsmem.errors import NotFoundError

if TYPE_CHECKING:
    from ipfsmem.results import Conflict


@cli_command("conflicts", scoped=True, shows=True)
@click.argument("key", required=False)
def command(context: CommandContext, key: str | None) -> None:
    """List memories with conflicts, in all scopes unless one is named; with KEY, show the differences.

    It also prints the command that resolves the conflict and names the texts that you saw.
    """
    from ipfsmem.memories.writers import member_names
    from ipfsmem.results import Conflict

    with context.memory() as memory:
        everywhere = key is None and context.scope is None
        found = [item for item in memory.conflicts(everywhere=everywhere) if key in (None, item.key)]
        names = member_names(memory.members.list())
        late = [value for value in memory.members.late_writes() if key is None or value.place == key]
    shown = [Conflict.of(item, names) for item in found]
    if key is not None and not found and not late:
        raise NotFoundError(f"{key} has no conflict", hint="List all: ipfsmem conflicts.")
    if context.json:
        context.emit([*shown, *late])
        return
    if not found and not late and is_terminal():
        click.echo("No conflicts.", err=True)
    for item in shown:
        _print(item, whole=key is not None, elsewhere=everywhere and bool(item.scope))
    for value in late:
        said = f"written by {value.member} after it was revoked; to approve it, write the memory again"
        click.echo(f"{style(clean(value.place), bold=True)}  {said}")


def _print(item: Conflict, *, whole: bool, elsewhere: bool) -> None:
    key = item.key
    if item.forgotten:
        state = "forgotten, with words that were written meanwhile"
    elif item.text is None:
        state = advice("the newest text is not fetched yet (ipfsmem sync)")
    else:
        state = f"shown is what {item.device} wrote"
    where = f" (in the scope {item.scope}: ipfsmem conflicts {key} --scope {item.scope})"
    click.echo(f"{style(clean(key), bold=True)}  {clean(state)}{advice(where) if elsewhere else ''}")
    for copy in item.copies:
        by = f"by {copy.device}" if copy.text is not None else advice("not fetched yet (ipfsmem sync)")
        click.echo(f"  {copy.file}  {clean(by)}")
        if whole and copy.text is not None:
            before, after = (item.text or "").splitlines(), copy.text.splitlines()
            for line in differences(before, after, around=1):
                colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
                click.echo("    " + style(clean_lines(line), fg=colour))
    if whole:
        ways = ["--keep"] if item.forgotten or item.text is not None else []
        ways += [f"--take {copy.file}" for copy in item.copies if copy.text is not None][:1]
        ways += ["--file PATH"]
        settle = f"ipfsmem resolve {key} --seen {item.seen} {ways[0]}"
        others = "".join(f", or {way}" for way in ways[1:])
        click.echo(style(advice(f"  Settle it: {settle}{others}"), dim=True))
