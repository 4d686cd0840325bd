"""`ipfsmem lock`: take away what `ipfsmem unlock` keeps, after a last look at the working copies."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command


@cli_command("lock", secrets=False)
def command(context: CommandContext) -> None:
    """Take away what `ipfsmem unlock` keeps: from now on the passphrase is needed again.

    First what you and your programs edited in the working copies is taken in. Should that fail, it is locked all the same, and the
    failure said. Programs that run on with the keys (a sync with --every, a server) drop them within a second.
    """
    from ipfsmem.vault.unlocking import lock_device, unlocked_until

    try:
        if unlocked_until(context.folder) is not None:
            with context.memory() as memory:
                memory.folders.last_look()
    except BaseException:
        lock_device(context.folder)
        if not context.json:
            click.echo("Locked, without the last look at the working copies:", err=True)
        raise
    was_unlocked = lock_device(context.folder)
    if context.json:
        from ipfsmem.results import KeysLocked

        context.emit(KeysLocked(was_unlocked=was_unlocked))
    else:
        click.echo("Locked." if was_unlocked else "It was locked already.")
