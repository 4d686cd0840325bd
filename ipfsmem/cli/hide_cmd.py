"""`ipfsmem hide`: hide memories on this device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.errors import UsageError
from ipfsmem.operations.hidden import ChangedKeys, add, bring_back
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


def _ask(context: CommandContext, arguments: Arguments) -> None:
    if arguments["every"] and (arguments["keys"] or not arguments["back"]):
        raise UsageError("--all requires --back, and excludes keys")
    if not arguments["keys"] and not arguments["every"]:
        raise UsageError("give a KEY" + (", or --all" if arguments["back"] else ""))
    arguments["keys"] = arguments["keys"] or None


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> ChangedKeys:
    keys: ChangedKeys = call(bring_back if arguments["back"] else add, context, memory, arguments)
    return keys


def _show(context: CommandContext, keys: ChangedKeys, arguments: Arguments) -> None:
    if arguments["back"]:
        click.echo(f"{count(len(keys), 'memory')} no longer hidden.")
    else:
        click.echo(advice(f"{count(len(keys), 'memory')} hidden on this device. See: ipfsmem list --hidden"))


command = operation_command(
    "hide",
    add,
    _show,
    ask=_ask,
    run=_run,
    options=[
        click.Argument(["keys"], nargs=-1, metavar="[KEY]..."),
        click.Option(["--back"], is_flag=True, help="Show them again."),
        click.Option(["--all", "every"], is_flag=True, help="With --back: all hidden memories."),
    ],
)
