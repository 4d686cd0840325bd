"""`ipfsmem export`: the whole memory as one file or as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.here import Here, ours
from ipfsmem.cli.printing import clean, count, is_terminal, size, write_bytes
from ipfsmem.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from ipfsmem.storage.exporting import LeftOut


@ours("export", scoped=True, shows=True)
@click.option("--out", metavar="FILE", help="The blob's file; without it the blob goes to standard output.")
@click.option("--dir", "folder", metavar="DIR", help="A new folder of plain Markdown files instead.")
@click.option("--car", metavar="FILE", help="A published root with all its blocks instead, sealed as it is.")
@click.option("--root", metavar="CID", help="Which root for --car (default: the one published last).")
@click.option("--partial", is_flag=True, help="It is fine that what is named is left out.")
def command(
    here: Here, out: str | None, folder: str | None, car: str | None, root: str | None, partial: bool
) -> None:
    """Write the whole memory as a memory/0.1 blob (JSON), or with --dir as Markdown files.

    Either one is plain text, also of an encrypted memory, and `ipfsmem import` takes both. --car writes a published
    root as any IPFS program reads it.

    A blob holds no conflict copies. What is left out is named, and the exit code is 7 unless --partial is given.
    """
    from ipfsmem.replica.disk import write_atomic

    if sum(way is not None for way in (out, folder, car)) > 1:
        raise UsageError("one of --out, --dir and --car")
    if root is not None and car is None:
        raise UsageError("--root goes with --car")
    if car is not None:
        _export_car(here, Path(car).expanduser(), root)
        return
    if out is None and folder is None and is_terminal() and not here.json:
        raise UsageError(
            "say where to: --out FILE or --dir DIR", hint="Or send it somewhere: ipfsmem export > FILE."
        )
    with here.memory() as memory:
        if folder is not None:
            where = Path(folder).expanduser()
            made = memory.export_folder(where, partial=True)
            _said(here, where, f"{count(made.files, 'file')}", files=made.files)
            tell_left_out(made.left_out, partial)
            return
        left = memory.left_out()
        blob = memory.export(partial=True)
    if out is not None:
        where = Path(out).expanduser()
        write_atomic(where, blob)
        _said(here, where, size(len(blob)), bytes=len(blob))
    else:
        write_bytes(blob)
    tell_left_out(left, partial)


def tell_left_out(left: LeftOut, partial: bool) -> None:
    """Name what did not go along. Raises IncompleteError unless that is fine."""
    if left and not partial:
        raise IncompleteError(f"it is written, but not everything is in it: left out was {left}")
    if left:
        click.echo(f"left out: {clean(str(left))}", err=True)


def _said(here: Here, where: Path, what: str, **facts: int) -> None:
    if here.json:
        here.emit({"path": str(where), **facts})
    else:
        click.echo(f"{clean(str(where))}: {what}, in plain text")


def _export_car(here: Here, where: Path, root: str | None) -> None:
    from ipfsmem.cli.cid_cmd import new_car

    with here.memory() as memory, new_car(str(where)) as out:
        cid = memory.export_car(out, root)
    if here.json:
        here.emit({"path": str(where), "root": str(cid), "bytes": where.stat().st_size})
    else:
        click.echo(f"{clean(str(where))}: root {cid}, {size(where.stat().st_size)}")
