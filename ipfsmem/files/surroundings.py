"""Detect a git work tree or a sync program around a linked folder.

Examines names and small files above the folder and runs nothing. The result is advice, except that a change of
`.git/HEAD` pauses a folder until a person has reviewed it.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

from ipfsmem.device.atomic_files import read_file
from ipfsmem.errors import StorageError

_MAX_HEAD = 4096
_MAX_IGNORE = 1024 * 1024
#: Files and folder names by which programs that sync folders are recognised.
_SYNC_MARKS = {
    ".dropbox": "Dropbox",
    ".dropbox.cache": "Dropbox",
    ".stfolder": "Syncthing",
    ".nextcloudsync.log": "Nextcloud",
    ".owncloudsync.log": "ownCloud",
    ".tmp.driveupload": "Google Drive",
    ".tmp.drivedownload": "Google Drive",
}
_SYNC_NAMES = {
    "dropbox": "Dropbox",
    "onedrive": "OneDrive",
    "google drive": "Google Drive",
    "googledrive": "Google Drive",
    "my drive": "Google Drive",
    "nextcloud": "Nextcloud",
    "owncloud": "ownCloud",
    "mobile documents": "iCloud Drive",
    "icloud drive": "iCloud Drive",
    "icloud~md~obsidian": "iCloud Drive",
    "cloudstorage": "a cloud provider's folder",
}


def git_folder(path: Path) -> tuple[Path, Path] | None:
    """Return the git work tree that contains a folder, and the folder of its repository; None outside one."""
    for place in (path, *path.parents):
        git = place / ".git"
        if _is_there(git, Path.is_dir):
            return place, git
        try:
            pointer = read_file(git, _MAX_HEAD)
        except StorageError:
            continue
        if pointer is not None and pointer.startswith(b"gitdir:"):
            # A second work tree or a submodule: the repository is elsewhere.
            return place, place / pointer[len(b"gitdir:") :].decode("utf-8", "surrogateescape").strip()
    return None


def git_head(path: Path) -> bytes:
    """Return a value that changes with each checkout in the git work tree around a folder; empty outside one."""
    repository = git_folder(path)
    if repository is None:
        return b""
    try:
        head = read_file(repository[1] / "HEAD", _MAX_HEAD)
    except (StorageError, ValueError):
        return b""
    return b"" if head is None else sha256(head).digest()


def remarks(path: Path) -> list[str]:
    """Return remarks for a person about the location of a linked folder, a sentence each."""
    texts: list[str] = []
    git = git_folder(path)
    if git is not None and not _is_ignored(path, *git):
        texts.append(
            f"{path} lies in the git work tree {git[0]} and no ignore rule matches it: memories would be committed, and a checkout would bring old texts back (which pauses the folder)"
        )
    for place in (path, *path.parents):
        program = _SYNC_NAMES.get(place.name.lower()) or _SYNC_NAMES.get(place.name.lower().split(" - ")[0])
        program = program or next(
            (name for mark, name in _SYNC_MARKS.items() if _is_there(place / mark, Path.exists)), None
        )
        if program:
            texts.append(
                f"{path} is synced by {program} ({place}): two programs would sync its files, and {program} may create copies; choose a folder outside, or exclude this one"
            )
            break
    return texts


def _is_there(place: Path, ask: Callable[[Path], bool]) -> bool:
    """Return the result of a check of a path; False also without permission."""
    try:
        return ask(place)
    except OSError:
        return False


def _is_ignored(path: Path, tree: Path, git: Path) -> bool:
    """Return whether a plain ignore rule names the folder, a parent, or all its content."""
    places = [tree, *(place for place in reversed(path.parents) if tree in place.parents), path]
    files = [place / ".gitignore" for place in dict.fromkeys(places)] + [git / "info" / "exclude"]
    for file in files:
        base = tree if file.parent.name == "info" else file.parent
        if base != path and base not in path.parents:
            continue
        try:
            data = read_file(file, _MAX_IGNORE) or b""
        except StorageError:
            continue
        below = path.relative_to(base).parts
        names = ["/".join(below[: n + 1]) for n in range(len(below))]
        for line in data.decode("utf-8", "replace").splitlines():
            rule = line.strip().rstrip("/")
            if not rule or rule[0] in "#!":
                continue
            if base == path and rule in ("*", "**", "*.md", "/*", "/*.md"):
                return True
            rule = rule.removesuffix("/**").removesuffix("/*")
            anchored = rule.lstrip("/")
            if any(fnmatch(name, anchored) for name in names) or (
                "/" not in rule and any(fnmatch(part, rule) for part in below)
            ):
                return True
            if rule.startswith("**/") and any(fnmatch(part, rule[3:]) for part in below):
                return True
    return False
