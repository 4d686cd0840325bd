"""`ipfsmem attach DIR`: a folder of plain files becomes a working copy of this memory."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, style
from ipfsmem.config import expanded
from ipfsmem.wording import count


@cli_command("attach")
@click.argument("folder", metavar="DIR", callback=not_empty)
@click.option(
    "--scope", metavar="NAME", help="The scope that it belongs to (default: the one without a name)."
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Also when it is marked as another memory's, or lies on another disk now.",
)
@click.option("--timeline", is_flag=True, help="Write timeline/ into it too, although it stood there before.")
def command(context: CommandContext, folder: str, scope: str | None, take_over: bool, timeline: bool) -> None:
    """Make DIR a working copy of this memory, from now on. Whoever can read this disk can read its files, in every mode.

    What is in it is taken in, what it lacks is written; its files keep their names and their bytes. In MEMORY.md the lines of
    others stay theirs, and ours stand in one marked block. DIR belongs to one scope; a scope may have several folders.
    It is made when only its last part is not there.
    """
    stood = expanded(folder).exists()
    with context.memory() as memory:
        made = memory.folders.attach(folder, scope=scope, take_over=take_over, timeline=timeline)
        notices = memory.folders.notices(made.path)
    if context.json:
        context.emit(made)
        return
    whose = f" of scope {clean(made.scope)}" if made.scope else ""
    was = "is" if stood else "was made, and is"
    click.echo(f"{clean(made.path)} {was} a working copy{whose} now: {count(made.files, 'file')}.")
    for text in (*made.remarks, *notices):
        click.echo(style("note: ", fg="yellow") + advice(text))
