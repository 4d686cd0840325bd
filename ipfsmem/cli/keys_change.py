"""`ipfsmem keys passphrase` and `keys label`: what can be changed about a device that stays the same device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli import secrets_in
from ipfsmem.cli.here import Here, Whole, ours, provider_option, right_label
from ipfsmem.cli.keys_owner import known_member, members_named, with_owner
from ipfsmem.cli.wallets import root_options
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.sync.report import Progress, SyncReport


@ours("passphrase", short_help="Put this device's keys under another passphrase.")
@click.option(
    "--new-passphrase-fd",
    type=Whole(0),
    metavar="N",
    help="The new one, from file descriptor N (or IPFSMEM_NEW_PASSPHRASE; else it is asked for).",
)
@click.option("--unprotected-keys", is_flag=True, help="Keep the keys without a passphrase from now on.")
def passphrase_command(here: Here, new_passphrase_fd: int | None, unprotected_keys: bool) -> None:
    """Change the passphrase of this device's keys. The old one comes as for every command; the new one is typed twice.

    It has at least 8 characters that count: what only repeats or counts on (aaa, 123) counts once. Other devices have their
    own. A copy of the key file that somebody kept still opens with the old one: then revoke this device and make it anew.
    """
    old = here.passphrase()
    with here.memory() as memory:
        new = secrets_in.given(new_passphrase_fd, "IPFSMEM_NEW_PASSPHRASE")
        if unprotected_keys and new is not None:
            raise UsageError("a new passphrase or --unprotected-keys, not both")
        if new is None and not unprotected_keys:
            new = secrets_in.ask(
                "new passphrase for this device",
                twice=True,
                otherwise=secrets_in.hint("IPFSMEM_NEW_PASSPHRASE", "--new-passphrase-fd"),
            )
        memory.change_passphrase(new, old, unprotected=unprotected_keys)
    if here.json:
        from ipfsmem.results import KeysProtected

        here.emit(KeysProtected(protected=new is not None))
    elif new is None:
        click.echo("This device's keys lie on the disk without a passphrase now.")
    else:
        click.echo("This device's keys are under the new passphrase.")


@ours("label", short_help="Call a device something else.")
@click.argument("member", metavar="DEVICE")
@click.argument("label", callback=right_label)
@provider_option("Where")
@root_options
def label_command(here: Here, member: str, label: str, **given: Any) -> None:
    """Call DEVICE (an id or label from `ipfsmem keys list`) LABEL from now on, on every device. Labels are for people."""

    async def work(memory: Memory, meter: Progress) -> SyncReport:
        before = None if members_named(memory, member) else await memory.sync(progress=meter)
        report = await memory.relabel(known_member(memory, member), label, progress=meter)
        report.after(before)
        return report

    with_owner(here, given, work)
