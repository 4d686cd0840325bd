"""`ipfsmem format cid PATH`: the root CID of any file or folder, as in Kubo and Helia. Starts fast: imports little."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.app import output_closed_error, output_is_closed
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


@cli_command("cid", secrets=False)
@click.argument("path", callback=not_empty)
@click.option(
    "--car",
    callback=not_empty,
    metavar="OUT",
    help="Also write all blocks to this CAR file; - is standard output.",
)
def command(context: CommandContext, path: str, car: str | None) -> None:
    """Print the root CID of PATH under the profile unixfs-v1-2025 (IPIP-0499), hidden files included.

    The result is that of `ipfs add --cid-version 1 --raw-leaves` under that profile. Symbolic links are
    refused.
    """
    from ipfsmem.files.pack import pack_tree

    if car is None:
        packed = pack_tree(path)
    else:
        with new_car(car) as out:
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


def is_stdout(car: str) -> bool:
    """Tell whether a path is standard output, by any name (`-`, `/dev/stdout`)."""
    import os

    if car == "-":
        return True
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(car), os.fstat(1))  # noqa: PTH116
    return False


@contextlib.contextmanager
def new_car(car: str, *, mode: int = 0o666, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield the CAR to write; -: standard output. An unfinished file is removed; an existing one is replaced at the end, when
    the new one is on the disk. A link is followed, also one to a file that does not exist. A device or a pipe is written to
    directly: a file in its place would take it away from every other program. `mode`: of the new file, less the system's mask.
    `overwrite` False: a file that is not empty, also one that another program made meanwhile, is not replaced (UsageError)."""
    import os
    import sys
    from pathlib import Path

    from ipfsmem.device.atomic_files import new_name, sync_directory
    from ipfsmem.errors import StorageError, UsageError
    from ipfsmem.file_durability import flush_to_disk, retry_while_held_open

    if is_stdout(car):
        if output_is_closed():
            raise output_closed_error("this")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    is_direct = _is_no_file(car)
    if not is_direct and Path(car).is_symlink():
        car = os.path.realpath(car)
    unfinished = new_name(car)
    try:
        if is_direct:
            with open(car, "wb") as out:  # noqa: PTH123
                yield out
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(unfinished, flags, mode), "wb") as out:  # noqa: PTH123
            yield out
            out.flush()
            flush_to_disk(out.fileno())
        if overwrite or not _put_new(unfinished, car):
            retry_while_held_open(lambda: os.replace(unfinished, car))  # noqa: PTH105
        else:  # the other name of this file goes before its folder is flushed: it may hold plain texts
            retry_while_held_open(lambda: os.unlink(unfinished))  # noqa: PTH108
        sync_directory(Path(car).parent)
    except IsADirectoryError:
        raise UsageError(f"{car} is a folder: name a file in it") from None
    except OSError as error:
        raise StorageError(f"cannot write {car}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)  # noqa: PTH108


def _put_new(unfinished: str, path: str) -> bool:
    """Give a file a second name in one step; False if an empty file has it, or the disk has no second names. Raises UsageError
    for a file that is not empty, OSError."""
    import os
    import stat

    from ipfsmem.errors import UsageError

    try:
        os.link(unfinished, path)
        return True
    except OSError:
        try:
            found = os.lstat(path)
            if os.path.samestat(found, os.lstat(unfinished)):
                return True  # a network disk repeated the request, and refused the second one
            is_taken = not stat.S_ISDIR(found.st_mode) and (
                not stat.S_ISREG(found.st_mode) or found.st_size > 0
            )
        except FileNotFoundError:
            is_taken = False
    if is_taken:
        raise UsageError(
            f"{path} exists already", hint="Name a new file, or replace it with --overwrite."
        ) from None
    return False


def _is_no_file(path: str) -> bool:
    """Tell whether a path leads to something that is neither a file nor a folder."""
    import os
    import stat

    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
