"""`ipfsmem lock`: remove the cached keys, after a last scan of the linked folders."""

from __future__ import annotations

from pathlib import Path

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import clean
from ipfsmem.errors import NotFoundError, UsageError


@cli_command("lock", secrets=False)
def command(context: CommandContext) -> None:
    """Lock this device's keys: remove what `ipfsmem unlock` cached, so that the passphrase is required
    again.

    `lock` first reads the edits in linked folders. If that fails, it still locks and reports the
    failure. Keys cached for a vault that moved are removed too.

    Running programs with the cached keys (a sync with --every, a server) drop them within a second. A
    program that was given the passphrase itself keeps the keys until it ends.
    """
    from ipfsmem.vault.unlocking import refuse_open_keys, unlocked_until

    try:
        if unlocked_until(context.folder) is not None:
            with context.memory() as memory:
                memory.folders.last_look()
    except BaseException:
        _, lost = _lock(context)
        if not context.json:
            _say(lost, err=True)
            click.echo("Locked, without reading the linked folders:", err=True)
        raise
    was_unlocked, lost = _lock(context)
    if not was_unlocked and context.folder.resolve() not in lost:
        try:
            refuse_open_keys(context.folder)
        except UsageError:
            if not context.json:
                _say(lost, err=True)
            raise
    if context.json:
        from ipfsmem.results import KeysLocked

        context.emit(KeysLocked(was_unlocked=was_unlocked, lost=[str(folder) for folder in lost]))
        return
    _say(lost)
    if was_unlocked or not lost:
        click.echo("Locked." if was_unlocked else "Already locked.")


def _say(lost: list[Path], *, err: bool = False) -> None:
    for folder in lost:
        click.echo(clean(f"Locked: the cached keys of a vault that is no longer in {folder}."), err=err)


def _lock(context: CommandContext) -> tuple[bool, list[Path]]:
    """Lock this vault, and those that were moved or deleted. Return whether it was unlocked, and the earlier folders of those."""
    from ipfsmem.vault.unlocking import lock_device, lock_lost_devices

    try:
        lost = lock_lost_devices()
    except BaseException:
        lock_device(context.folder)
        raise
    try:
        return lock_device(context.folder), lost
    except NotFoundError:
        if context.folder.resolve() not in lost:
            if not context.json:
                _say(lost, err=True)
            raise
        return False, lost
