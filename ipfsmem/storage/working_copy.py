"""The working copy of modes `local` and `ipfs`: a folder of plain files that people and other programs edit.

`scan` turns what they did into writes, `render` brings the files up to date; format section 6. The state is the truth and
durable first, so a crash between leaves files that the next look takes for what they are. Files stay where and as they
were found: one with a foreign name keeps it, an adopted folder keeps its own MEMORY.md, subfolders are not looked into.

The folder carries a marker (`.ipfsmem/replica`). Without it, or with another's, nothing is deleted; an adopted folder
that lost it and every file that we know is not written to either: it is probably not mounted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256
from itertools import islice
from pathlib import Path

from ipfsmem.bundle.keys import INDEX_FILE, is_key
from ipfsmem.errors import StorageError
from ipfsmem.replica.events import Timeline
from ipfsmem.replica.replica import Replica
from ipfsmem.replica.writing import writing
from ipfsmem.storage.memories import Memories
from ipfsmem.storage.plain_folder import PlainFolder
from ipfsmem.storage.renders import Looks, Renders
from ipfsmem.storage.working_render import Rendering
from ipfsmem.storage.working_scan import MISSING_FOR, Scan, name_of

PLAIN_MODES = ("local", "ipfs")
#: Memories up to which a write brings MEMORY.md up to date at once; above, the next `render` or `close` does.
INDEX_AT_ONCE = 500
#: Seconds for which a full look is fresh enough for a list.
FRESH = 1.0
_MARK = "working-copy"
_IN_STEP = "rendered"


def working_folder(replica: Replica) -> Path | None:
    """Where the plain files of a memory are; None in the modes that have none."""
    if replica.folder is None or replica.config.mode not in PLAIN_MODES:
        return None
    chosen = replica.config.memory_dir
    return Path(chosen) if chosen is not None else replica.folder / "memory"


class WorkingCopy:
    """The plain files of one memory."""

    def __init__(self, replica: Replica, memories: Memories, timeline: Timeline, path: Path) -> None:
        self._replica = replica
        self._memories = memories
        self._timeline = timeline
        self._renders = Renders(replica.db)
        self.folder = PlainFolder(path)
        self._own = replica.config.memory_dir is None
        self._looked = -FRESH
        self._index_stale = False
        self._problems: dict[str, str] = {}
        self._standing: dict[str, str] = {}

    def notices(self) -> list[str]:
        """What a person should know about the files: left alone, missing, not there. As of the last look."""
        return [*self._standing.values(), *(self._problems[file] for file in sorted(self._problems))]

    # -- looking -----------------------------------------------------------------------------------------------

    def scan(self) -> bool:
        """Take in all edits. True when something was written. Files that cannot be taken are named in `notices`."""
        self._looked = time.monotonic()
        try:
            if not self._is_ready():
                return False
            found = self.folder.look()
        except StorageError as error:
            self._say("disk", f"the plain files could not be read: {error}")
            return False
        self._say("disk", None)
        found.pop(INDEX_FILE, None)
        unread = ", ".join(self.folder.unread)
        self._say("unread", f"subfolders are not read: {unread}" if unread else None)
        self._say("timeline", "timeline is a link: it was left alone" if self.folder.linked else None)
        rows = self._renders.looks()
        now = self._replica.world.now()
        changed = [
            file
            for file, stat in found.items()
            if (row := rows.get(file)) is None
            or stat is None
            or not row.tells(stat)
            or row.missed is not None
        ]
        missing = [file for file in rows if file not in found and file != INDEX_FILE]
        due = [file for file in missing if _is_due(rows[file], now)]
        self._problems = {file: text for file, text in self._problems.items() if file in found}
        self._standing.pop("missing", None)
        if not (changed or due or any(True for _ in self.folder.asides())):
            return False
        before = self._state()
        with writing(self._replica) as change:
            scan = Scan(self._replica, self._memories, self._timeline, self.folder, change, self._problems)
            for file in sorted(changed):
                if found[file] is None:
                    self._problems[file] = f"{file} was left alone: it is not a regular file"
                else:
                    scan.take(file)
            self._say("missing", scan.missing(due, len(rows)))
            scan.replaced()
        return self._state() != before

    def take(self, key: str) -> tuple[str, ...] | None:
        """Take in edits of one memory's files. When there was one: the dots that were shown under the key before."""
        try:
            if not is_key(key) or not self._is_ready():
                return None
        except StorageError:
            return None  # said at the next look
        rows = self._renders.of_key(key)
        changed = [
            file
            for file in {f"{key}.md", *rows}
            if (stat := self.folder.stat(file)) is not None
            and ((row := rows.get(file)) is None or row.stat != stat)
        ]
        if not changed:
            return None
        with self._replica.reading():
            shown = self._memories.view(key).dots
        before = self._state()
        with writing(self._replica) as change:
            scan = Scan(self._replica, self._memories, self._timeline, self.folder, change, self._problems)
            for file in sorted(changed):
                scan.take(file)
        return shown if self._state() != before else None

    def look(self) -> None:
        """`scan`, unless one was done within a second: before lists and searches."""
        if time.monotonic() - self._looked >= FRESH and self.scan():
            self.render()

    # -- rendering ---------------------------------------------------------------------------------------------

    def render(self) -> None:
        """Bring every file up to date. What was changed meanwhile is taken in first and never overwritten unseen."""
        for _ in range(4):
            if not self._run(Rendering.everything) or not self.scan():
                break
        self._index_stale = False

    def render_if_needed(self) -> None:
        """`render`, unless nothing has changed since the last one."""
        if self._replica.db.get_meta(_IN_STEP) != self._state():
            self.render()

    def show(self, key: str) -> None:
        """Bring the files of one memory up to date after a write."""

        def one(rendering: Rendering) -> None:
            rendering.one(key)
            self._index_after_write(rendering)
            rendering.finish()

        self._run_and_look(one)

    def forget(self, key: str) -> None:
        """`show` for a memory that is forgotten: what was set aside of it goes at once, too."""
        self.show(key)
        try:
            if not self._is_ready():
                return
            with writing(self._replica) as change:
                scan = Scan(
                    self._replica, self._memories, self._timeline, self.folder, change, self._problems
                )
                scan.forgotten(key)
        except StorageError as error:
            self._say("disk", f"the plain files could not be brought up to date: {error}")

    def show_day(self, day: str) -> None:
        """Bring one day of the timeline up to date."""

        def one(rendering: Rendering) -> None:
            rendering.days([day])
            rendering.finish()

        self._run_and_look(one)

    def close(self) -> None:
        """Bring MEMORY.md up to date when a write left that for later."""
        if self._index_stale:

            def index(rendering: Rendering) -> None:
                rendering.index()
                rendering.finish()

            self._run(index)
            self._index_stale = False

    def restore_files(self) -> int:
        """Write again all files that are missing, instead of taking them for deletes. Returns how many."""
        count = 0
        with self._replica.transaction():
            for row in self._renders.all().values():
                if self.folder.stat(row.file) is None:
                    self._renders.drop(row.file)
                    count += 1
            self.folder.put_marker(self._mark())
        self._standing.clear()
        self.render()
        return count

    def _index_after_write(self, rendering: Rendering) -> None:
        if (
            sum(1 for _ in islice(self._replica.store.memories(self._memories.scope), INDEX_AT_ONCE + 1))
            <= INDEX_AT_ONCE
        ):
            rendering.index()
        else:
            self._index_stale = True

    def _run_and_look(self, work: Callable[[Rendering], None]) -> None:
        if self._run(work) and self.scan():
            self.render()

    def _run(self, work: Callable[[Rendering], None]) -> bool:
        """Run a rendering; True when something came in meanwhile."""
        self._standing.pop("disk", None)
        try:
            with self._replica.transaction():
                if not self._is_ready():
                    return False
                rendering = Rendering(
                    self._replica, self._memories, self._timeline, self.folder, self._problems, own=self._own
                )
                work(rendering)
                if work is Rendering.everything and not rendering.untaken:
                    self._replica.db.set_meta(_IN_STEP, self._state())
                return rendering.untaken
        except StorageError as error:
            # The state is safe; files follow when the disk lets them.
            self._say("disk", f"the plain files could not be brought up to date: {error}")
            return False

    def _state(self) -> bytes:
        """Changes with every change of the state."""
        run = self._replica.db.connection
        row = run.execute("SELECT seq FROM sqlite_sequence WHERE name='journal'").fetchone()
        stored = self._replica.db.get_meta("state") or b""
        return sha256(stored).digest() + str(row[0] if row else 0).encode()

    # -- is it there? ------------------------------------------------------------------------------------------

    def _mark(self) -> str:
        """This replica's mark (inside a transaction)."""
        stored = self._replica.db.get_meta(_MARK)
        if stored is None:
            stored = self._replica.world.random(8).hex().encode()
            self._replica.db.set_meta(_MARK, stored)
        return stored.decode()

    def _is_ready(self) -> bool:
        """Whether the folder is there and ours; it is made and marked when it is new."""
        self._standing.pop("folder", None)
        here = self.folder.marker()
        stored = self._replica.db.get_meta(_MARK)
        if here is not None and stored is not None and here == stored.decode():
            return True
        if here is not None:
            self._say(
                "folder",
                f"{self.folder.path} is the working copy of another memory; it was not read and not written",
            )
            return False
        known = self._renders.any()
        if known and not self._is_recognised():
            if not self._own:
                self._say(
                    "folder",
                    f"the files in {self.folder.path} are gone (is it mounted?); nothing was deleted, and "
                    "restore_files writes them again",
                )
                return False
            with self._replica.transaction():
                self._renders.drop_all()
        with self._replica.transaction():
            self._forget_missed()
            self.folder.put_marker(self._mark())
        return True

    def _is_recognised(self) -> bool:
        """Whether a file stands there as we know it: then only the marker was lost."""
        rows = self._renders.all().values()
        return any(row.stat.inode >= 0 and self.folder.stat(row.file) == row.stat for row in rows)

    def _forget_missed(self) -> None:
        self._replica.db.connection.execute("UPDATE renders SET missed=NULL")

    def _say(self, kind: str, text: str | None) -> None:
        if text is None:
            self._standing.pop(kind, None)
        else:
            self._standing[kind] = text


def _is_due(row: Looks, now: int) -> bool:
    """Whether a missing file needs a note or a decision."""
    return not row.key or row.missed is None or row.missed > now or now - row.missed >= MISSING_FOR


__all__ = ["INDEX_AT_ONCE", "PLAIN_MODES", "WorkingCopy", "name_of", "working_folder"]
