"""`ipfsmem undo`: what this device did last, taken back."""

from __future__ import annotations

import click

from ipfsmem.cli.here import Here, ours
from ipfsmem.cli.printing import clean, moment


@ours("undo")
def command(here: Here) -> None:
    """Undo the last write, forget, resolve, restore or undo that was made on this device with this program.

    What it took away stands there again, as long as nobody has written there since. Twice is as good as never.
    """
    with here.memory() as memory:
        done = memory.undo()
    if here.json:
        from ipfsmem.results import ChangeUndone

        here.emit(ChangeUndone.of(done))
        return
    place = f"{done.scope}/{done.key}" if done.scope else done.key
    now = "it shows what it showed before" if done.shown is not None else "there is no such memory now"
    click.echo(f"Undone: {done.operation} of {clean(place)}, {moment(done.at)} UTC; {now}.")
