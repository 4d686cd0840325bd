"""`memory.folders`: the operations on linked folders, and methods for programs alone."""

from __future__ import annotations

from pathlib import Path

from ipfsmem.errors import StorageError
from ipfsmem.methods import FolderMethods
from ipfsmem.open_vault.method_group import MethodGroup
from ipfsmem.operation import View


class Folders(FolderMethods, MethodGroup):
    """The linked folders of an open vault, of all scopes. Whoever can read the disk can read them, in every mode; an encrypted
    vault has none unless one was linked."""

    def _view(self) -> View:
        return View(self._open, "")

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

    def examine(self, folder: str | Path, *, scope: str | None = None, take_over: bool = False) -> None:
        """Check whether a folder can be linked, without a change. Raises as `attach`."""
        from ipfsmem.operations.folders import copies_of

        copies_of(self._view()).examine(folder, scope=scope or "", take_over=take_over)

    def paths(self) -> list[str]:
        """Return the paths of the linked folders, without reading them."""
        return copies.places() if (copies := self._open.files) is not None else []

    def troubles(self) -> list[str]:
        """Return why linked folders were not read or updated by the last scan, in words, except paused ones. Reads and writes go on meanwhile
        without the edits there."""
        return copies.troubles() if (copies := self._open.files) is not None else []

    def notices(self, folder: str) -> list[str]:
        """Return the notices on the files of a linked folder, by its path as listed, from the last scan."""
        return copies.notices_of(folder) if (copies := self._open.files) is not None else []

    def left_alone(self, folder: str) -> list[str]:
        """Return the files of a linked folder that could not be imported, with reasons, by its path as listed, from the last scan."""
        return copies.left_alone(folder) if (copies := self._open.files) is not None else []
