"""Keep replaced files of a linked folder aside for two minutes, and read in late changes of them (format section 6).

A program may have written into a file at the moment of its replacement, or may write later through an open handle.

Also handles files that an interrupted run set aside, and a generated MEMORY.md that was edited.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from msgspec.structs import replace

from ipfsmem.bundle.keys import INDEX_FILE
from ipfsmem.device.tables.tracked_files import ReplacedFile, TrackedFiles
from ipfsmem.device.tables.working_copies import LinkedFolder
from ipfsmem.errors import IpfsmemError, StorageError
from ipfsmem.files.file_names import longest, name_of
from ipfsmem.files.folder import ASIDE, HIDDEN, TIMELINE, PlainFolder
from ipfsmem.files.stale_writes import OLD_TEXT_FOR


class SetAside:
    """The files of one linked folder that were set aside, in one transaction."""

    def __init__(
        self,
        folder: PlainFolder,
        renders: TrackedFiles,
        copy: LinkedFolder,
        problems: dict[str, str],
        now: int,
        *,
        take: Callable[[str, bytes | None, bytes], bytes | None],
        is_known: Callable[[str, bytes], bool],
    ) -> None:
        """`take` reads in a late change: its file, the SHA-256 of the text that it was based on, its content. Returns that of the
        text that it stands for now, or raises IpfsmemError. `is_known`: whether bytes of a file (their SHA-256) are in the
        state, or were in the file before."""
        self._folder = folder
        self._tracked_files = renders
        self._copy = copy
        self._problems = problems
        self._now = now
        self._take = take
        self._is_known = is_known

    def check_replaced(self) -> None:
        """Check the replaced files for writes during or after their replacement."""
        rows = {row.name: row for row in self._tracked_files.asides()}
        self._after_crash([name for name in self._folder.asides() if name not in rows])
        for row in rows.values():
            self._check_aside(row)

    def _check_aside(self, row: ReplacedFile) -> bool:
        """Return False, with a report, if its content could not be read in, so that it must stay."""
        mtime = self._folder.aside_mtime(row.name)
        if mtime is not None and mtime != row.mtime:
            contents = self._folder.read_aside(row.name, longest(row.file))
            if contents is None:
                self._problems[row.file] = (
                    f"{row.file} was replaced, and its previous content cannot be read; it is kept in {HIDDEN}/{ASIDE}/{row.name}"
                )
                return False
            if (
                contents.sha != row.body and contents.data
            ):  # emptied, it is about to be written, or a disk lost it
                try:
                    text = self._take(row.file, row.text, contents.data)
                except IpfsmemError as error:
                    self._say_late(row.file, error)
                    return False
                row = replace(row, body=contents.sha, text=text, since=self._now)
            self._tracked_files.put_aside(replace(row, mtime=mtime if contents.stat is not None else None))
        if not 0 <= self._now - row.since < 2 * OLD_TEXT_FOR:
            self._folder.drop_aside(row.name)
            self._tracked_files.drop_aside(row.name)
        return True

    def delete_of(self, key: str | None) -> None:
        """Delete all files set aside of a forgotten memory, and of the index, which named it; None: of all memories and days of a
        forgotten scope."""
        self._delete(
            lambda row: (
                key is None or (not row.file.startswith(TIMELINE) and name_of(row.file, key)[0] == key)
            )
        )

    def delete_of_forgotten(self, forgotten: Callable[[ReplacedFile], bool]) -> None:
        """Delete the files set aside of which `forgotten` says so, and with them those of the index."""
        if any(map(forgotten, self._tracked_files.asides())):
            self._delete(forgotten)

    def _delete(self, is_wanted: Callable[[ReplacedFile], bool]) -> None:
        for row in list(self._tracked_files.asides()):
            if row.file == INDEX_FILE or is_wanted(row):
                if not self._check_aside(row):
                    if row.file == INDEX_FILE and self._copy.shared_index:
                        continue  # it has others' lines
                    self._problems[row.file] = (
                        f"a late change of {row.file} could not be taken in, and went with the memory that was forgotten"
                    )
                self._folder.drop_aside(row.name)
                self._tracked_files.drop_aside(row.name)

    def move_out(self) -> list[str]:
        """Move texts set aside that were never read in into the folder, as conflict copies; delete those that were.

        Raises StorageError for one that cannot be read.
        """
        rows = {row.name: row for row in self._tracked_files.asides()}
        files, damaged = self._tracked_files.files()
        names: list[str] = []
        for name in list(self._folder.asides()):
            if self._folder.drop_staged(name):
                continue
            row = rows.get(name)
            file = row.file if row is not None else self._folder.file_of(name, [*files, INDEX_FILE])
            if file is None and damaged:
                raise StorageError(
                    f"{self._unknown(name)}. Look at it, and move it to where it belongs or away; then detach again"
                )
            if file is None:
                continue  # not ours
            contents = self._folder.read_aside(name, longest(file))
            if contents is None:
                raise StorageError(
                    f"{HIDDEN}/{ASIDE}/{name} cannot be read, and has the previous content of {file}"
                )
            body = contents.sha
            is_known = (row is not None and row.body == body) or self._is_known(file, body)
            if not is_known and contents.data:
                stem = file.replace("/", "-").rpartition(".")[0]
                ending = ".jsonl" if file.startswith(TIMELINE + "/") else ".md"
                name_new = f"{stem}.conflict-{body.hex()[:8]}{ending}"
                if self._folder.create(name, name_new):
                    names.append(name_new)
                    continue
                there = self._folder.read(name_new, longest(file))
                if there is None or there.data != contents.data:
                    raise StorageError(f"{name_new} is in the place of the previous content of {file}")
            self._folder.drop_aside(name)
        return names

    def _unknown(self, name: str) -> str:
        return (
            f"what stood in a file is kept in {self._folder.path / HIDDEN / ASIDE / name}, and in which file is not known: "
            "a row of state.db is damaged"
        )

    def _after_crash(self, names: list[str]) -> None:
        """Process files aside without a row: staged or replaced by an interrupted run. Files that this device did not make stay."""
        names = [name for name in names if not self._folder.drop_staged(name)]
        files, damaged = self._tracked_files.files() if names else ([], 0)
        for name in names:
            file = self._folder.file_of(name, [*files, INDEX_FILE])
            if file is None:
                if damaged:
                    self._problems[name] = (
                        f"{self._unknown(name)}. Look at it, and move it to where it belongs"
                    )
                continue
            row = self._tracked_files.get(file)
            contents = self._folder.read_aside(name, longest(file))
            if contents is None:
                self._problems[name] = (
                    f"{HIDDEN}/{ASIDE}/{name} was left by a run that did not finish, and cannot be read"
                )
                continue
            body = contents.sha
            is_known = not contents.data or row is None or row.body == body or self._is_known(file, body)
            if is_known or self._take_of_crash(name, file, contents.data):
                # A program may still have it open, and write into it.
                texts = (row.text, *(row.before.texts if row.before else ())) if row is not None else ()
                self._tracked_files.put_aside(
                    ReplacedFile(name, file, body, body if body in texts else None, -1, self._now)
                )

    def _take_of_crash(self, name: str, file: str, data: bytes) -> bool:
        """Read in a file set aside by an interrupted run; False, with a report, if it must stay aside."""
        if file == INDEX_FILE and not self._copy.shared_index:
            hidden_name = edited_index(data)
            try:
                self._folder.keep_hidden(name, hidden_name)
                self._problems[f"{HIDDEN}/{hidden_name}"] = index_was_edited(hidden_name)
            except StorageError as error:
                self._problems[file] = f"{file} was edited by hand, and that could not be kept: {error}"
            return False
        try:
            # The text that its writer had read is unknown: the row is of this scan, or of one after the crash.
            self._take(file, None, data)
        except IpfsmemError as error:
            self._say_late(file, error)
            return False
        return True

    def _say_late(self, file: str, error: IpfsmemError) -> None:
        self._problems[file] = (
            f"a late change of {file} could not be taken in: {error}; it is kept in {HIDDEN}/{ASIDE}"
        )


def edited_index(data: bytes) -> str:
    """Return the name under which an edited generated MEMORY.md is kept in the hidden folder."""
    return f"MEMORY.edited-{sha256(data).hexdigest()[:8]}.md"


def edited_index_names() -> str:
    """Return the pattern of these names."""
    return "MEMORY.edited-*.md"


def index_was_edited(name: str) -> str:
    """Return the notice about it."""
    return f"{INDEX_FILE} is generated and was edited by hand; the edited one is kept as {HIDDEN}/{name}: save the parts that you need as a memory, then delete it"
