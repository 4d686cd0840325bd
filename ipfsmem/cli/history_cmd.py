"""`ipfsmem history KEY`: the revisions of one memory, and where each can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.printing import clean, is_terminal, moment, size, style, table
from ipfsmem.operations.history import history
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.published.versions import History

_NOTES = """The columns: time and device of the write, SHA-256, size, state, and the newest version with this
revision. Read a revision with `ipfsmem read KEY --root CID`, restore it with `ipfsmem restore KEY`."""


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> History:
    arguments["published"] = memory.mode.published
    answer: History = call(history, context, memory, arguments)
    return answer


def _show(context: CommandContext, answer: History, arguments: Arguments) -> None:
    lines = [
        (
            moment(one.written) or "imported",
            one.label,
            (one.sha256[:16] if is_terminal() else one.sha256) if one.sha256 is not None else "forgotten",
            size(one.size) if one.size is not None else "" if one.sha256 is None else "not kept here",
            ", ".join(filter(None, (one.now, "" if one.own else "pending"))),
            one.root or "",
        )
        for one in answer.versions
    ]
    headings = ("written", "device", "SHA-256", "size", "now", "version")
    table(headings, lines, styles=("dim", "cyan", "bold", "", "green", "dim"), shrink=(1, 5))
    if not arguments["published"]:
        text = "Mode local publishes nothing, so it keeps no revisions: only the last write can be undone."
        click.echo(style(text, dim=True), err=True)
    if answer.roots_not_kept:
        text = f"{count(answer.roots_not_kept, 'older version')} not kept on this device, and not searched"
        click.echo(style(clean(text), dim=True), err=True)


command = operation_command("history", history, _show, run=_run, notes=_NOTES)
