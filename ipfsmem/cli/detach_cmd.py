"""`ipfsmem detach DIR`: a folder is no working copy any more; every file in it stays."""

from __future__ import annotations

import click

from ipfsmem.cli.here import Here, named, ours
from ipfsmem.cli.printing import clean, count


@ours("detach")
@click.argument("folder", metavar="DIR", callback=named)
@click.option("--gone", is_flag=True, help="DIR is not there and will not be again.")
def command(here: Here, folder: str, gone: bool) -> None:
    """Let go of the working copy DIR. Every file in it stays as it is, and is not looked at any more.

    What was just edited is taken in first. A text that was set aside and could not be taken in comes out as a conflict copy.
    """
    with here.memory() as memory:
        brought = memory.folders.detach(folder, gone=gone)
    if here.json:
        from ipfsmem.results import FolderDetached

        here.emit(FolderDetached(path=folder, brought_out=brought))
        return
    click.echo(f"{clean(folder)} is no working copy any more; its files stay as they are.")
    if brought:
        click.echo(
            f"{count(len(brought), 'text')} came out of what was set aside: {clean(', '.join(brought))}"
        )
