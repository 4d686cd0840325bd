"""`ipfsmem key`: the passphrase of this device, the recovery phrase, the recovery sheet, and the keys of a wallet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.key_phrase import command as phrase_command
from ipfsmem.cli.key_sheet import command as sheet_command
from ipfsmem.cli.options import Subcommands, WholeNumber
from ipfsmem.cli.printing import facts, table
from ipfsmem.cli.wallets import read_raw_key
from ipfsmem.config import DEFAULT_VAULT
from ipfsmem.errors import UsageError
from ipfsmem.operations.device import change_passphrase
from ipfsmem.operations.vaults import add, list_
from ipfsmem.wallet.message import MAX_KEY_NUMBER

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.operations.vaults import VaultNames
    from ipfsmem.results import KeysProtected


@click.group("key", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """The passphrase of this device's keys, recovery phrases, the recovery sheet, and the keys of a wallet."""


def _change(context: CommandContext, memory: Memory, arguments: Arguments) -> KeysProtected:
    new = secret_input.from_fd_or_environment(arguments["new_passphrase_fd"], "IPFSMEM_NEW_PASSPHRASE")
    if arguments["unprotected_keys"] and new is not None:
        raise UsageError("a new passphrase and --unprotected-keys exclude each other")
    if new is None and not arguments["unprotected_keys"]:
        new = secret_input.ask(
            "new passphrase for this device",
            twice=True,
            otherwise=secret_input.other_ways("IPFSMEM_NEW_PASSPHRASE", "--new-passphrase-fd"),
        )
    arguments["new"] = False if new is None else new
    keys: KeysProtected = call(change_passphrase, context, memory, arguments)
    return keys


def _show_protection(context: CommandContext, keys: KeysProtected, arguments: Arguments) -> None:
    has = "have the new passphrase" if keys.protected else "have no passphrase now"
    click.echo(f"This device's keys {has}.")


passphrase_command = operation_command(
    "passphrase",
    change_passphrase,
    _show_protection,
    ask=lambda context, arguments: arguments.update(old=context.passphrase(itself=True)),
    run=_change,
    options=[
        click.Option(
            ["--new-passphrase-fd"],
            type=WholeNumber(0),
            metavar="N",
            help="Read the new passphrase from file descriptor N (or IPFSMEM_NEW_PASSPHRASE; else it is asked for).",
        ),
        click.Option(
            ["--unprotected-keys"], is_flag=True, help="Store the keys without a passphrase from now on."
        ),
    ],
    notes="`key passphrase` asks for the old passphrase once and for the new one twice.",
)


def _check_number(context: CommandContext, arguments: Arguments) -> None:
    if arguments["key_number"] is not None and arguments["add"] is None:
        raise UsageError("--key-number requires --add")


def _list_vaults(context: CommandContext, memory: Memory, arguments: Arguments) -> VaultNames:
    if arguments["add"] is not None:
        call(add, context, memory, {"name": arguments["add"], "key_number": arguments["key_number"] or 1})
    vaults: VaultNames = call(list_, context, memory, arguments)
    return vaults


def _show_vaults(context: CommandContext, vaults: VaultNames, arguments: Arguments) -> None:
    table(
        ("vault", "key number", "wallet"),
        [(one.name, str(one.key_number), one.address) for one in vaults],
        styles=("bold", "", "dim"),
        nothing="The wallet has no further vaults.",
    )


vaults_command = operation_command(
    "vaults",
    list_,
    _show_vaults,
    ask=_check_number,
    run=_list_vaults,
    reads=False,
    options=[
        click.Option(["--add"], metavar="NAME", help="Store the name of another vault."),
        click.Option(
            ["--key-number"],
            type=WholeNumber(1, MAX_KEY_NUMBER),
            metavar="N",
            help="Key number of the vault, with --add (default: 1).",
        ),
    ],
    notes="To restore one: `ipfsmem recover --vault NAME --wallet FILE`.",
)


@cli_command("derive", secrets=False, short_help="Print the public values of a wallet, for test vectors")
@click.option("--wallet-vault", metavar="NAME", hidden=True)  # replaced by --vault
@click.option(
    "--key-number",
    type=WholeNumber(1, MAX_KEY_NUMBER),
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
    """Read a raw private key (64 hex digits) from standard input and print the wallet's public values
    (docs/format/02-keys.md).

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
    vault = wallet_vault or (context.vault_name if context.vault_named else DEFAULT_VAULT)
    signer = RawKeySigner(read_raw_key(sys.stdin.read(1024)))
    message = key_request(signer.address, vault, key_number)
    root = Unlock(signer, vault, key_number, passphrase).root(twice=True)
    keys = WalletKeys.of(
        root,
        address="0x" + signer.address.hex(),
        vault=vault,
        key_number=key_number,
        message_sha256=sha256(message).hexdigest(),
    )
    if context.json:
        context.emit(keys)
    else:
        facts((name, str(value)) for name, value in msgspec.structs.asdict(keys).items())


for sub in (passphrase_command, phrase_command, sheet_command, vaults_command, derive_command):
    command.add_command(sub)
