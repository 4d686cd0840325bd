"""A shared folder as a shelf, and what the disk says about it, in words: every OSError there is a provider that does not
work now.

Files in it are written and read by ipfsmem/device/shared_folder.py. This module knows nothing of blocks or pins.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from ipfsmem.device.held_folder import LinkError
from ipfsmem.device.shared_folder import Folder, NewFile
from ipfsmem.errors import ProviderUnavailable
from ipfsmem_providers.packs.blocking_work import beat
from ipfsmem_providers.packs.shelf import Seen, Start

#: What a shared folder has inside.
SHELVES: Final = ("packs", "pins", "names")
_FULL: Final = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
_DENIED: Final = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))


class FolderShelf(Folder):
    """`packs`, `pins` or `names` in a shared folder, as a shelf (packs/shelf.py)."""

    at_once = 1 << 20

    def look(self, start: str = "") -> dict[str, Seen]:
        """Regular files, and what they are."""
        found = {}
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.name.startswith(start) and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        changed = status.st_mtime_ns
                        stamp = (changed, status.st_ctime_ns, status.st_size, status.st_ino)
                        found[entry.name] = Seen(status.st_size, changed // 1_000_000, stamp)
        return found

    def starts(self, names: Sequence[str], length: int) -> dict[str, Start]:
        """The first bytes of those that can be read."""
        found = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError), self.file(name) as file:
                found[name] = Start(_read(file, length), file.seek(0, os.SEEK_END))
            beat()
        return found

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """Parts of one file, each read when it is asked for."""
        with self.file(name) as file:
            for start, end in spans:
                file.seek(start)
                yield _read(file, end - start)
                beat()

    def new(self) -> NewFile:
        """A file in the making."""
        return NewFile(self)

    def sweep(self, oldest: float) -> None:
        """Leftovers in all that the shared folder has."""
        for kind in SHELVES:
            Folder(self.parent, kind).sweep(oldest)


def _read(file: BinaryIO, length: int) -> bytes:
    """So many bytes, less only at the end: a system may give less at once."""
    data = file.read(length)
    while len(data) < length:
        more = file.read(length - len(data))
        if not more:
            break
        data += more
    return data


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn whatever the operating system says about `folder` into ProviderUnavailable with a clear text."""
    try:
        yield
    except OSError as error:
        raise unavailable(folder, error) from error


def unavailable(folder: Path, error: OSError) -> ProviderUnavailable:
    """The error to raise for an OSError met inside `folder`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return ProviderUnavailable(f"no space left in folder {folder} ({reason})", hint="Free space there.")
    if error.errno in _DENIED:
        return ProviderUnavailable(
            f"no permission in folder {folder} ({reason}: {error.filename})",
            hint="Let this user write there, or name another folder.",
        )
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises on some dead mounts
        return gone(folder)
    if isinstance(error, LinkError) or error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST):
        return ProviderUnavailable(
            f"{error.filename} is in the way in folder {folder}: it is a link, or no folder, and links are not followed",
            hint="Put a folder in its place, or name the folder that it leads to as the provider.",
        )
    return ProviderUnavailable(f"folder {folder} does not work: {reason} ({error.filename})")


def gone(folder: Path) -> ProviderUnavailable:
    """The error for a folder that is not there."""
    return ProviderUnavailable(
        f"folder {folder} is not there",
        hint="Plug the stick in or mount the share. A new folder must be made first.",
    )
