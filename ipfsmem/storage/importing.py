"""Bringing a whole bundle in: a blob, a folder of memory files, a single file. Importing twice changes nothing more.

Format section 1.5. With `merge` a text that is neither shown nor a live sibling is kept beside what is here; with
`replace` it supersedes what was shown. Files are only read here, and never followed through links.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from ipfsmem.bundle.blob import Blob, read_blob
from ipfsmem.bundle.keys import INDEX_FILE, key_of_foreign_name, split_conflict_name
from ipfsmem.bundle.memory_file import MAX_FILE, parse_memory, render_memory
from ipfsmem.bundle.timeline import parse_lines, union
from ipfsmem.causal.value import FOREIGN, FORGOTTEN, Entry
from ipfsmem.errors import FormatError, IpfsmemError, NotFoundError, UsageError
from ipfsmem.replica.disk import read_file, storage_errors
from ipfsmem.replica.events import Timeline
from ipfsmem.replica.many import no_collection
from ipfsmem.replica.writing import Writing, writing
from ipfsmem.storage.exporting import OTHERS
from ipfsmem.storage.memories import Memories, check_body

Strategy = Literal["merge", "replace"]
MAX_BLOB = 512 * 1024 * 1024


class Imported(msgspec.Struct, frozen=True):
    """What an import did. `problems` name what was left out and why.

    `still_forgotten`: texts of memories that were forgotten here, which a merge leaves so.
    """

    added: int = 0
    replaced: int = 0
    kept_beside: int = 0
    unchanged: int = 0
    still_forgotten: int = 0
    forgotten: int = 0
    events: int = 0
    problems: tuple[str, ...] = ()


def import_files(
    memories: Memories,
    timeline: Timeline,
    blob: Blob,
    *,
    strategy: Strategy = "merge",
    prune: bool = False,
    foreign: bool = False,
) -> Imported:
    """Import in one transaction: all of it is there afterwards, or nothing.

    `foreign`: the texts are others' word, of another vault or a chat export (format section 5.2). Those that are others' in
    the blob are so in any case.
    """
    if strategy not in ("merge", "replace"):
        raise UsageError(f"there is no import strategy {strategy!r}", hint="merge or replace.")
    if prune and strategy != "replace":
        raise UsageError("prune goes with the strategy replace")
    if prune and blob.problems:
        raise FormatError(
            f"what could not be read would be forgotten: {blob.problems[0]}",
            hint="Put it right, or import without pruning.",
        )
    done: Counter[str] = Counter()
    problems = list(blob.problems)
    with writing(memories.replica) as change, no_collection():
        for (
            key
        ) in blob.forgotten:  # before the texts behind it: one text too many is left out, and none comes back
            change.forget(memories.name(key), ())
        # A second text for one key stands beside the first, whatever the strategy: nobody was shown the first.
        of, replace = FOREIGN if foreign else "", strategy == "replace"
        texts = [(key, data, replace, of) for key, data in blob.files.items()]
        texts += [(key, data, False, of) for key, data in blob.more]
        # Own ones first: a text that is own and others' at once is own.
        texts += [(key, data, False, FOREIGN) for key, data in blob.others]
        for key, data, replaces, whose in texts:
            try:
                check_body(key, data)
                done[_take(memories, change, key, data, replaces, whose)] += 1
            except IpfsmemError as error:
                problems.append(f"{key} was left out: {error}")
        if prune:
            if len(problems) > len(blob.problems):
                raise FormatError(f"what could not be taken in would be forgotten: {problems[-1]}")
            named = {*blob.files, *(key for key, _ in (*blob.more, *blob.others))}
            for entry, view in list(memories.views()):
                if view.key not in named and view.data is not None and entry:
                    change.forget(memories.name(view.key), view.dots)
                    done["forgotten"] += 1
        done["events"] = timeline.add_foreign(change, blob.events, by_content=True)
    return Imported(**done, problems=tuple(problems))


def _take(memories: Memories, change: Writing, key: str, data: bytes, replace: bool, of: str) -> str:
    """Take one text in; which count of `Imported` it belongs to. Raises LimitError when the key is full."""
    name = memories.name(key)
    entry = change.entry(name)
    if not entry:
        change.put(name, data, (), of=of)
        return "added"
    if not replace and _known(entry, data):
        hidden = any(value.kind == FORGOTTEN for value in entry.values())
        return "still_forgotten" if hidden else "unchanged"
    view = memories.view(key, entry, change.body)
    if view.data == data:
        return "unchanged"
    if replace and view.dots:
        change.put(name, data, view.dots, of=of)
        return "replaced"
    change.keep_beside(name, data, of=of)
    return "still_forgotten" if view.forgotten else "kept_beside"


def _known(entry: Entry, data: bytes) -> bool:
    digest = sha256(data).hexdigest()
    return any(value.body == digest for value in entry.values())


def read_path(path: Path) -> Blob:
    """A blob file, a folder of memory files (with or without `memory/` and `timeline/`), or one memory file."""
    with storage_errors(path, "read"):
        if path.is_symlink():
            raise UsageError(f"{path} is a symbolic link", hint="Give the place that it leads to.")
        if path.is_dir():
            return _read_folder(path)
        if not path.exists():
            raise NotFoundError(f"there is nothing at {path}")
    data = read_file(path, MAX_BLOB) or b""
    if path.suffix == ".json" or data[:1] == b"{":
        return read_blob(data)
    return collect_files([(path.name, data)], [], [])


def _read_folder(folder: Path) -> Blob:
    inner = folder / "memory"
    base = inner if inner.is_dir() and not inner.is_symlink() else folder
    texts: list[tuple[str, bytes]] = []
    events: list[bytes] = []
    problems: list[str] = []
    for relative, path, within in _files(base):
        try:
            if relative.endswith(".jsonl"):
                data = read_file(path, MAX_BLOB, within=within)
                if data is not None:
                    events.append(data)
            elif relative.endswith(".md"):
                data = read_file(path, MAX_FILE, within=within)
                if data is None:
                    problems.append(f"{relative} was left out: it disappeared while being read")
                else:
                    texts.append((relative, data))
        except IpfsmemError as error:
            problems.append(f"{relative} was left out: {error}")
    return collect_files(texts, events, problems)


def _files(base: Path) -> Iterator[tuple[str, str, int | None]]:
    """The files below `base`: the name of each relative to it, with slashes; then its name in the open folder that the
    number stands for, so that a folder which is swapped for a link meanwhile leads nowhere, or its path where the system
    has no such numbers. As text: ten thousand `Path` objects take longer to make than their files to read."""
    for where, folders, names, within in _walk(str(base)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = "" if where == str(base) else Path(where).relative_to(base).as_posix() + "/"
        for name in sorted(names):
            if not name.startswith("."):
                path = name if within is not None else os.path.join(where, name)  # noqa: PTH118 - see above
                yield inner + name, path, within


def _walk(base: str) -> Iterator[tuple[str, list[str], list[str], int | None]]:
    if hasattr(os, "fwalk"):
        yield from os.fwalk(base)
    else:
        yield from ((*found, None) for found in os.walk(base))


def collect_files(texts: list[tuple[str, bytes]], lines: list[bytes], problems: list[str]) -> Blob:
    """A bundle out of (file name, text) pairs and the texts of timeline files; MEMORY.md is left out, conflict copies are
    further texts of their key, and those in the folder for it are others' word. `problems` grows."""
    files: dict[str, bytes] = {}
    more: list[tuple[str, bytes]] = []
    others: list[tuple[str, bytes]] = []
    renamed: list[tuple[str, bytes]] = []
    copies: list[tuple[str, bytes]] = []
    for name, data in texts:
        if name == INDEX_FILE:
            continue
        copy = split_conflict_name(name.removeprefix(f"{OTHERS}/"))
        if copy is not None:
            (copies if "/" not in name else others).append((copy[0], data))
            continue
        try:
            key, origin = key_of_foreign_name(name)
            if origin is None:
                files[key] = data
            else:
                renamed.append((key, render_memory(parse_memory(data).with_fields({"origin_name": origin}))))
        except FormatError as error:
            problems.append(f"{name} was left out: {error}")
    for key, data in (*renamed, *copies):
        if files.setdefault(key, data) != data:
            more.append((key, data))
    events = union(*(parse_lines(text) for text in lines))
    return Blob(files, events, "", tuple(more), tuple(problems), others=tuple(others))
