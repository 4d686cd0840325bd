"""`ipfsmem format cid PATH`: the root CID of any file or folder, as in Kubo and Helia. Starts fast: imports little."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.new_file import new_file, refuse_existing
from ipfsmem.cli.options import not_empty, overwrite_option
from ipfsmem.errors import UsageError


@cli_command("cid", secrets=False)
@click.argument("path", callback=not_empty)
@click.option(
    "--car",
    callback=not_empty,
    metavar="OUT",
    help="Also write all blocks to this CAR file; - is standard output.",
)
@overwrite_option
def command(context: CommandContext, path: str, car: str | None, overwrite: bool) -> None:
    """Print the root CID of PATH under the profile unixfs-v1-2025 (IPIP-0499), hidden files included.

    The result is that of `ipfs add --cid-version 1 --raw-leaves` under that profile. Symbolic links are
    refused.
    """
    from ipfsmem.files.pack import pack_tree

    if overwrite and car is None:
        raise UsageError("--overwrite requires --car")
    if car is None:
        packed = pack_tree(path)
    else:
        if not overwrite:
            refuse_existing(car)
        with new_file(car, mode=0o666, overwrite=overwrite) as out:
            packed = pack_tree(path, out)
    if context.json:
        from ipfsmem.results import Packed

        context.emit(
            Packed(
                cid=str(packed.root),
                files=packed.files,
                folders=packed.folders,
                bytes=packed.size,
                car_bytes=packed.car_size or None,
            )
        )
    else:
        click.echo(str(packed.root), err=car == "-")
