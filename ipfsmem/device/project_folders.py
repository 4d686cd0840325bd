"""Record the folders of this device that a person connected to projects of a vault.

One sealed row that never leaves this device: a sealed vault has nothing of it in the clear, except the copies of
programs' settings that `connect` keeps in `.agents/`; those of Claude Code name its projects. The ids of a folder are
read in `files/repositories.py`; whether it is the connected one is decided in `agents/projects.py`.
"""

from __future__ import annotations

import functools

import msgspec

from ipfsmem.causal.cards import ProjectId
from ipfsmem.device.connection import damaged
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.errors import FormatError, OpenError

#: Maximum number of remembered folders that are not connected; the oldest is dropped.
MAX_SEEN = 20


class ProjectFolder(msgspec.Struct, frozen=True):
    """A folder that a person connected."""

    #: Absolute, without links.
    path: str
    scope: str
    #: Of the folder, and of its `.git` (0 without): a moved folder keeps both.
    inode: int
    git_inode: int
    #: When the folder was created, in nanoseconds since 1970; 0 if unknown.
    born: int = 0
    #: Its ids when it was connected.
    ids: tuple[ProjectId, ...] = ()
    #: The memory folders that programs keep for it, as they were attached, by program.
    adopted: dict[str, str] = {}
    #: The memory folders that programs keep for it since it was moved, by program, not confirmed yet.
    unagreed: dict[str, str] = {}
    #: Whether connecting wrote the id into its repository's configuration.
    wrote_id: bool = False


class _ProjectRow(msgspec.Struct):
    folders: list[ProjectFolder]
    #: Folders in which an agent's program asked for memories and that are not connected, the newest last.
    seen: list[str]
    #: Programs whose projects are connected when they begin, at a person's request.
    follow: list[str] = []


@functools.cache
def _decoder() -> msgspec.json.Decoder[_ProjectRow]:
    """Return the decoder, created on first use: most calls need none."""
    return msgspec.json.Decoder(_ProjectRow)


def connected_folders(replica: Replica) -> list[ProjectFolder]:
    """Return the connected folders, by path."""
    return _read(replica).folders


def unconnected_folders(replica: Replica) -> list[str]:
    """Return the folders in which an agent's program asked for memories and that are not connected."""
    return _read(replica).seen


def followed_programs(replica: Replica) -> frozenset[str]:
    """Return the programs whose projects are connected when they begin."""
    return frozenset(_read(replica).follow)


def follow_program(replica: Replica, program: str, *, follow: bool) -> None:
    """Set whether projects of a program are connected when they begin."""
    with replica.transaction():
        row = _read(replica)
        if (program in row.follow) is not follow:
            row.follow = (
                sorted({*row.follow, program}) if follow else [one for one in row.follow if one != program]
            )
            _write(replica, row)


def keep_folder(replica: Replica, folder: ProjectFolder, *, instead: ProjectFolder | None = None) -> None:
    """Store a folder, replacing the record of its path; `instead`: also replacing this one."""
    with replica.transaction():
        row = _read(replica)
        gone = {folder.path, instead.path if instead is not None else folder.path}
        row.folders = sorted(
            [*(one for one in row.folders if one.path not in gone), folder], key=lambda one: one.path
        )
        row.seen = [path for path in row.seen if path != folder.path]
        _write(replica, row)


def drop_folder(replica: Replica, folder: ProjectFolder) -> None:
    """Forget a folder."""
    with replica.transaction():
        row = _read(replica)
        row.folders = [one for one in row.folders if one.path != folder.path]
        _write(replica, row)


def note_unconnected(replica: Replica, path: str) -> None:
    """Remember that an agent works in a folder that is not connected. Writes only what is new."""
    if path in _read(replica).seen:
        return
    with replica.transaction():
        row = _read(replica)
        if path not in row.seen:
            row.seen = [*row.seen, path][-MAX_SEEN:]
            _write(replica, row)


def _read(replica: Replica) -> _ProjectRow:
    stored = replica.db.get_meta(meta.PROJECTS)
    if stored is None:
        return _ProjectRow([], [])
    try:
        return _decoder().decode(replica.codec.open_row(stored))
    except (msgspec.DecodeError, FormatError, OpenError) as error:
        raise damaged(replica.db.path, f"which folder is which project cannot be read: {error}") from None


def _write(replica: Replica, row: _ProjectRow) -> None:
    replica.db.set_meta(meta.PROJECTS, replica.codec.seal_row(msgspec.json.encode(row)))
