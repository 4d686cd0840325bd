"""Find ipfsmem's folder in the user's runtime directory, which Linux empties when the user logs out.

The directory is used only if it belongs to this user and no other user may enter it, since its content is trusted.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from ipfsmem.errors import UsageError

_FOLDER = "ipfsmem"


def runtime_folder() -> Path:
    """Return our folder in the user's runtime directory; it need not exist yet. Raises UsageError if there is no such directory.

    `XDG_RUNTIME_DIR`, on Linux without it `/run/user/<uid>`; on macOS and Windows the user's temporary folder, as platformdirs
    knows it. Never a folder that other users may write to.
    """
    variable = os.environ.get("XDG_RUNTIME_DIR")
    if variable:
        folder = Path(variable)
        _refuse_foreign(folder, "XDG_RUNTIME_DIR is {}, which")
        return folder / _FOLDER
    if sys.platform in ("darwin", "win32"):
        import platformdirs

        return platformdirs.user_runtime_path(_FOLDER, appauthor=False)
    folder = Path(f"/run/user/{os.geteuid()}")
    _refuse_foreign(folder, "XDG_RUNTIME_DIR is not set, and {}")
    return folder / _FOLDER


def made_runtime_folder() -> Path:
    """Create the folder for this user only, and return it. Raises UsageError, OSError."""
    folder = runtime_folder()
    folder.mkdir(mode=0o700, parents=sys.platform in ("darwin", "win32"), exist_ok=True)
    _refuse_foreign(folder, "the runtime directory has {}, which")
    return folder


def is_ours(folder: Path) -> bool:
    """Return whether a folder is a directory (not a link) of this user that no one else may enter."""
    return not _what_is_wrong(folder)


def _refuse_foreign(folder: Path, place: str) -> None:
    if wrong := _what_is_wrong(folder):
        raise UsageError(
            f"no runtime directory of yours to keep the key in: {place.format(folder)} {wrong}",
            hint="Log in through the system's login, which creates one, or pass the passphrase in IPFSMEM_PASSPHRASE.",
        )


def _what_is_wrong(folder: Path) -> str:
    try:
        status = folder.lstat()
    except OSError:
        return "does not exist"
    if not stat.S_ISDIR(status.st_mode):
        return "is not a directory"
    if sys.platform == "win32":
        return ""  # permissions are inherited from the user's profile
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "may be entered by others" if stat.S_IMODE(status.st_mode) & 0o077 else ""
