"""`ipfsmem unlock`: let the user's programs open this memory without its passphrase for a while."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import duration
from ipfsmem.cli.printing import moment


@cli_command("unlock")
@click.option(
    "--for",
    "seconds",
    callback=duration,
    metavar="TIME",
    help="For how long: 30m, 8h, 1d. Without it as the settings say (unlock.hours: 8).",
)
def command(context: CommandContext, seconds: float | None) -> None:
    """Take the passphrase of this device's keys once, and let every program of yours use this memory without it until the time
    is over, `ipfsmem lock`, or the machine is started anew; on Linux also until you log out, unless your user lingers.

    What is kept for that are this device's own keys, in two halves: one in the kernel's keyring (or the system's, with the extra
    keyring), one in your runtime directory. Never the wallet, the recovery words or the passphrase; but a memory that was made
    without a wallet keeps what stands for a wallet on the device that made it, under one of these keys. It has nothing to do with
    `ipfsmem member admit`, which syncs once with the wallet. Once more, it counts from now.
    """
    from ipfsmem.config import settings
    from ipfsmem.vault.unlocking import unlock_device

    if seconds is None:
        seconds = settings().unlock.hours * 3_600
    until = unlock_device(context.folder, context.passphrase(itself=True), int(seconds))
    if context.json:
        from ipfsmem.results import KeysUnlocked

        context.emit(KeysUnlocked(until=until))
    else:
        click.echo(f"Unlocked until {moment(until)}. Sooner: ipfsmem lock.")
