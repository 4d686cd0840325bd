"""A shared folder as an object store, and its OSErrors as ProviderUnavailable in plain language.

ipfsmem/device/shared_folder.py reads and writes the files.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from ipfsmem.device.directory_handle import LinkError
from ipfsmem.device.shared_folder import NewFile, SharedFolder
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem_providers.packs.blocking_work import heartbeat
from ipfsmem_providers.packs.hidden import sweep_leftovers
from ipfsmem_providers.packs.index import read_at
from ipfsmem_providers.packs.object_store import FileInfo, Head, PassedOver

#: The folders inside a shared folder.
STORE_NAMES: Final = ("packs", "pins", "names", "small")
_FULL: Final = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
_DENIED: Final = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))


class FolderObjectStore(SharedFolder):
    """`packs`, `pins`, `names` or `small` in a shared folder, as an object store (packs/object_store.py)."""

    cheap_read_bytes = 1 << 20

    def files(self, prefix: str = "") -> dict[str, FileInfo]:
        """Return regular files, without links and folders."""
        infos = {}
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.name.startswith(prefix) and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        changed = status.st_mtime_ns
                        stamp = (changed, status.st_ctime_ns, status.st_size, status.st_ino)
                        infos[entry.name] = FileInfo(status.st_size, changed // 1_000_000, stamp)
        return infos

    def refresh(self) -> bool:
        """Do nothing: each call of `files` lists."""
        return False

    def not_files(self, prefix: str = "") -> frozenset[str]:
        """Return links, folders and the like."""
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            return frozenset(
                entry.name
                for entry in entries
                if entry.name.startswith(prefix) and not entry.is_file(follow_symlinks=False)
            )
        return frozenset()

    def containing(self, part: str) -> frozenset[str]:
        """Return every name that contains `part`."""
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            return frozenset(entry.name for entry in entries if part in entry.name)
        return frozenset()

    def heads(self, names: Sequence[str], length: int) -> dict[str, Head]:
        """Return the first bytes of the files that exist."""
        heads_by_name = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError), self.open_file(name) as file:
                heads_by_name[name] = Head(read_at(file, 0, length), file.seek(0, os.SEEK_END))
            heartbeat()
        return heads_by_name

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """Yield parts of one file, each read on demand."""
        with self.open_file(name) as file:
            for start, end in spans:
                yield read_at(file, start, end - start)
                heartbeat()

    def new_file(self) -> NewFile:
        """Begin a file."""
        return NewFile(self)

    def sweep(self, oldest: float, passed_over: PassedOver | None = None) -> None:
        """See `sweep_leftovers`, of all object stores of the shared folder."""
        for kind in STORE_NAMES:
            sweep_leftovers(FolderObjectStore(self.parent, kind), oldest * 1000, passed_over)

    def open_listed(self, name: str, size: int) -> BinaryIO:
        """Return a reader of a file; the listed size is ignored."""
        return self.open_file(name, buffered=True)

    def hide(self, name: str, hidden: str) -> None:
        """Rename a file so that it is not listed."""
        self.replace(name, hidden)

    def discard(self, name: str) -> None:
        """Remove a hidden or unfinished file."""
        self.unlink(name)


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Convert any OSError about `folder` to ProviderUnavailable with a clear message."""
    try:
        yield
    except OSError as error:
        raise unavailable(folder, error) from error


def unavailable(folder: Path, error: OSError) -> ProviderUnavailable:
    """Return the error to raise for an OSError met inside `folder`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return ProviderUnavailable(f"no space left in folder {folder} ({reason})", hint="Free space there.")
    if error.errno in _DENIED:
        return ProviderUnavailable(
            f"no permission in folder {folder} ({reason}: {error.filename})",
            hint="Give this user write permission, or name another folder.",
        )
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises on some dead mounts
        return gone(folder)
    if isinstance(error, LinkError) or error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST):
        return ProviderUnavailable(
            f"{error.filename} is in the way in folder {folder}: it is a link, which is not followed, or not a folder",
            hint="Put a folder in its place, or name the folder that it leads to as the provider.",
        )
    return ProviderUnavailable(f"folder {folder} cannot be used: {reason} ({error.filename})")


def refuse_repository(folder: Path) -> None:
    """Raise ProviderRefused for a bare git repository: git may delete files next to its own."""
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
        raise ProviderRefused(
            f"folder {folder} is a bare git repository", hint=f"Store in one of its branches: git:{folder}"
        )


def gone(folder: Path) -> ProviderUnavailable:
    """Return the error for a missing folder."""
    return ProviderUnavailable(
        f"folder {folder} is not there",
        hint="Plug in the stick or mount the share. Create a new folder first.",
    )
