"""Export a whole vault with every scope, and list what the export omits.

The result is the tree of `bundle_tree`, as a folder, a zip or a CAR. A folder appears complete or not at all, and
existing files are never touched. The caller chooses the destination.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import msgspec

from ipfsmem.bundle.blob import Blob, name_copies
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.causal.cards import Card, is_forgotten
from ipfsmem.causal.entries import MemoryName, SegmentName, card_entry, parse_entry, scope_of
from ipfsmem.causal.value import MAX_DOTS, Entry
from ipfsmem.content.car import write_car
from ipfsmem.content.cid import CID
from ipfsmem.content.tree import build_tree
from ipfsmem.device.atomic_files import make_directory, new_name, storage_errors, sync_directory
from ipfsmem.device.events import events_of, missing_of
from ipfsmem.device.scopes import read_card
from ipfsmem.errors import FormatError, IncompleteError, UsageError
from ipfsmem.file_durability import flush_to_disk
from ipfsmem.files.folder import is_flushed_together, sync_all
from ipfsmem.memories.bundle_tree import OTHERS, BundleScope, base_files
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_records import Alternative, Conflict, MemoryRecord, place_of
from ipfsmem.memories.overview import ScopeView

#: Maximum number of listed names; the rest is counted.
_NAMED = 10


#: The next steps after exporting what could be read of a damaged database.
AFTER_RESCUE = "The readable part is exported. Move the vault's folder away. Bring a published vault back: ipfsmem recover. Create any other again: ipfsmem init. Then import the export: ipfsmem import DIR --from-backup. Plain files in the old folder memory/, if any, may be newer; import them with: ipfsmem import FOLDER/memory"


#: How to export the sessions that no export includes.
SESSIONS_HINT = (
    "Export a session: ipfsmem session export SESSION. Or accept it with --partial (in Python: partial=True)."
)


class LeftOut(msgspec.Struct, frozen=True):
    """Names of the items that an export omits."""

    #: Conflict copies, and texts hidden by a forget: their file names.
    copies: tuple[str, ...] = ()
    #: Memories whose text is not on this device: their keys.
    not_fetched: tuple[str, ...] = ()
    #: Segments of the timeline that are not on this device.
    segments: int = 0
    #: Scopes without a place: a blob holds one.
    scopes: tuple[str, ...] = ()
    #: Data that could not be read from a damaged database, in words.
    lost: tuple[str, ...] = ()
    #: Memories whose bytes are not a text that the form can hold, as only other programs write them: their keys.
    no_text: tuple[str, ...] = ()
    #: Sessions that are kept on this device only: their names.
    sessions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(msgspec.structs.astuple(self))

    def __str__(self) -> str:
        parts = [
            _counted(self.copies, "conflict copy", "conflict copies"),
            _counted(self.not_fetched, "memory that is not fetched", "memories that are not fetched"),
            f"{self.segments} pieces of the timeline that are not fetched" if self.segments else "",
            _counted(self.scopes, "scope", "scopes"),
            _counted(self.no_text, "memory whose bytes are no text", "memories whose bytes are no text"),
            _counted(
                self.sessions,
                "session that is kept on this device only",
                "sessions that are kept on this device only",
            ),
            *self.lost,
        ]
        return ", ".join(filter(None, parts))

    @property
    def hint(self) -> str | None:
        """A hint that replaces the usual one, if any."""
        if self.lost:
            return AFTER_RESCUE
        if not self.scopes:
            return SESSIONS_HINT if self.sessions else None
        return "This file has one scope. Export all: ipfsmem export --dir DIR, or --zip FILE. The default scope only: --scope ''. Or accept it with --partial (in Python: export_folder, scope(''), partial=True)."

    def refuse(self, partial: bool) -> None:
        """Raise IncompleteError if something is omitted, unless `partial` allows it."""
        if self and not partial:
            raise IncompleteError(f"the export would be incomplete; omitted: {self}", hint=self.hint)


def _counted(names: Sequence[str], one: str, many: str) -> str:
    if not names:
        return ""
    more = "" if len(names) <= _NAMED else f" and {len(names) - _NAMED} more"
    return f"{len(names)} {one if len(names) == 1 else many} ({', '.join(names[:_NAMED])}{more})"


class Everything(msgspec.Struct, frozen=True):
    """The whole content of one scope of a vault, at one moment."""

    scope: str
    #: Shown own texts, by key.
    files: dict[str, bytes]
    unsettled: list[Conflict]
    events: list[dict[str, Any]]
    not_fetched: tuple[str, ...]
    segments: int
    index: str
    card: Card | None

    def without_copies(self) -> LeftOut:
        """Return what a blob omits: alternatives and hidden texts, except texts of others."""
        return self._without(lambda item, copy: item.forgotten or _is_own(copy.reading))

    def without_missing(self) -> LeftOut:
        """Return what is omitted by scope where every text has its place."""
        left_out = self._without(lambda item, copy: False)
        return LeftOut(
            tuple(place_of(self.scope, file) for file in left_out.copies),
            tuple(place_of(self.scope, key) for key in left_out.not_fetched),
            left_out.segments,
        )

    def without_room(self) -> tuple[str, ...]:
        """Return the copies of keys with more texts than one device may hold: a new vault has no room for all."""
        part = self.part().blob
        texts = Counter([*part.files, *(key for key, _ in (*part.more, *part.others)), *part.forgotten])
        left_out = self._without(lambda item, copy: texts[item.key] > MAX_DOTS)
        return tuple(place_of(self.scope, file) for file in left_out.copies)

    def _without(self, is_left_out: Callable[[Conflict, Alternative], bool]) -> LeftOut:
        copies = [(item, copy) for item in self.unsettled for copy in item.copies]
        files = tuple(copy.file for item, copy in copies if copy.reading is None or is_left_out(item, copy))
        return LeftOut(files, self.not_fetched, self.segments)

    def others(self, *, hidden: bool = False) -> list[tuple[str, bytes]]:
        """Return the pending texts of other people by key. `hidden`: include those hidden by a forget."""
        return [
            (item.key, reading.data)
            for item in self.unsettled
            if hidden or not item.forgotten
            for reading in (item.shown, *(copy.reading for copy in item.copies))
            if reading is not None and not reading.own
        ]

    def no_text(self) -> tuple[str, ...]:
        """Return the keys of those of them, and of the shown ones, that are invalid memory files: not UTF-8, or with a header
        that is too long. A folder accepts their bytes; a form made of texts does not."""
        texts = (*self.files.items(), *self.others())
        return tuple(dict.fromkeys(key for key, data in texts if not is_memory_file(data)))

    def _more(self) -> list[tuple[str, bytes]]:
        """Return the own alternatives and hidden texts, by key."""
        return [
            (item.key, copy.reading.data)
            for item in self.unsettled
            for copy in item.copies
            if copy.reading is not None and copy.reading.own
        ]

    def forgotten(self) -> frozenset[str]:
        """Return the keys with texts hidden by a forget."""
        return frozenset(item.key for item in self.unsettled if item.forgotten)

    def tree(self) -> dict[str, bytes]:
        """Return the plain files of this scope by their path: with conflict copies and hidden texts, and texts of others in a
        folder of their own, which no agent mistakes for a part of the vault."""
        texts = {f"{key}.md": data for key, data in self.files.items()} | name_copies(self._more())
        others = name_copies(self.others(hidden=True))
        texts |= {f"{OTHERS}/{file}": data for file, data in others.items()}
        return base_files(
            self.scope, texts, self.events, self.index, card=self.card, forgotten=self.forgotten()
        )

    def part(self) -> BundleScope:
        """Return every text and event, for an import: alternatives and hidden texts stay so, with their authors."""
        more, others = tuple(self._more()), tuple(self.others(hidden=True))
        return BundleScope(
            Blob(self.files, self.events, "", more, forgotten=self.forgotten(), others=others), self.card
        )


def is_memory_file(data: bytes) -> bool:
    """Return whether bytes are a valid memory file."""
    try:
        parse_memory(data)
    except FormatError:
        return False
    return True


def _is_own(reading: MemoryRecord | None) -> bool:
    """Return whether a text is here, and the reader's own."""
    return reading is not None and reading.own


def everything(memories: MemoryStore) -> Everything:
    """Return what this device has of one scope, and what it lacks."""
    with memories.replica.reading():
        entries = {
            name: entry
            for name, entry in memories.replica.store.entries()
            if scope_of(name) == memories.scope
        }
        return _gathered(memories, entries, memories.overview.look(memories.scope))


def whole(memories: MemoryStore) -> tuple[list[Everything], LeftOut]:
    """Return all scopes of a vault that are not forgotten, the default scope first, and what has no place in a tree of them.

    A forgotten scope has none: what others wrote there meanwhile is listed.
    """
    store = memories.replica.store
    with memories.replica.reading():
        by_scope: dict[str, dict[str, Entry]] = {"": {}}
        for name, entry in store.entries():
            by_scope.setdefault(scope_of(name), {})[name] = entry
        views = memories.overview.scopes()
        parts, hidden = [], []
        for scope, entries in sorted(by_scope.items()):
            inside = memories.in_scope(scope)
            scope_part = _gathered(inside, entries, views.get(scope, ([], {})))
            if scope and is_forgotten(entries.get(card_entry(scope), {})):
                hidden += [f"{scope}/{file}" for item in scope_part.unsettled for file in item.files]
            else:
                parts.append(scope_part)
    lacks = [part.without_missing() for part in parts]
    left_out = LeftOut(
        (*(file for lack in lacks for file in lack.copies), *hidden),
        tuple(key for lack in lacks for key in lack.not_fetched),
        sum(lack.segments for lack in lacks),
    )
    return parts, left_out


def _gathered(memories: MemoryStore, entries: Mapping[str, Entry], scope_view: ScopeView) -> Everything:
    """Return one scope from its entries (inside `reading`); of a forgotten one only the remaining texts."""
    store, scope = memories.replica.store, memories.scope
    card_values = entries.get(card_entry(scope), {}) if scope else {}
    gone = is_forgotten(card_values)
    files, not_fetched, unsettled = {}, [], []
    segments: list[tuple[SegmentName, Entry]] = []
    for name, entry in entries.items():
        parsed = parse_entry(name)
        if isinstance(parsed, SegmentName):
            segments.append((parsed, entry))
        if not isinstance(parsed, MemoryName):
            continue
        view, whole_entry = memories.view_and_siblings(parsed.key, entry, behind_a_forget=gone)
        if view.data is not None and view.own:
            files[view.key] = view.data
        elif view.data is None and view.not_fetched:
            not_fetched.append(view.key)
        if view.conflicts or view.hidden or view.others or view.unheeded:
            unsettled.append(memories.conflict_of(view, whole_entry))
    missing = missing_of(store, segments)
    card = read_card(store, scope, card_values) if scope else None
    if card_values and card is None and not gone:
        not_fetched.append("its title")
    return Everything(
        scope,
        files,
        sorted(unsettled, key=lambda item: item.key),
        [] if gone else events_of(store, segments),
        tuple(sorted(not_fetched)),
        missing,
        "" if gone else memories.index_of(scope_view),
        card,
    )


def tree_of(parts: Iterable[Everything]) -> dict[str, bytes]:
    """Return the files of several scopes by path, sorted."""
    files: dict[str, bytes] = {}
    for part in parts:
        files.update(part.tree())
    return dict(sorted(files.items()))


def export_zip(out: BinaryIO, files: Mapping[str, bytes]) -> int:
    """Write a zip of these files by path, the same bytes for the same files; returns the number of files."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            info = zipfile.ZipInfo(path)  # dated 1980: the time of the export stays private
            info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, 0o600 << 16, 3
            archive.writestr(info, data)
    return len(files)


def export_plain_car(out: BinaryIO, files: Mapping[str, bytes]) -> CID:
    """Write the tree of these files as a CAR; returns its root, as any IPFS program computes it."""
    tree = build_tree(files)
    write_car(out, [tree.cid], tree.blocks)
    return tree.cid


def export_folder(folder: Path, files: Mapping[str, bytes]) -> int:
    """Write these files by path to a new or empty folder; returns the number of files.

    They are readable by their owner only, and durable on return. An existing folder is filled, as programs may be in
    it. Raises UsageError if something is in the folder or it is a symbolic link, StorageError if the disk cannot be
    written.
    """
    with storage_errors(folder, "look into"):
        if folder.is_symlink():
            raise UsageError(f"{folder} is a symbolic link", hint="Pass its target instead.")
        is_there = folder.exists()
        if is_there and (not folder.is_dir() or any(folder.iterdir())):
            raise _not_empty(folder)
    folder = folder.absolute()
    make_directory(folder.parent)
    scratch = Path(new_name(folder / "export" if is_there else folder))
    together = is_flushed_together(len(files))
    inner = {inside for name in files for inside in PurePosixPath(name).parents}
    with storage_errors(folder, "write"):
        scratch.mkdir(mode=0o700)
        try:
            for name, data in files.items():
                path = scratch / name
                for parent in reversed(path.relative_to(scratch).parents[:-1]):
                    (scratch / parent).mkdir(
                        mode=0o700, exist_ok=True
                    )  # `parents=True` would ignore the mode
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
                    file.write(data)
                    if not together:
                        file.flush()
                        flush_to_disk(file.fileno())
            if together:
                sync_all()
            if is_there:
                _move_into(folder, scratch)
            else:
                scratch.rename(folder)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        for one in (
            (folder, folder.parent) if together else (*(folder / name for name in inner), folder.parent)
        ):
            sync_directory(one)
    return len(files)


def _move_into(folder: Path, scratch: Path) -> None:
    """Move what is in a folder inside `folder` to `folder`, and remove it; all or nothing. Raises UsageError if something else is
    in `folder` by now, OSError."""
    if any(one != scratch for one in folder.iterdir()):
        raise _not_empty(folder)
    moved: list[Path] = []
    try:
        for one in sorted(scratch.iterdir()):
            one.rename(folder / one.name)
            moved.append(folder / one.name)
    except BaseException:
        for one in moved:
            one.rename(scratch / one.name)
        raise
    scratch.rmdir()


def _not_empty(folder: Path) -> UsageError:
    return UsageError(
        f"{folder} is not an empty folder", hint="Nothing was overwritten. Choose another folder."
    )
