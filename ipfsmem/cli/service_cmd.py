"""`ipfsmem service`: sync by itself, from the moment that you log in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, clean_lines, facts, moment, style
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.agents.service import Manager
    from ipfsmem.agents.service_texts import Service


@click.group("service", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Sync by itself: a service of this user, from the moment that you log in (systemd, launchd, Windows' tasks).

    It runs `ipfsmem sync --every` with low priority. While the keys of an encrypted memory are locked it waits for them.
    """


def _manager(context: CommandContext) -> Manager:
    from ipfsmem.agents.service import Manager
    from ipfsmem.config import user_home

    return Manager(user=user_home(), home=context.home, environment=os.environ)


def _name(context: CommandContext, manager: Manager) -> str:
    from ipfsmem.agents.command_line import usual_home

    return manager.name(context.namespace, usual_home())


def _service(context: CommandContext, manager: Manager, every: str) -> Service:
    from ipfsmem.agents.command_line import program_words, which_memory
    from ipfsmem.agents.service_texts import Service

    which = which_memory(context.namespace, context.home)
    words = (*program_words(os.environ), "sync", "--every", every, *which)
    return Service(_name(context, manager), context.namespace, words)


def _refuse_what_never_syncs(context: CommandContext) -> None:
    """Raises UsageError for a memory that no sync without a person could publish."""
    from ipfsmem.device.replica import require_config

    config = require_config(context.folder)
    if not config.mode.published:
        raise UsageError(
            f"a memory in mode {config.mode} is published nowhere: there is nothing to sync",
            hint="A memory in mode encrypted-ipfs or ipfs is synced: ipfsmem init.",
        )
    if not config.providers:
        raise UsageError(
            "this memory has no provider: there is nothing to sync with",
            hint="Add one: ipfsmem provider add PROVIDER.",
        )
    if config.mode.public and not config.public:
        raise UsageError(
            "what this memory holds would be public for good, and nobody has agreed to that yet: a service asks nobody",
            hint="Publish it once yourself: ipfsmem sync.",
        )


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
@click.option("--force", is_flag=True, help="Also in place of a file that somebody wrote or changed.")
def install_command(context: CommandContext, every: str, dry_run: bool, force: bool) -> None:
    """Write the service and begin it. Variables of this shell are not its own: tokens of providers belong into the settings file."""
    from ipfsmem.agents.command_line import check_words, program_words
    from ipfsmem.agents.service import install

    context.refuse_missing_memory()
    _refuse_what_never_syncs(context)
    manager = _manager(context)
    check_words(program_words(os.environ))
    done = install(manager, _service(context, manager, every), dry_run=dry_run, force=force)
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


_RUNS = {True: "yes", False: "no", None: "not known"}


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
            (
                "runs",
                _RUNS[found.running]
                + (f" ({clean(found.said)})" if found.said and not found.running else ""),
            ),
            ("last sync", f"{moment(found.worked)}" if found.worked else "none yet"),
            ("fails since", f"{moment(found.failing)}: {clean(found.failure)}" if found.failing else ""),
        ]
    )


@cli_command("uninstall", short_help="End it, and leave nothing of it.", secrets=False)
@click.option("--dry-run", is_flag=True, help="Show what would be run and removed, and do nothing.")
@click.option(
    "--force",
    is_flag=True,
    help="Also a file that somebody wrote or changed, and also when the system's manager of services cannot be told.",
)
def uninstall_command(context: CommandContext, dry_run: bool, force: bool) -> None:
    """End the service and remove its file. The memory stays as it is."""
    from ipfsmem.agents.service import uninstall

    manager = _manager(context)
    done = uninstall(manager, _service(context, manager, "5m"), dry_run=dry_run, force=force)
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
