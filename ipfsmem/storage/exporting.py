"""A whole memory on its way out: what goes along, and what does not. Plain files are written here, and nothing else.

The layout is `<key>.md`, conflict copies beside them, `MEMORY.md`, `timeline/<day>.jsonl`, as in mode `local`. The folder
appears complete or not at all, and nothing that is there already is touched. Where it goes is decided by the caller.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem.bundle.blob import Blob
from ipfsmem.bundle.keys import INDEX_FILE
from ipfsmem.bundle.timeline import day_of, event_line
from ipfsmem.errors import IncompleteError, StorageError
from ipfsmem.replica.disk import make_directory, new_name, storage_errors
from ipfsmem.replica.events import Timeline
from ipfsmem.storage.memories import Memories
from ipfsmem.storage.readings import Unsettled

#: So many names are told; the rest is counted.
_NAMED = 10


class LeftOut(msgspec.Struct, frozen=True):
    """What does not go along, by name."""

    #: Conflict copies, and texts behind a forget: their file names.
    copies: tuple[str, ...] = ()
    #: Memories whose text is not on this device: their keys.
    not_fetched: tuple[str, ...] = ()
    #: Pieces of the timeline that are not on this device.
    segments: int = 0

    def __bool__(self) -> bool:
        return bool(self.copies or self.not_fetched or self.segments)

    def __str__(self) -> str:
        parts = [
            _counted(self.copies, "conflict copy", "conflict copies"),
            _counted(self.not_fetched, "memory that is not fetched", "memories that are not fetched"),
            f"{self.segments} pieces of the timeline that are not fetched" if self.segments else "",
        ]
        return ", ".join(filter(None, parts))

    def refuse(self, partial: bool) -> None:
        """Raises IncompleteError when something does not go along and nobody agreed to that."""
        if self and not partial:
            raise IncompleteError(f"not everything can go along: left out would be {self}")


def _counted(names: Sequence[str], one: str, many: str) -> str:
    if not names:
        return ""
    more = "" if len(names) <= _NAMED else f" and {len(names) - _NAMED} more"
    return f"{len(names)} {one if len(names) == 1 else many} ({', '.join(names[:_NAMED])}{more})"


class Everything(msgspec.Struct, frozen=True):
    """All that one scope of a memory holds, as of one moment."""

    #: What is shown, by key.
    files: dict[str, bytes]
    unsettled: list[Unsettled]
    events: list[dict[str, Any]]
    not_fetched: tuple[str, ...]
    segments: int

    def without_copies(self) -> LeftOut:
        """What a blob leaves out."""
        copies = tuple(file for item in self.unsettled for file in item.files)
        return LeftOut(copies, self.not_fetched, self.segments)

    def without_hidden(self) -> LeftOut:
        """What a folder leaves out: it has no place for what stands behind a forget."""
        copies = tuple(
            copy.file
            for item in self.unsettled
            for copy in item.copies
            if item.forgotten or copy.reading is None
        )
        return LeftOut(copies, self.not_fetched, self.segments)

    def without_missing(self) -> LeftOut:
        """What is left out where every text has its place."""
        copies = tuple(copy.file for item in self.unsettled for copy in item.copies if copy.reading is None)
        return LeftOut(copies, self.not_fetched, self.segments)

    def texts(self) -> dict[str, bytes]:
        """The plain files by name, conflict copies among them."""
        found = {f"{key}.md": data for key, data in self.files.items()}
        for item in self.unsettled:
            if not item.forgotten:
                found.update({c.file: c.reading.data for c in item.copies if c.reading is not None})
        return found

    def blob(self) -> Blob:
        """Every text and event, for an import: what is beside or behind something stays there."""
        more = [
            (item.key, copy.reading.data)
            for item in self.unsettled
            for copy in item.copies
            if copy.reading is not None
        ]
        forgotten = frozenset(item.key for item in self.unsettled if item.forgotten)
        return Blob(self.files, self.events, "", tuple(more), forgotten=forgotten)


def everything(memories: Memories, timeline: Timeline) -> Everything:
    """What this device has of one scope, and what it lacks."""
    store = memories.replica.store
    with memories.replica.reading():
        files, not_fetched = {}, []
        for _, view in memories.views():
            if view.data is not None:
                files[view.key] = view.data
            elif view.not_fetched:
                not_fetched.append(view.key)
        missing = sum(
            store.body(segment.entry, value) is None
            for segment, entry in store.segments(memories.scope)
            for value in entry.values()
        )
        return Everything(files, memories.conflicts(), timeline.events(), tuple(sorted(not_fetched)), missing)


def export_folder(
    folder: Path, texts: Mapping[str, bytes], events: Iterable[dict[str, Any]], index: str
) -> int:
    """Write `texts` (by file name), the events and the index to a folder that is new or empty; how many files.

    The files are readable by their owner only. Raises StorageError, also when something is in the folder.
    """
    with storage_errors(folder, "look into"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise StorageError(
                f"{folder} is not an empty folder", hint="Nothing was overwritten. Name another folder."
            )
    days: dict[str, list[bytes]] = {}
    for event in events:
        days.setdefault(day_of(event["ts"]), []).append(event_line(event) + b"\n")
    files = {**texts, INDEX_FILE: index.encode()}
    files.update({f"timeline/{day}.jsonl": b"".join(lines) for day, lines in days.items()})
    folder = folder.absolute()
    make_directory(folder.parent)
    scratch = Path(new_name(folder))
    with storage_errors(folder, "write"):
        scratch.mkdir(mode=0o700)
        try:
            for name, data in files.items():
                path = scratch / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
                    file.write(data)
            if folder.exists():
                folder.rmdir()
            scratch.rename(folder)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return len(files)
