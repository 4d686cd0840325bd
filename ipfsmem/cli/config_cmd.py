"""`ipfsmem config`: show and change the settings of this user."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, table
from ipfsmem.errors import UsageError

Value = str | int | float | bool | None


@click.group("config", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Settings: one file for all vaults of this user. Environment variables override it, and options
    override both.
    """


@cli_command("show", secrets=False, short_help="Show settings with values and descriptions")
@click.argument("name", required=False)
def show_command(context: CommandContext, name: str | None) -> None:
    """Show all settings, or those whose names begin with NAME: value, default, unit, source and
    description.

    Settings of providers are listed without their values, which may be tokens.
    """
    from ipfsmem.agents.own_settings import settings_shown
    from ipfsmem.setting_list import setting

    found = settings_shown()
    if name is not None:
        found = [one for one in found if one.name == name or one.name.startswith(name + ".")]
        if not found:
            setting(name)
    if context.json:
        context.emit(found)
        return
    table(
        ("setting", "value", "default", "unit", "from", "what it is"),
        [(one.name, _text(one.value), _text(one.default), one.unit, one.source, one.about) for one in found],
        styles=("bold", "cyan", "dim", "dim", "", ""),
    )


@cli_command("set", secrets=False, short_help="Change a setting")
@click.argument("name")
@click.argument("value", required=False)
@click.option(
    "--default", "back", is_flag=True, help="Remove the setting from the file, so that its default applies."
)
def set_command(context: CommandContext, name: str, value: str | None, back: bool) -> None:
    """Change one setting in the settings file, and create the file if it does not exist.

    Comments and other settings stay as they are. Nothing is written if the resulting file would be
    invalid.
    """
    from ipfsmem.agents.own_settings import set_setting

    if (value is None) != back:
        raise UsageError(
            "config set requires a NAME and a VALUE, or a NAME and --default",
            hint="All of them: ipfsmem config show",
        )
    done = set_setting(name, value)
    if context.json:
        context.emit(done)
        return
    one, unit = done.setting, f" {done.setting.unit}" if done.setting.unit else ""
    click.echo(
        f"{one.name} is {clean(_text(one.value))}{unit}. {'Written to' if done.changed else 'So it was in'} {clean(done.file)}"
    )
    if one.source not in ("file", "default"):
        click.echo(f"note: {one.source} overrides the file", err=True)


@cli_command("path", secrets=False, short_help="Print the path of the settings file")
def path_command(context: CommandContext) -> None:
    """Print the settings files in order of precedence. Only the first is used."""
    from ipfsmem.agents.own_settings import settings_files

    found = settings_files()
    if context.json:
        context.emit(found)
        return
    table(
        ("file", "named by", "", ""),
        [
            (one.path, one.by, "there" if one.there else "not there", "counts" if one.counts else "")
            for one in found
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
