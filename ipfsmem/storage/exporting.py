"""A whole memory on its way out: what goes along, and what does not. Plain files are written here, and nothing else.

The layout is `<key>.md`, conflict copies beside them, `MEMORY.md`, `timeline/<day>.jsonl`, as in mode `local`. The folder
appears complete or not at all, and nothing that is there already is touched. Where it goes is decided by the caller.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem.bundle.blob import Blob, name_others
from ipfsmem.bundle.keys import INDEX_FILE
from ipfsmem.bundle.timeline import day_of, event_line
from ipfsmem.causal.value import MAX_DOTS
from ipfsmem.errors import IncompleteError, StorageError
from ipfsmem.replica.disk import make_directory, new_name, storage_errors
from ipfsmem.replica.events import Timeline
from ipfsmem.storage.memories import Memories
from ipfsmem.storage.readings import Copy, Reading, Unsettled

#: Where texts of others stand in an exported folder (format section 1.5).
OTHERS = "others"
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

    #: What is shown and the exporter's own word, by key.
    files: dict[str, bytes]
    unsettled: list[Unsettled]
    events: list[dict[str, Any]]
    not_fetched: tuple[str, ...]
    segments: int

    def without_copies(self) -> LeftOut:
        """What a blob leaves out: it has no place for what stands beside or behind something, but for texts of others."""
        return self._without(lambda item, copy: item.forgotten or _is_own(copy.reading))

    def without_hidden(self) -> LeftOut:
        """What a folder leaves out: it has no place for what stands behind a forget."""
        return self._without(lambda item, copy: item.forgotten)

    def without_missing(self) -> LeftOut:
        """What is left out where every text has its place, but for those of one key beyond what a device may hold there."""
        kept = self.blob()
        texts = Counter([*kept.files, *(key for key, _ in (*kept.more, *kept.others)), *kept.forgotten])
        return self._without(lambda item, copy: texts[item.key] > MAX_DOTS)

    def _without(self, left: Callable[[Unsettled, Copy], bool]) -> LeftOut:
        copies = [(item, copy) for item in self.unsettled for copy in item.copies]
        files = tuple(copy.file for item, copy in copies if copy.reading is None or left(item, copy))
        return LeftOut(files, self.not_fetched, self.segments)

    def others(self) -> list[tuple[str, bytes]]:
        """The texts of others that nobody promoted, by key; not those behind a forget."""
        return [
            (item.key, reading.data)
            for item in self.unsettled
            if not item.forgotten
            for reading in (item.shown, *(copy.reading for copy in item.copies))
            if reading is not None and not reading.own
        ]

    def texts(self) -> dict[str, bytes]:
        """The plain files by name, conflict copies among them; texts of others in a folder of their own, which no agent
        takes for a part of the memory."""
        found = {f"{key}.md": data for key, data in self.files.items()}
        for item in self.unsettled:
            if not item.forgotten:
                own = (copy for copy in item.copies if _is_own(copy.reading))
                found.update({copy.file: copy.reading.data for copy in own if copy.reading is not None})
        return found | {f"{OTHERS}/{file}": data for file, data in name_others(self.others()).items()}

    def blob(self) -> Blob:
        """Every text and event, for an import: what is beside or behind something stays there, and whose it is."""
        more, hidden = [], []
        for item in self.unsettled:
            for copy in item.copies:
                if copy.reading is not None and copy.reading.own:
                    more.append((item.key, copy.reading.data))
                elif copy.reading is not None and item.forgotten:
                    hidden.append((item.key, copy.reading.data))
        forgotten = frozenset(item.key for item in self.unsettled if item.forgotten)
        others = (*self.others(), *hidden)
        return Blob(self.files, self.events, "", tuple(more), forgotten=forgotten, others=others)


def _is_own(reading: Reading | None) -> bool:
    """Whether a text is here, and the reader's own word."""
    return reading is not None and reading.own


def everything(memories: Memories, timeline: Timeline) -> Everything:
    """What this device has of one scope, and what it lacks."""
    store = memories.replica.store
    with memories.replica.reading():
        files, not_fetched = {}, []
        for _, view in memories.views():
            if view.data is not None and view.own:
                files[view.key] = view.data
            elif view.data is None and view.not_fetched:
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
