"""`ipfsmem unlock`: cache the keys for a while, so that the user's programs need no passphrase."""

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
    help="Duration: 30m, 8h, 1d (default: the setting unlock.hours, 8).",
)
def command(context: CommandContext, seconds: float | None) -> None:
    """Ask for the passphrase once, and cache this device's keys for all your programs.

    The cache ends after --for TIME, with `ipfsmem lock` or with a restart of the machine; on Linux also
    when you log out, unless lingering is enabled for your user (loginctl). Unlocking again restarts the
    time.

    Only this device's keys are cached, in two halves: one in the kernel's keyring (or the system's,
    with the extra keyring), one in your runtime directory. The wallet, the recovery phrase and the
    passphrase are never cached.

    A vault created without a wallet stores its owner key on the device that created it, encrypted with
    one of the cached keys. `ipfsmem member admit` is unrelated: it syncs once with the wallet.
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
        click.echo(f"Unlocked until {moment(until)}. To lock earlier: ipfsmem lock.")
