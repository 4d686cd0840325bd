"""Turning what people and programs did to plain files into writes, each replacing exactly what the file had shown.

Format section 6, "Files edited by others". Runs inside the transaction of the writes: the texts and the rows that
say where they came from become durable together. It reads files and never changes one.
"""

from __future__ import annotations

import time
from collections import Counter
from hashlib import sha256
from typing import Any

import msgspec

from ipfsmem.bundle import header
from ipfsmem.bundle.keys import INDEX_FILE, key_of_foreign_name, split_conflict_name
from ipfsmem.bundle.memory_file import MAX_FILE, parse_memory, render_memory
from ipfsmem.bundle.timeline import Event, event_line, foreign_id, parse_line, parse_lines
from ipfsmem.causal.merge3 import merge_memory
from ipfsmem.causal.view import KeyView
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.replica.events import Timeline
from ipfsmem.replica.replica import Replica
from ipfsmem.replica.writing import Writing
from ipfsmem.storage.memories import Memories, check_body
from ipfsmem.storage.plain_folder import (
    HIDDEN,
    RACY,
    TIMELINE,
    UNSURE,
    NotPlainError,
    PlainFolder,
    Stat,
    name_tag,
)
from ipfsmem.storage.renders import Aside, Render, Renders

#: Longest timeline file that is read.
MAX_TIMELINE = 256 * 1024 * 1024
#: Two looks this far apart must miss a file before that is taken for a delete; ms.
MISSING_FOR = 60_000
DAY = 86_400_000
#: How long after a file was replaced a writer may still have the old text in hand; ms.
OLD_TEXT_FOR = 60_000
#: Bytes of lines that are compared at most to tell what the writer of a text had read.
_MOST_COMPARED = 4 * 1024 * 1024
_DELETES = "vanished"
#: Dots of a file that does not show the merged text yet: an edit of it has seen none of the state.
NOT_SHOWN = ("-",)


class Scan:
    """One look at the files, in one transaction."""

    def __init__(
        self,
        replica: Replica,
        memories: Memories,
        timeline: Timeline,
        folder: PlainFolder,
        change: Writing,
        problems: dict[str, str],
    ) -> None:
        self._replica = replica
        self._memories = memories
        self._timeline = timeline
        self._folder = folder
        self._change = change
        self._renders = Renders(replica.db)
        self._problems = problems
        self._now = replica.world.now()
        self._events: dict[str, Event] | None = None

    # -- one file ----------------------------------------------------------------------------------------------

    def take(self, file: str) -> None:
        """Take in what stands in a file. What cannot be taken is left alone and said."""
        self._problems.pop(file, None)
        try:
            self._take(file)
        except (NotPlainError, IpfsmemError) as error:
            self._problems[file] = f"{file} was left alone: {error}"

    def _take(self, file: str) -> None:
        is_timeline = file.startswith(TIMELINE + "/")
        name_of(file)
        found = self._folder.read(file, longest(file))
        if found is None:
            return  # gone meanwhile: the next look misses it
        data, stat = found
        row = self._renders.get(file)
        body = sha256(data).digest()
        if row is not None and body == row.body:
            if row.stat != stat or row.missed is not None:
                self._renders.put(msgspec.structs.replace(row, stat=stat, missed=None))
            return
        if is_timeline:
            taken = self._lines(data, file, self._is_young(file))
            if taken:
                self._renders.put(Render(file, "", body, b"", (), stat))
            elif row is not None:
                self._renders.put(msgspec.structs.replace(row, text=b""))
            return
        if not data and row is not None and self._is_young(file):
            return  # somebody has just emptied it to write it anew
        self._put_text(file, data, body, stat, row)

    def _is_young(self, file: str) -> bool:
        known = self._folder.stat(file)
        return known is not None and known.mtime > time.time_ns() - RACY

    def _put_text(self, file: str, data: bytes, body: bytes, stat: Stat, row: Render | None) -> None:
        key, origin = (row.key, name_of(file)[1]) if row is not None else name_of(file)
        text = data if origin is None else with_origin(data, origin)
        check_body(key, text)
        name = self._memories.name(key)
        digest = sha256(text)
        view = self._view(key)
        since = 0
        if view.data == text:
            # Already what is shown: rendered just before a crash, or somebody had the same thought.
            dots = view.dots
        elif row is None:
            dots = self._new_text(file, key, text, digest.hexdigest(), view)
        else:
            dots, since = self._edit(row, name, text, view)
        made = Render(file, key, body, digest.digest(), dots, stat, since=since)
        self._renders.put(made)

    def _view(self, key: str) -> KeyView:
        """What is shown under a key, with what this look has taken in so far."""
        return self._memories.view(key, self._change.entry(self._memories.name(key)), self._change.body)

    def _new_text(self, file: str, key: str, text: bytes, digest: str, view: KeyView) -> tuple[str, ...]:
        name = self._memories.name(key)
        same = tuple(dot for dot, value in self._change.entry(name).items() if value.body == digest)
        if same:
            return same
        if split_conflict_name(file) is not None:
            return (self._change.keep_beside(name, text),)
        # A new text under a forgotten key is a new memory; beside a live one it has seen nothing.
        replaces = view.dots if view.forgotten else ()
        return (self._change.put(name, text, replaces),)

    def _edit(self, row: Render, name: str, text: bytes, view: KeyView) -> tuple[tuple[str, ...], int]:
        """The new dots, and the mark for the next render (-1: a text that was written blindly, do not guess again)."""
        if not set(row.dots) <= self._change.entry(name).keys():
            return self._edit_of_the_past(row, name, text, view)
        older = self._base_of_blind_edit(row, text)
        if older is None:
            return (self._change.put(name, text, row.dots),), 0
        shown = self._replica.db.block(row.text)
        merged = merge_memory(older, shown, text) if shown is not None else None
        self._problems[row.file] = (
            f"{row.file} was written by a program that had not read the newest text; both were kept"
        )
        if merged is None:
            return (self._change.put(name, text, ()),), 0
        self._replica.db.add_blocks([(sha256(text).digest(), text)])
        if merged == shown:
            return NOT_SHOWN, -1
        self._change.put(name, merged, row.dots)
        return NOT_SHOWN, 0

    def _edit_of_the_past(
        self, row: Render, name: str, text: bytes, view: KeyView
    ) -> tuple[tuple[str, ...], int]:
        """A file that was edited while the state moved on and before it was rendered: merged when that is clean."""
        older = self._base_for(row, row.text, text)
        if view.data is not None and view.own and older is not None:
            merged = merge_memory(older, view.data, text)
            self._replica.db.add_blocks([(sha256(text).digest(), text)])
            if merged == view.data:
                return NOT_SHOWN, 0
            if merged is not None:
                self._change.put(name, merged, (*view.dots, *row.dots))
                return NOT_SHOWN, 0
        return (self._change.put(name, text, row.dots),), 0

    def _base_of_blind_edit(self, row: Render, text: bytes) -> bytes | None:
        """The text, of those rendered shortly before the newest, that the writer of `text` had read; None when it is
        the newest, or cannot be told. See `read_before`."""
        return self._older_base(row, row.text, text)

    def _older_base(self, row: Render, newest: bytes, text: bytes) -> bytes | None:
        if row.base is None or not 0 <= self._now - row.since < OLD_TEXT_FOR:
            return None
        latest = self._replica.db.block(newest)
        if latest is None:
            return None
        hashes = [row.base[start : start + 32] for start in range(0, len(row.base), 32)]
        older = [data for found in hashes if (data := self._replica.db.block(found)) is not None]
        return read_before(text, latest, older)

    def _base_for(self, row: Render, stood_there: bytes, text: bytes) -> bytes | None:
        """What the writer of `text` had read when `stood_there` (a SHA-256) was in the file."""
        return self._older_base(row, stood_there, text) or self._replica.db.block(stood_there)

    # -- what was missed ---------------------------------------------------------------------------------------

    def missing(self, files: list[str], total: int) -> str | None:
        """Files that a look did not find, of `total` known ones. Deletes those that were missing long enough, unless
        too many vanish; then nothing is deleted and the answer says so.
        """
        ready: list[Render] = []
        for file in files:
            row = self._renders.get(file)
            if row is None:
                continue
            if not row.key:
                self._renders.drop(file)  # the timeline and the index: absence is no delete
            elif row.missed is None or row.missed > self._now:
                self._renders.put(msgspec.structs.replace(row, missed=self._now))
            elif self._now - row.missed >= MISSING_FOR:
                ready.append(row)
        if not ready:
            return None
        recent = self._recent_deletes()
        gone = sum(count for _, count in recent)
        if gone + len(ready) > max(3, (total + gone) // 4):
            return (
                f"{len(ready)} of {total} files are missing from {self._folder.path}; that is too many at once to be "
                "taken for deletes, so nothing was deleted"
            )
        for row in ready:
            name = self._memories.name(row.key)
            if set(row.dots) & self._change.entry(name).keys():
                self._change.remove(name, row.dots)
            self._renders.drop(row.file)
        recent.append((self._now, len(ready)))
        self._replica.db.set_meta(_DELETES, msgspec.json.encode(recent))
        return None

    def _recent_deletes(self) -> list[tuple[int, int]]:
        stored = self._replica.db.get_meta(_DELETES)
        known = msgspec.json.decode(stored, type=list[tuple[int, int]]) if stored else []
        return [(at, count) for at, count in known if abs(self._now - at) < DAY]

    # -- what was replaced -------------------------------------------------------------------------------------

    def replaced(self) -> None:
        """Look at the files that were replaced: somebody may have written into one at that moment, or after."""
        known = {row.name: row for row in self._renders.asides()}
        for name in list(self._folder.asides()):
            if name not in known:
                self._after_crash(name)
        for row in known.values():
            self._check_aside(row)

    def _check_aside(self, row: Aside) -> None:
        mtime = self._folder.aside_mtime(row.name)
        if mtime != row.mtime and mtime != -1:
            found = self._folder.read_aside(row.name, longest(row.file))
            if found is None:
                self._problems[row.file] = (
                    f"{row.file} was replaced, and what stood there cannot be read; it is kept in {HIDDEN}/aside/{row.name}"
                )
                return
            body = sha256(found[0]).digest()
            if body != row.body:
                if not self._late(row.file, row.body, found[0]):
                    return
                row = msgspec.structs.replace(row, body=body, since=self._now)
            row = msgspec.structs.replace(row, mtime=mtime if found[1] != UNSURE else -1)
            self._renders.put_aside(row)
        if not 0 <= self._now - row.since < 2 * OLD_TEXT_FOR:
            self._folder.drop_aside(row.name)
            self._renders.drop_aside(row.name)

    def forgotten(self, key: str) -> None:
        """Let go of everything that was set aside of a memory that is forgotten, and of the index, which named it."""
        for row in list(self._renders.asides()):
            if row.file == INDEX_FILE or (not row.file.startswith(TIMELINE) and name_of(row.file)[0] == key):
                self._check_aside(row)
                self._folder.drop_aside(row.name)
                self._renders.drop_aside(row.name)

    def _after_crash(self, name: str) -> None:
        """A file beside that no row knows: staged or replaced by a run that did not finish."""
        row = next((r for r in self._renders.all().values() if name.endswith("." + name_tag(r.file))), None)
        found = self._folder.read_aside(name, longest(row.file) if row is not None else MAX_TIMELINE)
        if found is None:
            self._problems[name] = (
                f"{HIDDEN}/aside/{name} was left by a run that did not finish, and cannot be read"
            )
            return
        if found[0] and row is not None:
            body = sha256(found[0]).digest()
            known = self._replica.db.has_block(body) or row.body == body
            if not known and not self._late(row.file, row.body, found[0]):
                return
        self._folder.drop_aside(name)

    def _late(self, file: str, base: bytes, data: bytes) -> bool:
        """Take in a text that came into a file after we had read it and before, or after, we replaced it. False, and said,
        when that cannot be done: then it must not be thrown away."""
        try:
            if file.startswith(TIMELINE + "/"):
                self._lines(data, file, False)
            elif file != INDEX_FILE:
                self._late_text(file, base, data)
        except IpfsmemError as error:
            self._problems[file] = (
                f"a late change of {file} could not be taken in: {error}; it is kept in {HIDDEN}/aside"
            )
            return False
        return True

    def _late_text(self, file: str, base: bytes, data: bytes) -> None:
        row = self._renders.get(file)
        key, origin = name_of(file)
        key = row.key if row is not None else key
        text = data if origin is None else with_origin(data, origin)
        check_body(key, text)
        name = self._memories.name(key)
        digest = sha256(text).hexdigest()
        if any(value.body == digest for value in self._change.entry(name).values()):
            return
        if row is not None:
            # Its writer has this text in hand, and may write the whole file from it.
            late = sha256(text).digest()
            self._replica.db.add_blocks([(late, text)])
            self._renders.put(
                msgspec.structs.replace(row, base=late + (row.base or b"")[:224], since=self._now)
            )
        view = self._view(key)
        older = self._base_for(row, base, text) if row is not None else None
        if view.data is not None and view.own and older is not None and row is not None:
            merged = merge_memory(older, view.data, text)
            if merged == view.data:
                return
            if merged is not None:
                self._change.put(name, merged, view.dots)
                return
        self._change.put(name, text, ())

    # -- timeline ----------------------------------------------------------------------------------------------

    def _lines(self, data: bytes, file: str, young: bool) -> bool:
        """Take in the lines that are new. False when the last one is not whole yet and must be looked at again."""
        day = file[len(TIMELINE) + 1 : -len(".jsonl")]
        whole, cut, tail = data.rpartition(b"\n")
        known = self._known_events()
        events = parse_lines(whole + cut, day)
        complete = True
        if tail.strip():
            last = parse_line(tail.strip(b" \t\r"), day)
            if last["type"] != "raw" or not (young or is_torn(tail, known)):
                events.append(last)
            else:
                complete = False
        fresh: list[Event] = []
        for event in events:
            held = known.get(event["id"])
            if held is None:
                fresh.append(event)
            elif event_line(held) != event_line(event):
                # An event never changes: the edited line is an event of its own.
                fresh.append({field: value for field, value in event.items() if field != "id"})
        self._timeline.add_foreign(self._change, fresh)
        for event in fresh:
            made = {**event, "id": foreign_id(event)}
            known[made["id"]] = made
        return complete

    def _known_events(self) -> dict[str, Event]:
        if self._events is None:
            self._events = {event["id"]: event for event in self._timeline.events()}
        return self._events


def read_before(text: bytes, newest: bytes, older: list[bytes]) -> bytes | None:
    """Which of the `older` texts (newest first) the writer of `text` must have read, rather than `newest`.

    One such that `text` has no line that came with the newest, nor one like it, and all that went with it. Of several
    the one that `text` keeps most of.
    """
    now = set(text.split(b"\n"))
    best: tuple[int, bytes] | None = None
    for candidate in older:
        before, after = set(candidate.split(b"\n")), set(newest.split(b"\n"))
        came, went = after - before, before - after
        if not (came or went) or came & now or not went <= now or _alike(came, now - before):
            continue
        missing = len(before - now)
        if best is None or missing < best[0]:
            best = missing, candidate
    return None if best is None else best[1]


def _alike(came: set[bytes], new: set[bytes]) -> bool:
    """Whether a new line looks like an edit of one that came: then its writer has seen that one."""
    if len(new) * sum(map(len, came)) + len(came) * sum(map(len, new)) > _MOST_COMPARED:
        return False
    words = {line: Counter(line.split()) for line in came | new}
    return any(_likeness(a, b, words[a], words[b]) > 0.6 for a in came for b in new)


def _likeness(a: bytes, b: bytes, words_a: Counter[bytes], words_b: Counter[bytes]) -> float:
    """How much two lines share, 0 to 1: their beginning and end, or their words. Costs as much as reading them once."""
    whole = len(a) + len(b)
    if not whole:
        return 0.0
    least = min(len(a), len(b))
    start = _shared(a, b, least)
    end = _shared(a[::-1], b[::-1], least - start)
    same = sum(min(count, words_b[word]) for word, count in words_a.items())
    total = words_a.total() + words_b.total()
    return max(2 * (start + end) / whole, 2 * same / total if total else 0.0)


def _shared(a: bytes, b: bytes, most: int) -> int:
    """How many of the first `most` bytes of two lines are the same."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def longest(file: str) -> int:
    """Bytes above which a file of this name is left alone."""
    return MAX_TIMELINE if file == INDEX_FILE or file.startswith(TIMELINE + "/") else MAX_FILE


def is_torn(tail: bytes, known: dict[str, Any]) -> bool:
    """Whether a last line without LF is the beginning of a line of ours that a crash cut off."""
    return any(event_line(event).startswith(tail) for event in known.values())


def name_of(file: str) -> tuple[str, str | None]:
    """Key of a file, and its foreign name when it has one. Raises FormatError for a name that is not Unicode."""
    try:
        file.encode()
    except UnicodeEncodeError:
        raise FormatError("its name is not Unicode text") from None
    split = split_conflict_name(file)
    return (split[0], None) if split is not None else key_of_foreign_name(file)


def with_origin(data: bytes, origin: str) -> bytes:
    """The text of a file with a foreign name: its bytes, and the name in a line of the header (format section 1.1)."""
    file = parse_memory(data)
    if file.origin_name == origin:
        return data
    wanted = file.with_fields({"origin_name": origin})
    line = header.write_header({"origin_name": origin}).encode()
    start, cut, rest = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    if start.rstrip() == b"---" and file.fields:
        made = start + cut + (line[:-1] + b"\r\n" if start.endswith(b"\r") else line) + rest
    else:
        made = b"---\n" + line + b"---\n\n" + data.removeprefix(b"\xef\xbb\xbf")
    try:
        again = parse_memory(made)
    except FormatError:
        return data
    if again.fields == wanted.fields and again.body == wanted.body:
        return made
    return render_memory(wanted)
