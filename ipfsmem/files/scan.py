"""Convert changes of plain files to writes, each of which replaces exactly the values that the file showed.

Format section 6, "Files edited by others". Runs inside the transaction of the writes: the texts and the rows that
record their origin become durable together. It reads files and changes none; only files set aside are deleted, after
they were read.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from ipfsmem.bundle.index_block import INDEX_KEY, split_index_file
from ipfsmem.bundle.keys import INDEX_FILE
from ipfsmem.bundle.origin_name import with_origin
from ipfsmem.bundle.timeline import Event, event_line, foreign_id, parse_line, parse_lines
from ipfsmem.causal.merge3 import merge_memory
from ipfsmem.causal.merge_links import merge_index
from ipfsmem.causal.view import KeyView
from ipfsmem.device.events import Timeline
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables.sealed_tracked_files import tracked_files_of
from ipfsmem.device.tables.tracked_files import FileRow, Missing, PreviousTexts, Return, Shows, Stat
from ipfsmem.device.tables.working_copies import Copies, LinkedFolder
from ipfsmem.device.writing import Writing
from ipfsmem.errors import IpfsmemError, UsageError
from ipfsmem.files.base_texts import BaseTexts
from ipfsmem.files.file_names import copies_last, is_copy_of, longest, name_of
from ipfsmem.files.folder import MISSING_FOR, RACY, TIMELINE, NotPlainError, PlainFolder
from ipfsmem.files.set_aside import SetAside
from ipfsmem.files.stale_writes import OLD_TEXT_FOR, before_replaced, read_before
from ipfsmem.memories.memories import MemoryStore, check_body
from ipfsmem.memories.part_guard import check_incoming

DAY = 86_400_000
#: A file that holds an earlier text again is accepted if two scans this far apart agree; ms.
RETURNED_FOR = 60_000
#: More files than this with earlier texts within `RETURNED_FOR`: something restored the whole folder.
_MOST_RETURNS = 3
#: The reason why a second file of a memory is not read.
ANOTHER_FORM = "another file here has this name in another form of Unicode; give one of them another name"

#: The values that a scanned file shows.
_Shown = tuple[tuple[str, ...], Shows]


class Scan:
    """One scan of the files, in one transaction."""

    def __init__(
        self,
        replica: Replica,
        memories: MemoryStore,
        timeline: Timeline,
        folder: PlainFolder,
        copy: LinkedFolder,
        change: Writing,
        problems: dict[str, str],
        *,
        believe: bool = False,
    ) -> None:
        """`believe`: a person has reviewed the files, so each was written with knowledge of its text."""
        self._replica = replica
        self._memories = memories
        self._timeline = TimelineEdits(timeline, change)
        self._folder = folder
        self._copy = copy
        self._change = change
        self._tracked_files = tracked_files_of(replica.db.connection, copy.id, replica.codec.cover)
        self._copies = Copies(replica.db.connection, replica.codec.cover)
        self._texts = BaseTexts(replica, self._tracked_files)
        self._index_lines = frozenset(copy.lines.split(b"\n"))
        self._problems = problems
        #: Files whose texts could not be read in.
        self.left_alone: list[str] = []
        #: Keys of which a text was read in, without texts that this program rendered just before a crash.
        self.took: list[str] = []
        self._believe = believe
        self._now = replica.environment.now()
        #: The replaced files that were set aside.
        self.set_aside = SetAside(
            folder,
            self._tracked_files,
            copy,
            problems,
            self._now,
            take=self._take_late_edit,
            is_known=self._is_known,
        )

    # -- one file ----------------------------------------------------------------------------------------------

    def take_all(self, files: Iterable[str]) -> None:
        """Read in the content of these files, copies of others last."""
        for file in copies_last(files):
            self.ingest_file(file)

    def ingest_file(self, file: str) -> None:
        """Read in the content of a file. An invalid file is skipped and reported."""
        self._or_say(file, self._take)

    def _or_say(self, file: str, action: Callable[[str], None]) -> None:
        self._problems.pop(file, None)
        try:
            action(file)
        except (NotPlainError, IpfsmemError) as error:
            self._problems[file] = f"{file} was skipped: {error}"
            self.left_alone.append(file)

    def _take(self, file: str) -> None:
        name_of(file)
        contents = self._folder.read(file, longest(file))
        if contents is None:
            return  # removed meanwhile: the next scan misses it
        row, body = self._tracked_files.get(file), contents.sha
        if row is not None and body == row.body:
            if row.stat != contents.stat or row.missing_since is not None:
                self._tracked_files.put(replace(row, stat=contents.stat, missing_since=None))
        elif file.startswith(TIMELINE + "/"):
            if self._timeline.ingest_lines(contents.data, file, self._is_young(file)):
                self._tracked_files.put(FileRow(file, None, body, None, stat=contents.stat))
            elif row is not None:
                self._tracked_files.put(replace(row, text=None))
        else:
            data = self._without_own_lines(file, contents.data)
            if not data and file == INDEX_FILE and not (row is not None and row.has_values):
                # Only ever our own lines.
                self._tracked_files.put(FileRow(file, INDEX_KEY, body, None, stat=contents.stat))
            elif data or row is None or not self._is_young(file):
                self._put_text(file, data, body, contents.stat, row)
            # otherwise a program has just truncated it to rewrite it

    def _without_own_lines(self, file: str, data: bytes) -> bytes:
        """Return what people and other programs wrote into a file: in MEMORY.md some lines are ours."""
        return split_index_file(data, self._index_lines).text if file == INDEX_FILE else data

    # -- texts that stood there before -------------------------------------------------------------------------

    def find_returns(self, files: list[str]) -> tuple[set[str], bool]:
        """Return which of these changed files hold an earlier text again and are not accepted yet, and whether something restored
        the whole folder: there were that many such returns within a minute."""
        returns = self._tracked_files.returns()
        waiting: set[str] = set()
        for file in files:
            body = self._is_return(file)
            before = returns.get(file)
            if body is None:
                if before is not None:
                    self._tracked_files.drop_return(file)
                    del returns[file]
                continue
            if before is None or before.body != body or before.at > self._now:
                returns[file] = before = Return(file, body, self._now)
                self._tracked_files.put_return(before)
            if self._now - before.at < RETURNED_FOR:
                waiting.add(file)
                self._problems[file] = (
                    f"{file} has an earlier text again; if it still does in a minute, it is saved as an edit"
                )
        recent = sum(0 <= self._now - row.at < RETURNED_FOR for row in returns.values())
        return waiting, recent > _MOST_RETURNS

    def _is_return(self, file: str) -> bytes | None:
        """Return the SHA-256 of a file that holds an earlier text, not its current one, and not the live text of any value."""
        try:
            if file.startswith(TIMELINE + "/") or not self._tracked_files.had(file):
                return None
            contents = self._folder.read(file, longest(file))
        except (NotPlainError, IpfsmemError):
            return None
        if contents is None:
            return None
        row, body = self._tracked_files.get(file), contents.sha
        key, _ = self._name_of(file, row)
        if (row is not None and row.body == body) or not self._tracked_files.held(file, body):
            return None
        entry = self._change.entry(self._memories.name(key))
        # Copying a conflict copy over the memory is a choice between current texts.
        return None if any(value.body == body.hex() for value in entry.values()) else body

    def find_differing(self, files: list[str]) -> list[str]:
        """Return those of these memory files that differ from what this device last saw in them; of unknown ones those that hold
        an earlier text."""
        differing: list[str] = []
        for file in files:
            try:
                name_of(file)
                data = None if file.startswith(TIMELINE + "/") else self._folder.read(file, longest(file))
                row = self._tracked_files.get(file)
            except (NotPlainError, IpfsmemError):
                continue
            if data is not None and (
                data.sha != row.body if row is not None else self._tracked_files.held(file, data.sha)
            ):
                differing.append(file)
        return differing

    def put_back(self, files: list[str]) -> None:
        """Have the next rendering write the state into these files. A text that was never there before is kept as an alternative."""
        for file in files:
            self._or_say(file, self._put_back)

    def _put_back(self, file: str) -> None:
        contents = self._folder.read(file, longest(file))
        row = self._tracked_files.get(file)
        key, origin = self._name_of(file, row)
        if contents is None or file.startswith(TIMELINE + "/"):
            return
        body = contents.sha
        is_known = self._tracked_files.held(file, body)
        if row is None and not is_known:
            return  # a new file: nothing to restore, and it is read in as any other
        if row is not None and row.body == body:
            return
        if not is_known:
            text = with_origin(self._without_own_lines(file, contents.data), origin)
            self._check(key, text, row)
            name = self._memories.name(key)
            digest = sha256(text).hexdigest()
            if all(value.body != digest for value in self._change.entry(name).values()):
                self._change.write_alternative(name, text)
        dots, shows = ((), Shows.VALUES) if row is None else (row.dots, row.shows)
        self._tracked_files.put(FileRow(file, key, body, None, dots, shows, contents.stat))
        self._tracked_files.drop_return(file)

    @staticmethod
    def _name_of(file: str, row: FileRow | None) -> tuple[str, str | None]:
        """Return key and foreign name of a file: the key is that of its row if it has one, as the name alone may not tell."""
        key_known = None if row is None else row.key
        key, origin = name_of(file, key_known)
        return key_known or key, origin

    def _check(self, key: str, text: bytes, row: FileRow | None) -> None:
        """Raise IpfsmemError for an invalid memory, or one that would approve messages of a session."""
        check_body(key, text)
        check_incoming(self._memories, self._change, key, text, replaces=row is not None)

    def _is_young(self, file: str) -> bool:
        """Return whether the file was just written and may be incomplete. A modification time in the future is
        ignored."""
        stat = self._folder.stat(file)
        return stat is not None and abs(time.time_ns() - stat.mtime) < RACY

    def _put_text(self, file: str, data: bytes, body: bytes, stat: Stat | None, row: FileRow | None) -> None:
        key, origin = self._name_of(file, row)
        if row is None:
            self._refuse_twin(file, key, stat)
        text = with_origin(data, origin)
        self._check(key, text, row)
        name = self._memories.name(key)
        digest = sha256(text)
        if row is not None and row.text == digest.digest() and row.has_values:
            # MEMORY.md with changes only in our own lines; or a line of the header that the file does not show.
            self._tracked_files.put(replace(row, body=body, stat=stat, missing_since=None))
            return
        view = self._view(key)
        shows, before = Shows.VALUES, None
        if view.data == text:
            # Already shown: rendered just before a crash, or a program wrote the same text.
            dots, before = view.dots, before_replaced(row, self._now)
        else:
            self.took.append(key)
            if row is None:
                dots = self._new_text(file, key, text, digest.hexdigest(), view)
            else:
                dots, shows = self._edit(row, name, text, view)
        self._texts.keep(file, digest.digest(), text, in_state=True)
        new_row = FileRow(file, key, body, digest.digest(), dots, shows, stat, before=before)
        self._tracked_files.put(new_row, new=row is None)
        self._tracked_files.drop_return(file)

    def _refuse_twin(self, file: str, key: str, stat: Stat | None) -> None:
        """Raise UsageError for a second file of one memory, with its name in another form of Unicode. Both would be overwritten
        with the shown text."""
        if file.isascii():
            return
        same = unicodedata.normalize("NFC", file)
        for other in self._tracked_files.of_key(key):
            stat_of_other = self._folder.stat(other) if other != file else None
            # A disk that does not tell the two names apart shows one file under both.
            if stat_of_other is None or (stat is not None and stat_of_other.inode == stat.inode):
                continue
            if unicodedata.normalize("NFC", other) == same:
                raise UsageError(ANOTHER_FORM)

    def _view(self, key: str) -> KeyView:
        """Return what is shown under a key, with the changes of this scan so far."""
        return self._memories.view(key, self._change.entry(self._memories.name(key)), self._change.body)

    def _new_text(self, file: str, key: str, text: bytes, digest: str, view: KeyView) -> tuple[str, ...]:
        name = self._memories.name(key)
        same = tuple(dot for dot, value in self._change.entry(name).items() if value.body == digest)
        if same:
            return same
        if is_copy_of(file, key):
            return (self._change.write_alternative(name, text),)
        # A new text under a forgotten key is a new memory; next to a live one it has seen nothing.
        replaces = view.dots if view.forgotten else ()
        return (self._change.put(name, text, replaces),)

    def _edit(self, row: FileRow, name: str, text: bytes, view: KeyView) -> _Shown:
        if row.shows is not Shows.VALUES or not set(row.dots) <= self._change.entry(name).keys():
            return self._edit_of_the_past(row, name, text, view)
        older = None if self._believe else self._older_base(row, row.text, text)
        if older is None:
            return (self._change.put(name, text, row.dots),), Shows.VALUES
        self._problems[row.file] = (
            f"{row.file} was written by a program that had not read the newest text; both were kept"
        )
        shown = self._texts.get(row.file, row.text)
        merged = self._merged(row.file, older, shown, text) if shown is not None else None
        if merged is None:
            return (self._change.put(name, text, ()),), Shows.VALUES
        self._texts.keep(row.file, sha256(text).digest(), text)
        if merged == shown:
            return (), Shows.OLD_TEXT
        self._change.put(name, merged, row.dots)
        return (), Shows.EDIT

    def _edit_of_the_past(self, row: FileRow, name: str, text: bytes, view: KeyView) -> _Shown:
        """Merge a file that was edited while the state moved on and before it was rendered, if that is clean."""
        older = self._base_for(row, row.text, text)
        if view.data is not None and view.own and older is not None:
            merged = self._merged(row.file, older, view.data, text)
            self._texts.keep(row.file, sha256(text).digest(), text)
            if merged is not None:
                if merged != view.data:
                    self._change.put(name, merged, (*view.dots, *row.dots))
                return (), Shows.EDIT
        return (self._change.put(name, text, row.dots),), Shows.VALUES

    def _merged(self, file: str, base: bytes, a: bytes, b: bytes) -> bytes | None:
        """Merge two edits of the text that a file showed; of an index as a union of its lists."""
        merged = merge_memory(base, a, b)
        return merge_index(base, a, b) if merged is None and file == INDEX_FILE else merged

    def _older_base(self, row: FileRow, newest: bytes | None, text: bytes) -> bytes | None:
        """Return the text, of those in the file shortly before `newest` (SHA-256), that the writer of `text` had read; None if
        that is the newest, or unknown. See `read_before`."""
        if row.before is None or not row.before.is_within(OLD_TEXT_FOR, self._now):
            return None
        latest = self._texts.get(row.file, newest)
        if latest is None:
            return None
        older = [data for sha in row.before.texts if (data := self._texts.get(row.file, sha)) is not None]
        return read_before(text, latest, older)

    def _base_for(self, row: FileRow, stood_there: bytes | None, text: bytes) -> bytes | None:
        """Return the text that the writer of `text` had read when `stood_there` (a SHA-256) was in the file."""
        return self._older_base(row, stood_there, text) or self._texts.get(row.file, stood_there)

    # -- what was missed ---------------------------------------------------------------------------------------

    def take_deletes(self, files: list[Missing], total: int) -> str | None:
        """Process files that a scan missed, of `total` known ones. Deletes those that were missing long enough, unless too many
        vanish; then nothing is deleted and the reason is returned."""
        ready: list[tuple[str, FileRow]] = []
        for missed in files:
            row = self._tracked_files.get(missed.file)
            if row is None or row.key is None:
                # A damaged row proves no deletion; a missing timeline or index is not a deletion.
                self._tracked_files.drop(missed.file)
            elif row.missing_since is None or row.missing_since > self._now:
                self._tracked_files.put(replace(row, missing_since=self._now))
            elif self._now - row.missing_since >= MISSING_FOR:
                ready.append((row.key, row))
        if not ready:
            return None
        recent = self._recent_deletes()
        gone = sum(count for _, count in recent)
        if gone + len(ready) > max(3, (total + gone) // 4):
            return (
                f"{len(ready)} of {total} files are missing from {self._folder.path}; too many at once to be deletes, so nothing was deleted. To write them again: ipfsmem folder resume --keep vault "
                f"{self._folder.path}"
            )
        for key, row in ready:
            name = self._memories.name(key)
            if set(row.dots) & self._change.entry(name).keys():
                self._change.remove(name, row.dots)
            self._tracked_files.drop(row.file)
        recent.append((self._now, len(ready)))
        self._copies.change(self._copy.id, vanished=msgspec.json.encode(recent))
        return None

    def _recent_deletes(self) -> list[tuple[int, int]]:
        copy = self._copies.get(self._copy.id)
        stored = copy.vanished if copy is not None else b""
        deletes = msgspec.json.decode(stored, type=list[tuple[int, int]]) if stored else []
        return [(at, count) for at, count in deletes if abs(self._now - at) < DAY]

    # -- edits at the moment of a replacement ---------------------------------------------------------------

    def _is_known(self, file: str, body: bytes) -> bool:
        """Return whether bytes of a file (their SHA-256) are in the state, or were in the file before."""
        if self._tracked_files.held(file, body) or self._texts.has(file, body):
            return True
        if file.startswith(TIMELINE + "/"):
            return False
        key = self._name_of(file, self._tracked_files.get(file))[0]
        entry = self._change.entry(self._memories.name(key))
        return any(value.body == body.hex() for value in entry.values())

    def _take_late_edit(self, file: str, base: bytes | None, data: bytes) -> bytes | None:
        """Read in an edit of a file at the moment of its replacement, unseen by the scan. `base`: the text that the file showed
        before (SHA-256). Returns the text that it shows now. Raises IpfsmemError: then the edit must be kept."""
        if file.startswith(TIMELINE + "/"):
            self._timeline.ingest_lines(data, file, False)
            return None
        if file == INDEX_FILE and not self._copy.shared_index:
            return None
        row = self._tracked_files.get(file)
        key, origin = self._name_of(file, row)
        data = self._without_own_lines(file, data)
        if not data and file == INDEX_FILE:
            return base
        text = with_origin(data, origin)
        self._check(key, text, row)
        name = self._memories.name(key)
        late = sha256(text)
        sha, digest = late.digest(), late.hexdigest()
        if sha == base or any(value.body == digest for value in self._change.entry(name).values()):
            return sha
        view, older = self._view(key), None
        if row is not None:
            # Its writer has this text, and may rewrite the whole file from it.
            self._texts.keep(file, sha, text)
            shows = Shows.EDIT if row.shows is Shows.OLD_TEXT else row.shows  # now it has a new text
            self._tracked_files.put(
                replace(row, before=PreviousTexts.of(sha, row.before, self._now), shows=shows)
            )
            older = self._base_for(row, base, text)
        merged = None
        if view.data is not None and view.own and older is not None:
            merged = self._merged(file, older, view.data, text)
        if merged is None:
            self._change.put(name, text, ())
        elif merged != view.data:
            self._change.put(name, merged, view.dots)
        return sha


class TimelineEdits:
    """Reads in lines that people and programs wrote into the timeline files of a linked folder, in one transaction: each new one
    becomes an event."""

    def __init__(self, timeline: Timeline, change: Writing) -> None:
        self._timeline = timeline
        self._change = change
        self._events: dict[str, Event] | None = None

    def ingest_lines(self, data: bytes, file: str, young: bool) -> bool:
        """Read in new lines. False if the last one is incomplete and must be read again."""
        day = file[len(TIMELINE) + 1 : -len(".jsonl")]
        whole, cut, tail = data.rpartition(b"\n")
        events_by_id = self._known_events()
        events = parse_lines(whole + cut, day)
        complete = True
        if tail.strip():
            last = parse_line(tail.strip(b" \t\r"), day)
            if last["type"] != "raw" or not (young or is_torn(tail, events_by_id)):
                events.append(last)
            else:
                complete = False
        fresh: list[Event] = []
        for event in events:
            stored = events_by_id.get(event["id"])
            if stored is None:
                fresh.append(event)
            elif event_line(stored) != event_line(event):
                # An event never changes: the edited line is an event of its own.
                fresh.append({field: value for field, value in event.items() if field != "id"})
        self._timeline.add_foreign(self._change, fresh)
        for event in fresh:
            foreign = {**event, "id": foreign_id(event)}
            events_by_id[foreign["id"]] = foreign
        return complete

    def _known_events(self) -> dict[str, Event]:
        if self._events is None:
            self._events = {event["id"]: event for event in self._timeline.events()}
        return self._events


def is_torn(tail: bytes, events: dict[str, Any]) -> bool:
    """Return whether a last line without LF is the beginning of a line of ours that a crash truncated."""
    return any(event_line(event).startswith(tail) for event in events.values())
