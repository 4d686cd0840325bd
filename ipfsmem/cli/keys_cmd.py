"""`ipfsmem keys`: who belongs to this memory, and what only its owner may do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.keys_device import label_command, passphrase_command
from ipfsmem.cli.keys_sheet import command as sheet_command
from ipfsmem.cli.keys_words import command as words_command
from ipfsmem.cli.member_commands import find_member, names_somebody, with_owner
from ipfsmem.cli.options import Subcommands, WholeNumber, provider_option
from ipfsmem.cli.printing import clean, facts, style, table
from ipfsmem.cli.wallets import read_raw_key, root_options
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.ring.keyring import Ring
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.removals import Removal
    from ipfsmem.sync.report import SyncReport


@click.group("keys", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Members of this memory: who they are, who may write, and the encryption keys."""


@cli_command("list", short_help="Who belongs to this memory.")
def list_command(context: CommandContext) -> None:
    """List the members: id, role, label, and whether it is this device; then the current encryption key, and who removed whom."""
    from ipfsmem.results import MemberList
    from ipfsmem.sync.removals import called

    with context.memory() as memory:
        ring, removed = memory.replica.ring, memory.members.removed()
        found = MemberList.of(ring, memory.members.list(), removed, memory.device, memory.members.heard())
        said = {one.id: _by(ring, one) for one in removed}
    if context.json:
        context.emit(found)
        return
    table(
        ("id", "role", "label", ""),
        [(one.id, one.role, one.label, "this device" if one.this_device else "") for one in found.members],
        styles=("bold", "cyan", "", "dim"),
    )
    if not found.members:
        click.echo("This memory has no vault: it is not shared, and has no keys.", err=True)
    elif found.seals is not None:
        click.echo(style(f"current encryption key: no. {found.seals.epoch}", dim=True), err=True)
    elif found.reason:
        click.echo(style(f"no encryption key: {found.reason}", fg="yellow"), err=True)
    for one in removed:
        text = f"removed: {clean(called({one.id: one.label}))}, {clean(said[one.id])}"
        click.echo(style(text, dim=True) if one.lasting else style(advice(text), fg="yellow"), err=True)


def _by(ring: Ring | None, one: Removal) -> str:
    """By whose word somebody is out, and what ends that where a person can."""
    from ipfsmem.sync.removals import whose_word

    who = " and ".join(whose_word(ring, by) for by in one.by) or "the wallet, or the words of init"
    if one.lasting:
        return f"by {who}, for good"
    return f"by {who}; if that was not you: " + "; ".join(
        f"ipfsmem keys revoke {by} --nothing-stands" for by in one.by
    )


_provider = provider_option("Where")


@cli_command("unlock", short_help="Sync once with the wallet: let devices in, give them keys.")
@_provider
@root_options
def unlock_command(context: CommandContext, **owner_options: Any) -> None:
    """Sync once with the wallet or the recovery words.

    It adds this device, gives the encryption key to members who lack it, and brings what new devices begin with up to date.
    It keeps nothing unlocked: so that programs need no passphrase for a while there is `ipfsmem unlock`.
    """
    with_owner(context, owner_options, lambda memory, meter: memory.sync(progress=meter))


@cli_command("revoke", short_help="End a device's membership.")
@click.argument("member", metavar="DEVICE")
@click.option(
    "--nothing-stands",
    is_flag=True,
    help="Undo what DEVICE decided too, where it is recovery words or another wallet.",
)
@_provider
@root_options
def revoke_command(context: CommandContext, member: str, nothing_stands: bool, **owner_options: Any) -> None:
    """End the membership of DEVICE (its name or id from `ipfsmem keys list`), and use a new encryption key from now on.

    A revoked device keeps the texts that it already has, and cannot read what is written from now on.

    DEVICE may also be recovery words or another wallet. Then the devices that these let in stay members, and the devices that
    they removed stay out; both are listed. With --nothing-stands it is the other way round: the devices that they let in are
    out, and the devices that they removed are members again. DEVICE may be a device that they removed: it is then out for good.
    """

    async def work(memory: Memory, meter: Progress) -> SyncReport:
        before = None
        if not names_somebody(memory, member):
            before = await memory.sync(progress=meter)  # it may have joined since
        # Words that were revoked already are no members any more, and what they said may still be ended; and whom words removed
        # a person may remove with the wallet too, for good.
        removed = [one for one in memory.members.removed() if nothing_stands or not one.lasting]
        target = find_member(memory, member, removed)
        report = await memory.members.revoke(target, stands=not nothing_stands, progress=meter)
        report.after(before)
        return report

    with_owner(context, owner_options, work)


@cli_command("rotate", short_help="Use a new encryption key from now on.")
@_provider
@root_options
def rotate_command(context: CommandContext, **owner_options: Any) -> None:
    """Use a new encryption key from now on. Texts keep the key that they were encrypted with."""
    with_owner(context, owner_options, lambda memory, meter: memory.members.rotate(progress=meter))


@cli_command("vaults", short_help="Further vaults of this wallet, whose names this memory keeps.")
@click.option("--add", metavar="NAME", help="Keep the name of another one.")
@click.option(
    "--key-number", type=WholeNumber(1), metavar="N", help="Its key number, with --add (default: 1)."
)
def vaults_command(context: CommandContext, add: str | None, key_number: int | None) -> None:
    """List the further vaults of this memory's wallet. The vault `default` keeps their names, encrypted, so that whoever has
    brought that one back knows them. Each takes one more signature: ipfsmem recover -n NAME --vault NAME --wallet FILE.
    """
    if key_number is not None and add is None:
        raise UsageError("--key-number goes with --add")
    with context.memory() as memory:
        if add is not None:
            memory.vaults.add(add, key_number or 1)
        found = memory.vaults.list()
    if context.json:
        context.emit(found)
        return
    table(
        ("vault", "key number", "wallet"),
        [(one.name, str(one.key_number), one.address) for one in found],
        styles=("bold", "", "dim"),
        nothing="The wallet has no further vault.",
    )


@cli_command(
    "derive", secrets=False, short_help="Public values of a wallet's vault, for vectors and experiments."
)
@click.option(
    "--vault", default="default", show_default=True, metavar="NAME", help="Which vault of the wallet."
)
@click.option(
    "--key-number",
    type=WholeNumber(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Which key of the vault.",
)
@click.option(
    "--signature-passphrase-fd",
    type=WholeNumber(0),
    metavar="N",
    help="A passphrase for the derivation, from N.",
)
def derive_command(
    context: CommandContext, vault: str, key_number: int, signature_passphrase_fd: int | None
) -> None:
    """Read a raw private key (64 hex digits) from standard input and print the public values of FORMAT.md section 2.3.

    For test vectors and experiments. Never pipe the key of a wallet that holds anything.
    """
    from hashlib import sha256

    import msgspec

    from ipfsmem.results import WalletKeys
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.message import key_request
    from ipfsmem.wallet.signers import RawKeySigner

    if sys.stdin.isatty():
        raise UsageError("the key comes on standard input", hint="ipfsmem keys derive < key.txt")
    passphrase = (
        secret_input.from_descriptor(signature_passphrase_fd) if signature_passphrase_fd is not None else None
    )
    signer = RawKeySigner(read_raw_key(sys.stdin.read(1024)))
    message = key_request(signer.address, vault, key_number)
    root = Unlock(signer, vault, key_number, passphrase).root(twice=True)
    found = WalletKeys.of(
        root,
        address="0x" + signer.address.hex(),
        vault=vault,
        key_number=key_number,
        message_sha256=sha256(message).hexdigest(),
    )
    if context.json:
        context.emit(found)
    else:
        facts((name, str(value)) for name, value in msgspec.structs.asdict(found).items())


for sub in (
    list_command,
    unlock_command,
    words_command,
    sheet_command,
    revoke_command,
    rotate_command,
    label_command,
    passphrase_command,
    vaults_command,
    derive_command,
):
    command.add_command(sub)
