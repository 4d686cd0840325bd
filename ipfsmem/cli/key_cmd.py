"""`ipfsmem key`: the passphrase of this device, the recovery phrase, the recovery sheet, and the keys of a wallet."""

from __future__ import annotations

import sys

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.key_phrase import command as phrase_command
from ipfsmem.cli.key_sheet import command as sheet_command
from ipfsmem.cli.options import Subcommands, WholeNumber
from ipfsmem.cli.printing import facts, table
from ipfsmem.cli.wallets import read_raw_key
from ipfsmem.config import DEFAULT_NAMESPACE
from ipfsmem.errors import UsageError


@click.group("key", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """The passphrase of this device's keys, recovery phrases, the recovery sheet, and the keys of a wallet."""


@cli_command("passphrase", short_help="Change the passphrase of this device's keys")
@click.option(
    "--new-passphrase-fd",
    type=WholeNumber(0),
    metavar="N",
    help="Read the new passphrase from file descriptor N (or IPFSMEM_NEW_PASSPHRASE; else it is asked for).",
)
@click.option("--unprotected-keys", is_flag=True, help="Store the keys without a passphrase from now on.")
def passphrase_command(
    context: CommandContext, new_passphrase_fd: int | None, unprotected_keys: bool
) -> None:
    """Change the passphrase of this device's keys. Enter the old one as for every command, the new one
    twice.

    A passphrase needs at least 8 characters, not counting repeats and sequences (aaa, 123). Other
    devices have passphrases of their own. A copy of the old key file still opens with the old
    passphrase: if somebody may have one, revoke this device and set it up again. Cached keys are locked.
    """
    old = context.passphrase(itself=True)
    with context.memory() as memory:
        new = secret_input.from_fd_or_environment(new_passphrase_fd, "IPFSMEM_NEW_PASSPHRASE")
        if unprotected_keys and new is not None:
            raise UsageError("a new passphrase and --unprotected-keys exclude each other")
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
        click.echo("This device's keys have no passphrase now.")
    else:
        click.echo("This device's keys have the new passphrase.")


@cli_command("vaults", short_help="List further vaults of this vault's wallet")
@click.option("--add", metavar="NAME", help="Store the name of another vault.")
@click.option(
    "--key-number", type=WholeNumber(1), metavar="N", help="Its key number, with --add (default: 1)."
)
def vaults_command(context: CommandContext, add: str | None, key_number: int | None) -> None:
    """List the further vaults of this vault's wallet. The vault `default` stores their names, encrypted, so
    that you find them after you restore it. Each needs one more signature: `ipfsmem recover
    --vault NAME --wallet FILE`.
    """
    if key_number is not None and add is None:
        raise UsageError("--key-number requires --add")
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
        nothing="The wallet has no further vaults.",
    )


@cli_command("derive", secrets=False, short_help="Print the public values of a wallet, for test vectors")
@click.option("--wallet-vault", metavar="NAME", hidden=True)  # replaced by --vault
@click.option(
    "--key-number",
    type=WholeNumber(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Key number of the vault.",
)
@click.option(
    "--signature-passphrase-fd",
    type=WholeNumber(0),
    metavar="N",
    help="Read the signature passphrase from file descriptor N.",
)
def derive_command(
    context: CommandContext, wallet_vault: str | None, key_number: int, signature_passphrase_fd: int | None
) -> None:
    """Read a raw private key (64 hex digits) from standard input and print the public values of FORMAT.md
    section 2.3.

    For test vectors and experiments only. Never use the key of a wallet that holds anything.
    """
    from hashlib import sha256

    import msgspec

    from ipfsmem.results import WalletKeys
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.message import key_request
    from ipfsmem.wallet.signers import RawKeySigner

    if sys.stdin.isatty():
        raise UsageError("the key must be on standard input", hint="ipfsmem key derive < key.txt")
    passphrase = (
        secret_input.from_descriptor(signature_passphrase_fd) if signature_passphrase_fd is not None else None
    )
    vault = wallet_vault or (context.namespace if context.namespace_named else DEFAULT_NAMESPACE)
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


for sub in (passphrase_command, phrase_command, sheet_command, vaults_command, derive_command):
    command.add_command(sub)
