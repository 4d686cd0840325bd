"""`memory.folders`: the working copies of a memory on this device, folders of plain files that other programs write too."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import TYPE_CHECKING

from ipfsmem.device.tables.working_copies import BY_HAND
from ipfsmem.errors import StorageError, UsageError
from ipfsmem.files.working_copies import FolderFacts, FolderPreview, WorkingCopies
from ipfsmem.parts.part import MemoryPart

if TYPE_CHECKING:
    from ipfsmem.results import FolderDetached


class MemoryFolders(MemoryPart):
    """The working copies of an open memory, of all its scopes. Whoever reads the disk reads these folders, in every mode; beside
    an encrypted memory there is none unless one was attached."""

    def scan(self) -> None:
        """Take in what people and programs edited in the plain files.

        Happens by itself when the memory is opened, in a sync and an import, before lists when the last look is over a
        second old, and for the files of one memory before it is read, written or forgotten.
        """
        self._open.scan()

    def ingest_edits(self) -> None:
        """`scan`, unless the last one was less than a second ago: before a list that was made earlier is shown again."""
        self._open.ingest_edits()

    def last_look(self) -> None:
        """`scan`, for what must not be missed: before the keys are locked. Raises StorageError when a working copy is not there;
        the others are taken in all the same. A paused one waits for a person, and is left alone as ever.
        """
        self._open.scan()
        if self._open.files is not None:
            self._open.files.miss_anew()
        if gone := [facts.path for facts in self.list() if facts.state == "not there"]:
            raise StorageError(
                f"edits in {', '.join(gone)} could not be read: the folder does not exist",
                hint="They are read when the folder exists again and the vault is opened. If it is gone permanently: ipfsmem folder detach DIR --gone.",
            )

    def render(self) -> None:
        """Bring the plain files up to date. Writes do it for what they changed."""
        self._open.render()

    def restore_files(self) -> int:
        """Write plain files again that are missing, instead of taking that for deletes. Returns how many."""
        return copies.restore_files() if (copies := self._open.files) is not None else 0

    def attach(
        self,
        folder: str | Path,
        *,
        scope: str | None = None,
        take_over: bool = False,
        timeline: bool = False,
    ) -> FolderFacts:
        """Make a folder a working copy of a scope (None: the nameless one): what is in it is taken in, what it lacks is
        written, and so it stays. It belongs to that scope alone; a scope may have several folders.

        `take_over`: the folder is marked as another memory's, or lies on another disk now, and should be this one's.
        `timeline`: write `timeline/` into it although it stood there before. Raises UsageError for what cannot be one (of a memory
        in mode `none`, another memory's folder), StorageError; then nothing was changed.
        """
        made = self._plain_files().attach(folder, scope=scope or "", take_over=take_over, timeline=timeline)
        self._open.changed()
        return made

    def examine(self, folder: str | Path, *, scope: str | None = None, take_over: bool = False) -> None:
        """Whether a folder could be attached. Changes nothing. Raises what `attach` raises of the folder."""
        self._plain_files().examine(folder, scope=scope or "", take_over=take_over)

    def preview(
        self, folder: str | Path, *, scope: str | None = None, take_over: bool = False
    ) -> FolderPreview:
        """What `attach` would do: files that would become memories, and memories that would be written into the folder. Changes
        nothing. Raises what `attach` raises of the folder."""
        return self._plain_files().preview(folder, scope=scope or "", take_over=take_over)

    def detach(self, folder: str | Path, *, gone: bool = False) -> FolderDetached:
        """Let go of a working copy; every file in it stays as it is. The answer names the files that came out of what was set aside, and
        the edits that could not be taken in.

        `gone`: the folder is not there and will not be again. Raises NotFoundError, StorageError when something would be lost.
        """
        from ipfsmem.results import FolderDetached

        done = self._plain_files().detach(folder, gone=gone)
        self._open.changed()
        return FolderDetached(path=str(folder), brought_out=done.brought_out, left_alone=done.left_alone)

    def list(self) -> builtins.list[FolderFacts]:
        """The working copies of this memory on this device, and how they are."""
        return copies.folders() if (copies := self._open.files) is not None else []

    def paths(self) -> builtins.list[str]:
        """Where the working copies of this memory lie; unlike `list`, this looks at none of them."""
        return copies.places() if (copies := self._open.files) is not None else []

    def troubles(self) -> builtins.list[str]:
        """Why working copies were neither taken in nor brought up to date by the last look, in words; nothing of those that a person
        paused. What is read and written meanwhile is what the memory holds, without the edits made there."""
        return copies.troubles() if (copies := self._open.files) is not None else []

    def notices(self, folder: str) -> builtins.list[str]:
        """What a person should know about the files of one working copy, by its path as listed, as of the last look."""
        return copies.notices_of(folder) if (copies := self._open.files) is not None else []

    def left_alone(self, folder: str) -> builtins.list[str]:
        """Which files of one working copy could not be taken in, and why, by its path as listed, as of the last look."""
        return copies.left_alone(folder) if (copies := self._open.files) is not None else []

    def pause(self, folder: str | Path, *, why: str = BY_HAND) -> None:
        """Take nothing in from a working copy and write nothing to it, until `accept` or `put_back`. `why`: what a list of them says."""
        self._plain_files().pause(folder, why)

    def accept(self, folder: str | Path) -> None:
        """What stands in a paused working copy counts: all of it is taken for edits. Raises NotFoundError, StorageError,
        IncompleteError when a file could not be taken in: then the rest was."""
        try:
            self._plain_files().accept(folder)
        finally:
            self._open.changed()

    def put_back(self, folder: str | Path) -> int:
        """What is remembered counts: it is written into every file of a working copy. How many files held something else.

        A text that was never remembered is kept beside, as a conflict copy. Raises NotFoundError, StorageError.
        """
        count = self._plain_files().put_back(folder)
        self._open.changed()
        return count

    def _plain_files(self) -> WorkingCopies:
        copies = self._open.files
        if copies is None:
            raise UsageError(f"a vault in mode {self._open.mode} has no plain files on disk")
        return copies
