"""`ipfsmem import PATH`: take in what was exported, or somebody else's folder of memory files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.here import Here, ours
from ipfsmem.cli.printing import clean, count, style

if TYPE_CHECKING:
    from ipfsmem.storage.importing import Imported


@ours("import", scoped=True)
@click.argument("path")
@click.option(
    "--strategy",
    type=click.Choice(["merge", "replace"]),
    default="merge",
    show_default=True,
    help="merge: what is here stays shown, the incoming text beside it. replace: the incoming text is shown.",
)
@click.option("--prune", is_flag=True, help="With replace: forget what the import does not have.")
@click.option("--partial", is_flag=True, help="It is fine that what is named is left out.")
@click.option(
    "--foreign",
    is_flag=True,
    help="It is not your word: another person's memory, a chat export. See promote.",
)
def command(here: Here, path: str, strategy: str, prune: bool, partial: bool, foreign: bool) -> None:
    """Take in PATH: a memory/0.1 blob, a folder of memory files, or one file; - is a blob on standard input.

    Nothing is lost: a text that differs from yours is kept beside it. Importing twice changes nothing more. What cannot
    be taken in is named, and the exit code is 7 unless --partial is given.
    """
    from ipfsmem.errors import IncompleteError, LimitError
    from ipfsmem.storage.importing import MAX_BLOB

    source: bytes | Path = Path(path).expanduser()
    if path == "-":
        source = sys.stdin.buffer.read(MAX_BLOB + 1)
        if len(source) > MAX_BLOB:
            raise LimitError(f"standard input is longer than {MAX_BLOB:,} bytes")
    with here.memory() as memory:
        done = memory.import_(
            source, strategy="replace" if strategy == "replace" else "merge", prune=prune, foreign=foreign
        )
    if here.json:
        here.emit(done)
    else:
        _say(done)
    if done.problems and not partial:
        raise IncompleteError(
            f"the rest was taken in, but {count(len(done.problems), 'record was', 'records were')} left out",
            hint="Put them right and import again: what is there already stays. Or agree with --partial.",
        )


def _say(done: Imported) -> None:
    said = [
        f"{done.added:,} new",
        f"{done.replaced:,} replaced" if done.replaced else "",
        f"{done.kept_beside:,} kept beside yours (ipfsmem conflicts)" if done.kept_beside else "",
        f"{done.unchanged:,} known already" if done.unchanged else "",
        f"{done.still_forgotten:,} still forgotten here (--strategy replace brings them back)"
        if done.still_forgotten
        else "",
        f"{done.forgotten:,} forgotten" if done.forgotten else "",
    ]
    click.echo(f"Memories: {', '.join(filter(None, said))}. Timeline: {count(done.events, 'new event')}.")
    for problem in done.problems:
        click.echo(style("left out: ", fg="yellow") + clean(problem))
