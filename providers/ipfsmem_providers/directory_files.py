"""What the disk says about a shared folder, in words: every OSError there is a provider that does not work now.

Files in it are written and read by ipfsmem/device/shared_folder.py. This module knows nothing of blocks or pins.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ipfsmem.device.held_folder import LinkError
from ipfsmem.errors import ProviderUnavailable

_FULL: Final = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
_DENIED: Final = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))


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
