"""The project of a folder, and the scope of a vault for it (format section 5.1).

Only a person connects a folder: a repository names candidate ids of its project, and nothing in it connects it. A connected
folder is found again at its path, and after a move on the same disk. Nothing here runs `git`.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from ipfsmem.bundle.keys import check_scope
from ipfsmem.bundle.projects import random_token, scope_token, slug
from ipfsmem.config import expanded
from ipfsmem.device.birth_time import birth_time
from ipfsmem.device.project_folders import ProjectFolder, connected_folders, drop_folder, keep_folder
from ipfsmem.errors import FormatError, IpfsmemError, UsageError
from ipfsmem.files.projects import Project, is_same_folder, is_still_there, project_at
from ipfsmem.files.repositories import give_id, remove_id
from ipfsmem.memory import Memory
from ipfsmem.ring.statements import check_label


class Choice(msgspec.Struct, frozen=True):
    """The scope for a project."""

    scope: str
    #: True if no scope has that token yet.
    new: bool
    #: Reason for the choice, for the person who is asked.
    why: str


def find_connected(memory: Memory, folder: str | Path) -> tuple[Project, ProjectFolder | None]:
    """Return the project of a folder, and its connection; None if it is not connected.

    A folder inside a connected one belongs to its project, unless it is a repository of its own. Raises UsageError,
    StorageError.
    """
    project = project_at(folder)
    rows = {Path(one.path): one for one in connected_folders(memory.replica)}
    place = project.folder
    if project.repository is not None:
        inside = Path(os.path.realpath(expanded(folder))).relative_to(project.repository.tree)
        for part in (inside, *inside.parents):
            row = rows.get(place / part)
            if row is not None and (connected := _as_connected(row, project, part.as_posix())) is not None:
                return connected, row
        return project, next((row for row in rows.values() if _moved_here(row, project)), None)
    for above in (place, *place.parents):
        row = rows.get(above)
        if row is not None and (connected := _as_connected(row, project, "", above)) is not None:
            return connected, row
    return project, None


def row_of(memory: Memory, project: Project) -> ProjectFolder | None:
    """Return the row of this very folder, None if it is not connected; not that of a parent."""
    rows = connected_folders(memory.replica)
    here = next((row for row in rows if Path(row.path) == project.folder), None)
    if here is not None:
        return here if is_still_there(here, project) else None
    return next((row for row in rows if not project.part and _moved_here(row, project)), None)


def _as_connected(
    row: ProjectFolder, project: Project, part: str, place: Path | None = None
) -> Project | None:
    """Return the project of a row, if the connected folder is still at its path."""
    if part not in ("", "."):
        project = msgspec.structs.replace(project, folder=project.folder / part, part=part)
    elif place is not None:
        project = msgspec.structs.replace(project, folder=place)
    with contextlib.suppress(OSError):
        inode = project.folder.stat().st_ino
        candidate = msgspec.structs.replace(project, inode=inode, born=birth_time(project.folder))
        if is_still_there(row, candidate):
            return candidate
    return None


def _moved_here(row: ProjectFolder, project: Project) -> bool:
    """Tell whether a connected repository was moved to this path: the same inode, the same inode of its `.git`, and a known id.
    An id alone proves nothing: any folder's author can write it."""
    return (
        is_same_folder(row, project)
        and row.git_inode == project.git_inode != 0
        and bool(set(row.ids) & set(project.ids))
    )


def choose_scope(memory: Memory, project: Project, *, scope: str | None = None, new: bool = False) -> Choice:
    """Return the scope for a project, by a person's choice, else by its ids.

    `scope`: this one, existing or not; `new`: a new one in any case. Raises UsageError if a person has to choose, NotFoundError
    for a forgotten scope, KeyNameError.
    """
    from ipfsmem.files.attaching import is_too_wide  # only for connecting; a hook only looks it up

    if is_too_wide(project.folder):
        raise UsageError(
            f"{project.folder} contains all projects of a user, so every folder in it would belong to that one project: name the folder of one project"
        )
    if scope is not None and new:
        raise UsageError("scope and new exclude each other")
    if scope is not None:
        return _existing(memory, check_scope(scope), "it was named")
    row = row_of(memory, project)
    if row is not None and not new:
        bound = _existing(memory, row.scope, "this folder is connected to it")
        if memory.mode.sealed:
            _refuse_foreign_origin(memory, project, memory.scopes.target(row.scope))
        return bound
    if not memory.mode.sealed:
        return _of_its_own(memory, project, new)
    if new:
        return Choice(_random(memory, project), True, "a new scope was requested")
    for ident in project.ids:
        scopes = {memory.scopes.target(token): token for token in memory.scopes.find([ident])}
        if len(scopes) > 1:
            raise _ask(project, f"{project.folder} may be one of several scopes", sorted(scopes))
        if scopes:
            (target,) = scopes
            if ident[0] == "id":
                _refuse_foreign_origin(memory, project, target)
                return _existing(memory, target, "its repository has the id of that project")
            return _existing(memory, target, f"its remote is {'/'.join(filter(None, ident[1:]))}")
    if not project.ids:
        return _of_its_own(memory, project, new)
    ident = project.ids[-1]
    assert memory.replica.config.vault is not None
    tag = bytes.fromhex(memory.replica.config.vault.tag)
    token = scope_token(tag, ident[1], project.part if ident[0] == "remote" else "", name=project.name)
    return _existing(memory, token, "it has no scope yet")


def _existing(memory: Memory, token: str, why: str) -> Choice:
    scope = memory.scopes.get(token)
    if scope is not None:
        memory.scopes.known(token, live=True)
    return Choice(token, scope is None, why)


def _refuse_foreign_origin(memory: Memory, project: Project, token: str) -> None:
    """Raise UsageError for a project found by its id or its folder whose origin is unknown to the scope: it was forked, or its
    origin moved, and only a person knows which."""
    one = memory.scopes.get(token)
    ids = one.card.ids if one is not None and one.card is not None else ()
    remote = next((ident for ident in project.ids if ident[0] == "remote"), None)
    if remote is not None and remote not in ids:
        raise _ask(
            project, f"{project.folder} is known as the project {token}, but has another origin", [token]
        )


def _of_its_own(memory: Memory, project: Project, new: bool) -> Choice:
    """Return a scope with a random suffix. Raises UsageError, unless `new`, if an existing one may be this project."""
    begin = slug(project.name) + "-"
    near = [one for one in memory.scopes.names() if one.startswith(begin)]
    if near and not new:
        raise _ask(project, f"it is unknown whether {project.folder} is one of the projects here", near)
    return Choice(_random(memory, project), True, "it has no scope yet")


def _random(memory: Memory, project: Project) -> str:
    return random_token(project.name, memory.replica.environment.random(6))


def _ask(project: Project, what: str, scopes: list[str]) -> UsageError:
    names = ", ".join(scopes[:5])
    return UsageError(
        f"{what}: {names}",
        hint=f"Choose one: --scope {scopes[0]}. For a new project: --new (in Python: scope= or new=True).",
    )


def bind(
    memory: Memory, project: Project, choice: Choice, *, adopted: dict[str, str] | None = None
) -> ProjectFolder:
    """Connect a folder to a scope, which is created if it is missing. The project's ids are added to the card of an encrypted
    vault; in the plain modes they stay on this device.

    A repository without a remote gets a random id in its own configuration. Raises UsageError, NotFoundError, LimitError,
    StorageError.
    """
    before = row_of(memory, project)
    wrote = False
    if project.repository is not None and not project.ids and project.repository.config is not None:
        give_id(project.repository, memory.replica.environment.random(16).hex())
        wrote, project = True, project_at(project.folder)
    try:
        _make_known(memory, project, choice)
        row = ProjectFolder(
            path=str(project.folder),
            scope=choice.scope,
            inode=project.inode,
            git_inode=project.git_inode,
            born=project.born,
            ids=project.ids,
            adopted={**(before.adopted if before is not None else {}), **(adopted or {})},
            unagreed={
                program: path
                for program, path in (before.unagreed.items() if before is not None else ())
                if program not in (adopted or {})
            },
            wrote_id=wrote or (before is not None and before.wrote_id),
        )
        keep_folder(memory.replica, row, instead=before)
    except BaseException:
        if wrote and project.repository is not None:
            with contextlib.suppress(IpfsmemError):
                remove_id(project.repository)
        raise
    return row


def _make_known(memory: Memory, project: Project, choice: Choice) -> None:
    ids = project.ids if memory.mode.sealed else ()
    one = memory.scopes.get(choice.scope)
    if one is None:
        memory.scopes.make(choice.scope, title=_title(project, choice.scope), ids=ids)
        return
    memory.scopes.known(choice.scope, live=True)
    ids_here = one.card.ids if one.card is not None else ()
    if set(ids) - set(ids_here):
        memory.scopes.stand_for(choice.scope, ids)
    if choice.new and one.title == choice.scope:
        memory.scopes.title(choice.scope, _title(project, choice.scope))


def _title(project: Project, token: str) -> str:
    try:
        check_label(project.name, "the title of a scope")
    except FormatError:
        return token
    return project.name


def undo_bind(memory: Memory, row: ProjectFolder, before: ProjectFolder | None) -> None:
    """Undo `bind` on this device; `before`: the earlier row. Raises UsageError, StorageError."""
    if before is None:
        unbind(memory, row)
        return
    if row.wrote_id and not before.wrote_id:
        _take_written_id(row)
    keep_folder(memory.replica, before, instead=row)


def unbind(memory: Memory, row: ProjectFolder) -> None:
    """Disconnect a folder. Its scope and its texts stay; an id written to its repository is removed. Raises UsageError,
    StorageError."""
    if row.wrote_id and Path(row.path).is_dir():
        _take_written_id(row)
    drop_folder(memory.replica, row)


def _take_written_id(row: ProjectFolder) -> None:
    project = project_at(row.path)
    if project.repository is not None and ("id", project.repository.id) in row.ids:
        remove_id(project.repository)


def follow_move(
    memory: Memory,
    project: Project,
    row: ProjectFolder,
    *,
    adopted: dict[str, str] | None = None,
    unagreed: dict[str, str] | None = None,
) -> ProjectFolder:
    """Record the new path and ids of a connected folder, and the memory folders of programs (None: unchanged)."""
    now = msgspec.structs.replace(
        row,
        path=str(project.folder),
        inode=project.inode,
        git_inode=project.git_inode,
        born=project.born,
        ids=tuple(sorted({*row.ids, *project.ids})),
        adopted=row.adopted if adopted is None else adopted,
        unagreed=row.unagreed if unagreed is None else unagreed,
    )
    if now != row:
        keep_folder(memory.replica, now, instead=row)
    return now
