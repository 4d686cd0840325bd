"""Identify the project of a folder, and detect that another project replaced a connected one.

A program stores the memories of a project in a folder derived from the project's path. If another project is at that
path, its memories would be in the same folder, so the adopted folder is not used any more.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from ipfsmem.causal.cards import ProjectId
from ipfsmem.config import expanded
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.birth_time import birth_time
from ipfsmem.device.project_folders import ProjectFolder
from ipfsmem.errors import IpfsmemError, UsageError
from ipfsmem.files.repositories import Repository, find_repository


class Project(msgspec.Struct, frozen=True):
    """A folder on this device, and its own metadata."""

    #: Absolute, without links: the root of the project. For a repository its first working tree.
    folder: Path
    inode: int
    repository: Repository | None = None
    #: The part of a monorepo that is a project of its own, as a relative path; empty for all of it.
    part: str = ""
    #: When the folder was created (`device/birth_time.py`), 0 if unknown.
    born: int = 0

    @property
    def ids(self) -> tuple[ProjectId, ...]:
        """Its possible ids, as on a card."""
        repository, project_ids = self.repository, list[ProjectId]()
        if repository is not None and repository.id and not self.part:
            project_ids.append(("id", repository.id))
        if repository is not None and repository.remote:
            project_ids.append(("remote", repository.remote, self.part))
        return tuple(project_ids)

    @property
    def name(self) -> str:
        """Its name for people: the repository, by its remote, else the folder."""
        remote = self.repository.remote if self.repository is not None else ""
        return remote.rpartition("/")[2] or self.folder.name

    @property
    def git_inode(self) -> int:
        """The inode of its `.git`, 0 without one."""
        return self.repository.inode if self.repository is not None else 0


def project_at(folder: str | Path, *, part: bool = False) -> Project:
    """Return the project of a folder: its repository, else the folder itself. `part`: this folder of its repository, as a project
    of its own. Raises UsageError if there is no such folder, StorageError."""
    path = expanded(folder)
    with storage_errors(path, "look into"):
        try:
            place = Path(os.path.realpath(path))
            inode = place.stat().st_ino
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise UsageError(f"there is no folder {path}") from None
        if not place.is_dir():
            raise UsageError(f"{path} is not a folder")
    repository = find_repository(place)
    if repository is None:
        return Project(place, inode, born=birth_time(place))
    inside = place.relative_to(repository.tree)
    if part and inside.parts:
        folder = repository.root / inside
        return Project(folder, inode, repository, inside.as_posix(), birth_time(folder))
    root = repository.root
    with storage_errors(root, "look into"):
        return Project(root, root.stat().st_ino, repository, born=birth_time(root))


def is_still_there(row: ProjectFolder, project: Project) -> bool:
    """Return whether `project`, at the path of a row, is the connected one: the same folder, or another that shares an id with
    it, as after a new clone in its place, or neither has one."""
    same = bool(set(row.ids) & set(project.ids)) or not (row.ids or project.ids)
    return is_same_folder(row, project) or same


def is_replaced(row: ProjectFolder) -> bool:
    """Return whether another project is now where one was connected. False if nothing is there, or if that cannot be determined."""
    with contextlib.suppress(IpfsmemError, OSError):
        path = Path(row.path)
        if path.is_dir():
            project = project_at(path, part=True)
            inode, born = path.stat().st_ino, birth_time(path)
            return not is_still_there(
                row, msgspec.structs.replace(project, folder=path, inode=inode, born=born)
            )
    return False


def is_same_folder(row: ProjectFolder, project: Project) -> bool:
    """Return whether a folder is the very one of a row. The inode of a removed folder is reused, on ext4 at once; the creation
    times tell them apart."""
    return project.inode == row.inode and (not row.born or not project.born or row.born == project.born)
