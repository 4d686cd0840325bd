"""`ipfsmem sync`: pull, join, publish, and say in one paragraph what happened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.here import Here, agreed, ours, provider_option, public_options
from ipfsmem.cli.printing import Meter, clean, count, seconds, size, style
from ipfsmem.cli.wallets import Wallet, wallet_options

if TYPE_CHECKING:
    from ipfsmem.sync.report import SyncReport


@ours("sync")
@provider_option("Where to")
@public_options
@wallet_options
def command(
    here: Here, provider: tuple[str, ...], yes_public: bool, allow: tuple[str, ...], wallet: Wallet
) -> None:
    """Pull what other devices published, join it, publish what is new.

    With a wallet it also does what only a wallet can: it enrols this device, gives keys to new members and moves the
    anchor (the same as `ipfsmem keys unlock`).

    Mode ipfs publishes in the clear: the first sync asks whether that is meant, and what looks like a secret stops it.
    """
    unlock = wallet.unlock(here.passphrase_given()) if wallet.named else None
    with here.memory(provider=provider, unlock=unlock) as memory:
        public_ok = agreed(memory, yes_public)
        with Meter(silent=here.json) as meter:
            report = asyncio.run(memory.sync(public_ok=public_ok, allow=allow, progress=meter))
    if here.json:
        here.emit(report)
        return
    tell(report)


def tell(report: SyncReport) -> None:
    """A report in words; each notice on a line of its own."""
    click.echo(paragraph(report))
    for notice in report.notices:
        click.echo(style(f"{notice.kind}: ", fg="yellow") + clean(notice.text))


def paragraph(report: SyncReport) -> str:
    """What a sync did, in one paragraph."""
    said: list[str] = []
    if report.entries_changed:
        said.append(
            f"Pulled {count(report.entries_changed, 'change')} from {count(report.heads_joined, 'head')}: "
            f"{count(report.blocks_received, 'block')} ({size(report.bytes_received)})."
        )
    elif report.blocks_received:
        said.append(f"Nothing new to pull ({size(report.bytes_received)} looked at).")
    else:
        said.append("Nothing new to pull.")
    if report.conflicts:
        said.append(f"{count(report.conflicts, 'conflict')} to look at (ipfsmem conflicts).")
    if report.not_fetched:
        said.append(f"{count(report.not_fetched, 'text')} could not be fetched yet.")
    if report.published:
        said.append(
            f"Published {report.root}: sent {count(report.blocks_sent, 'block')} ({size(report.bytes_sent)})."
        )
    elif report.adopted:
        said.append(f"Nothing to publish: another device's root says the same, {report.root}.")
    elif report.root:
        said.append(f"Nothing to publish: the root is {report.root}.")
    else:
        said.append("Nothing was published.")
    said.append(f"{seconds(report.seconds)}.")
    return " ".join(said)
