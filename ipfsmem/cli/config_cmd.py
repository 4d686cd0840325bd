"""`ipfsmem config`: show and change the settings of this user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, table
from ipfsmem.errors import UsageError
from ipfsmem.operations.settings import list_, set_

if TYPE_CHECKING:
    from ipfsmem.operations.settings import SettingChanged, SettingList

Value = str | int | float | bool | None


@click.group("config", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Settings: one file for all vaults of this user. Environment variables override it, and options
    override both.
    """


def _show(context: CommandContext, settings: SettingList, arguments: Arguments) -> None:
    table(
        ("setting", "value", "default", "unit", "source", "description"),
        [
            (one.name, _text(one.value), _text(one.default), one.unit, one.source, one.about)
            for one in settings
        ],
        styles=("bold", "cyan", "dim", "dim", "", ""),
    )


def _check_value(context: CommandContext, arguments: Arguments) -> None:
    if context.vault_named:
        raise UsageError(
            "config set accepts no --vault: a setting applies to all vaults of this user",
            hint="Run it without --vault. For the default vault: ipfsmem config set vault NAME",
        )
    if (arguments["value"] is None) != arguments["back"]:
        raise UsageError(
            "config set requires a NAME and a VALUE, or a NAME and --default",
            hint="List all settings: ipfsmem config show",
        )


def _show_changed(context: CommandContext, change: SettingChanged, arguments: Arguments) -> None:
    one, unit = change.setting, f" {change.setting.unit}" if change.setting.unit else ""
    click.echo(
        f"{one.name} is {clean(_text(one.value))}{unit}. {'Written to' if change.changed else 'Already set in'} {clean(change.file)}"
    )
    if one.source not in ("file", "default"):
        click.echo(f"note: {one.source} overrides the file", err=True)


show_command = operation_command("show", list_, _show)
set_command = operation_command(
    "set",
    set_,
    _show_changed,
    ask=_check_value,
    options=[
        click.Option(
            ["--default", "back"],
            is_flag=True,
            help="Remove the setting from the file, so that its default applies.",
        )
    ],
)


@cli_command("path", secrets=False, short_help="List the settings files in order of precedence")
def path_command(context: CommandContext) -> None:
    """List the settings files in order of precedence. Only the first is used."""
    from ipfsmem.operations.settings import settings_files

    files = settings_files()
    if context.json:
        context.emit(files)
        return
    table(
        ("file", "set by", "", ""),
        [
            (one.path, one.by, "exists" if one.there else "missing", "in use" if one.counts else "")
            for one in files
        ],
        styles=("bold", "", "dim", "green"),
        shrink=(0,),
    )


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


command.add_command(show_command)
command.add_command(set_command)
command.add_command(path_command)
