"""`ipfsmem vault check`: check all data on this device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, style
from ipfsmem.operations.check import Examined, check
from ipfsmem.operations.device import trust_clock
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

_MARK = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "error": ("✗", "red")}


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> Examined:
    back = call(trust_clock, context, memory, {}).clock_back_ms if arguments["clock_is_right"] else 0
    restored = memory.folders.restore_files() if arguments["restore_files"] else 0
    result: Examined = call(check, context, memory, arguments)
    return replace(result, restored_files=restored, clock_back_ms=back)


def _show(context: CommandContext, result: Examined, arguments: Arguments) -> None:
    if arguments["clock_is_right"]:
        click.echo(
            f"New writes use this machine's clock again: {count(result.clock_back_ms // 60_000, 'minute')} back"
        )
    if arguments["restore_files"]:
        click.echo(f"{count(result.restored_files, 'file')} restored")
    for finding in result:
        mark, colour = _MARK[finding.level]
        click.echo(f"{style(mark, fg=colour, bold=True)} {clean(finding.text)}")
        if finding.hint:
            click.echo(style(f"  {advice(finding.hint)}", dim=True))


def _end(context: CommandContext, result: Examined, arguments: Arguments) -> None:
    if result.errors:
        click.get_current_context().exit(1)


command = operation_command(
    "check",
    check,
    _show,
    run=_run,
    end=_end,
    options=[
        click.Option(["--restore-files"], is_flag=True, help="Write missing plain files again."),
        click.Option(
            ["--clock-is-right"],
            is_flag=True,
            help="Date new writes by this machine's clock again, although earlier writes of this device are dated later.",
        ),
    ],
    reads=False,
    notes="Reads only, except with the options below. The exit code is 1 if something is lost or unusable.",
)
