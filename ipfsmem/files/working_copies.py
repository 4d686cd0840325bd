"""Manage all linked folders of one vault on this device. Each belongs to one scope; a scope can have several.

An edit in one of them is a write like any other, and is rendered into the others. Linking and unlinking is decided in
`attaching` and done here.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.bundle.keys import check_scope
from ipfsmem.config import expanded
from ipfsmem.device.connection import DatabaseDamagedError
from ipfsmem.device.project_folders import connected_folders
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.device.tables.working_copies import BY_HAND, REPLACED, Copies, LinkedFolder
from ipfsmem.errors import IncompleteError, IpfsmemError, NotFoundError, StorageError, UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.tables.tracked_files import TrackedFiles
    from ipfsmem.files.attaching import FolderCandidate
    from ipfsmem.files.working_copy import WorkingCopy

#: Seconds for which a full scan is fresh enough for a list.
FRESH = 1.0


class FolderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One linked folder, for people: `state` is "ok", "paused" or "not there", `note` says why; `remarks` are about its
    location."""

    path: str
    scope: str
    state: str
    files: int
    timeline: bool
    note: str = ""
    remarks: list[str] = []


class FolderPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A preview of `attach`."""

    path: str
    scope: str
    #: Files in it that would become memories, by name.
    taken: list[str]
    #: Number of memories that would be written into it as files.
    written: int
    #: The root of the git work tree that contains the folder, "" outside one.
    repository: str
    #: Whether it was linked before, and continues.
    known: bool
    #: Files that would be skipped, and why.
    left_alone: list[str] = []
    #: Notes in other formats and subfolders with notes, which are not read.
    unread: list[str] = []

    def raise_if_incomplete(self) -> None:
        """Raise IncompleteError when `attach` would leave files alone."""
        if self.left_alone:
            raise IncompleteError(
                f"nothing was changed, and {count(len(self.left_alone), 'file')} would be skipped",
                hint="Fix them, or link the folder anyway: its other files become memories.",
            )


class Detached(msgspec.Struct, frozen=True):
    """An unlinked folder: the files restored from those set aside, and the reasons why other texts were not read in."""

    brought_out: list[str]
    left_alone: list[str]


def preview_of(place: FolderCandidate, scope: str = "", keys: Collection[str] = ()) -> FolderPreview:
    """Return what `attach` would do with a folder; `keys`: of the memories of the scope."""
    import os

    from ipfsmem.files.repositories import find_repository

    names, skipped, unread = ([], [], []) if place.new else _judged(place.path)
    repository = find_repository(Path(os.path.realpath(place.path)))
    written = set(keys) - {name[:-3] for name in names}
    tree = "" if repository is None else str(repository.tree)
    is_known = place.known is not None
    return FolderPreview(
        path=str(place.path),
        scope=scope,
        taken=names,
        written=len(written),
        repository=tree,
        known=is_known,
        left_alone=skipped,
        unread=unread,
    )


def _judged(path: Path) -> tuple[list[str], list[str], list[str]]:
    """Return the files of a folder that a scan would import, why it would skip others, and the notes that it does not read."""
    import unicodedata

    from ipfsmem.bundle.index_block import INDEX_KEY, split_index_file
    from ipfsmem.bundle.keys import INDEX_FILE
    from ipfsmem.bundle.origin_name import with_origin
    from ipfsmem.files.file_names import copies_last, longest, name_of
    from ipfsmem.files.folder import TIMELINE, NotPlainError, PlainFolder
    from ipfsmem.files.scan import ANOTHER_FORM
    from ipfsmem.memories.containers import TEXTS
    from ipfsmem.memories.memories import check_body

    ingested: list[str] = []
    skipped: list[str] = []
    inodes: dict[tuple[str, str], int] = {}
    plain = PlainFolder(path)
    try:
        listing = plain.list_files()
        unread = [name for name in plain.root.names() if name[0] != "." and name.lower().endswith(TEXTS)]
        unread += [f"{name}/" for name in listing.unread]
        listing.leave_out(f"{INDEX_KEY}.md")
        for name in copies_last(sorted(listing.files)):
            try:
                key, origin = name_of(name)
                read = plain.read(name, longest(name))
                if read is None or name.startswith(TIMELINE + "/"):
                    continue
                inode = listing.files[name].inode
                if inodes.setdefault((key, unicodedata.normalize("NFC", name)), inode) != inode:
                    raise UsageError(ANOTHER_FORM)
                text = split_index_file(read.data).text if name == INDEX_FILE else read.data
                check_body(key, with_origin(text, origin))
                if name != INDEX_FILE:
                    ingested.append(name)
            except (NotPlainError, IpfsmemError) as error:
                skipped.append(f"{name} was skipped: {error}")
    finally:
        plain.close()
    return sorted(ingested), sorted(skipped), sorted(unread)


def readers_of(path: Path) -> str:
    """Return who can read the files of a folder of a sealed vault, for a person who chooses one."""
    return f"whoever can read this disk can read the files in {path}; the memory itself stays encrypted, here and at the provider"


class WorkingCopies:
    """The linked folders of one vault."""

    def __init__(self, replica: Replica, memories: MemoryStore) -> None:
        self._replica = replica
        self._memories = memories
        self._rows = Copies(replica.db.connection, replica.codec.cover)
        self._open: dict[tuple[str, str], WorkingCopy] = {}
        self._looked = -FRESH
        self._begun = False
        self._missed_anew = False

    def all(self) -> list[WorkingCopy]:
        """Return all of them. Another process may have linked or unlinked one."""
        copies = {}
        for row in self._rows.all():
            name = row.id, row.path
            copy = self._open.get(name)
            if copy is not None:
                copy.copy = row
            copies[name] = copy or self._made(row)
        self._open = copies
        return list(copies.values())

    def _made(self, row: LinkedFolder) -> WorkingCopy:
        from ipfsmem.files.working_copy import WorkingCopy  # 16 modules, only for vaults with plain files

        memories = self._memories.in_scope(row.scope)
        return WorkingCopy(self._replica, memories, row, self._place(row))

    def _place(self, row: LinkedFolder) -> Path:
        return Path(row.path) if row.path else self.own

    @property
    def own(self) -> Path:
        """The folder that moves with the vault."""
        assert self._replica.folder is not None
        return self._replica.folder / "memory"

    def own_files(self) -> dict[str, bytes]:
        """The SHA-256 of each file in the vault's own folder that shows what the vault holds, by its name."""
        return {
            file: body for copy in self.all() if not copy.copy.path for file, body in copy.shown().items()
        }

    def paths(self) -> list[Path]:
        """Return the folders of those that are not paused."""
        return [copy.folder.path for copy in self.all() if not copy.copy.paused]

    def _of(self, scope: str) -> list[WorkingCopy]:
        return [copy for copy in self.all() if copy.copy.scope == scope]

    def begin(self) -> None:
        """Create the row of the vault's original folder, once. A sealed vault has none unless it was named."""
        if self._begun:
            return
        chosen = self._replica.config.memory_dir
        if chosen is None and not self._replica.config.mode.own_folder:
            self._begun = True
            return
        from ipfsmem.files.attaching import FolderCandidate, examine_place

        with self._replica.transaction():
            self._begun = True
            if self._replica.db.get_meta(meta.WORKING_COPIES) is not None:
                return
            place = FolderCandidate(self.own, True) if chosen is None else examine_place(chosen)
            row = self._row(place, "", place.new)
            self._rows.put(row)
            self._replica.db.set_meta(meta.WORKING_COPIES, b"1")
        self._made(row).claim()

    # -- attaching ---------------------------------------------------------------------------------------------

    def attach(
        self, folder: str | Path, *, scope: str = "", take_over: bool = False, timeline: bool = False
    ) -> FolderFacts:
        """Link a folder to a scope; its files are read in, missing ones are rendered.

        `timeline`: write `timeline/` also into a folder that this program did not create. Raises UsageError, KeyNameError,
        StorageError; then nothing was changed.
        """
        place = self.examine(folder, scope=scope, take_over=take_over)
        row = self._row(place, scope, timeline or place.new or place.path == self.own)
        with self._replica.transaction():
            self._rows.put(row)
        copy = self._made(row)
        try:
            copy.claim()
        except BaseException:  # a row of a folder that never existed would fail every scan
            if place.known is None:
                with self._replica.transaction():
                    self._rows.drop(row.id)
            raise
        self.scan()
        self.render()
        return self._facts(copy)

    def examine(self, folder: str | Path, *, scope: str = "", take_over: bool = False) -> FolderCandidate:
        """Check a folder that is to be linked. Raises UsageError, KeyNameError, StorageError."""
        from ipfsmem.files.attaching import examine_place

        self.begin()
        if scope:
            check_scope(scope)
        copies = [(row, self._place(row)) for row in self._rows.all()]
        return examine_place(folder, copies, scope=scope, take_over=take_over)

    def preview(self, folder: str | Path, *, scope: str = "", take_over: bool = False) -> FolderPreview:
        """Preview `attach` without changes. Raises the errors of `attach` about the folder."""
        place = self.examine(folder, scope=scope, take_over=take_over)
        return preview_of(place, scope, {one.key for one in self._memories.in_scope(scope).listing()})

    def _row(self, place: FolderCandidate, scope: str, timeline: bool) -> LinkedFolder:
        path = "" if place.path == self.own else str(place.path)
        if place.known is not None:
            return msgspec.structs.replace(place.known, path=path, timeline=place.known.timeline or timeline)
        random = self._replica.environment.random
        return LinkedFolder(random(16).hex(), path, scope, None, timeline, random(32))

    def detach(self, folder: str | Path, *, gone: bool = False) -> Detached:
        """Unlink a folder; every file in it stays.

        Raises StorageError if texts set aside would be lost, or the folder is missing (unless `gone`: it never comes back);
        NotFoundError if it is not linked.
        """
        copy = self._find(Path(folder))
        names: list[str] = []
        remaining: list[str] = []
        if not gone:
            if copy.copy.paused:
                remaining = copy.differing()
            else:
                copy.scan()
                remaining = copy.left_alone()
            try:
                names = copy.move_out()
            except StorageError as error:
                import shlex

                raise StorageError(
                    f"{copy.folder.path} was not unlinked: {error}",
                    hint=f"If the folder is gone permanently: ipfsmem folder detach {shlex.quote(str(copy.folder.path))} --gone.",
                ) from None
        with self._replica.transaction():
            self._rows.drop(copy.copy.id)
        # Last: without its marker, a folder with edited files would look like a folder whose files are missing.
        if not gone:
            copy.let_go()
        return Detached(names, remaining)

    def _find(self, folder: Path) -> WorkingCopy:
        path = expanded(folder).absolute()
        for copy in self.all():
            where = copy.folder.path
            if where in (path, Path(folder)):
                return copy
            with contextlib.suppress(OSError):  # one of the two is missing, or cannot be examined
                if where.samefile(path):
                    return copy
        folders = ", ".join(str(copy.folder.path) for copy in self.all())
        raise NotFoundError(
            f"{path} is not a linked folder of this vault", hint=f"Linked folders: {folders or 'none'}"
        )

    # -- what a person says ------------------------------------------------------------------------------------

    def folders(self) -> list[FolderFacts]:
        """Return every linked folder, with its current state."""
        self.begin()
        return [self._facts(copy) for copy in self.all()]

    def places(self) -> list[str]:
        """Return the path of every linked folder, also a paused one. None is examined."""
        self.begin()
        return [str(copy.folder.path) for copy in self.all()]

    def _facts(self, copy: WorkingCopy) -> FolderFacts:
        from ipfsmem.device.tables.sealed_tracked_files import tracked_files_of
        from ipfsmem.files.surroundings import remarks

        there = copy.is_there()
        paused = copy.copy.paused
        files = tracked_files_of(self._replica.db.connection, copy.copy.id, self._replica.codec.cover).count()
        state = "ok" if there else "paused" if paused else "not there"
        note = paused or ("" if there else next(iter(copy.notices()), ""))
        path = copy.folder.path
        about = remarks(path)
        if self._replica.config.mode.sealed:
            about.insert(0, readers_of(path))
        return FolderFacts(
            path=str(path),
            scope=copy.copy.scope,
            state=state,
            files=files,
            timeline=copy.copy.timeline,
            note=note,
            remarks=about,
        )

    def pause(self, folder: str | Path, why: str = BY_HAND) -> None:
        """Pause a folder until a person decides which side is valid. Raises NotFoundError."""
        self._find(Path(folder)).pause(why)

    def accept(self, folder: str | Path) -> None:
        """Accept the content of a folder, earlier texts too. Raises NotFoundError, StorageError if it is missing, IncompleteError
        if some texts could not be read in."""
        copy = self._find(Path(folder))
        copy.scan(believe=True)
        if not copy.is_there():
            raise StorageError(next(iter(copy.notices()), f"{copy.folder.path} is not there"))
        self.render()
        if reasons := copy.not_taken_in():
            raise IncompleteError(
                "; ".join(reasons),
                hint="The other files are imported, and the folder is resumed. Fix these files: the next command imports them.",
            )

    def put_back(self, folder: str | Path) -> int:
        """Restore every file from the state. Returns how many differed.

        Texts that were never rendered there are kept as alternatives. Raises NotFoundError, StorageError if it is missing or a
        file in it could not be written.
        """
        copy = self._find(Path(folder))
        count = copy.put_back()
        self.render()
        if copy.behind:
            raise StorageError("; ".join(copy.notices()))
        return count

    def restore_files(self) -> int:
        """Write missing files again, in all folders. Returns how many."""
        count = sum(copy.restore_files() for copy in self.all())
        self.render()
        return count

    def notices(self) -> list[str]:
        """Return notices for a person about the files of all folders."""
        copies = self.all()
        if len(copies) < 2:
            return [text for copy in copies for text in copy.notices()]
        return [
            text if str(copy.folder.path) in text else f"{copy.folder.path}: {text}"
            for copy in copies
            for text in copy.notices()
        ]

    def notices_of(self, path: str) -> list[str]:
        """Return notices for a person about the files of one folder."""
        return [text for copy in self.all() if str(copy.folder.path) == path for text in copy.notices()]

    def troubles(self) -> list[str]:
        """Return, as of the last scan: why folders are not read in or updated, which folders miss too many files,
        which memories may be older than their files, and where an edit of a generated file was moved."""
        return [
            text
            for copy in self.all()
            for text in (copy.trouble() or copy.missing(), copy.outdated(), copy.moved_away())
            if text
        ]

    def doubts(self, key: str | None = None, scope: str = "") -> list[str]:
        """Return, as of the last scan, why a result may be older than the files: about all folders or one memory, for
        a program or model, without paths and file names."""
        copies = [one for one in self._open.values() if key is None or one.copy.scope == scope]
        texts = ["a linked folder is not read: edits made there are missing here"] * any(
            one.trouble() for one in copies
        )
        older = [one for copy in copies for one in copy.older().values() if key in (None, one)]
        if older and key is not None:
            texts.append("this memory may be older than its file in a linked folder, which cannot be read")
        elif older:
            files = count(len(older), "file")
            texts.append(f"memories may be older than {files} of linked folders, which cannot be read")
        return [f"{one} (ipfsmem status)" for one in texts]

    def left_alone(self, path: str) -> list[str]:
        """Return which files of one folder could not be read in, and why, as of the last scan."""
        return [text for copy in self.all() if str(copy.folder.path) == path for text in copy.left_alone()]

    def missing(self) -> list[str]:
        """Return which folders miss more files than count as deletes, as of the last scan."""
        return [text for copy in self.all() if (text := copy.missing())]

    def not_taken_in(self) -> list[str]:
        """Return which texts in the folders are not in the vault, and why, as of the last scan."""
        return [text for copy in self.all() for text in copy.not_taken_in()]

    def restart_missing(self, before: int | None = None) -> None:
        """Restart the wait for files missing now, or first missed before a time (in milliseconds): they count as
        deleted only if two further scans miss them, since there are no scans while keys are locked."""
        with self._replica.transaction():
            for renders in self._tracked_files():
                renders.reset_missing(before)

    def _restart_missing_since_unlock(self) -> None:
        """Apply `restart_missing` to files missed before the keys were unlocked, however they were locked: by a command, the time or a
        restart."""
        watch = self._replica.lock_watch
        if watch is not None and not self._missed_anew:
            begins = watch.begins
            if any(renders.missing_before(begins) for renders in self._tracked_files()):
                self.restart_missing(begins)
        self._missed_anew = True

    def _pause_replaced(self) -> None:
        """Pause the adopted folders of projects that another one replaced: a program writes the other's memories there."""
        try:
            adopted = [one for one in connected_folders(self._replica) if one.adopted]
        except DatabaseDamagedError:
            return  # any operation on projects reports it; texts can still be read
        if not adopted:
            return
        from ipfsmem.files.projects import is_replaced  # not needed to read a vault without projects

        going = {str(copy.folder.path): copy for copy in self.all() if not copy.copy.paused}
        for row in adopted:
            copies = [going[path] for path in row.adopted.values() if path in going]
            if copies and is_replaced(row):
                for copy in copies:
                    copy.pause(REPLACED)

    def _tracked_files(self) -> list[TrackedFiles]:
        rows = self._rows.all()
        if not rows:
            return []
        from ipfsmem.device.tables.sealed_tracked_files import tracked_files_of

        connection, cover = self._replica.db.connection, self._replica.codec.cover
        return [tracked_files_of(connection, row.id, cover) for row in rows]

    # -- looking and rendering ---------------------------------------------------------------------------------

    def scan(self) -> bool:
        """Read in all edits everywhere. True if something was written."""
        self._looked = time.monotonic()
        self.begin()
        self._restart_missing_since_unlock()
        self._pause_replaced()
        wrote = [copy.scan() for copy in self.all()]
        return any(wrote)

    def ingest_file(self, key: str, scope: str = "") -> tuple[str, ...] | None:
        """Read in edits of one memory's files. If there was one: the dots that were shown under the key before."""
        results = [copy.ingest_file(key) for copy in self._of(scope)]
        return next((dots for dots in results if dots is not None), None)

    def ingest_edits(self) -> None:
        """Scan, unless that was done within a second: before lists and searches."""
        if time.monotonic() - self._looked >= FRESH and self.scan():
            self.render()

    def render(self) -> None:
        """Update every file. Changes made meanwhile are read in first and never overwritten unseen."""
        self.begin()
        for copy in self.all():
            with contextlib.suppress(IpfsmemError):  # a reader writes nothing, and is shown the conflict
                copy.settle_index()
        for _ in range(4):
            need_look = [copy.render() for copy in self.all()]
            if not any(need_look) or not self.scan():
                break

    def render_if_needed(self) -> None:
        """Render, unless nothing has changed since the last time."""
        if not all(copy.is_in_step() for copy in self.all()):
            self.render()

    def render_file(self, key: str, scope: str = "") -> None:
        """Update the files of one memory after a write."""
        self._each(scope, lambda copy: copy.render_file(key))

    def show_day(self, day: str, scope: str = "") -> None:
        """Update one day of the timeline."""
        self._each(scope, lambda copy: copy.show_day(day))

    def forget(self, key: str, scope: str = "") -> None:
        """Update the files of a forgotten memory, and delete its files set aside at once."""
        self.render_file(key, scope)
        for copy in self._of(scope):
            copy.forget(key)

    def forget_scope(self, scope: str) -> None:
        """`render` for a scope that is forgotten: what was set aside of its files goes at once, too."""
        self.render()
        for copy in self._of(scope):
            copy.forget(None)

    def _each(self, scope: str, work: Callable[[WorkingCopy], bool]) -> None:
        wrote = [copy.scan() for copy in self._of(scope) if work(copy)]
        if any(wrote):
            self.render()

    def close(self) -> None:
        """Update MEMORY.md if a write left that for later."""
        for copy in self.all():
            copy.close()
