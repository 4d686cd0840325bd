"""Update plain files from the state: memories, conflict copies, MEMORY.md, timeline files.

A file is written only if its target content changed and it still has the content that this device last read or wrote;
otherwise the next scan reads it first. Runs inside a transaction, when the state is durable already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from ipfsmem.bundle.index import assemble_index
from ipfsmem.bundle.index_block import INDEX_KEY, block_lines, join_index_file, kept_lines, split_index_file
from ipfsmem.bundle.keys import INDEX_FILE, is_key, split_conflict_name
from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.bundle.origin_name import without_origin
from ipfsmem.bundle.session_parts import is_part, is_part_key
from ipfsmem.bundle.timeline import event_line, foreign_id, parse_lines
from ipfsmem.causal.entries import memory_name, segment_name
from ipfsmem.causal.value import Entry
from ipfsmem.device.events import Timeline
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables.sealed_tracked_files import tracked_files_of
from ipfsmem.device.tables.tracked_files import FileRow, RenderedTexts, ReplacedFile, Shows, fold
from ipfsmem.device.tables.working_copies import Copies, LinkedFolder
from ipfsmem.errors import IpfsmemError, StorageError
from ipfsmem.files.base_texts import BaseTexts
from ipfsmem.files.file_names import MAX_TIMELINE, is_copy_of, longest, name_of, rendered_name
from ipfsmem.files.folder import TIMELINE, Contents, NotPlainError, PlainFolder, is_flushed_together, sync_all
from ipfsmem.files.set_aside import edited_index, index_was_edited
from ipfsmem.files.stale_writes import before_replaced
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.overview import head_of


class _Want(msgspec.Struct, frozen=True):
    """The target content of a file. `load` returns the bytes, None if they are not on this device. `text`: their
    SHA-256; None if the state has no text for the file (an index with only our lines). `merged`: no value of the
    state has this text."""

    key: str
    text: bytes | None
    dots: tuple[str, ...]
    load: Callable[[], bytes | None]
    merged: bool = False


class _Plan:
    """The planned result of a rendering."""

    def __init__(self) -> None:
        self.wanted: dict[str, _Want] = {}
        #: Foreign names in use for files, as `fold` returns them.
        self.folded: set[str] = set()
        #: Files that are up to date.
        self.right: set[str] = set()
        #: Keys that have a text.
        self.shown: set[str] = set()
        #: Keys whose files stay because a text is not on this device.
        self.keep: set[str] = set()

    def add(self, file: str, want: _Want) -> None:
        """Add a file with its wanted content."""
        self.wanted[file] = want
        self.shown.add(want.key)


class _Work(msgspec.Struct, frozen=True):
    file: str
    want: _Want
    row: FileRow | None
    staged: str
    #: The bytes of the file, and the text that they stand for.
    data: bytes
    text: bytes


class Rendering:
    """One rendering. Afterwards `needs_look` says whether a change came in that needs another scan, `behind` which files could
    not be updated."""

    def __init__(
        self,
        replica: Replica,
        memories: MemoryStore,
        timeline: Timeline,
        folder: PlainFolder,
        copy: LinkedFolder,
        problems: dict[str, str],
        *,
        held: Collection[str] = (),
    ) -> None:
        """`problems`: messages of earlier renderings, by file; updated for the files of this one. `held`: keys whose
        lines in MEMORY.md stay unchanged, since a program is writing these files."""
        self._replica = replica
        self._memories = memories
        self._timeline = timeline
        self._folder = folder
        self._copy = copy
        self._tracked_files = tracked_files_of(replica.db.connection, copy.id, replica.codec.cover)
        self._texts = BaseTexts(replica, self._tracked_files)
        self._problems = problems
        self._held = held
        self._now = replica.environment.now()
        self._durable = True
        #: Names in the folder, while very many files are staged.
        self._standing: set[str] | None = None
        self._touched = False
        self.needs_look = False
        self.behind: set[str] = set()

    # -- memories ----------------------------------------------------------------------------------------------

    def everything(self) -> None:
        """Render all memories, the timeline, the index."""
        self._problems.clear()
        rows = self._tracked_files.texts()
        mains = _foreign_mains(rows)
        plan = _Plan()
        shown, others = self._memories.overview.look(self._memories.scope, keep=True)
        for one in shown:
            if self._is_foreign_index_text(one.key) or not one.section:
                continue  # without a section it is a part of a session
            if not self._memories.is_own(one.dot, one.of):
                entry = self._replica.store.entry(self._memories.name(one.key))
                self._want(one.key, entry, mains.get(one.key), plan, rows)
                continue
            main = mains.get(one.key) or self._name(
                one.key, rows, plan, partial(self._replica.db.block, one.sha)
            )
            row = rows.get(main)
            if row is not None and row.text == one.sha and row.dots == one.dot:
                plan.right.add(main)
                plan.shown.add(one.key)
            else:
                plan.add(main, _Want(one.key, one.sha, (one.dot,), partial(self._replica.db.block, one.sha)))
        for name, entry in others.items():
            parsed = memory_name(name)
            if parsed is not None:
                self._want(parsed.key, entry, mains.get(parsed.key), plan, rows)
        self._bring(rows, plan)
        self._days(others.items(), None)
        self.index()
        self.finish()

    def one(self, key: str) -> None:
        """Render one memory and its conflict copies."""
        for file in [file for file in self._problems if name_of(file, key)[0] == key]:
            del self._problems[file]
        rows = {
            file: RenderedTexts(file, key, row.text or b"", " ".join(row.dots))
            for file, row in self._tracked_files.of_key(key).items()
        }
        plan = _Plan()
        entry = self._replica.store.entry(self._memories.name(key))
        self._want(key, entry, _foreign_mains(rows).get(key), plan, rows)
        self._bring(rows, plan)

    def finish(self) -> None:
        """Make names durable before the rows are, and record times that are reliable by now."""
        if self._touched:
            self._folder.settle()

    def _name(
        self, key: str, rows: Mapping[str, RenderedTexts], plan: _Plan, load: Callable[[], bytes | None]
    ) -> str:
        """Return the name of a memory's file without a known foreign one: that of its original device, unless another file here
        has it on a disk that folds case or composes letters."""
        own = f"{key}.md"
        if not self._copy.shared_index or own in rows:
            return own  # our own folder mirrors what a plain vault publishes
        if (text := load()) is None or (file := rendered_name(key, text)) == own:
            return own
        folded = fold(file)
        is_used = folded in plan.folded or self._tracked_files.meeting(file) is not None
        is_used = is_used or (
            is_key(folded[:-3]) and bool(self._replica.store.entry(self._memories.name(folded[:-3])))
        )
        if is_used or not self._folder.keeps_names(file):
            return own
        plan.folded.add(folded)
        return file

    def _want(
        self, key: str, entry: Entry, main: str | None, plan: _Plan, rows: Mapping[str, RenderedTexts]
    ) -> None:
        """Plan the files of one key."""
        name = self._memories.name(key)
        entry = self._memories.entry(key, entry)
        if not entry:
            return
        dot, value = next(iter(entry.items()))
        if is_part_key(key) and self._is_part(key, entry):
            return
        if (
            len(entry) == 1
            and not self._is_foreign_index_text(key)
            and self._memories.is_own(dot, value.author)
        ):
            if value.body is not None:
                load = partial(self._replica.store.body, name, value)
                main = main or self._name(key, rows, plan, load)
                plan.add(main, _Want(key, bytes.fromhex(value.body), (dot,), load))
            return
        view = self._memories.view(key, entry)
        if not view.own:
            # A pending text of another person is not rendered. A file with the same text that was created here is
            # kept.
            plan.keep.add(key)
            return
        if view.not_fetched:
            plan.keep.add(key)
        if view.data is not None and not self._is_foreign_index_text(key):
            data = view.data
            main = main or self._name(key, rows, plan, lambda: data)
            plan.add(main, _Want(key, sha256(data).digest(), view.dots, lambda: data, view.merged))
        for copy in view.conflicts:
            load = partial(self._replica.store.body, name, entry[copy.dot])
            plan.add(copy.file, _Want(key, bytes.fromhex(copy.body), copy.dots, load))

    def _is_part(self, key: str, entry: Entry) -> bool:
        """Return whether this is a part of a session, which has no file: the shown text, or in a conflict any of its texts."""
        name = self._memories.name(key)
        bodies = (self._replica.store.body(name, value) for value in entry.values() if value.body is not None)
        return any(is_part(key, head_of(data)) for data in bodies if data is not None)

    def _is_foreign_index_text(self, key: str) -> bool:
        """Return whether this memory is other programs' lines of MEMORY.md, which `index` writes."""
        return key == INDEX_KEY and self._copy.shared_index

    def _bring(self, rows: Mapping[str, RenderedTexts], plan: _Plan) -> None:
        todo: list[tuple[str, _Want, FileRow | None]] = []
        for file, want in plan.wanted.items():
            row = rows.get(file)
            if row is not None and row.text == want.text and row.dots == " ".join(want.dots):
                continue
            row_now = None if row is None else self._tracked_files.get(file)
            if row_now is None or row_now.text != want.text:
                if row_now is None and (other := self._tracked_files.meeting(file)) is not None:
                    self._problems[file] = (
                        f"{file} was not written: on many disks it is one file with {other}; rename that one, or forget "
                        f"the memory {want.key}"
                    )
                    continue
                todo.append((file, want, row_now))
            elif row_now.dots != want.dots:
                self._tracked_files.put(replace(row_now, dots=want.dots, shows=Shows.VALUES))
        self._durable = not is_flushed_together(len(todo))
        if not self._durable:
            # `create` detects names that appear from now on.
            self._standing = self._folder.names()
        works = [
            work for file, want, row_now in todo if (work := self._stage(file, want, row_now)) is not None
        ]
        self._standing = None
        if not self._durable:
            sync_all()
        for work in works:
            self._guarded(work.file, partial(self._place, work))
        for file, row in rows.items():
            if (
                not row.key
                or file == INDEX_FILE
                or file in plan.right
                or file in plan.wanted
                or row.key in plan.keep
            ):
                continue
            # A second file with a foreign name stays while its memory does; a copy is removed when it is resolved.
            if row.key in plan.shown and split_conflict_name(file) is None:
                continue
            if (row_now := self._tracked_files.get(file)) is not None:
                self._guarded(file, partial(self._remove, row_now))

    def _guarded(self, file: str, action: Callable[[], None]) -> None:
        try:
            action()
        except (NotPlainError, IpfsmemError) as error:
            self._is_behind(file, error)

    def _is_behind(self, file: str, error: Exception) -> None:
        self.behind.add(file)
        self._problems[file] = f"{file} could not be updated: {error}"

    def _stage(self, file: str, want: _Want, row: FileRow | None) -> _Work | None:
        try:
            text = want.load()
            if text is None:
                return None
            origin = name_of(file, want.key)[1]
            data = text if origin is None else without_origin(text, origin)
            new = self._standing is not None and file not in self._standing
            if not new and not self._is_as_seen(file, data, text, row, want):
                return None
            return _Work(file, want, row, self._folder.stage(file, data, durable=self._durable), data, text)
        except (NotPlainError, IpfsmemError) as error:
            self._is_behind(file, error)
            return None

    def _keep(self, file: str, want: _Want, text: bytes) -> None:
        """Keep the content of a file: a later edit is based on it."""
        if want.text is not None:
            self._texts.keep(file, want.text, text, in_state=not want.merged)

    def _is_as_seen(self, file: str, data: bytes, text: bytes, row: FileRow | None, want: _Want) -> bool:
        """Return whether a file holds what this device last saw in it, or is absent; otherwise it is left for the next scan."""
        contents = self._folder.read(file, MAX_FILE)
        if contents is None or (row is not None and contents.sha == row.body):
            return True
        if contents.data == data:
            # Already up to date: rendered just before a crash.
            self._keep(file, want, text)
            before = before_replaced(row, self._now)
            self._tracked_files.put(
                FileRow(file, want.key, contents.sha, want.text, want.dots, stat=contents.stat, before=before)
            )
        else:
            self.needs_look = True
        return False

    def _place(self, work: _Work) -> None:
        file, want, row = work.file, work.want, work.row
        try:
            placed = (row is None or self._folder.stat(file) is None) and self._folder.create(
                work.staged, file
            )
        except StorageError:
            own = f"{want.key}.md"
            if row is not None or file == own or split_conflict_name(file) is not None:
                raise
            # Perhaps a name that this disk cannot have.
            self._folder.drop_aside(work.staged)
            if (again := self._stage(own, want, None)) is not None:
                self._place(again)
            return
        if not placed:
            old = self._folder.replace(work.staged, file) if row is not None else None
            if old is None:
                # A file of this name was created in the meantime.
                self.needs_look = True
                self._folder.drop_aside(work.staged)
                return
            assert row is not None
            self._note_aside(old, row)
        self._touched = True
        body = sha256(work.data).digest()
        self._keep(file, want, work.text)
        new_row = FileRow(file, want.key, body, want.text, want.dots, before=before_replaced(row, self._now))
        self._tracked_files.put(new_row, new=row is None)

    def _note_aside(self, old: str, row: FileRow) -> None:
        """Keep the replaced content; if it is not what was seen, it was written at that moment."""
        self._tracked_files.put_aside(ReplacedFile(old, row.file, row.body, row.text, -1, self._now))
        contents = self._folder.read_aside(old, longest(row.file))
        if contents is None or contents.sha != row.body:
            self.needs_look = True

    def _remove(self, row: FileRow) -> None:
        contents = self._folder.read(row.file, longest(row.file))
        if contents is not None:
            if contents.sha != row.body:
                self.needs_look = True
                return
            old = self._folder.take_away(row.file)
            self._touched = True
            if old is not None:
                self._note_aside(old, row)
        self._tracked_files.drop(row.file)

    # -- the index ---------------------------------------------------------------------------------------------

    def index(self) -> None:
        """Write MEMORY.md: all of it if the folder is ours; else our lines, in a block next to others' lines."""
        self._guarded(INDEX_FILE, self._shared_index if self._copy.shared_index else self._index)

    def _index(self) -> None:
        data = assemble_index(*self._memories.index_lines()).encode()
        text = sha256(data).digest()
        row = self._tracked_files.get(INDEX_FILE)
        if row is not None and row.text == text and row.is_unchanged(self._folder.stat(INDEX_FILE)):
            return
        contents = self._folder.read(INDEX_FILE, MAX_TIMELINE)
        if contents is not None and contents.sha == text:
            self._tracked_files.put(FileRow(INDEX_FILE, None, text, text, stat=contents.stat))
            return
        if contents is not None and (row is None or row.body != contents.sha):
            self._keep_edited_index(contents.data)
        staged = self._folder.stage(INDEX_FILE, data)
        if contents is None:
            placed = self._folder.create(staged, INDEX_FILE)
        else:
            old = self._folder.replace(staged, INDEX_FILE)
            placed = old is not None
            if old is not None:
                self._drop_index(old, contents.sha)
        if placed:
            self._touched = True
            self._tracked_files.put(FileRow(INDEX_FILE, None, text, text))
        else:
            self._folder.drop_aside(staged)

    def _drop_index(self, old: str, body: bytes) -> None:
        last = self._folder.read_aside(old, MAX_TIMELINE)
        if last is not None and last.sha != body:
            self._keep_edited_index(last.data)
        self._folder.drop_aside(old)

    def _keep_edited_index(self, data: bytes) -> None:
        name = edited_index(data)
        self._folder.keep_hidden(self._folder.stage(name, data), name)
        self._problems[INDEX_FILE] = index_was_edited(name)

    def _shared_index(self) -> None:
        """Write our block: other programs' lines are a memory under a key of their own; the block has what they do not name."""
        view = self._memories.view(INDEX_KEY)
        if view.own and view.data is None and view.not_fetched:
            return
        # Pending lines of other people are not written to a file.
        found_here = view.data if view.own else None
        state = found_here or b""
        theirs = without_origin(state, INDEX_FILE)
        text = sha256(state).digest() if found_here is not None else None
        names = {
            key: file for key, file in _foreign_mains(self._tracked_files.texts()).items() if key != INDEX_KEY
        }
        row = self._tracked_files.get(INDEX_FILE)
        as_it_is = row is not None and row.text == text and INDEX_KEY in self._held
        own_lines = kept_lines(
            self._copy.lines.split(b"\n"),
            [names.get(key, f"{key}.md") for key in self._held],
            theirs if as_it_is else None,
        )
        lines = block_lines(*self._memories.index_lines(), names, theirs, own_lines)
        same = row is not None and row.text == text and self._copy.lines == b"\n".join(lines)
        if row is not None and same and row.is_unchanged(self._folder.stat(INDEX_FILE)):
            return
        contents = self._folder.read(INDEX_FILE, MAX_TIMELINE)
        if contents is None and row is not None and row.text == text and row.has_values:
            return  # its lines are being deleted, or it comes back
        if contents is not None and (row is None or row.body != contents.sha):
            self.needs_look = True
            return
        before = (
            split_index_file(contents.data, frozenset(self._copy.lines.split(b"\n")))
            if contents is not None
            else None
        )
        data = join_index_file(theirs, lines, before)
        dots = view.dots if found_here is not None else ()
        want = _Want(INDEX_KEY, text, dots, lambda: state, view.merged)
        if contents is not None and data == contents.data:
            self._keep(INDEX_FILE, want, state)
            replaced = None if row is None else row.before
            self._tracked_files.put(
                FileRow(
                    INDEX_FILE, INDEX_KEY, contents.sha, text, want.dots, stat=contents.stat, before=replaced
                )
            )
        elif not data:
            if row is not None:
                self._remove(row)
        else:
            self._place(_Work(INDEX_FILE, want, row, self._folder.stage(INDEX_FILE, data), data, state))
            if self.needs_look:
                return
        self._copy = replace(self._copy, lines=b"\n".join(lines))
        cover = self._replica.codec.cover
        Copies(self._replica.db.connection, cover).change(self._copy.id, lines=self._copy.lines)

    # -- timeline ----------------------------------------------------------------------------------------------

    def days(self, only: Iterable[str]) -> None:
        """Render the files of some days."""
        segments = self._replica.store.segments(self._memories.scope)
        self._days(((segment.entry, entry) for segment, entry in segments), set(only))

    def _days(self, entries: Iterable[tuple[str, Entry]], chosen: set[str] | None) -> None:
        """Render the timeline files. Lines are only appended, so that lines of other programs are not lost."""
        if not self._copy.timeline:
            return
        made_from: dict[str, list[str]] = {}
        for name, entry in entries:
            segment = segment_name(name)
            if segment is not None and (chosen is None or segment.day in chosen):
                made_from.setdefault(segment.day, []).extend(
                    f"{name} {value.body} {value.loc is not None and self._replica.db.has_block(bytes.fromhex(value.loc.sha))}"
                    for value in entry.values()
                )
        if chosen is None:
            self._remove_trimmed_days(made_from)
        for day, parts_of_day in made_from.items():
            text = sha256(" ".join(sorted(parts_of_day)).encode()).digest()
            file = f"{TIMELINE}/{day}.jsonl"
            row = self._tracked_files.get(file)
            if row is None or row.text != text:
                self._guarded(file, lambda d=day, f=file, r=row, t=text: self._day(d, f, r, t))  # type: ignore[misc]

    def _remove_trimmed_days(self, made_from: Mapping[str, object]) -> None:
        """Remove files of days of which the state has nothing left."""
        for file, row in self._tracked_files.below(TIMELINE).items():
            if file[len(TIMELINE) + 1 : -len(".jsonl")] not in made_from:
                self._guarded(file, lambda row=row: self._remove(row))  # type: ignore[misc]

    def _day(self, day: str, file: str, row: FileRow | None, text: bytes) -> None:
        events = self._timeline.events((day, day))
        ids_of = {event_line(event): event["id"] for event in events}
        contents = self._folder.read(file, MAX_TIMELINE)
        if contents is None:
            data = b"".join(line + b"\n" for line in ids_of)
            staged = self._folder.stage(file, data)
            if not self._folder.create(staged, file):
                self._folder.drop_aside(staged)
                self.needs_look = True
                return
            self._touched = True
            self._tracked_files.put(FileRow(file, None, sha256(data).digest(), text))
        elif row is None or contents.sha != row.body:
            self.needs_look = True
            # A young one could be another program's line being written.
            if contents.stat is not None:
                self._complete_line(file, contents.data, ids_of)
        else:
            self._extend(row, text, contents, day, ids_of)

    def _extend(
        self, row: FileRow, text: bytes, contents: Contents, day: str, ids_of: dict[bytes, str]
    ) -> None:
        file, data, stat = row.file, contents.data, contents.stat
        ids = {_id_in_state(event, ids_of) for event in parse_lines(data, day)}
        if ids - set(ids_of.values()) and not self._timeline.missing((day, day)):
            # Trimmed lines, or lines in another day's file by their time; not of a segment that is damaged or not fetched: the
            # file may be their only copy.
            text_new = b"".join(line + b"\n" for line in ids_of)
            old = self._folder.replace(self._folder.stage(file, text_new), file)
            if old is None:
                return
            self._note_aside(old, row)
            self._touched = True
            self._tracked_files.put(FileRow(file, None, sha256(text_new).digest(), text))
            return
        new = b"".join(line + b"\n" for line, id in ids_of.items() if id not in ids)
        if new:
            if data and not data.endswith(b"\n"):
                new = b"\n" + new
            self._folder.append(file, new)
            stat = None
        self._tracked_files.put(FileRow(file, None, sha256(data + new).digest(), text, stat=stat))

    def _complete_line(self, file: str, data: bytes, lines: Iterable[bytes]) -> None:
        """Complete a last line of ours that a crash truncated."""
        tail = data[data.rfind(b"\n") + 1 :]
        line = next((line for line in lines if tail and line.startswith(tail)), None)
        if line is not None:
            self._folder.append(file, line[len(tail) :] + b"\n")


def _id_in_state(event: dict[str, object], ids_of: dict[bytes, str]) -> str:
    """Return the id in the state of an event in a file."""
    line = event_line(event)
    return ids_of[line] if line in ids_of else foreign_id(event)


def _foreign_mains(rows: Mapping[str, RenderedTexts]) -> dict[str, str]:
    """Return the files with foreign names that stand for their key because no file has its own name."""
    mains: dict[str, str] = {}
    for file, row in sorted(rows.items()):
        if row.key and file != f"{row.key}.md" and not is_copy_of(file, row.key):
            mains.setdefault(row.key, file)
    return {key: file for key, file in mains.items() if f"{key}.md" not in rows}
