"""Scan and render one linked folder: a folder of plain files that people and other programs edit.

`scan` turns edits into writes, `render` updates the files; format section 6. The state is authoritative and durable
first, so files after a crash in between are recognised by the next scan. Files stay where and as they were found: one
with a foreign name keeps it, MEMORY.md keeps the lines of others, subfolders are not read.

The folder carries a marker (`.ipfsmem/marker`) that is valid with this device's own row. In another folder at its
path nothing is deleted and nothing written. When the whole folder went back to earlier texts it is paused until a
person has reviewed it.

Each hook and each command scans the folder, mostly without changes: what only an edit or a rendering needs is
imported there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.bundle.index_block import INDEX_KEY
from ipfsmem.bundle.keys import INDEX_FILE, is_key, key_of_spelling
from ipfsmem.canonical import read_json
from ipfsmem.causal.value import FORGOTTEN
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import journal, meta
from ipfsmem.device.tables.sealed_tracked_files import tracked_files_of
from ipfsmem.device.tables.tracked_files import Missing, ReplacedFile
from ipfsmem.device.tables.working_copies import BY_HAND, REPLACED, Copies, LinkedFolder
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import StorageError
from ipfsmem.files.file_names import longest, name_of
from ipfsmem.files.folder import HIDDEN, MISSING_FOR, TIMELINE, FolderListing, NotPlainError, PlainFolder
from ipfsmem.files.surroundings import git_head
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.events import Timeline
    from ipfsmem.files.render import Rendering
    from ipfsmem.files.scan import Scan

#: Maximum entries for which a write updates MEMORY.md at once; above, the next `render` or `close` does.
INDEX_AT_ONCE = 500
#: Time after reading in a text during which our line of it in MEMORY.md stays unchanged; ms. A program writes a file first and
#: its own line after it, and refuses to edit what was changed since it read it.
QUIET = 120_000
#: Pauses that never end automatically.
_STAYING = (BY_HAND, REPLACED)


class WorkingCopy:
    """One folder of plain files."""

    def __init__(self, replica: Replica, memories: MemoryStore, copy: LinkedFolder, path: Path) -> None:
        self._replica = replica
        self._memories = memories
        self._copies = Copies(replica.db.connection, replica.codec.cover)
        self._tracked_files = tracked_files_of(replica.db.connection, copy.id, replica.codec.cover)
        #: Its row, as of the last use of the folder.
        self.copy = copy
        self.folder = PlainFolder(path, copy.secret)
        self._index_stale = False
        #: Files that the last renderings could not update, those of the last one first.
        self.behind: list[str] = []
        self._problems: dict[str, str] = {}
        #: Files whose texts the last scan could not read in.
        self._left_alone: list[str] = []
        #: Those of them of which an earlier text was read in, with its key ("" for a day of the timeline).
        self._older: dict[str, str] = {}
        #: Messages of the last rendering of each file: also of missing files, so no scan drops them.
        self._unrendered: dict[str, str] = {}
        self._standing: dict[str, str] = {}

    def shown(self) -> dict[str, bytes]:
        """Return the SHA-256 of each file that shows the state, as it was last written or read, by its name."""
        return {row.file: row.body for row in self._tracked_files.all().values() if row.text is not None}

    @cached_property
    def _timeline(self) -> Timeline:
        """The events of its scope."""
        from ipfsmem.device.events import Timeline

        return Timeline(self._replica, self.copy.scope)

    def notices(self) -> list[str]:
        """Return notices for the user, as of the last scan: skipped files, missing files, a missing folder."""
        problems = self._problems | self._unrendered
        texts = [*self._standing.values(), *(problems[file] for file in sorted(problems))]
        return [*texts, *(text for text in self._kept_indexes() if text not in texts)]

    def _kept_indexes(self) -> list[str]:
        """Return where texts typed into a generated MEMORY.md are kept, to be reported as long as they exist."""
        if self.copy.shared_index:
            return []
        from ipfsmem.files.set_aside import edited_index_names, index_was_edited

        edited_indexes = (self.folder.path / HIDDEN).glob(edited_index_names())
        return [index_was_edited(path.name) for path in sorted(edited_indexes)]

    def moved_away(self) -> str:
        """Return where a text typed into a generated MEMORY.md was moved, as of the last rendering; "" if there was none."""
        if self.copy.shared_index or INDEX_FILE in self.behind:
            return ""
        reason = self._unrendered.get(INDEX_FILE, "")
        return reason and f"{self.folder.path}: {reason}"

    def trouble(self) -> str:
        """Return why the folder is not read in or not updated, as of the last scan; "" if it is, or at a person's request."""
        if self.copy.paused == BY_HAND:
            return ""
        for kind in ("folder", "paused", "disk"):
            if kind in self._standing:
                return self._standing[kind]
        if not self.behind:
            return ""
        # Texts first: one of them may be a forgotten text that is still in its file.
        first, *others = sorted(self.behind, key=lambda file: (file == INDEX_FILE, "/" in file))
        more = f"; and {count(len(others), 'more file')} (ipfsmem status)" if others else ""
        return f"{self.folder.path}: {self._unrendered[first]}{more}"

    def missing(self) -> str:
        """Return that more files are missing than count as deletes; "" otherwise. As of the last scan."""
        return self._standing.get("missing", "")

    def not_taken_in(self) -> list[str]:
        """Return which texts here are not in the vault, and why: those of the whole folder, or of unacceptable files. As of the
        last scan; empty if a person paused it."""
        if whole := self.trouble():
            return [whole]
        return self.left_alone()

    def left_alone(self) -> list[str]:
        """Return which files could not be read in, and why, as of the last scan."""
        files = {file for file in self._left_alone if file in self._problems}
        return [f"{self.folder.path}: {self._problems[file]}" for file in sorted(files)]

    def older(self) -> dict[str, str]:
        """Return, as of the last scan, the files that could not be read in and whose memory has an earlier text, with
        its key; none if the whole folder is not read in."""
        if self.copy.paused or not self._standing.keys().isdisjoint(("folder", "disk")):
            return {}
        return {file: key for file, key in self._older.items() if file in self._problems}

    def outdated(self) -> str:
        """Return the notice that memories may be older than their files; "" if every file was read in. As of the last
        scan."""
        if not (files := sorted(self.older().keys() - set(self.behind))):
            return ""
        more = f"; and {count(len(files) - 1, 'more file')} (ipfsmem status)" if files[1:] else ""
        return f"{self.folder.path}: {self._problems[files[0]]}; its memory may be older than the file{more}"

    def is_there(self) -> bool:
        """Return whether the folder exists, is ours, and is not paused."""
        with self._using(), contextlib.suppress(StorageError):
            return self._is_ready() and not self.copy.paused
        return False

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        """Hold the folder open for one operation, never longer: a disk must be removable."""
        try:
            yield
        finally:
            self.folder.close()

    # -- scanning ----------------------------------------------------------------------------------------------

    def scan(self, *, believe: bool = False) -> bool:
        """Read in all edits. True if something was written. Unacceptable files are in `notices`.

        `believe`: a person has reviewed the content, so it is valid, whatever was there before.
        """
        with self._using():
            return self._scan(believe)

    def _scan(self, believe: bool) -> bool:
        try:
            if not self._is_ready():
                return False
            listing = self.folder.list_files()
            head = git_head(self.folder.path)
        except StorageError as error:
            self._say("disk", f"the plain files could not be read: {error}")
            return False
        self._say("disk", None)
        self._leave_alone(listing)
        seen = self._tracked_files.differences(listing.files)
        now = self._replica.environment.now()
        covered = {
            row.file: row.key
            for row in seen.missing
            if row.file in listing.irregular and self._is_input(row.file)
        }
        self._left_alone, self._older = list(covered), covered
        missing = [
            row for row in seen.missing if row.file not in listing.irregular and self._is_input(row.file)
        ]
        due = [row for row in missing if _is_due(row, now)]
        self._standing.pop("missing", None)
        moved = head != self.copy.head
        try:
            asides = any(True for _ in self.folder.asides())
        except StorageError as error:
            self._say("disk", str(error))
            return False
        if not (seen.changed or due or moved or asides or self.copy.paused or believe):
            return False
        before = self._state()
        with writing(self._replica) as change:
            scan = self._scanner(change, believe=believe)
            if believe:
                self._resume(head)
            elif not self._may_take(scan, seen.changed, sum(1 for row in missing if row.key), head):
                return False
            waiting = set() if believe else scan.find_returns(seen.changed)[0]
            scan.take_all(file for file in seen.changed if file not in waiting)
            self._say("missing", scan.take_deletes(due, seen.known))
            scan.set_aside.check_replaced()
            self._note_left_alone(scan)
            self._note_taken(scan)
        return self._state() != before

    def _note_left_alone(self, scan: Scan) -> None:
        """Record which files a scan could not read in."""
        self._left_alone += [file for file in scan.left_alone if file not in self._left_alone]
        for file in scan.left_alone:
            # A name that is not Unicode text cannot have a row.
            is_text = file.encode(errors="replace").decode() == file
            if is_text and (row := self._tracked_files.get(file)) is not None:
                self._older[file] = row.key or ""

    def _note_taken(self, scan: Scan) -> None:
        """Record edits in this folder (inside the transaction of a scan). A first scan finds what was there before."""
        if scan.took and self.copy.shared_index and self.copy.in_step:
            now = self._replica.environment.now()
            self._keep_taken({**self._taken(), **dict.fromkeys(scan.took, now)})

    def _taken(self) -> dict[str, int]:
        """Return keys whose texts were read in here since our lines in MEMORY.md were last updated, and when, ms."""
        stored = self._replica.db.get_meta(self._taken_in)
        return read_json(self._replica.codec.open_row(stored), type=dict[str, int]) if stored else {}

    def _keep_taken(self, times: dict[str, int]) -> None:
        row = self._replica.codec.seal_row(msgspec.json.encode(times)) if times else b""
        self._replica.db.set_meta(self._taken_in, row)

    def _held(self, times: dict[str, int]) -> list[str]:
        """Return those that were read in just now. A time in the future is ignored: the clock was set back."""
        now = self._replica.environment.now()
        return [key for key, at in times.items() if 0 <= now - at < QUIET]

    @property
    def _taken_in(self) -> str:
        return meta.TAKEN_IN + self.copy.id

    def _leave_alone(self, listing: FolderListing) -> None:
        """Remove unacceptable files from the listing, and report them."""
        self._problems = {file: text for file, text in self._problems.items() if file in listing}
        other = f"{INDEX_KEY}.md" if self.copy.shared_index else INDEX_FILE
        if listing.leave_out(other) and other != INDEX_FILE:
            self._problems[other] = f"{other} was skipped: {INDEX_FILE} stands for that memory here"
        for file in listing.irregular:
            self._problems[file] = f"{file} was skipped: it is not a regular file"
        unread = ", ".join(listing.unread)
        self._say("unread", f"subfolders are not read: {unread}" if unread else None)
        self._say("timeline", "timeline is a link: it was skipped" if listing.linked else None)

    def _is_input(self, file: str) -> bool:
        """Return whether a file of this name can be a memory here: MEMORY.md is generated in our own folder, and only there."""
        return file != (f"{INDEX_KEY}.md" if self.copy.shared_index else INDEX_FILE)

    def _may_take(self, scan: Scan, changed: list[str], missing: int, head: bytes) -> bool:
        """Return whether edits may be read in; pauses the folder if it went back as a whole, and ends a pause when it is as
        before (inside a transaction)."""
        paused, moved = self.copy.paused, head != self.copy.head
        differing = len(scan.find_differing(changed)) + missing if paused or moved else 0
        if paused:
            if paused in _STAYING or differing:
                return False
            self._resume(head)
        elif moved and self.copy.head and differing:
            self._pause(f"another commit was checked out around it, and {differing} of its files differ now")
            return False
        elif moved:
            self._change(head=head)
        if scan.find_returns(changed)[1]:
            self._pause("several files hold earlier texts again, all at once")
            return False
        return True

    def _pause(self, why: str) -> None:
        self._change(paused=why)
        self._say_paused()

    def _resume(self, head: bytes) -> None:
        for file in self._tracked_files.returns():
            self._tracked_files.drop_return(file)
        self._change(paused="", head=head)
        self._standing.pop("paused", None)

    def _change(self, **fields: object) -> None:
        self._copies.change(self.copy.id, **fields)
        self.copy = msgspec.structs.replace(self.copy, **fields)

    def ingest_file(self, key: str) -> tuple[str, ...] | None:
        """Read in edits of one memory's files. If there was one: the dots that were shown under the key before."""
        with self._using():
            try:
                # With the row as it is: a read looks it up once.
                if not is_key(key) or not self._is_ready(row=self.copy) or self.copy.paused:
                    return None
                return self._take_key(key)
            except StorageError:
                return None  # reported by the next scan

    def _take_key(self, key: str) -> tuple[str, ...] | None:
        rows = self._tracked_files.of_key(key)
        files = sorted({f"{key}.md", *rows})
        changed = [
            file
            for file in files
            if self._is_input(file)
            and (stat := self.folder.stat(file)) is not None
            and ((row := rows.get(file)) is None or not row.is_unchanged(stat))
            # On a disk that folds case another file may have this name.
            and (row is not None or file in self.folder.names())
        ]
        for file in files:
            if file in self._older and (file in changed or self.folder.stat(file) is not None):
                self._left_alone.remove(file)
                del self._older[file]
        if not changed:
            return None
        if self.copy.head and git_head(self.folder.path) != self.copy.head:
            return None  # left for the next scan
        with self._replica.reading():
            shown = self._memories.view(key).dots
        before = self._state()
        with writing(self._replica) as change:
            scan = self._scanner(change)
            waiting, all_back = scan.find_returns(changed)
            if all_back:
                return None
            scan.take_all(file for file in changed if file not in waiting)
            self._note_left_alone(scan)
            self._note_taken(scan)
        return shown if self._state() != before else None

    # -- rendering ---------------------------------------------------------------------------------------------

    def render(self) -> bool:
        """Update every file. True if a change came in meanwhile that needs a scan."""
        self._index_stale = False
        needs_look = self._run(lambda rendering: rendering.everything(), whole=True)
        self._forget_elsewhere()
        return needs_look

    def _forget_elsewhere(self) -> None:
        """Delete the files set aside of memories that another device forgot."""
        with self._using():
            try:
                if not self._is_ready() or self.copy.paused:
                    return
                with self._replica.reading():
                    if not any(map(self._is_forgotten, self._tracked_files.asides())):
                        return
                with writing(self._replica) as change:
                    self._scanner(change).set_aside.delete_of_forgotten(self._is_forgotten)
            except StorageError as error:
                self._say("disk", f"the plain files could not be updated: {error}")

    def _is_forgotten(self, row: ReplacedFile) -> bool:
        """Return whether a file was set aside of a forgotten text, or of the index or timeline of a forgotten scope; a text next to
        the forget is shown as a conflict."""
        if row.file == INDEX_FILE or row.file.startswith(TIMELINE):
            return self._memories.forgotten()
        for key in {name_of(row.file)[0], key_of_spelling(row.file).key}:
            entry = self._memories.entry(key).values()
            if any(value.kind == FORGOTTEN for value in entry):
                return all(value.body is None or bytes.fromhex(value.body) != row.text for value in entry)
        return False

    def is_in_step(self) -> bool:
        """Return whether nothing has changed since everything was rendered."""
        copy = self._copies.get(self.copy.id)
        if copy is None or copy.in_step != self._state():
            return False
        times = self._taken()
        return len(self._held(times)) == len(times)

    def settle_index(self) -> None:
        """Write the union of the lines that several devices added to MEMORY.md at the same time, instead of showing a conflict."""
        if not self.copy.shared_index or self.copy.paused:
            return
        with self._replica.reading():
            view = self._memories.view(INDEX_KEY)
        if not view.conflicts:
            return
        from ipfsmem.causal.merge_links import merge_index

        name = self._memories.name(INDEX_KEY)
        with writing(self._replica) as change:
            view = self._memories.view(INDEX_KEY, change.entry(name), change.body, merge_index)
            if view.merged and view.own and view.data is not None:
                change.put(name, view.data, view.dots)

    def render_file(self, key: str) -> bool:
        """Update the files of one memory after a write; returns as `render`."""

        def one(rendering: Rendering) -> None:
            rendering.one(key)
            self._index_after_write(rendering)
            rendering.finish()

        return self._run(one)

    def forget(self, key: str | None) -> None:
        """Delete the files set aside of a forgotten memory at once, after `render_file`; None: of a whole scope, after `render`."""
        with self._using():
            try:
                if not self._is_ready():
                    return
                with writing(self._replica) as change:
                    self._scanner(change).set_aside.delete_of(key)
            except StorageError as error:
                self._say("disk", f"the plain files could not be updated: {error}")

    def show_day(self, day: str) -> bool:
        """Update one day of the timeline; returns as `render`."""
        if not self.copy.timeline:
            return False

        def one(rendering: Rendering) -> None:
            rendering.days([day])
            rendering.finish()

        return self._run(one)

    def close(self) -> None:
        """Update MEMORY.md if a write left that for later."""
        if self._index_stale:

            def index(rendering: Rendering) -> None:
                rendering.index()
                rendering.finish()

            self._run(index)
            self._index_stale = False

    def _index_after_write(self, rendering: Rendering) -> None:
        entries = islice(self._replica.store.names(), INDEX_AT_ONCE + 1)
        if sum(1 for _ in entries) <= INDEX_AT_ONCE:
            rendering.index()
        else:
            self._index_stale = True

    def _run(self, work: Callable[[Rendering], None], *, whole: bool = False) -> bool:
        """Run a rendering, `whole` of every file; True if a change came in meanwhile."""
        from ipfsmem.files.render import Rendering

        self._standing.pop("disk", None)
        with self._using():
            try:
                with self._replica.transaction():
                    if not self._is_ready() or self.copy.paused:
                        return False
                    times = self._taken()
                    keys_held = self._held(times)
                    rendering = Rendering(
                        self._replica,
                        self._memories,
                        self._timeline,
                        self.folder,
                        self.copy,
                        self._unrendered,
                        held=keys_held,
                    )
                    work(rendering)
                    if whole and len(keys_held) < len(times):
                        self._keep_taken({key: times[key] for key in keys_held})
                    late = dict.fromkeys([*sorted(rendering.behind), *self.behind])
                    self.behind = [file for file in late if file in self._unrendered]
                    # The next process reports the messages of files too.
                    if whole and not (rendering.needs_look or self._unrendered):
                        self._copies.change(self.copy.id, in_step=self._state())
                    return rendering.needs_look
            except StorageError as error:
                # The state is safe; files follow when the disk allows it.
                self._say("disk", f"the plain files could not be updated: {error}")
                return False

    def _scanner(self, change: Writing, *, believe: bool = False) -> Scan:
        """Return the scan of one transaction."""
        from ipfsmem.files.scan import Scan

        return Scan(
            self._replica,
            self._memories,
            self._timeline,
            self.folder,
            self.copy,
            change,
            self._problems,
            believe=believe,
        )

    def _state(self) -> bytes:
        """Return a value that changes with every change of the state."""
        stored = self._replica.db.get_meta(meta.STATE) or b""
        return sha256(stored).digest() + str(journal.last_number(self._replica.db.connection)).encode()

    # -- what a person says ------------------------------------------------------------------------------------

    def restore_files(self) -> int:
        """Have the next rendering write missing files again, instead of treating them as deletes. Returns how many."""
        count = 0
        with self._using(), self._replica.transaction():
            if not self._is_ready(gone=True):
                return 0
            for row in self._tracked_files.all().values():
                if self.folder.stat(row.file) is None:
                    self._tracked_files.drop(row.file)
                    count += 1
        self._standing.pop("missing", None)
        return count

    def pause(self, why: str = BY_HAND) -> None:
        """Stop reading in and writing until a person decides which side is valid."""
        with self._replica.transaction():
            self._pause(why)

    def differing(self) -> list[str]:
        """Return the files of a paused folder that were not read in, each with the reason."""
        with self._using():
            try:
                if not self._is_ready():
                    return []
                listing = self.folder.list_files()
                self._leave_alone(listing)
                changed = self._tracked_files.differences(listing.files).changed
                texts = [file for file in changed if self._is_unseen(file)]
            except StorageError as error:
                return [f"{self.folder.path}: the plain files could not be read: {error}"]
        skipped = dict.fromkeys(texts, "was skipped: the folder is paused")
        problems = {file: f"{file} {why}" for file, why in skipped.items()} | self._problems
        return [f"{self.folder.path}: {problems[file]}" for file in sorted(problems)]

    def _is_unseen(self, file: str) -> bool:
        """Return whether a file holds something else than what this device last saw in it."""
        row = self._tracked_files.get(file)
        try:
            contents = self.folder.read(file, longest(file))
        except NotPlainError:
            return True
        return contents is not None and (row is None or row.body != contents.sha)

    def put_back(self) -> int:
        """Have the next rendering restore every file from the state. Returns how many files differed.

        A text that was never rendered there is kept as a conflict copy. Raises StorageError if the folder is missing.
        """
        with self._using():
            if not self._is_ready(gone=True):
                raise StorageError(self._standing.get("folder", f"{self.folder.path} is not there"))
            listing = self.folder.list_files()
            self._leave_alone(listing)
            head = git_head(self.folder.path)
            with writing(self._replica) as change:
                scan = self._scanner(change)
                differing = scan.find_differing(list(listing.files))
                scan.put_back(differing)
                self._resume(head)
        return len(differing) + self.restore_files()

    def move_out(self) -> list[str]:
        """Before the folder is unlinked, move texts set aside that the state lacks into it as files; returns their names.

        Call it after `scan`. Raises StorageError if one can be neither read in nor moved out, or the folder is missing.
        """
        with self._using():
            if not self._is_ready():
                raise StorageError(self._standing.get("folder", f"{self.folder.path} is not there"))
            with writing(self._replica) as change:
                scan = self._scanner(change)
                return scan.set_aside.move_out()

    def claim(self) -> None:
        """Claim this folder at a person's request and replace its marker with ours. Raises StorageError.

        In another folder than before, missing files are not deletes.
        """
        with self._using():
            if not self.folder.exists():
                self.folder.make()
            inode = self.folder.root.inode
            with self._replica.transaction():
                self._forget_absent()
                self._tracked_files.reset_missing()
                self._change(inode=inode, head=git_head(self.folder.path))
            # The row is on the disk before the marker: after a crash in between the folder can be claimed again.
            self.folder.put_marker(self.copy.id)

    def let_go(self) -> None:
        """Remove the marker from the folder; every other file stays."""
        with self._using(), contextlib.suppress(StorageError):
            if self.folder.marker() == self.copy.id:
                self.folder.drop_marker()

    # -- is it there? ------------------------------------------------------------------------------------------

    def _is_ready(self, *, gone: bool = False, row: LinkedFolder | None = None) -> bool:
        """Return whether the folder exists and is ours; a new one is created and marked. Opens it.

        `gone`: a person wants missing files back, even if all are missing.
        """
        self._standing.pop("folder", None)
        copy = row or self._copies.get(self.copy.id)
        if copy is None:
            return False  # unlinked by another process
        self.copy = copy
        if copy.paused:
            self._say_paused()
        else:
            self._standing.pop("paused", None)
        with contextlib.suppress(StorageError):
            if self.folder.root.inode == copy.inode and self.folder.marker() == copy.id:
                return True
        return self._is_ready_after_all(copy, gone)

    def _is_ready_after_all(self, copy: LinkedFolder, gone: bool) -> bool:
        """Decide about another folder, a missing one, or one with another marker."""
        import shlex

        from ipfsmem.files.attaching import take_over_command

        path, own = self.folder.path, not copy.path
        typed = shlex.quote(str(path))
        if not self.folder.exists() and (own or copy.inode is None):
            with self._replica.transaction():
                self._tracked_files.drop_all()
            self.folder.make()
        elif not self.folder.exists():
            self._say("folder", f"{path} is not there (is it mounted?); nothing was deleted")
            return False
        inode = self.folder.root.inode
        here = self.folder.marker()
        if here is not None and here != copy.id:
            self._say(
                "folder",
                f"{path} is the linked folder of another vault now; it was not read or written. To take it back: {take_over_command(path, copy.scope)}",
            )
            return False
        moved = copy.inode not in (None, inode)
        if moved and not own:
            self._say(
                "folder",
                f"{path} is not the folder that was linked (is it mounted?); nothing was deleted. If it replaced the other permanently: {take_over_command(path, copy.scope)}",
            )
            return False
        if (
            here is None
            and not moved
            and not gone
            and self._tracked_files.any()
            and not self._is_recognised()
        ):
            if not own:
                self._say(
                    "folder",
                    f"the files in {path} are gone (is it mounted?); nothing was deleted. To write them again: ipfsmem folder resume --keep vault {typed}",
                )
                return False
            moved = True
        with self._replica.transaction():
            if moved:
                self._forget_absent()
            self._tracked_files.reset_missing()
            self._change(inode=inode)
            self.folder.put_marker(copy.id)
        return True

    def _is_recognised(self) -> bool:
        """Return whether a file is as we know it: then only the marker was lost."""
        rows = self._tracked_files.all().values()
        return any(row.stat is not None and row.is_unchanged(self.folder.stat(row.file)) for row in rows)

    def _forget_absent(self) -> None:
        """Forget missing files: the folder is another one than before, a restored backup for instance, so they are not deletes."""
        for row in self._tracked_files.all().values():
            if self.folder.stat(row.file) is None:
                self._tracked_files.drop(row.file)

    def _say_paused(self) -> None:
        import shlex

        path, typed = self.folder.path, shlex.quote(str(self.folder.path))
        self._say(
            "paused",
            f"{path} is paused: {self.copy.paused}. Its files are not read or written. Review the files, then run ipfsmem folder resume --keep folder {typed} (keep the folder's texts) or ipfsmem folder resume --keep vault {typed} (keep the vault's texts)",
        )

    def _say(self, kind: str, text: str | None) -> None:
        if text is None:
            self._standing.pop(kind, None)
        else:
            self._standing[kind] = text


def _is_due(row: Missing, now: int) -> bool:
    """Return whether a missing file needs a record or a decision."""
    return (
        not row.key
        or row.missing_since is None
        or row.missing_since > now
        or now - row.missing_since >= MISSING_FOR
    )
