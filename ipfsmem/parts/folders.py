"""`memory.folders`: linked folders, whose plain files other programs edit, too."""

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
    """The linked folders of an open vault, of all scopes. Whoever can read the disk can read them, in every mode; an encrypted
    vault has none unless one was linked."""

    def scan(self) -> None:
        """Import edits of the plain files.

        Done automatically when the vault is opened, in a sync and an import, before lists if the last scan is more than a
        second old, and for the files of one memory before it is read, written or deleted.
        """
        self._open.scan()

    def ingest_edits(self) -> None:
        """Do `scan`, unless the last one was less than a second ago."""
        self._open.ingest_edits()

    def last_look(self) -> None:
        """Do `scan` before the keys are locked. Raises StorageError if a linked folder is missing; the others are scanned all the same. A
        paused one is skipped, as ever."""
        self._open.scan()
        if self._open.files is not None:
            self._open.files.restart_missing()
        if gone := [facts.path for facts in self.list() if facts.state == "not there"]:
            raise StorageError(
                f"edits in {', '.join(gone)} could not be read: the folder does not exist",
                hint="They are read when the folder exists again and the vault is opened. If it is gone permanently: ipfsmem folder detach DIR --gone.",
            )

    def render(self) -> None:
        """Update the plain files. Writes do so for the files that they change."""
        self._open.render()

    def restore_files(self) -> int:
        """Rewrite missing plain files, instead of taking them for deleted. Return their number."""
        return copies.restore_files() if (copies := self._open.files) is not None else 0

    def attach(
        self,
        folder: str | Path,
        *,
        scope: str | None = None,
        take_over: bool = False,
        timeline: bool = False,
    ) -> FolderFacts:
        """Link a folder to a scope (None: the unnamed one): import its files, write the memories that it lacks, and keep both in step. A
        folder belongs to one scope; a scope may have several folders.

        `take_over`: link a folder although it is marked as linked to another vault, or is on another disk now. `timeline`: write
        `timeline/` although the folder has one. Raises UsageError for an unsuitable folder (of a vault in mode `none`, linked
        elsewhere), StorageError; nothing was changed then.
        """
        made = self._plain_files().attach(folder, scope=scope or "", take_over=take_over, timeline=timeline)
        self._open.changed()
        return made

    def examine(self, folder: str | Path, *, scope: str | None = None, take_over: bool = False) -> None:
        """Check whether a folder can be linked, without a change. Raises as `attach`."""
        self._plain_files().examine(folder, scope=scope or "", take_over=take_over)

    def preview(
        self, folder: str | Path, *, scope: str | None = None, take_over: bool = False
    ) -> FolderPreview:
        """Return what `attach` would do: files to import, and memories to write into the folder. Changes nothing. Raises as `attach`."""
        return self._plain_files().preview(folder, scope=scope or "", take_over=take_over)

    def detach(self, folder: str | Path, *, gone: bool = False) -> FolderDetached:
        """Unlink a folder; its files stay. The answer names files restored from the set-aside area, and edits that could not be imported.

        `gone`: the folder is missing for good. Raises NotFoundError, StorageError if data would be lost.
        """
        from ipfsmem.results import FolderDetached

        done = self._plain_files().detach(folder, gone=gone)
        self._open.changed()
        return FolderDetached(path=str(folder), brought_out=done.brought_out, left_alone=done.left_alone)

    def list(self) -> builtins.list[FolderFacts]:
        """Return the linked folders on this device with their states."""
        return copies.folders() if (copies := self._open.files) is not None else []

    def paths(self) -> builtins.list[str]:
        """Return the paths of the linked folders, without reading them."""
        return copies.places() if (copies := self._open.files) is not None else []

    def troubles(self) -> builtins.list[str]:
        """Return why linked folders were not read or updated by the last scan, in words, except paused ones. Reads and writes go on meanwhile
        without the edits there."""
        return copies.troubles() if (copies := self._open.files) is not None else []

    def notices(self, folder: str) -> builtins.list[str]:
        """Return the notices on the files of a linked folder, by its path as listed, from the last scan."""
        return copies.notices_of(folder) if (copies := self._open.files) is not None else []

    def left_alone(self, folder: str) -> builtins.list[str]:
        """Return the files of a linked folder that could not be imported, with reasons, by its path as listed, from the last scan."""
        return copies.left_alone(folder) if (copies := self._open.files) is not None else []

    def pause(self, folder: str | Path, *, why: str = BY_HAND) -> None:
        """Neither read nor write a linked folder, until `accept` or `put_back`. `why`: reason that a list shows."""
        self._plain_files().pause(folder, why)

    def accept(self, folder: str | Path) -> None:
        """Accept the files of a paused folder as edits. Raises NotFoundError, StorageError, IncompleteError if a file could not be imported;
        the others were."""
        try:
            self._plain_files().accept(folder)
        finally:
            self._open.changed()

    def put_back(self, folder: str | Path) -> int:
        """Rewrite each file of a linked folder from the vault. Return the number of files that differed.

        A text that the vault never had is kept as a conflict copy. Raises NotFoundError, StorageError.
        """
        count = self._plain_files().put_back(folder)
        self._open.changed()
        return count

    def _plain_files(self) -> WorkingCopies:
        copies = self._open.files
        if copies is None:
            raise UsageError(f"a vault in mode {self._open.mode} has no plain files on disk")
        return copies
