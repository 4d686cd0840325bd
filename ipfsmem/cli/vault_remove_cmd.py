"""`ipfsmem vault remove`: delete this device's copy of a vault, after a question that names the copies elsewhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.consent import confirm
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import Meter, clean
from ipfsmem.errors import IpfsmemError, UsageError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.results import VaultRemoved
    from ipfsmem.vaults_here import Remains


@cli_command("remove", short_help="Delete this device's copy of a vault.")
@click.argument("name", metavar="VAULT")
@click.option("--files", is_flag=True, help="Also delete the plain files in the vault's own folder.")
@click.option(
    "--force",
    is_flag=True,
    help="Delete the vault even if some data is only here or the vault cannot be opened.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(context: CommandContext, name: str, files: bool, force: bool, yes: bool) -> None:
    """Delete the copy of VAULT on this device: its database, this device's keys and its indexes.

    Nothing at a provider or on another device is deleted. Before asking, the command checks that a
    provider has everything that a new device would need. If some data is only on this device, the vault
    is kept unless --force is given. Linked folders and other files in the vault's folder are kept.
    """
    from ipfsmem import vaults_here

    context.choose(name)
    folder = context.folder
    # If a vault has the name again, only the earlier removal was confirmed.
    again = vaults_here.holds_vault(folder)
    if files and not again and vaults_here.leaves_plain_files(context.home, name):
        if not force:
            raise UsageError(
                f"the removal of {name} was interrupted: the plain files with its texts are no longer known",
                hint=f"Keep all: ipfsmem vault remove {name}. Delete each .md file: ipfsmem vault remove {name} --files --force.",
            )
        _agree(context, None, yes)
    finished = vaults_here.finish_earlier(context.home, name, plain_files=files and not again)
    if not again:
        if finished is not None:
            _finish(context, name, None, finished, [])
            return
        context.refuse_missing_memory()
    vaults_here.refuse_link(folder)
    remains, remaining = None, None
    try:
        with context.memory() as memory:
            remains = _look(context, memory)
            if not force:
                vaults_here.refuse_loss(remains, name)
            _agree(context, remains, yes)
            remaining = vaults_here.remove_copy(memory, force=force, plain_files=files)
    except IpfsmemError as error:
        if remains is not None or not force:
            if remains is None:
                error.hint = (
                    f"{error.hint} To delete it unopened: ipfsmem vault remove {name} --force".strip()
                )
            raise
    if remaining is None:
        _agree(context, None, yes)
        remaining = vaults_here.delete_folder(folder, plain_files=files)
    _finish(context, name, remains, [*(finished or []), *remaining], _lines(remains))


def _finish(
    context: CommandContext, name: str, remains: Remains | None, remaining: list[str], lines: list[str]
) -> None:
    """Print the deleted data, the copies elsewhere (`lines`), and the data that stays here."""
    from ipfsmem.results import VaultRemoved

    result = VaultRemoved(
        name=name,
        remains=remains.presence if remains is not None else [],
        with_phrase=remains.with_phrase if remains is not None else "",
        with_wallet=remains.with_wallet if remains is not None else "",
        left=remaining,
        folders=remains.folders if remains is not None else [],
    )
    if context.json:
        context.emit(result)
    else:
        _show(result, lines)


def _look(context: CommandContext, memory: Memory) -> Remains:
    from ipfsmem.vaults_here import what_remains

    with Meter(silent=context.json) as meter:
        return asyncio.run(what_remains(memory, meter))


def _agree(context: CommandContext, remains: Remains | None, yes: bool) -> None:
    """Print the copies elsewhere and the data that would be lost, and ask. Raises DeclinedError, and UsageError without a
    terminal."""
    from ipfsmem.cli import secret_input

    if yes:
        return
    if not secret_input.can_ask():
        raise UsageError(
            f"this deletes the copy of {context.vault_name} on this device", hint="Confirm: --yes"
        )
    for line in _lines(remains):
        click.echo(line, err=True)
    confirm(f"Delete the copy of {context.vault_name} on this device?", "not deleted")


def _lines(remains: Remains | None) -> list[str]:
    if remains is None:
        return ["The vault cannot be opened, so its published state is unknown."]
    lines = [f"lost: {clean(text)}" for text in remains.lost]
    for one in remains.presence:
        state = "everything is there" if one.state == "ok" else clean(one.text) or one.state
        lines.append(f"remains at {clean(one.provider)}: {state}")
    return lines


def _show(result: VaultRemoved, lines: list[str]) -> None:
    click.echo(f"Deleted: the copy of {result.name} on this device.")
    for line in lines:
        click.echo(line)
    for path in (*result.left, *result.folders):
        click.echo(f"stays: {clean(path)}")
    for way in filter(None, (result.with_phrase, result.with_wallet)):
        click.echo(f"Restore it with: {clean(way)}")
