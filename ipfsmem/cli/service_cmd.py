"""`ipfsmem service`: sync by itself, from the moment that you log in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, clean_lines, facts, moment, style

if TYPE_CHECKING:
    from ipfsmem.agents.service import Manager


@click.group("service", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Sync by itself: a service of this user, from the moment that you log in (systemd, launchd, Windows' tasks).

    It runs `ipfsmem sync --every` with low priority. While the keys of an encrypted memory are locked it waits for them.
    """


def _manager(context: CommandContext) -> Manager:
    from ipfsmem.agents.service import Manager

    return Manager(user=Path.home(), home=context.home, environment=os.environ)


def _name(context: CommandContext, manager: Manager) -> str:
    from ipfsmem import config

    return manager.name(context.namespace, config.home(None, config.settings({})))


def _every(ctx: click.Context, param: click.Parameter, text: str) -> str:
    from ipfsmem.cli.options import duration

    duration(ctx, param, text)
    return text.strip()


@cli_command("install", short_help="Have it run, now and at each login.", secrets=False)
@click.option(
    "--every",
    default="5m",
    callback=_every,
    show_default=True,
    metavar="TIME",
    help="At least every 30s, 5m, 1h.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written and run, and do nothing.")
def install_command(context: CommandContext, every: str, dry_run: bool) -> None:
    """Write the service and begin it. Variables of this shell are not its own: tokens of providers belong into the settings file."""
    from ipfsmem.agents.command_line import program_words, which_memory
    from ipfsmem.agents.service import install
    from ipfsmem.agents.service_texts import Service

    context.refuse_missing_memory()
    manager = _manager(context)
    words = (
        *program_words(os.environ),
        "sync",
        "--every",
        every,
        *which_memory(context.namespace, context.home),
    )
    service = Service(_name(context, manager), context.namespace, words)
    done = install(manager, service, dry_run=dry_run)
    if context.json:
        context.emit(done)
        return
    if dry_run:
        click.echo(f"{style(clean(done.file), bold=True)}\n{clean_lines(done.text)}")
        for line in done.commands:
            click.echo(clean(line))
        click.echo("Nothing was written and nothing run.")
        return
    click.echo(
        f"{done.name} runs from now on, and at each login."
        if done.changed
        else f"{done.name} was installed already: it runs, and at each login."
    )


@cli_command("status", short_help="Whether it runs, and how its syncs go.", secrets=False)
def status_command(context: CommandContext) -> None:
    """Show whether the service is there and runs, when a sync of it last worked, and since when none has."""
    from ipfsmem.agents.service import state

    manager = _manager(context)
    found = state(manager, _name(context, manager), context.folder)
    if context.json:
        context.emit(found)
        return
    facts(
        [
            ("service", found.name),
            ("file", clean(found.file) if found.file else advice("none: ipfsmem service install")),
            ("runs", "yes" if found.running else f"no{f' ({clean(found.said)})' if found.said else ''}"),
            ("last sync", f"{moment(found.worked)} UTC" if found.worked else "none yet"),
            ("fails since", f"{moment(found.failing)} UTC: {clean(found.failure)}" if found.failing else ""),
        ]
    )


@cli_command("uninstall", short_help="End it, and leave nothing of it.", secrets=False)
@click.option("--dry-run", is_flag=True, help="Show what would be run and removed, and do nothing.")
def uninstall_command(context: CommandContext, dry_run: bool) -> None:
    """End the service and remove its file. The memory stays as it is."""
    from ipfsmem.agents.service import uninstall

    manager = _manager(context)
    done = uninstall(manager, _name(context, manager), dry_run=dry_run)
    if context.json:
        context.emit(done)
    elif dry_run:
        for line in done.commands:
            click.echo(clean(line))
        click.echo(f"{clean(done.file)} would be removed. Nothing was done.")
    else:
        click.echo(f"{done.name} is gone.")


for _command in (install_command, status_command, uninstall_command):
    command.add_command(_command)
