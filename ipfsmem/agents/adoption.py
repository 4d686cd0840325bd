"""Adopt Claude Code's memories: link a project's memory folder to the project's scope.

A plan with the folder, the scope and the reason is made first, and then carried out unchanged. The folder is linked
as any other (`memory.folders`), so its files do not change; unlinking it leaves every file.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ipfsmem.agents.claude_folders import (
    ClaudeHome,
    known_projects,
    memory_files,
    memory_place,
    project_name,
)
from ipfsmem.agents.projects import (
    Choice,
    bind,
    choose_scope,
    find_connected,
    follow_move,
    row_of,
    unbind,
    undo_bind,
)
from ipfsmem.bundle.index_block import split_index_file
from ipfsmem.bundle.keys import INDEX_FILE
from ipfsmem.causal.cards import ProjectId
from ipfsmem.config import expanded
from ipfsmem.device import config_files
from ipfsmem.device.project_folders import ProjectFolder, connected_folders, followed_programs, keep_folder
from ipfsmem.errors import ChangedError, IpfsmemError, NotFoundError, StorageError, UsageError
from ipfsmem.files.projects import Project, is_replaced, project_at
from ipfsmem.memory import Memory

PROGRAM = "claude-code"
#: Attempts to remove our lines from a MEMORY.md that another process writes.
_MAX_ATTEMPTS = 5


class AdoptionPlan(msgspec.Struct, frozen=True):
    """The plan for connecting a project."""

    project: Project
    #: The memory folder of Claude Code for this project.
    folder: Path
    choice: Choice
    #: Number of memory files in that folder.
    files: int
    #: The settings file that names the folder; None for the default folder.
    named_in: Path | None = None
    #: True if the plan is carried out already.
    done: bool = False


class NotPlanned(msgspec.Struct, frozen=True):
    """A project that Claude Code knows and that is omitted from the plans."""

    folder: Path
    #: Reason; empty if there is only nothing to adopt.
    error: str = ""
    hint: str = ""


def plan_project(
    memory: Memory,
    claude: ClaudeHome,
    folder: str | Path,
    *,
    scope: str | None = None,
    new: bool = False,
    part: bool = False,
) -> AdoptionPlan:
    """Return the plan for one project. Changes nothing.

    Raises UsageError if a person has to decide, NotFoundError if the scope is forgotten, StorageError.
    """
    project = project_at(folder, part=part)
    place = memory_place(claude, project)
    choice = choose_scope(memory, project, scope=scope, new=new)
    _, row = find_connected(memory, project.folder)
    attached = {one.path: one.scope for one in memory.folders.list()}
    done = (
        row is not None
        and row.path == str(project.folder)
        and row.scope == choice.scope
        and row.adopted.get(PROGRAM) == str(place.path)
        and attached.get(str(place.path)) == choice.scope
        and (row.inode, row.git_inode) == (project.inode, project.git_inode)
        and set(project.ids) <= _known_ids(memory, choice.scope, row)
    )
    return AdoptionPlan(project, place.path, choice, memory_files(place.path), place.named_in, done)


def _known_ids(memory: Memory, scope: str, row: ProjectFolder) -> set[ProjectId]:
    """Return the ids of a project: in an encrypted vault those that all devices know, else those that this device knows."""
    if not memory.mode.sealed:
        return set(row.ids)
    one = memory.scopes.get(scope)
    return set(one.card.ids) & set(row.ids) if one is not None and one.card is not None else set()


def plan_all(memory: Memory, claude: ClaudeHome) -> tuple[list[AdoptionPlan], list[NotPlanned]]:
    """Return a plan for every project that Claude Code knows on this device and that has memories there or in this vault; and
    the omitted projects with reasons. Projects that share one memory folder are omitted, and so are those whose own settings
    name it. Two folders of one repository are one project."""
    plans: dict[Path, AdoptionPlan] = {}
    unplanned: dict[Path, NotPlanned] = {}
    for folder in known_projects(claude):
        with contextlib.suppress(IpfsmemError, OSError, ValueError):
            folder = project_at(folder).folder
        if folder in plans or folder in unplanned:
            continue
        try:
            plan = plan_project(memory, claude, folder)
        except (OSError, ValueError) as error:
            unplanned[folder] = NotPlanned(folder, f"it cannot be inspected: {error}")
            continue
        except (UsageError, NotFoundError, StorageError) as error:
            place = _place_without_question(claude, folder)
            if place is None or memory_files(place) or not isinstance(error, UsageError):
                unplanned[folder] = NotPlanned(folder, str(error), error.hint)
            else:
                unplanned[folder] = NotPlanned(folder)
            continue
        if plan.named_in is not None and not plan.done:
            # The settings file may come from the author of the repository.
            unplanned[folder] = NotPlanned(folder, f"{plan.named_in} chooses the folder {plan.folder} for it")
        elif plan.files or not plan.choice.new:
            plans[folder] = plan
        else:
            unplanned[folder] = NotPlanned(folder)
    used = Counter(plan.folder for plan in plans.values())
    for folder, plan in list(plans.items()):
        if used[plan.folder] > 1:
            unplanned[folder] = NotPlanned(
                folder, f"Claude Code keeps the memories of {used[plan.folder]} projects in {plan.folder}"
            )
            del plans[folder]
    return list(plans.values()), list(unplanned.values())


def connect_followed(memory: Memory, claude: ClaudeHome, project: Project) -> bool:
    """Connect a new project, if a person asked for all future ones. Tell whether it is connected now.

    Only to a new scope, and only the default folder: metadata of a repository opens no existing scope. Decisions that a person
    has to make raise nothing.
    """
    if PROGRAM not in followed_programs(memory.replica):
        return False
    with contextlib.suppress(IpfsmemError, OSError, ValueError):
        plan = plan_project(memory, claude, project.folder)
        if plan.choice.new and plan.named_in is None:
            carry_out(memory, plan)
            return True
    return False


def unlinked_worktree_folders(claude: ClaudeHome, plans: Sequence[AdoptionPlan]) -> list[tuple[Path, str]]:
    """Return default memory folders of Claude Code for further working trees of these projects, as some versions create them,
    with the scope of the project. A person links them: a scope may have several folders."""
    scopes = {plan.project.folder: plan.choice.scope for plan in plans}
    adopted = {plan.folder for plan in plans}
    adoptable: list[tuple[Path, str]] = []
    for folder in known_projects(claude):
        place = claude.folder / "projects" / project_name(str(folder)) / "memory"
        with contextlib.suppress(IpfsmemError, OSError, ValueError):
            scope = scopes.get(project_at(folder).folder)
            if scope is not None and place not in adopted and memory_files(place):
                adoptable.append((place, scope))
    return adoptable


def _place_without_question(claude: ClaudeHome, folder: Path) -> Path | None:
    with contextlib.suppress(IpfsmemError, OSError):
        return memory_place(claude, project_at(folder)).path
    return None


def carry_out(memory: Memory, plan: AdoptionPlan) -> ProjectFolder:
    """Carry out a plan: bind the project, then link the folder. An earlier adopted folder is unlinked: the program no longer
    reads it.

    Raises UsageError, NotFoundError, LimitError, StorageError; no text of the folder was imported then.
    """
    folder = os.path.abspath(plan.folder)  # noqa: PTH100 - a link on the way is the person's own
    before = row_of(memory, plan.project)
    folders = _make_parents(plan.folder)
    try:
        memory.folders.examine(folder, scope=plan.choice.scope)
        if before is not None and before.adopted.get(PROGRAM, folder) != folder:
            before = _release(memory, before)
        bound = bind(memory, plan.project, plan.choice, adopted={PROGRAM: folder})
        try:
            _attach(memory, folder, plan.choice.scope)
        except BaseException:
            undo_bind(memory, bound, before)
            raise
    except BaseException:
        for above in folders:
            with contextlib.suppress(OSError):
                above.rmdir()
        raise
    return bound


def _attach(memory: Memory, folder: str, scope: str) -> None:
    """Link a folder; undo that on failure."""
    stood = {one.path for one in memory.folders.list()}
    try:
        memory.folders.attach(folder, scope=scope)
    except BaseException:
        if folder not in stood:
            with contextlib.suppress(IpfsmemError):
                memory.folders.detach(folder)
        raise


def _release(memory: Memory, row: ProjectFolder) -> ProjectFolder:
    """Unlink the adopted folder after a last scan. No scan if another project replaced this one: its texts would be imported as
    this one's. Raises StorageError; the folder is still linked then."""
    path = row.adopted[PROGRAM]
    with contextlib.suppress(NotFoundError):  # unlinked by hand
        if is_replaced(row):
            memory.folders.pause(path)
        memory.folders.detach(path, gone=not Path(path).is_dir())
    now = msgspec.structs.replace(
        row, adopted={name: one for name, one in row.adopted.items() if name != PROGRAM}
    )
    keep_folder(memory.replica, now)
    return now


def _make_parents(folder: Path) -> list[Path]:
    """Create the missing parents of a memory folder. Return the created ones, the deepest first."""
    missing = [above for above in folder.parents if not above.exists()]
    folders: list[Path] = []
    for above in reversed(missing):
        try:
            above.mkdir(mode=0o700)
        except OSError as error:
            raise StorageError(f"cannot make {above}: {error.strerror}") from None
        folders.insert(0, above)
    return folders


def let_go(memory: Memory, row: ProjectFolder) -> None:
    """Unlink the adopted folders of a project, and delete the connection. Every file stays, without our lines in MEMORY.md.
    Raises StorageError if data would be lost; the project is still connected then."""
    replaced = is_replaced(row)
    for path in row.adopted.values():
        with contextlib.suppress(NotFoundError):  # unlinked by hand, or by an interrupted run
            if replaced:
                memory.folders.pause(path)
            memory.folders.detach(path, gone=not Path(path).is_dir())
        if not replaced:
            _take_block_out(Path(path) / INDEX_FILE)
    unbind(memory, row)


def _take_block_out(index: Path) -> None:
    """Remove our lines from a MEMORY.md that is no longer updated. Raises ChangedError if another process keeps writing it."""
    for tries in reversed(range(_MAX_ATTEMPTS)):
        index_state = config_files.read(index)
        text = split_index_file(index_state.data or b"").text
        if index_state.data is None or text == index_state.data:
            return
        try:
            config_files.replace(index_state, text or None)
            return
        except ChangedError:
            if not tries:
                raise


def connected_project(memory: Memory, folder: str | Path) -> ProjectFolder:
    """Return the row of a connected project, even if its folder is gone. Raises NotFoundError."""
    real_path = os.path.realpath(expanded(folder))
    row = next((one for one in connected_folders(memory.replica) if one.path == real_path), None)
    if row is None and Path(real_path).is_dir():
        _, row = find_connected(memory, real_path)
    if row is None:
        raise NotFoundError(f"{folder} is not connected", hint="List the connected folders: ipfsmem status")
    return row


def follow(memory: Memory, claude: ClaudeHome, project: Project, row: ProjectFolder) -> ProjectFolder:
    """Follow a connected folder that was moved: record its new path, unlink its old memory folder, and adopt the one that
    Claude Code uses there, but only the default folder, and only without memories in it. Any other needs a person's consent,
    and is recorded as `unagreed`. Raises UsageError, NotFoundError, StorageError."""
    if PROGRAM not in row.adopted or project.part:
        return follow_move(memory, project, row)
    try:
        place = memory_place(claude, project)
    except (UsageError, StorageError):
        place = None
    if place is not None and str(place.path) == row.adopted[PROGRAM]:
        return follow_move(memory, project, row)
    row = _release(memory, row)
    folder = str(place.path) if place is not None else ""
    now = follow_move(memory, project, row, unagreed={**row.unagreed, PROGRAM: folder})
    if place is None or place.named_in is not None or memory_files(place.path):
        return now
    _make_parents(place.path)
    _attach(memory, folder, memory.scopes.target(now.scope))
    unagreed = {name: one for name, one in now.unagreed.items() if name != PROGRAM}
    return follow_move(memory, project, now, adopted={**now.adopted, PROGRAM: folder}, unagreed=unagreed)
