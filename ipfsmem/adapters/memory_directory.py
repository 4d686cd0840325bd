"""Runs the six commands of the memory tool `memory_20250818` on the memories of one scope, as files below `/memories`.

Paths are in `memory_paths`. A command is refused, with the next step, if the text changed since this conversation was shown it. A
file that the conversation was not shown is edited, deleted or renamed in its current state. A text that is deleted before the
conversation was shown all of it is kept in the history. Pending texts of others and parts of sessions are not listed as files, and
no command approves them. Answers and refusals have the wording that models are trained on.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from ipfsmem.adapters.memory_paths import ROOT, name_below, path_of, relative, shown, stored
from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.bundle.session_parts import is_part
from ipfsmem.errors import ChangedError, IpfsmemError, UsageError
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memory import Memory
from ipfsmem.tools.tool import refusal

#: Maximum lines of a text, for the columns of their numbers.
MAX_LINES = 999_999
#: Maximum bits of a line number, because Python refuses to print very long integers.
_BITS = 64
_WIDTH = len(str(MAX_LINES))
#: Maximum lines of a folder's list: more would fill a model's context.
MAX_LISTED = 1_000
#: Levels below the viewed folder.
_LEVELS = 2


class CommandError(UsageError):
    """A command of the memory tool was refused; the message is for the model"""


class MemoryDirectory:
    """The memories of one scope as a folder of files, for one conversation: make one for each. Thread-safe."""

    def __init__(self, memory: Memory) -> None:
        """`memory`: the vault, or one scope of it (`memory.scope("project")`)."""
        self._memory = memory
        self._alone = threading.Lock()
        #: The digests of the texts that this conversation was shown, by path.
        self._seen: dict[str, bytes] = {}
        #: The paths of the texts that it was shown completely.
        self._read_whole: set[str] = set()
        self._commands: dict[str, Callable[[_Arguments], str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def run(self, command: object) -> str:
        """Run one command, the `input` of the model's tool use. Raises CommandError with an answer for the model."""
        arguments = _Arguments(command)
        name = arguments.text("command")
        work = self._commands.get(name)
        if work is None:
            raise CommandError(f"Unknown command: {name}. It is one of {', '.join(self._commands)}.")
        with self._alone:
            try:
                return work(arguments)
            except CommandError:
                raise
            except ChangedError:
                raise _changed(arguments.path("old_path" if name == "rename" else "path")) from None
            except IpfsmemError as error:
                raise CommandError(refusal(error).text.removeprefix("Error: ")) from None

    def clear(self) -> str:
        """Forget all files. For programs only, never for a model."""
        with self._alone:
            for _, key in self._below(""):
                self._memory.forget(key, reason="all memory cleared")
            self._seen.clear()
            self._read_whole.clear()
        return "All memory cleared"

    # -- the commands --------------------------------------------------------------------------------------------

    def _view(self, args: _Arguments) -> str:
        path, file = args.path("path"), args.place("path")
        record = self._read(file)
        if record is None:
            return self._list(path, file)
        lines = self._text(file, record).split("\n")
        first, last = args.lines("view_range")
        start = max(1, first) - 1
        self._note(file, record)
        if start == 0 and (last == -1 or last >= len(lines)):
            self._read_whole.add(file)
        chosen = lines[start : len(lines) if last == -1 else last]
        return f"Here's the content of {path} with line numbers:\n" + _numbered(chosen, start + 1)

    def _create(self, args: _Arguments) -> str:
        path, file = args.path("path"), args.place("path")
        if not file or any(self._below(file)):
            raise CommandError(f"File {path} already exists")
        self._put_new(self._prepared(file, _encoded(args.text("file_text"))))
        return f"File created successfully at: {path}"

    def _str_replace(self, args: _Arguments) -> str:
        path, file, record = self._to_edit(args)
        old, new = _lines_of(args.text("old_str")), _lines_of(args.text("new_str"))
        text = self._text(file, record)
        times = text.count(old) if old else 0
        if times == 0:
            raise CommandError(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            )
        if times > 1:
            lines = ", ".join(str(line) for line in _lines_with(text, old))
            raise CommandError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                "Please ensure it is unique"
            )
        changed = text.index(old)
        edited = text.replace(old, new)
        self._replace(file, record, changed, changed + len(old), new)
        line = text.count("\n", 0, changed)
        start = max(0, line - 2)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _numbered(edited.split("\n")[start : line + 3], start + 1)
        )

    def _insert(self, args: _Arguments) -> str:
        path, file, record = self._to_edit(args)
        at = args.number("insert_line")
        lines = self._text(file, record).split("\n")
        if lines[-1] == "":
            lines.pop()
        if not 0 <= at <= len(lines):
            raise CommandError(
                f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}]."
            )
        text = self._text(file, record)
        start = min(len(text), sum(len(line) + 1 for line in lines[:at]))
        new = _lines_of(args.text("insert_text")).rstrip("\n") + "\n"
        if start and text[start - 1] != "\n":
            new = "\n" + new
        self._replace(file, record, start, start, new, ends=True)
        return f"The file {path} has been edited."

    def _delete(self, args: _Arguments) -> str:
        path, place = args.path("path"), args.place("path")
        if not place:
            raise CommandError(f"Cannot delete the {ROOT} directory itself")
        gone = self._whole(place)
        if not gone:
            raise CommandError(f"The path {path} does not exist")
        for file, record in gone:
            unseen = file not in self._read_whole
            if unseen:
                self._memory.facts.keep(record.key, seen=record.seen)
            self._memory.forget(record.key, seen=record, keep_earlier=unseen)
            self._forget(file)
        return f"Successfully deleted {path}"

    def _rename(self, args: _Arguments) -> str:
        old, source = args.path("old_path"), args.place("old_path")
        new, target = args.path("new_path"), args.place("new_path")
        if not source:
            raise CommandError(f"Cannot rename the {ROOT} directory itself")
        if not target or self._read(target) is not None or any(self._below(target)):
            raise CommandError(f"The destination {new} already exists")
        moved = self._whole(source)
        if not moved:
            raise CommandError(f"The path {old} does not exist")
        if target.startswith(source + "/"):
            raise CommandError(f"Cannot move {old} into itself")
        places = [relative(f"{ROOT}/{target}{file[len(source) :]}") for file, _ in moved]
        ready = [
            self._prepared(place, shown(file, record.data))
            for place, (file, record) in zip(places, moved, strict=True)
        ]
        for new_file, (file, record) in zip(ready, moved, strict=True):
            self._put_new(new_file)
            self._memory.forget(record.key, reason="renamed", seen=record)
            if file not in self._read_whole:
                self._read_whole.discard(new_file.where)
            self._forget(file)
        return f"Successfully renamed {old} to {new}"

    # -- reading -------------------------------------------------------------------------------------------

    def _read(self, file: str) -> MemoryRecord | None:
        """Return the memory of the file at a path below the root, or None."""
        if not file:
            return None
        record = self._memory.read(name_below(file).key)
        if record is None or not _is_file(record) or path_of(record.key, record.file) != file:
            return None
        return record

    def _below(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the paths of all files in a folder, in order, and the keys of their memories."""
        inside = folder + "/" if folder else ""
        files = [(path_of(item.key, item.file), item.key) for item in self._memory.list() if item.own]
        return iter(sorted(one for one in files if one[0].startswith(inside)))

    def _whole(self, place: str) -> list[tuple[str, MemoryRecord]]:
        """Return the file at a path, or all files of the folder at it, each with the state that this conversation was shown, if
        any."""
        record = self._read(place)
        if record is not None:
            files = [(place, record)]
        else:
            read = [(file, self._read(file)) for file, _ in self._below(place)]
            files = [(file, one) for file, one in read if one is not None]
        for file, one in files:
            self._refuse_changed(file, one)
        return files

    def _list(self, path: str, place: str) -> str:
        files: list[tuple[str, int]] = []
        for file, _ in self._below(place):
            if len(files) == MAX_LISTED:
                break
            record = self._read(file)
            if record is not None:
                files.append((file[len(place) + 1 if place else 0 :], len(shown(file, record.data))))
        if place and not files:
            raise CommandError(f"The path {path} does not exist. Please provide a valid path.")
        there = f"{ROOT}/{place}" if place else ROOT
        lines = [f"{_size(sum(size for _, size in files))}\t{there}"]
        lines += [f"{_size(size)}\t{there}/{name}" for name, size in _tree(files, _LEVELS)]
        if len(files) == MAX_LISTED:
            lines.append(
                f"({MAX_LISTED:,} files were looked at. There may be more: view a folder, or a file by its name.)"
            )
        return (
            f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding hidden items:\n"
            + "\n".join(lines)
        )

    # -- texts ---------------------------------------------------------------------------------------------------

    def _text(self, file: str, record: MemoryRecord) -> str:
        """Return a text as a model sees it and returns it: all its line ends are `\\n` here."""
        return _lines_of(shown(file, record.data).decode())

    def _to_edit(self, args: _Arguments) -> tuple[str, str, MemoryRecord]:
        path, file = args.path("path"), args.place("path")
        record = self._read(file)
        if record is None:
            if not file or any(self._below(file)):
                raise CommandError(f"The path {path} is not a file.")
            raise CommandError(f"The path {path} does not exist. Please provide a valid path.")
        self._refuse_changed(file, record)
        return path, file, record

    def _refuse_changed(self, file: str, record: MemoryRecord) -> None:
        if self._seen.get(file, _digest(record)) != _digest(record):
            raise _changed(f"{ROOT}/{file}")

    def _replace(
        self, file: str, record: MemoryRecord, start: int, end: int, new: str, *, ends: bool = False
    ) -> None:
        """Replace the characters from `start` to `end` of the text that the model sees; other lines keep their line ends. `ends`:
        whether the text must end with a line break."""
        text = stored(file, _encoded(_edited(shown(file, record.data).decode(), start, end, new, ends=ends)))
        self._note_written(
            file, text, self._memory.write_text(record.key, text, seen=record, if_match=record.sha256)
        )

    def _prepared(self, file: str, text: bytes) -> _NewFile:
        """Return a file that can be created at a path below the root. Raises CommandError, and as `stored`."""
        path, names = f"{ROOT}/{file}", file.split("/")
        for end in range(1, len(names)):
            if self._read("/".join(names[:end])) is not None:
                raise CommandError(f"Cannot create {path}: {ROOT}/{'/'.join(names[:end])} is a file")
        key = name_below(file).key
        record = self._memory.read(key, counts=False)
        if record is not None and record.own:
            if _is_file(record) and path_of(key, record.file) == file:
                raise CommandError(f"File {path} already exists")
            raise CommandError(f"The name {path} stands for the memory {key} already. Choose another name.")
        # It becomes a sibling of a pending text of others, which is not listed as a file.
        return _NewFile(file, key, stored(file, text), record.sha256 if record is not None else "")

    def _put_new(self, new: _NewFile) -> None:
        try:
            written = self._memory.write_text(new.key, new.data, if_match=new.beside)
        except ChangedError:
            raise CommandError(f"File {ROOT}/{new.where} already exists") from None
        self._note_written(new.where, new.data, written)
        self._read_whole.add(new.where)

    def _forget(self, file: str) -> None:
        """Record that the text at a path was removed."""
        self._seen.pop(file, None)
        self._read_whole.discard(file)

    def _note(self, file: str, record: MemoryRecord) -> None:
        self._seen[file] = _digest(record)

    def _note_written(self, file: str, text: bytes, now: MemoryRecord) -> None:
        """Record that this conversation knows the text that it wrote, but not a text that was merged into it."""
        self._seen[file] = sha256(text).digest() if text != now.data else _digest(now)


class _NewFile(NamedTuple):
    """A file to write: the path below the root, its key, the memory file, and the SHA-256 of a text of others under the key."""

    where: str
    key: str
    data: bytes
    beside: str


class _Arguments:
    """The unvalidated arguments of a model."""

    def __init__(self, arguments: object) -> None:
        if not isinstance(arguments, Mapping):
            raise CommandError("A command is an object with the name `command`.")
        self._given = arguments

    def text(self, name: str) -> str:
        value = self._given.get(name)
        if not isinstance(value, str):
            raise CommandError(f"`{name}` is required, and is a text.")
        return value

    def path(self, name: str) -> str:
        """Return a path as the model wrote it."""
        return self.text(name)

    def place(self, name: str) -> str:
        """Return a path relative to the root."""
        try:
            return relative(self.path(name))
        except UsageError as error:
            raise CommandError(str(error)) from None

    def number(self, name: str) -> int:
        value = self._given.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value.bit_length() > _BITS:
            raise CommandError(f"`{name}` is required, and is a whole number.")
        return value

    def lines(self, name: str) -> tuple[int, int]:
        """Return the first and the last line; -1: to the end."""
        value = self._given.get(name)
        if value is None or value == []:
            return 1, -1
        if not isinstance(value, list) or len(value) != 2 or not all(type(one) is int for one in value):
            raise CommandError(f"`{name}` is two whole numbers: the first line and the last, -1 for the end.")
        return value[0], value[1]


def _is_file(record: MemoryRecord) -> bool:
    return record.own and not is_part(record.key, record.file)


def _digest(record: MemoryRecord) -> bytes:
    return sha256(record.data).digest()


def _changed(path: str) -> CommandError:
    return CommandError(
        f"{path} was changed since you viewed it, by another program or device, so nothing was done. View it again, "
        "then repeat the command with what stands there now."
    )


def _lines_of(text: str) -> str:
    return text.replace("\r\n", "\n")


def _edited(text: str, start: int, end: int, new: str, *, ends: bool) -> str:
    """Return a text with a new part from `start` to `end`, which count each `\\r\\n` as one character; the part gets the line ends
    that most lines have."""
    breaks = [at - number for number, at in enumerate(_places(text, "\r\n"))]
    begin, after = (at + bisect_left(breaks, at) for at in (start, end))
    line_break = "\r\n" if 2 * len(breaks) > text.count("\n") else "\n"
    edited = text[:begin] + new.replace("\n", line_break) + text[after:]
    return edited + line_break if ends and not edited.endswith("\n") else edited


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise CommandError("The text holds something that is not Unicode (a lone surrogate).") from None
    if len(data) > MAX_FILE:
        raise CommandError(
            f"The text has {len(data):,} bytes, and a memory file at most {MAX_FILE:,}. Split it into several files."
        )
    return data


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _lines_with(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield text.count("\n", 0, at) + 1
        at = text.find(part, at + 1)


def _size(size: int) -> str:
    unit = min(max(size.bit_length() - 1, 0) // 10, 3)
    number = size / 1024**unit
    return f"{number:.0f}{'BKMG'[unit]}" if number == int(number) else f"{number:.1f}{'BKMG'[unit]}"


def _tree(files: list[tuple[str, int]], levels: int) -> Iterator[tuple[str, int]]:
    """Yield names with sizes, some levels deep, folders with a slash; names that begin with a dot are left out."""
    folders: dict[str, list[tuple[str, int]]] = {}
    items: list[tuple[str, int | None]] = []
    for path, size in files:
        name, slash, rest = path.partition("/")
        if name.startswith("."):
            continue
        if not slash:
            items.append((name, size))
        else:
            if name not in folders:
                items.append((name, None))
            folders.setdefault(name, []).append((rest, size))
    for name, size_or_none in sorted(items, key=lambda item: item[0]):
        if size_or_none is not None:
            yield name, size_or_none
            continue
        yield f"{name}/", sum(size for _, size in folders[name])
        if levels > 1:
            for below, size in _tree(folders[name], levels - 1):
                yield f"{name}/{below}", size
