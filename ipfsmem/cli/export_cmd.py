"""`ipfsmem export`: the whole memory as one file or as a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ipfsmem.cli.here import Here, ours
from ipfsmem.cli.printing import clean, count, is_terminal, size
from ipfsmem.errors import UsageError


@ours("export")
@click.option("--out", metavar="FILE", help="The blob's file; without it the blob goes to standard output.")
@click.option("--dir", "folder", metavar="DIR", help="A new folder of plain Markdown files instead.")
def command(here: Here, out: str | None, folder: str | None) -> None:
    """Write the whole memory as a memory/0.1 blob (JSON), or with --dir as Markdown files.

    Either one is plain text, also of an encrypted memory. `ipfsmem import` takes both.
    """
    from ipfsmem.replica.disk import write_atomic

    if out is not None and folder is not None:
        raise UsageError("--out or --dir, not both")
    if out is None and folder is None and is_terminal() and not here.json:
        raise UsageError(
            "say where to: --out FILE or --dir DIR", hint="Or send it somewhere: ipfsmem export > FILE."
        )
    with here.memory() as memory:
        if folder is not None:
            where = Path(folder).expanduser()
            written = memory.export_folder(where)
            _said(here, where, f"{count(written, 'file')}", files=written)
            return
        blob = memory.export()
    if out is not None:
        where = Path(out).expanduser()
        write_atomic(where, blob)
        _said(here, where, size(len(blob)), bytes=len(blob))
    else:
        sys.stdout.buffer.write(blob)
        sys.stdout.buffer.flush()


def _said(here: Here, where: Path, what: str, **facts: int) -> None:
    if here.json:
        here.emit({"path": str(where), **facts})
    else:
        click.echo(f"{clean(str(where))}: {what}, in plain text")
