"""`ipfsmem recover`: a memory on a device that has nothing but the 24 words or the wallet; never a new one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.folder_attach_cmd import ask_before_making
from ipfsmem.cli.new_memory import (
    MemoryRequest,
    bring_back,
    bring_version_back,
    by_vault_name,
    device_passphrase,
    end,
    files_left_alone,
    first_vault,
    memory_request_options,
    print_remarks,
    print_vaults,
    publish_restored,
    vault_text,
    what_came_back,
)
from ipfsmem.cli.options import WholeNumber
from ipfsmem.cli.printing import clean, facts, style
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.cli.wallets import recovery_root
from ipfsmem.device.namespaces import FIRST
from ipfsmem.errors import NoVaultError, UsageError
from ipfsmem.mode import Mode
from ipfsmem.parts.audit import acting_as
from ipfsmem.vault.beginning import incomplete_restore_error

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.results import Status
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.root_keys import RootKeys


@dataclass(frozen=True, kw_only=True)
class RecoverRequest(MemoryRequest):
    """What the options of `recover` say."""

    words_fd: int | None
    damaged: bool


@cli_command("recover")
@click.option(
    "--words-fd", type=WholeNumber(0), metavar="N", help="Read the recovery phrase from file descriptor N."
)
@click.option(
    "--damaged",
    is_flag=True,
    help="Continue although no version can be read completely; then run `ipfsmem vault repair`.",
)
@memory_request_options(
    RecoverRequest,
    (Mode.ENCRYPTED_IPFS, Mode.IPFS),
    mode_help="Mode of the vault: encrypted or public",
    provider_help="Provider of the vault",
)
@acting_as("cli")
def command(context: CommandContext, request: RecoverRequest) -> None:
    """Bring a vault back with its recovery phrase or its wallet, and add this device. It never creates a
    vault.

    A terminal asks for the 24 words; otherwise they come from --words-fd or standard input.
    """
    from ipfsmem.device.replica import claim_folder

    claim_folder(context.folder)
    if request.wallet.named and request.words_fd is not None:
        raise UsageError("a wallet and the recovery phrase exclude each other")
    ask_before_making(request.memory_dir)
    words = None if request.wallet.named else recovery_root(request.words_fd)
    passphrase = device_passphrase(context, request)
    unlock = words or request.wallet.unlock(passphrase)
    settings = request.settings(context, passphrase)
    with contextlib.closing(_bring_back(context, request, settings, unlock)) as memory:
        report = publish_restored(memory, context, request.yes_public)
        status, vaults = memory.status(), memory.vaults.list()
        left = files_left_alone(memory)
    if context.json:
        from ipfsmem.results import Recovered

        warnings = [text for text in (memory.unlisted, *status.remarks) if text]
        context.emit(Recovered(status=status, sync=report, vaults=vaults, warnings=warnings))
    else:
        click.echo(style(what_came_back(status, memory.restored), bold=True))
        facts(_facts(context, status, request.root is not None))
        print_remarks(status)
        if report is not None and report.notices:
            print_report(report)
        print_vaults(memory.unlisted, vaults)
    end(report, (None if request.damaged else incomplete_restore_error(memory.restored)) or left)


def _bring_back(
    context: CommandContext, request: RecoverRequest, settings: dict[str, Any], unlock: Unlock | RootKeys
) -> Memory:
    """The memory. A wallet may know the vault by the name that --vault says, or as `default` where it was its first. Raises NoVaultError
    also where it is not certain that there is none of that name: another one would come back under it."""
    if request.root is not None:
        return bring_version_back(context, settings, unlock, request.root, damaged_ok=request.damaged)
    first = first_vault(context, unlock)
    if first is not None and (named := by_vault_name(context, first)) is not None:
        try:
            return bring_back(context, settings, named, damaged_ok=request.damaged)
        except NoVaultError as error:
            if error.doubt:
                error.hint = (
                    "Try again later, or with another provider. If it is the first vault of the wallet: "
                    f"ipfsmem recover --vault {context.namespace} --wallet-vault {FIRST} with the same wallet."
                )
                raise
    return bring_back(context, settings, first or unlock, damaged_ok=request.damaged)


def _facts(context: CommandContext, status: Status, with_vault_id: bool) -> list[tuple[str, str]]:
    return [
        ("namespace", context.namespace),
        ("folder", clean(status.folder or "")),
        ("device", status.device),
        ("vault", vault_text(status)),
        ("provider", clean(", ".join(status.providers))),
        ("version", status.root or ""),
        ("vault id", status.vault.tag if with_vault_id and status.vault else ""),
    ]
