"""`ipfsmem service`: automatic sync from login on."""

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
    """Automatic sync: a service of this user that starts at login (systemd, launchd, Windows Task
    Scheduler).

    It runs `ipfsmem sync --every` with low priority. While the keys of an encrypted vault are locked, it
    waits for them.
    """


def _manager(context: CommandContext) -> Manager:
    from ipfsmem.agents.service import Manager
    from ipfsmem.config import user_home

    return Manager(user=user_home(), home=context.home, environment=os.environ)


def _name(context: CommandContext, manager: Manager) -> str:
    from ipfsmem.agents.command_line import usual_home

    return manager.name(context.vault_name, usual_home())


def _service(context: CommandContext, manager: Manager, every: str) -> Service:
    from ipfsmem.agents.command_line import program_words, which_memory
    from ipfsmem.agents.service_texts import Service

    which = which_memory(context.vault_name, context.home)
    words = (*program_words(os.environ), "sync", "--every", every, *which)
    return Service(_name(context, manager), context.vault_name, words)


def _refuse_what_never_syncs(context: CommandContext) -> None:
    """Raise UsageError for a vault that no unattended sync could publish."""
    from ipfsmem.device.replica import require_config

    config = require_config(context.folder)
    if not config.mode.published:
        raise UsageError(
            f"a vault in mode {config.mode} is never published: nothing to sync",
            hint="Create a vault in mode encrypted-ipfs or ipfs: ipfsmem init.",
        )
    if not config.providers:
        raise UsageError(
            "this vault has no provider to sync with",
            hint="Add one: ipfsmem provider add PROVIDER.",
        )
    if config.mode.public and not config.public:
        raise UsageError(
            "the vault would become public permanently, which nobody confirmed yet, and a service cannot ask",
            hint="Publish it once: ipfsmem sync.",
        )


def _every(ctx: click.Context, param: click.Parameter, text: str) -> str:
    from ipfsmem.cli.options import duration

    duration(ctx, param, text)
    return text.strip()


@cli_command("install", short_help="Install and start the service", secrets=False)
@click.option(
    "--every",
    default="5m",
    callback=_every,
    show_default=True,
    metavar="TIME",
    help="Maximum interval between syncs: 30s, 5m, 1h.",
)
@click.option("--dry-run", is_flag=True, help="Show the files and commands without writing or running them.")
@click.option("--force", is_flag=True, help="Replace a file that someone else wrote or changed.")
def install_command(context: CommandContext, every: str, dry_run: bool, force: bool) -> None:
    """Install and start the service. The service does not inherit this shell's environment: put
    provider tokens in the settings file.
    """
    from ipfsmem.agents.command_line import check_words, program_words
    from ipfsmem.agents.service import install

    context.refuse_missing_memory()
    _refuse_what_never_syncs(context)
    manager = _manager(context)
    check_words(program_words(os.environ))
    result = install(manager, _service(context, manager, every), dry_run=dry_run, force=force)
    if context.json:
        context.emit(result)
        return
    if dry_run:
        click.echo(f"{style(clean(result.file), bold=True)}\n{clean_lines(result.text)}")
        for line in result.commands:
            click.echo(clean(line))
        click.echo("Nothing was written or run.")
        return
    click.echo(
        f"{result.name} is running, and starts at each login."
        if result.changed
        else f"{result.name} was already installed: it is running, and starts at each login."
    )


_RUNS = {True: "yes", False: "no", None: "not known"}


@cli_command("status", short_help="Show the state of the service and its syncs", secrets=False)
def status_command(context: CommandContext) -> None:
    """Show whether the service is installed and running, when it last synced, and since when syncs fail."""
    from ipfsmem.agents.service import state

    manager = _manager(context)
    status = state(manager, _name(context, manager), context.folder)
    if context.json:
        context.emit(status)
        return
    facts(
        [
            ("service", status.name),
            ("file", clean(status.file) if status.file else advice("none: ipfsmem service install")),
            (
                "runs",
                _RUNS[status.running]
                + (f" ({clean(status.said)})" if status.said and not status.running else ""),
            ),
            ("last sync", f"{moment(status.worked)}" if status.worked else "none yet"),
            ("fails since", f"{moment(status.failing)}: {clean(status.failure)}" if status.failing else ""),
        ]
    )


@cli_command("uninstall", short_help="Stop and remove the service", secrets=False)
@click.option("--dry-run", is_flag=True, help="Show the files and commands without removing or running them.")
@click.option(
    "--force",
    is_flag=True,
    help="Remove it even if someone else changed the file or the service manager cannot be reached.",
)
def uninstall_command(context: CommandContext, dry_run: bool, force: bool) -> None:
    """Stop the service and remove its file. The vault stays as it is."""
    from ipfsmem.agents.service import uninstall

    manager = _manager(context)
    result = uninstall(manager, _service(context, manager, "5m"), dry_run=dry_run, force=force)
    if context.json:
        context.emit(result)
    elif dry_run:
        for line in result.commands:
            click.echo(clean(line))
        click.echo(f"{clean(result.file)} would be removed. Nothing was done.")
    else:
        click.echo(f"{result.name} is removed.")


for _command in (install_command, status_command, uninstall_command):
    command.add_command(_command)
