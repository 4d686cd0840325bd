"""`ipfsmem keys passphrase` and `keys label`: what can be changed about a device that stays the same device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.member_commands import find_member, names_somebody, with_owner
from ipfsmem.cli.options import WholeNumber, provider_option, valid_label
from ipfsmem.cli.wallets import root_options
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.report import SyncReport


@cli_command("passphrase", short_help="Put this device's keys under another passphrase.")
@click.option(
    "--new-passphrase-fd",
    type=WholeNumber(0),
    metavar="N",
    help="The new one, from file descriptor N (or IPFSMEM_NEW_PASSPHRASE; else it is asked for).",
)
@click.option("--unprotected-keys", is_flag=True, help="Keep the keys without a passphrase from now on.")
def passphrase_command(
    context: CommandContext, new_passphrase_fd: int | None, unprotected_keys: bool
) -> None:
    """Change the passphrase of this device's keys. The old one comes as for every command; the new one is typed twice.

    A passphrase has at least 8 characters that count: those that only repeat or go on (aaa, 123) count once. Other devices have
    their own. A copy of the key file that somebody kept still opens with the old one: then revoke this device and make it anew.
    Keys that `ipfsmem unlock` holds are locked.
    """
    old = context.passphrase(itself=True)
    with context.memory() as memory:
        new = secret_input.from_fd_or_environment(new_passphrase_fd, "IPFSMEM_NEW_PASSPHRASE")
        if unprotected_keys and new is not None:
            raise UsageError("a new passphrase or --unprotected-keys, not both")
        if new is None and not unprotected_keys:
            new = secret_input.ask(
                "new passphrase for this device",
                twice=True,
                otherwise=secret_input.other_ways("IPFSMEM_NEW_PASSPHRASE", "--new-passphrase-fd"),
            )
        memory.maintenance.change_passphrase(False if new is None else new, old)
    if context.json:
        from ipfsmem.results import KeysProtected

        context.emit(KeysProtected(protected=new is not None))
    elif new is None:
        click.echo("This device's keys lie on the disk without a passphrase now.")
    else:
        click.echo("This device's keys are under the new passphrase.")


@cli_command("label", short_help="Call a device something else.")
@click.argument("member", metavar="DEVICE")
@click.argument("label", callback=valid_label)
@provider_option("Where")
@root_options
def label_command(context: CommandContext, member: str, label: str, **owner_options: Any) -> None:
    """Call DEVICE (an id or label from `ipfsmem keys list`) LABEL from now on, on every device. Labels are for people."""

    async def work(memory: Memory, meter: Progress) -> SyncReport:
        before = None if names_somebody(memory, member) else await memory.sync(progress=meter)
        report = await memory.members.relabel(find_member(memory, member), label, progress=meter)
        report.after(before)
        return report

    with_owner(context, owner_options, work)
