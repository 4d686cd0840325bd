"""`ipfsmem member`: the devices, wallets and recovery phrases of a vault."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Arguments, operation_command, run_coroutine
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.member_commands import exit_as, find_member, names_somebody, with_owner
from ipfsmem.cli.options import Subcommands, provider_option, valid_label
from ipfsmem.cli.printing import clean, style, table
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.cli.wallets import as_owner, root_options
from ipfsmem.operations.members import MemberList, list_, rename, revoke, rotate

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ipfsmem.memory import Memory
    from ipfsmem.operation import Operation
    from ipfsmem.ring.keyring import Ring
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.removals import Removal
    from ipfsmem.sync.report import SyncReport


@click.group("member", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Members of this vault: devices, wallets and recovery phrases."""


def _show(context: CommandContext, members: MemberList, arguments: Arguments) -> None:
    table(
        ("id", "role", "label", ""),
        [(one.id, one.role, one.label, "this device" if one.this_device else "") for one in members],
        styles=("bold", "cyan", "", "dim"),
    )
    if not members:
        click.echo("This vault is in a mode without members and keys.", err=True)
    elif members.seals is not None:
        click.echo(style(f"current encryption key: no. {members.seals.epoch}", dim=True), err=True)
    elif members.reason:
        click.echo(style(f"no encryption key: {members.reason}", fg="yellow"), err=True)


def _print_removed(
    context: CommandContext, memory: Memory, members: MemberList, arguments: Arguments
) -> None:
    """Print who removed whom, from the key ring of the open vault."""
    from ipfsmem.sync.removals import called

    for one in () if context.json else members.removed:
        by = clean(_by(memory.replica.ring, one))
        text = f"removed: {clean(called({one.id: one.label}))}, {by}"
        click.echo(style(text, dim=True) if one.lasting else style(advice(text), fg="yellow"), err=True)


list_command = operation_command(
    "list",
    list_,
    _show,
    printed=_print_removed,
    reads=False,
    notes="The output also shows the current encryption key, and who removed whom.",
)


def _by(ring: Ring | None, one: Removal) -> str:
    """Return who removed a member, and the command that undoes it, if a person can."""
    from ipfsmem.sync.removals import whose_word

    who = " and ".join(whose_word(ring, by) for by in one.by) or "the wallet, or the recovery phrase of init"
    if one.lasting:
        return f"by {who}, permanently"
    return f"by {who}; if that was not you: " + "; ".join(
        f"ipfsmem member revoke {by} --cascade" for by in one.by
    )


_provider = provider_option("Provider", of_vault=True)


@cli_command("admit", short_help="Add devices: sync once with the wallet")
@_provider
@root_options
def admit_command(context: CommandContext, **owner_options: Any) -> None:
    """Add this device: sync once with the wallet or the recovery phrase.

    The sync adds the device, gives the encryption key to members who lack it, and updates the start
    digest for new devices. It caches no keys: use `ipfsmem unlock` for that.
    """
    with_owner(context, owner_options, lambda memory, meter: memory.sync(progress=meter))


def _opened(context: CommandContext, arguments: Arguments) -> AbstractContextManager[Memory]:
    return as_owner(context, arguments)


def _end(context: CommandContext, report: SyncReport, arguments: Arguments) -> None:
    exit_as(report)


def _of_member(op: Operation[..., Any]) -> Callable[[CommandContext, Memory, Arguments], SyncReport]:
    """Return a function that runs an operation on the member that a person named by a label or id."""

    def run(context: CommandContext, memory: Memory, arguments: Arguments) -> SyncReport:
        async def work(meter: Progress) -> SyncReport:
            member: str = arguments["member"]
            before = None
            if not names_somebody(memory, member):
                before = await memory.sync(progress=meter)  # it may have been added since
            # Revoked phrases are not members, and their statements may still be cancelled; a person may also permanently
            # remove, with the wallet, members removed by phrases.
            removed = memory.members.removed() if op is revoke else []
            candidates = [one for one in removed if arguments["cascade"] or not one.lasting]
            arguments["member"] = find_member(memory, member, candidates)
            values = {name: arguments[name] for name in op.names if name in arguments}
            report: SyncReport = await op.run(memory.members._view(), {**values, "progress": meter}, "cli")
            report.after(before)
            return report

        return run_coroutine(context, work)

    return run


def _show_report(context: CommandContext, report: SyncReport, arguments: Arguments) -> None:
    print_report(report)


_shared = (_provider, root_options)

revoke_command = operation_command(
    "revoke",
    revoke,
    _show_report,
    opens=_opened,
    run=_of_member(revoke),
    end=_end,
    shared=_shared,
    notes="""\
DEVICE is a label or an id from `ipfsmem member list`: a device, a recovery phrase or another wallet.

Devices that a revoked phrase or wallet added stay members, and devices that it revoked stay revoked;
both are listed. --cascade does the opposite: the devices that it added are revoked, and those that it
revoked are members again. Revoking a revoked device again makes its removal permanent.""",
)


def _check_label(context: CommandContext, arguments: Arguments) -> None:
    ctx = click.get_current_context()
    valid_label(ctx, next(one for one in ctx.command.params if one.name == "label"), arguments["label"])


rename_command = operation_command(
    "rename",
    rename,
    _show_report,
    ask=_check_label,
    opens=_opened,
    run=_of_member(rename),
    end=_end,
    shared=_shared,
    notes="DEVICE is a label or an id from `ipfsmem member list`. Labels are for people.",
)

rotate_command = operation_command("rotate", rotate, _show_report, opens=_opened, end=_end, shared=_shared)

for sub in (list_command, admit_command, revoke_command, rename_command, rotate_command):
    command.add_command(sub)
