"""Shared code of `init` and `recover`: options, the search at the provider, and messages after a restore."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.consent import agrees_to_publish
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import label_option, not_empty, provider_option, root_option
from ipfsmem.cli.printing import Meter, style
from ipfsmem.cli.wallets import Wallet, wallet_options
from ipfsmem.errors import IncompleteError
from ipfsmem.mode import Mode
from ipfsmem.vault.beginning import explaining_nothing_was_made, restored_exit_code
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.bundle.program_events import FurtherVault
    from ipfsmem.memory import Memory
    from ipfsmem.results import Status
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.root_keys import RootKeys


@dataclass(frozen=True, kw_only=True)
class MemoryRequest:
    """The options for a vault that is to be on this device."""

    #: None: not given.
    mode: Mode | None
    provider: tuple[str, ...]
    wallet: Wallet
    #: A published version of it, by its noted CID.
    root: str | None
    unprotected_keys: bool
    yes_public: bool
    memory_dir: str | None
    label: str | None

    @property
    def kind(self) -> Mode:
        """Return the mode, by default encrypted-ipfs."""
        return self.mode or Mode.ENCRYPTED_IPFS

    @property
    def where(self) -> tuple[str, ...] | str:
        """Return its providers: by option or settings. Unpublished modes ignore the settings."""
        from ipfsmem.config import settings

        return self.provider or (self.kind.published and settings().provider) or ()

    def settings(self, context: CommandContext, passphrase: str | None) -> dict[str, Any]:
        """Return the arguments that `Memory.create` and `Memory.recover` share."""
        from ipfsmem.vault.home import Home

        return {
            "vault": context.vault_name,
            "home": Home(folder=context.home, label=self.label),
            "mode": self.kind,
            "provider": self.where,
            "memory_dir": self.memory_dir,
            "public_ok": self.yes_public,
            "passphrase": False if self.unprotected_keys else passphrase,
        }


def memory_request_options(
    request: Callable[..., MemoryRequest], modes: tuple[Mode, ...], *, mode_help: str, provider_help: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a `MemoryRequest`. With the command's own options they are passed on as one `request`."""
    options = (
        click.option(
            "--mode",
            type=click.Choice([mode.value for mode in modes]),
            callback=lambda _ctx, _param, text: Mode(text) if text else None,
            help=f"{mode_help} (default: {Mode.ENCRYPTED_IPFS}).",
        ),
        provider_option(provider_help),
        wallet_options,
        root_option,
        click.option(
            "--unprotected-keys", is_flag=True, help="Store this device's keys without a passphrase."
        ),
        click.option(
            "--yes-public",
            is_flag=True,
            help="Mode ipfs: confirm that everyone can read the vault, permanently.",
        ),
        click.option(
            "--memory-dir",
            callback=not_empty,
            metavar="DIR",
            help="Folder of the plain files. By default, mode encrypted-ipfs writes none. If you name a folder, anyone "
            "with access to this disk can read its files.",
        ),
        label_option,
    )

    def add(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(context: CommandContext, **values: Any) -> None:
            function(context, request(**values))

        for option in reversed(options):
            run = option(run)
        return run

    return add


def device_passphrase(context: CommandContext, request: MemoryRequest) -> str | None:
    """Return the passphrase for the keys of a new device: given, or prompted for. Raises without a required one, and StorageError,
    before a person types it, for a wallet file that cannot be read."""
    from ipfsmem.vault.owner import check_protection
    from ipfsmem.wallet.signers import read_keystore

    keystore = request.wallet.keystore
    # A pipe can be read only once, so only a file that reading will refuse is read here.
    if keystore and (Path(keystore).is_dir() or not os.access(keystore, os.R_OK)):
        read_keystore(keystore)
    if request.unprotected_keys:
        return None
    passphrase = context.passphrase_from_fd_or_environment()
    if passphrase is None and request.kind.sealed and secret_input.can_ask():
        click.echo("A passphrase protects this device's keys. It never leaves this device.", err=True)
        passphrase = secret_input.ask("passphrase for this device", twice=True)
    check_protection(request.kind, passphrase)
    return passphrase


def bring_back(
    context: CommandContext,
    settings: dict[str, Any],
    unlock: Unlock | RootKeys,
    root: str | None = None,
    **how: Any,
) -> Memory:
    """Restore the owner's vault from its provider. Raises NoVaultError if none is found; nothing is created then."""
    import msgspec

    from ipfsmem.memory import Memory

    with explaining_nothing_was_made(), Meter(silent=context.json) as meter:
        home = msgspec.structs.replace(settings["home"], progress=meter)
        return asyncio.run(Memory.recover(**{**settings, "home": home}, unlock=unlock, root_cid=root, **how))


def publish_restored(memory: Memory, context: CommandContext, yes_public: bool) -> SyncReport | None:
    """Publish a restored plain vault, once a person here consented. Return the report of the last sync."""
    context.note_left_out(memory)
    if not memory.mode.public or memory.replica.config.public:
        return memory.restored
    if not agrees_to_publish(memory, yes_public):
        say_not_public()
        return memory.restored
    with Meter(silent=context.json) as meter:
        return asyncio.run(memory.sync(public_ok=True, progress=meter))


def say_not_public() -> None:
    """Print that a plain vault was not published for lack of consent, and how to consent."""
    click.echo(
        style("not published: ", fg="yellow")
        + advice("everyone could read it, permanently. To confirm: ipfsmem sync --yes-public"),
        err=True,
    )


def what_came_back(status: Status, restored: SyncReport | None) -> str:
    """Return how much of a vault was restored, and the next step if data is missing."""
    amount = f"{count(status.memories, 'memory')}, {count(status.events, 'event')}."
    if restored is not None and restored.damaged:
        return advice(f"Partly restored: {amount} For more: ipfsmem vault repair")
    if restored is not None and restored.unread:
        return advice(f"Restored, but newer texts may be missing: {amount} Get them: ipfsmem sync")
    if restored is not None and restored.not_fetched:
        missing = count(restored.not_fetched, "text")
        return advice(f"Restored, but {missing} could not be fetched: {amount} Retry: ipfsmem sync")
    return f"Restored: {amount}"


def print_remarks(status: Status) -> None:
    """Print notes on the folders of plain files: who can read them, and which other programs use them."""
    for remark in status.remarks:
        click.echo(style("note: ", fg="yellow") + advice(remark))


def vault_text(status: Status) -> str:
    """Return the wallet's vault, unless it is the first one under its own name."""
    vault = status.vault
    if vault is None or vault.address is None:
        return ""
    if (vault.name, vault.key_number) == ("default", 1) and status.vault_name == "default":
        return ""
    return f"{vault.name}, key number {vault.key_number}"


def print_vaults(unlisted: str, vaults: list[FurtherVault]) -> None:
    """Print that the wallet's first vault does not list this one; and the further ones listed by a restored vault."""
    if unlisted:
        click.echo(style("not listed: ", fg="yellow") + advice(unlisted), err=True)
    for vault in vaults:
        number = f" --key-number {vault.key_number}" if vault.key_number > 1 else ""
        click.echo(
            advice(
                f"This wallet has a further vault: {vault.name}. Restore it: ipfsmem recover --vault {vault.name}{number} --wallet FILE"
            ),
            err=True,
        )


def files_left_alone(memory: Memory) -> IncompleteError | None:
    """Return the error about skipped files of --memory-dir; None without any."""
    from ipfsmem.cli.folder_attach_cmd import left_alone_error

    reasons = [text for one in memory.folders.list() for text in memory.folders.left_alone(one.path)]
    return left_alone_error(reasons) if reasons else None


def end(report: SyncReport | None, error: BaseException | None) -> None:
    """End a command: with the error that had to wait for output, else with the exit code of the last sync."""
    if error is not None:
        raise error
    if code := restored_exit_code(report):
        click.get_current_context().exit(code)
