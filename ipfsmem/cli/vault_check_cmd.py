"""`ipfsmem vault check`: check all data on this device."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, style
from ipfsmem.wording import count

_MARK = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "error": ("✗", "red")}


@cli_command("check")
@click.option("--restore-files", is_flag=True, help="Write missing plain files again.")
@click.option(
    "--clock-is-right",
    is_flag=True,
    help="Date new writes by this machine's clock again, although this device once wrote in the future.",
)
def command(context: CommandContext, restore_files: bool, clock_is_right: bool) -> None:
    """Check this device's copy: database, blocks, signatures, keys, files and clock. Reads only, except
    with the options below.

    The exit code is 1 if something is lost or unusable.
    """
    with context.memory() as memory:
        back = memory.maintenance.trust_clock() if clock_is_right else 0
        restored = memory.folders.restore_files() if restore_files else 0
        findings = memory.maintenance.check()
    errors = sum(finding.level == "error" for finding in findings)
    if context.json:
        from ipfsmem.results import Examined

        context.emit(Examined(findings=findings, errors=errors, restored_files=restored, clock_back_ms=back))
    else:
        if clock_is_right:
            click.echo(f"New writes use this machine's clock again: {count(back // 60_000, 'minute')} back")
        if restore_files:
            click.echo(f"{count(restored, 'file')} restored")
        for finding in findings:
            mark, colour = _MARK[finding.level]
            click.echo(f"{style(mark, fg=colour, bold=True)} {clean(finding.text)}")
            if finding.hint:
                click.echo(style(f"  {advice(finding.hint)}", dim=True))
    if errors:
        click.get_current_context().exit(1)
