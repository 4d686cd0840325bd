"""`ipfsmem conflicts`: concurrent edits that could not be merged. All texts are kept."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, clean_lines, is_terminal, style
from ipfsmem.cli.vault_diff_cmd import differences
from ipfsmem.memories.memory_records import Conflict
from ipfsmem.operations.conflicts import Conflicts, conflicts

_NOTES = """Without KEY, conflicts of all scopes are listed unless --scope is given. With KEY, the
output shows the differences and the `ipfsmem resolve` command for the texts that you saw."""


def _ask(context: CommandContext, arguments: Arguments) -> None:
    arguments["everywhere"] = arguments["key"] is None and context.scope is None


def _show(context: CommandContext, report: Conflicts, arguments: Arguments) -> None:
    if not report and not report.late and is_terminal():
        click.echo("No conflicts.", err=True)
    for item in report:
        _print(
            report,
            item,
            whole=arguments["key"] is not None,
            elsewhere=arguments["everywhere"] and bool(item.scope),
        )
    for value in report.late:
        note = f"written by {value.member} after it was revoked; to approve it, write the memory again"
        click.echo(f"{style(clean(value.place), bold=True)}  {note}")


def _print(report: Conflicts, item: Conflict, *, whole: bool, elsewhere: bool) -> None:
    key = item.key
    if item.forgotten:
        state = "forgotten, with a concurrent edit"
    elif item.shown is None:
        state = advice("the newest text is not on this device yet (ipfsmem sync)")
    else:
        state = f"current text by {report.writer(item.shown)}"
    in_scope = f" (in the scope {item.scope}: ipfsmem conflicts {key} --scope {item.scope})"
    click.echo(f"{style(clean(key), bold=True)}  {clean(state)}{advice(in_scope) if elsewhere else ''}")
    shown = "" if item.shown is None else item.shown.text
    for copy in item.copies:
        by = (
            f"by {report.writer(copy.reading)}"
            if copy.reading
            else advice("not on this device yet (ipfsmem sync)")
        )
        click.echo(f"  {copy.file}  {clean(by)}")
        if whole and copy.reading is not None:
            before, after = shown.splitlines(), copy.reading.text.splitlines()
            for line in differences(before, after, around=1):
                colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
                click.echo("    " + style(clean_lines(line), fg=colour))
    if whole:
        ways = ["--keep"] if item.forgotten or item.shown is not None else []
        ways += [f"--alternative {copy.file}" for copy in item.copies if copy.reading is not None][:1]
        ways += ["--file PATH"]
        settle = f"ipfsmem resolve {key} --seen {item.seen} {ways[0]}"
        others = "".join(f", or {way}" for way in ways[1:])
        click.echo(style(advice(f"  Resolve it: {settle}{others}"), dim=True))


command = operation_command("conflicts", conflicts, _show, ask=_ask, notes=_NOTES)
