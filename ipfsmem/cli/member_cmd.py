"""`ipfsmem member`: the devices, wallets and recovery phrases of a vault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Asked, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.member_commands import find_member, names_somebody, with_owner
from ipfsmem.cli.options import Subcommands, provider_option, valid_label
from ipfsmem.cli.printing import clean, style, table
from ipfsmem.cli.wallets import root_options
from ipfsmem.operations.members import MemberList, list_

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.ring.keyring import Ring
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.removals import Removal
    from ipfsmem.sync.report import SyncReport


@click.group("member", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Members of this vault: devices, wallets and recovery phrases."""


def _show(context: CommandContext, found: MemberList, asked: Asked) -> None:
    table(
        ("id", "role", "label", ""),
        [(one.id, one.role, one.label, "this device" if one.this_device else "") for one in found],
        styles=("bold", "cyan", "", "dim"),
    )
    if not found:
        click.echo("This vault is in a mode without members and keys.", err=True)
    elif found.seals is not None:
        click.echo(style(f"current encryption key: no. {found.seals.epoch}", dim=True), err=True)
    elif found.reason:
        click.echo(style(f"no encryption key: {found.reason}", fg="yellow"), err=True)


def _print_removed(context: CommandContext, memory: Memory, found: MemberList, asked: Asked) -> None:
    """Print who removed whom, which the key ring of the open vault tells."""
    from ipfsmem.sync.removals import called

    for one in () if context.json else found.removed:
        by = clean(_by(memory.replica.ring, one))
        text = f"removed: {clean(called({one.id: one.label}))}, {by}"
        click.echo(style(text, dim=True) if one.lasting else style(advice(text), fg="yellow"), err=True)


list_command = operation_command(
    "list",
    list_,
    _show,
    printed=_print_removed,
    reads=False,
    notes="The current encryption key follows, and who removed whom.",
)


def _by(ring: Ring | None, one: Removal) -> str:
    """Return who removed a member, and the command that undoes it, if a person can."""
    from ipfsmem.sync.removals import whose_word

    who = " and ".join(whose_word(ring, by) for by in one.by) or "the wallet, or the recovery phrase of init"
    if one.lasting:
        return f"by {who}, permanently"
    return f"by {who}; if that was not you: " + "; ".join(
        f"ipfsmem member revoke {by} --nothing-stands" for by in one.by
    )


_provider = provider_option("Provider")


@cli_command("admit", short_help="Add devices: sync once with the wallet")
@_provider
@root_options
def admit_command(context: CommandContext, **owner_options: Any) -> None:
    """Sync once with the wallet or the recovery phrase.

    This adds the device, gives the encryption key to members who lack it, and updates the start digest
    for new devices. It does not cache any keys: use `ipfsmem unlock` for that.
    """
    with_owner(context, owner_options, lambda memory, meter: memory.sync(progress=meter))


@cli_command("revoke", short_help="Revoke a member")
@click.argument("member", metavar="DEVICE")
@click.option(
    "--nothing-stands",
    is_flag=True,
    help="Also undo what DEVICE added and revoked, if it is a recovery phrase or another wallet.",
)
@_provider
@root_options
def revoke_command(context: CommandContext, member: str, nothing_stands: bool, **owner_options: Any) -> None:
    """Revoke DEVICE (its label or id from `ipfsmem member list`), and encrypt new texts with a new key.

    A revoked device keeps the texts that it has, and cannot read new ones.

    DEVICE can also be a recovery phrase or another wallet. The devices that it added then stay members,
    and the devices that it revoked stay revoked; both are listed. --nothing-stands does the opposite:
    the devices that it added are revoked, and those that it revoked are members again. A revoked device
    can be revoked again, permanently.
    """

    async def work(memory: Memory, meter: Progress) -> SyncReport:
        before = None
        if not names_somebody(memory, member):
            before = await memory.sync(progress=meter)  # it may have been added since
        # Revoked phrases are not members, and their statements may still be cancelled; a person may also permanently remove,
        # with the wallet, members removed by phrases.
        removed = [one for one in memory.members.removed() if nothing_stands or not one.lasting]
        target = find_member(memory, member, removed)
        report = await memory.members.revoke(target, stands=not nothing_stands, progress=meter)
        report.after(before)
        return report

    with_owner(context, owner_options, work)


@cli_command("rotate", short_help="Encrypt new texts with a new key")
@_provider
@root_options
def rotate_command(context: CommandContext, **owner_options: Any) -> None:
    """Encrypt new texts with a new key. Existing texts keep their key."""
    with_owner(context, owner_options, lambda memory, meter: memory.members.rotate(progress=meter))


@cli_command("rename", short_help="Change a member's label")
@click.argument("member", metavar="DEVICE")
@click.argument("label", callback=valid_label)
@_provider
@root_options
def rename_command(context: CommandContext, member: str, label: str, **owner_options: Any) -> None:
    """Change the label of DEVICE (an id or label from `ipfsmem member list`) on every device. Labels are
    for people.
    """

    async def work(memory: Memory, meter: Progress) -> SyncReport:
        before = None if names_somebody(memory, member) else await memory.sync(progress=meter)
        report = await memory.members.relabel(find_member(memory, member), label, progress=meter)
        report.after(before)
        return report

    with_owner(context, owner_options, work)


for sub in (list_command, admit_command, revoke_command, rename_command, rotate_command):
    command.add_command(sub)
