"""`ipfsmem recover`: a memory on a device that has nothing but the 24 words."""

from __future__ import annotations

import asyncio
import contextlib

import click

from ipfsmem.cli.here import Here, Whole, ours, provider_option, root_option
from ipfsmem.cli.init_cmd import device_passphrase, nothing_made
from ipfsmem.cli.printing import Meter, clean, count, facts, style
from ipfsmem.cli.sync_cmd import tell
from ipfsmem.cli.wallets import recovery_root


@ours("recover")
@provider_option("Where the memory is kept")
@click.option("--words-fd", type=Whole(0), metavar="N", help="The words, from file descriptor N.")
@root_option
@click.option("--unprotected-keys", is_flag=True, help="Keep this device's keys without a passphrase.")
@click.option("--label", help="What other devices call this one (default: the host's name).")
def command(
    here: Here,
    provider: tuple[str, ...],
    words_fd: int | None,
    root: str | None,
    unprotected_keys: bool,
    label: str | None,
) -> None:
    """Bring a memory back with its 24 recovery words, and enrol this device.

    The words are asked for on a terminal; else they come from --words-fd or standard input.
    """
    from ipfsmem.config import settings
    from ipfsmem.memory import Memory
    from ipfsmem.replica.replica import claim_folder

    claim_folder(here.folder)
    words = recovery_root(words_fd)
    passphrase = device_passphrase(here, "encrypted-ipfs", unprotected_keys)
    with nothing_made(), Meter(silent=here.json) as meter:
        memory = asyncio.run(
            Memory.restore(
                here.namespace,
                provider=provider or settings().provider,
                unlock=words,
                passphrase=passphrase,
                unprotected_keys=unprotected_keys,
                home=here.home,
                label=label,
                root_cid=root,
                progress=meter,
            )
        )
    with contextlib.closing(memory):
        status, report = memory.status(), memory.restored
    if here.json:
        here.emit({"status": status, "sync": report})
        return
    back = f"It is back: {count(status.memories, 'memory')}, {count(status.events, 'event')}."
    click.echo(style(back, bold=True))
    facts(
        [
            ("namespace", here.namespace),
            ("folder", clean(status.folder or "")),
            ("device", status.device),
            ("provider", clean(", ".join(status.providers))),
            ("root", status.root or ""),
            ("vault tag", status.vault.tag if root and status.vault else ""),
        ]
    )
    if report is not None and report.notices:
        tell(report)
