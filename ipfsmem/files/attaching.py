"""Check whether and how a folder can be linked, before anything is changed (format section 6).

A folder's marker is valid only if this device has the matching row. No folder and no row is written here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ipfsmem.config import expanded
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.local_vaults import memories_in
from ipfsmem.device.tables.working_copies import LinkedFolder
from ipfsmem.errors import UsageError
from ipfsmem.files.folder import PlainFolder
from ipfsmem.mode import Mode

#: Folders of the Filesystem Hierarchy Standard and of macOS that programs read for settings, or keep their own files in.
_SYSTEM = tuple(
    Path(name)
    for name in (
        "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys",
        "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/share", "/var", "/var/lib", "/var/log", "/var/tmp",  # noqa: S108
        "/private", "/private/etc", "/private/tmp", "/private/var", "/Applications", "/Library", "/System", "/Users",
    )
)  # fmt: skip


class FolderCandidate(msgspec.Struct, frozen=True):
    """A folder that may be linked."""

    #: Absolute, as the person named it.
    path: Path
    #: Whether it must still be created.
    new: bool
    #: Its existing row, which continues: it was moved, or is on another disk now.
    known: LinkedFolder | None = None


def plain_files_at(mode: Mode, chosen: str | Path | None) -> str | None:
    """Return the folder of plain files that a configuration names. Raises UsageError for one that cannot be linked."""
    if chosen is None:
        return None
    if not mode.on_disk:
        raise UsageError(f"mode {mode} stores nothing on disk, so it accepts no memory_dir")
    return str(examine_place(chosen, begun=False).path)


def examine_place(
    folder: str | Path,
    copies: Iterable[tuple[LinkedFolder, Path]] = (),
    *,
    scope: str = "",
    take_over: bool = False,
    begun: bool = True,
) -> FolderCandidate:
    """Check a folder that is to be linked to a scope. `copies`: the rows of this vault, with the paths of their folders.

    Raises UsageError for anything but a folder, for another vault's, and for one that is linked already; `take_over` allows
    another vault's. `begun`: the vault exists, so that hints name commands on it. Raises StorageError if it cannot be examined.
    """
    # Not resolved: a link on the way is the person's own, and may lead elsewhere tomorrow.
    path = Path(os.path.abspath(expanded(folder)))  # noqa: PTH100
    rows = list(copies)
    if "\0" in str(path):
        raise UsageError("a folder name cannot contain a null character")
    with storage_errors(path, "look into"):
        if not _is_usable(path):
            folder_row = next((copy for copy, place in rows if place == path), None)
            if folder_row is not None:
                _refuse_other_scope(folder_row, path, scope)
            return FolderCandidate(path, True, folder_row)
    return FolderCandidate(path, False, _row_of(path, rows, scope, take_over, begun))


def _is_usable(path: Path) -> bool:
    """Return whether there is a folder; False if one could be created. Raises UsageError for an unusable place, OSError for a
    name that the system does not accept."""
    if path in too_wide():
        raise UsageError(
            f"{path} contains files of programs and other people, which would become memories",
            hint="Choose a subfolder.",
        )
    if any(_is_published_to(one) for one in (path, *path.parents)):
        raise UsageError(
            f"{path} is a provider's folder: plain files would be unencrypted there; choose another folder"
        )
    try:
        path.lstat()  # `exists` returns False for a name that the system does not accept
    except FileNotFoundError:
        if path.parent.is_dir():
            return False
        raise UsageError(
            f"there is no folder {path.parent} for {path.name}",
            hint="Check the name, or create that folder first.",
        ) from None
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder")
    if contents := memories_in(path):
        raise UsageError(f"{path} contains {contents}; choose another folder for plain files")
    if any(_is_published_to(packs.parent) for packs in path.glob("*/packs")):
        raise UsageError(f"{path} contains a provider's folder; choose another folder for plain files")
    return True


def _is_published_to(path: Path) -> bool:
    """Return whether memories are published to this folder, as its small-object areas show; an empty one has none."""
    return (path / "packs").is_dir() and (path / "pins").is_dir()


def _row_of(
    path: Path, copies: list[tuple[LinkedFolder, Path]], scope: str, take_over: bool, begun: bool
) -> LinkedFolder | None:
    """Return the row that continues in this folder; None for a new one. Raises UsageError if it is in use."""
    plain = PlainFolder(path)
    try:
        here, mark = plain.root, plain.marker()
    finally:
        plain.close()
    for copy, place in copies:
        if copy.inode == here.inode and _identity(place) == (here.device, here.inode):
            if place != path or copy.scope != scope:
                raise UsageError(
                    f"{path} is already linked to {called(copy.scope)}"
                    + (f", as {place}" if place != path else ""),
                    hint=f"Detach it first: ipfsmem folder detach {_quoted(str(place))}.",
                )
            if mark in (None, copy.id) or take_over:
                return copy
    for copy, place in copies:
        if place == path:
            _refuse_other_scope(copy, path, scope)
            # Never a second row for one place: this one continues, or none.
            if take_over or copy.inode is None or not copy.path:
                return copy
            if mark in (None, copy.id):
                raise UsageError(
                    f"{path} is not the folder that was linked; nothing was read or written there",
                    hint=f"If nothing else uses it: {take_over_command(path, scope)}.",
                )
    row, there = next(((copy, place) for copy, place in copies if copy.id == mark), (None, None))
    if row is not None and there is not None and row.scope == scope:
        identity = _identity(there)
        gone = identity is None or identity[1] != row.inode
        if gone and (row.inode == here.inode or take_over):
            return row
    if mark is not None and not take_over:
        whose = "is a copy of a linked folder" if row else "is or was the linked folder of another vault"
        raise UsageError(
            f"{path} {whose}; nothing was read or written there"
            + (
                ""
                if begun
                else ". Create or restore the vault without --memory-dir (in Python: memory_dir=) first"
            ),
            hint=f"If nothing else uses it: {take_over_command(path, scope)}.",
        )
    return None


def is_too_wide(path: Path) -> bool:
    """Return whether a folder contains everything of a user, also if named through links."""
    return path in too_wide() or path in [Path(os.path.realpath(one)) for one in too_wide()]


def too_wide() -> tuple[Path, ...]:
    """Return the home directory of this user with its parents, and the folders of the system."""
    try:
        home = Path(os.path.abspath(Path.home()))  # noqa: PTH100
    except RuntimeError:  # a user without one
        return (Path(os.path.abspath(os.sep)), *_SYSTEM)  # noqa: PTH100
    return (home, *home.parents, *_SYSTEM)


def _refuse_other_scope(copy: LinkedFolder, path: Path, scope: str) -> None:
    """Raise UsageError if another scope has that place: its current content would be mixed into this one."""
    if copy.scope != scope:
        raise UsageError(
            f"{path} is the path of a linked folder of {called(copy.scope)}",
            hint=f"If it is the same folder: {take_over_command(path, copy.scope)}. Otherwise first: ipfsmem folder detach {_quoted(str(path))} --gone.",
        )


def take_over_command(path: Path, scope: str) -> str:
    """Return the command that links a folder to this scope even if another vault's marker is in it."""
    typed = _quoted(str(path))
    if scope:
        return f"ipfsmem folder attach {typed} --take-over --scope {_quoted(scope)}"
    return f"ipfsmem folder attach {typed} --take-over"


def called(scope: str) -> str:
    """Return a scope in a person's words."""
    return f"scope {scope}" if scope else "the memory itself"


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the folder at a path, or None. Raises StorageError."""
    plain = PlainFolder(path)
    try:
        return (plain.root.device, plain.root.inode) if plain.exists() else None
    finally:
        plain.close()


def _quoted(text: str) -> str:
    import shlex  # a hook quotes nothing

    return shlex.quote(text)
