"""`ipfsmem recover`: a memory on a device that has nothing but the 24 words or the wallet; never a new one."""

from __future__ import annotations

import asyncio
import contextlib

import click

from ipfsmem.cli.context import (
    CommandContext,
    WholeNumber,
    cli_command,
    label_option,
    not_empty,
    provider_option,
    root_option,
)
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.init_cmd import (
    device_passphrase,
    end_restored,
    publish_restored,
    tell_of_vaults,
    vault_shown,
)
from ipfsmem.cli.printing import Meter, clean, count, facts, style
from ipfsmem.cli.sync_cmd import tell
from ipfsmem.cli.wallets import Wallet, recovery_root, wallet_options
from ipfsmem.errors import UsageError
from ipfsmem.mode import Mode
from ipfsmem.vault.beginning import nothing_made, part_only


@cli_command("recover")
@provider_option("Where the memory is kept")
@click.option(
    "--mode",
    type=click.Choice([Mode.ENCRYPTED_IPFS.value, Mode.IPFS.value]),
    default=Mode.ENCRYPTED_IPFS.value,
    show_default=True,
    help="Which kind it is: encrypted, or published in the clear.",
)
@click.option("--words-fd", type=WholeNumber(0), metavar="N", help="The words, from file descriptor N.")
@wallet_options
@root_option
@click.option("--unprotected-keys", is_flag=True, help="Keep this device's keys without a passphrase.")
@click.option("--yes-public", is_flag=True, help="Mode ipfs: yes, everyone may read it, for good.")
@click.option(
    "--damaged",
    is_flag=True,
    help="Go on although nothing can be read whole; then bring back what can: ipfsmem salvage.",
)
@click.option(
    "--memory-dir", callback=not_empty, metavar="DIR", help="Where the plain files are (mode ipfs)."
)
@label_option
def command(
    context: CommandContext,
    provider: tuple[str, ...],
    mode: str,
    words_fd: int | None,
    wallet: Wallet,
    root: str | None,
    unprotected_keys: bool,
    yes_public: bool,
    damaged: bool,
    memory_dir: str | None,
    label: str | None,
) -> None:
    """Bring a memory back with its 24 recovery words or its wallet, and add this device. It never makes a new one.

    The words are asked for on a terminal; else they come from --words-fd or standard input.
    """
    from ipfsmem.config import settings
    from ipfsmem.device.replica import claim_folder
    from ipfsmem.memory import Memory

    claim_folder(context.folder)
    if wallet.named and words_fd is not None:
        raise UsageError("a wallet or the recovery words, not both")
    words = None if wallet.named else recovery_root(words_fd)
    kind = Mode(mode)
    passphrase = device_passphrase(context, kind, unprotected_keys)
    unlock = words or wallet.unlock(passphrase)
    with nothing_made(), Meter(silent=context.json) as meter:
        memory = asyncio.run(
            Memory.recover(
                context.namespace,
                provider=provider or settings().provider,
                unlock=unlock,
                mode=kind,
                passphrase=passphrase,
                unprotected_keys=unprotected_keys,
                home=context.home,
                label=label,
                memory_dir=memory_dir,
                root_cid=root,
                public_ok=yes_public,
                damaged_ok=damaged,
                progress=meter,
            )
        )
    with contextlib.closing(memory):
        report = publish_restored(memory, context, yes_public)
        status, vaults = memory.status(), memory.vaults.list()
    part = part_only(memory.restored)
    missing = None if damaged else part  # --damaged asked for what can be had
    if context.json:
        from ipfsmem.results import Recovered

        context.emit(Recovered(status=status, sync=report, vaults=vaults))
        if missing is not None:
            raise missing
        end_restored(report)
        return
    there = f"{count(status.memories, 'memory')}, {count(status.events, 'event')}."
    first = memory.restored
    if first is not None and first.damaged:
        back = f"A part is back: {there} For more: ipfsmem salvage"
    elif first is not None and first.unread:
        back = f"It is back, but newer texts may be missing: {there} For those: ipfsmem sync"
    elif first is not None and first.not_fetched:
        back = f"It is back, but {count(first.not_fetched, 'text')} of it could not be had: {there} To ask again: ipfsmem sync"
    else:
        back = f"It is back: {there}"
    click.echo(style(advice(back), bold=True))
    facts(
        [
            ("namespace", context.namespace),
            ("folder", clean(status.folder or "")),
            ("device", status.device),
            ("vault", vault_shown(status.vault)),
            ("provider", clean(", ".join(status.providers))),
            ("version", status.root or ""),
            ("vault id", status.vault.tag if root and status.vault else ""),
        ]
    )
    if report is not None and report.notices:
        tell(report)
    tell_of_vaults(memory.unlisted, vaults)
    if missing is not None:
        raise missing
    end_restored(report)
