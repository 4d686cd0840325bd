"""`ipfsmem recover`: restore a vault on a device with only the recovery phrase or the wallet; never create one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.folder_attach_cmd import ask_before_making
from ipfsmem.cli.new_memory import (
    MemoryRequest,
    bring_back,
    device_passphrase,
    end,
    files_left_alone,
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
from ipfsmem.errors import UsageError
from ipfsmem.mode import Mode
from ipfsmem.open_vault.audit import acting_as
from ipfsmem.vault.beginning import incomplete_restore_error

if TYPE_CHECKING:
    from ipfsmem.results import Status


@dataclass(frozen=True, kw_only=True)
class RecoverRequest(MemoryRequest):
    """The options of `recover`."""

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
    """Restore a vault from its recovery phrase or its wallet, and add this device. `recover` never
    creates a vault.

    On a terminal, `recover` asks for the 24 words; otherwise they come from --words-fd or standard input.
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
    found = bring_back(context, settings, unlock, request.root, damaged_ok=request.damaged)
    with contextlib.closing(found) as memory:
        report = publish_restored(memory, context, request.yes_public)
        status, vaults = memory.status(), [*memory.vaults.list()]
        incomplete = files_left_alone(memory)
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
    end(report, (None if request.damaged else incomplete_restore_error(memory.restored)) or incomplete)


def _facts(context: CommandContext, status: Status, with_vault_id: bool) -> list[tuple[str, str]]:
    return [
        ("vault", context.vault_name),
        ("folder", clean(status.folder or "")),
        ("device", status.device),
        ("wallet vault", vault_text(status)),
        ("provider", clean(", ".join(status.providers))),
        ("version", status.root or ""),
        ("vault id", status.vault.tag if with_vault_id and status.vault else ""),
    ]
