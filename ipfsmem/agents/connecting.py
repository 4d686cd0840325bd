"""Plan, show and write the changes of `connect` and `disconnect` to programs' settings files.

A plan has the new content of each settings file, made from the content that was read; a file is replaced only while
it is unchanged. `disconnect` restores the earlier bytes of a file without later edits, and otherwise removes exactly
the additions. Nothing here opens a vault or uses a network.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from ipfsmem.agents import connections, edits
from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.connections import FileWritten, ProgramConnection
from ipfsmem.agents.differences import difference
from ipfsmem.agents.edits import Wanted
from ipfsmem.agents.programs import PROGRAMS
from ipfsmem.agents.programs.program import ConfigFile, Program, Surroundings
from ipfsmem.device import config_files
from ipfsmem.device.config_files import ConfigFileState
from ipfsmem.errors import ChangedError, ConfigError, FormatError, IpfsmemError, NotFoundError, StorageError
from ipfsmem.results import Connected, FileEdit, ProgramState, Snippet

#: Text that programs replace by the value of a variable.
_variable = re.compile(r"\$|\{(?:env|file):")
#: Characters that Git Bash, PowerShell and the command prompt read alike without quotes.
_plain = re.compile(r"[A-Za-z0-9_./:-]+")


class _Edit(msgspec.Struct, frozen=True):
    """A file as it was read and its new content; None removes it."""

    found: ConfigFileState
    data: bytes | None
    #: Folders created for it, removed when empty.
    folders: tuple[str, ...] = ()
    #: Our own values and lines, which a difference may show.
    ours: frozenset[str] = frozenset()

    @property
    def changes(self) -> bool:
        return self.found.data != self.data


class ConnectionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan for connecting or disconnecting a program."""

    program: Program
    home: Path
    edits: tuple[_Edit, ...]
    #: The stored connection at the time of the plan.
    remembered: ProgramConnection | None
    #: The connection to store; None: delete it.
    connection: ProgramConnection | None
    #: Bytes to keep, by SHA-256.
    copies: dict[str, bytes] = {}
    #: Contents to keep when the program is disconnected: files with others' changes that the plan removes.
    kept: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """True if there is anything to write."""
        return any(edit.changes for edit in self.edits)

    def answer(self, *, written: bool) -> Connected:
        """Return the plan as an answer. `written`: it was carried out."""
        return Connected(
            program=self.program.name,
            connected=self.connection is not None,
            written=written,
            files=tuple(
                FileEdit(
                    path=str(edit.found.path),
                    made=edit.found.data is None,
                    removed=edit.data is None,
                    difference=difference(
                        str(edit.found.path),
                        edit.found.data,
                        edit.data,
                        by_line=edit.found.path.suffix in (".toml", ".yaml"),
                        ours=edit.ours,
                    ),
                )
                for edit in self.edits
                if edit.changes
            ),
            notes=self.notes,
        )

    def carry_out(self) -> None:
        """Write the plan. Raises ChangedError if a file changed, or the program was connected or disconnected meanwhile,
        LockedError, StorageError.

        The connection is stored first: an interrupted plan can be undone, and undoing an edit that did not happen changes
        nothing.
        """
        if self.connection is None and self.remembered is None and not self.changes:
            return
        with connections.locked(self.home):
            if connections.known(self.home, self.program.name) != self.remembered:
                raise ChangedError(
                    f"{self.program.title} was connected or disconnected concurrently",
                    hint=config_files.AGAIN,
                )
            self._write()

    def _write(self) -> None:
        """Write all files or none: every new file is written to disk before the first is replaced."""
        changing = [edit for edit in self.edits if edit.changes]
        done: list[_Edit] = []
        try:
            for data in self.kept:
                connections.keep_for_good(self.home, self.program.name, data)
            with contextlib.ExitStack() as files:
                ready = [
                    files.enter_context(config_files.prepared(edit.found, edit.data)) for edit in changing
                ]
                if self.connection is not None:
                    connections.keep(self.home, self.connection, self.copies)
                for edit, one in zip(changing, ready, strict=True):
                    config_files.put(one)
                    done.append(edit)
        except IpfsmemError:
            self._put_back(done)
            for edit in changing:
                _remove_folders(edit.folders)
            raise
        for edit in changing:
            if edit.data is None:
                _remove_folders(edit.folders)
        if self.connection is None:
            connections.forget(self.home, self.program.name)
        elif self.connection.replaced:
            with contextlib.suppress(
                StorageError
            ):  # all is written, and the stored connection tells how to undo it
                connections.keep(self.home, msgspec.structs.replace(self.connection, replaced=()), {})

    def _put_back(self, done: list[_Edit]) -> None:
        """Restore these files. If one cannot be restored, the connection stays stored, so that `disconnect` undoes it."""
        with contextlib.suppress(IpfsmemError):
            for edit in reversed(done):
                config_files.replace(edit.found._replace(data=edit.data), edit.found.data)
            if self.remembered is None:
                connections.forget(self.home, self.program.name)
            elif done:
                connections.keep(self.home, self.remembered, {})


def plan_connect(
    home: Path, around: Surroundings, program: Program, launch: Launch, *, now: int, replace: bool = False
) -> ConnectionPlan:
    """Plan the changes that connect a program to this vault. `now`: milliseconds since 1970 UTC. Writes nothing.

    Raises NotFoundError if the program is not installed, FormatError for an unreadable file, ConfigError for another entry of
    our name (unless `replace`) and for a path that the program would read differently, ChangedError for an edited entry of
    ours, StorageError.
    """
    if not program.is_here(around):
        raise NotFoundError(
            f"{program.title} is not installed: there is no {' and no '.join(map(str, program.traces(around)))}, and no "
            f"command {program.command}",
            hint=f"Start it once, then connect it. Show the settings: ipfsmem connect {program.name} --print",
        )
    files = program.files(around, launch)
    hooks = any(isinstance(one, edits.ConfigEntry) and one.mark for file in files for one in file.wanted)
    _refuse_what_reads_otherwise(program, launch, quoted=hooks and around.system == "win32")
    remembered = connections.known(home, program.name)
    planned = [
        _planned(home, program, file, () if remembered is None else remembered.of_file(file.path), replace)
        for file in files
        if file.wanted
    ]
    # Our entries are removed from a file that the program reads but that is no longer meant to have them.
    emptied = [file.path for file in files if not file.wanted]
    taken_out = [
        _taken_out(home, program, path, () if remembered is None else remembered.of_file(path), replace)
        for path in emptied
    ]
    written = [one.written for one in planned]
    if remembered is not None:  # the program kept its settings in other files then
        paths = {*map(str, emptied), *(each.path for each in written)}
        written += [one for one in remembered.files if one.path not in paths]
    since = now if remembered is None else remembered.since
    replaced = () if remembered is None else (*remembered.files, *remembered.replaced)
    connection = ProgramConnection(program=program.name, since=since, files=tuple(written), replaced=replaced)
    saved = [(one.edit.found.path, data) for one in planned for data in one.kept]
    saved += [(edit.found.path, data) for edit, gone in taken_out for data in gone]
    return ConnectionPlan(
        program=program,
        home=home,
        remembered=remembered,
        edits=(*(one.edit for one in planned), *(edit for edit, _ in taken_out)),
        connection=connection,
        copies={
            one.written.before: one.base for one in planned if one.base is not None and one.written.before
        },
        kept=tuple(data for _, data in saved),
        notes=(*_where_kept(home, program, saved), *program.notes),
    )


class _Planned(NamedTuple):
    """The change of one file of a program."""

    edit: _Edit
    written: FileWritten
    #: Its content without our entries; None: missing.
    base: bytes | None
    #: Others' changes of our entries, which are removed with them.
    kept: list[bytes]


def _planned(
    home: Path, program: Program, file: ConfigFile, earlier: tuple[FileWritten, ...], replace: bool
) -> _Planned:
    """Return the change that adds our entries to one file. `earlier`: our earlier entries, which are replaced."""
    state = config_files.read(file.path)
    gone: list[bytes] = []
    with _about(file.path, program.name):
        if earlier and state.data is not None and edits.stands(state.data, earlier[0].done, file.wanted):
            return _Planned(_Edit(state, state.data), earlier[0], None, gone)
        base, wanted = state.data, file.wanted
        if earlier:
            base, gone = _undone(home, program, state, earlier, wanted, replace)
            if state.data is not None:
                wanted = edits.with_additions_of_program(state.data, wanted)
        cleared = _cleared(base, file, program, replace or any(one.others_gave_way for one in earlier))
        data, done = edits.apply(cleared, wanted, program.name, file.seed)
        others_gave_way = cleared != base
        if not earlier and base is not None:  # an entry equal to ours is removed with ours
            there = tuple(one.done for one in edits.standing(base, file.wanted, program.name) if one.same)
            base = edits.undo(base, there)
    ours = (*edits.written(done, file.seed), *(word for one in earlier for word in edits.written(one.done)))
    edit = _Edit(state, data, ours=frozenset(ours))
    if edit.changes:
        config_files.check_writable(state)
    written = FileWritten(
        path=str(file.path),
        sha256=sha256(data).hexdigest(),
        done=done,
        before=None if base is None else sha256(base).hexdigest(),
        seed=file.seed,
        folders=earlier[0].folders if earlier else _missing_folders(state),
        others_gave_way=others_gave_way,
    )
    return _Planned(edit, written, base, gone)


def _taken_out(
    home: Path,
    program: Program,
    path: Path,
    earlier: tuple[FileWritten, ...],
    replace: bool,
    wanted: tuple[Wanted, ...] = (),
) -> tuple[_Edit, list[bytes]]:
    """Return the removal of our earlier entries (`earlier`) from one file, and others' changes of them."""
    state = config_files.read(path)
    with _about(state.path, program.name):
        data, gone = _undone(home, program, state, earlier, wanted, replace) if earlier else (state.data, [])
    ours = (word for one in earlier for word in edits.written(one.done, one.seed))
    folders = earlier[0].folders if earlier else ()
    return _Edit(state, data, folders, frozenset(ours)), gone


def plan_disconnect(
    home: Path, around: Surroundings, program: Program, *, replace: bool = False
) -> ConnectionPlan:
    """Plan the removal of all our entries; empty without any. Writes nothing.

    Raises FormatError for an unreadable file, ChangedError for an edited entry of ours, ConfigError for an entry of our name
    that was not written from this home (both unless `replace`), StorageError.
    """
    remembered = connections.known(home, program.name)
    edits_planned: list[_Edit] = []
    saved: list[tuple[Path, bytes]] = []
    files = program.files(around, Launch(("ipfsmem",)))
    wanted_in = {str(file.path): file.wanted for file in files}
    for file in reversed(() if remembered is None else remembered.files):
        assert remembered is not None
        path = Path(file.path)
        edit, gone = _taken_out(
            home, program, path, remembered.of_file(path), replace, wanted_in.get(file.path, ())
        )
        saved += [(path, each) for each in gone]
        edits_planned.append(edit)
    for remembered_file in files:  # written from another home, or moved with the settings
        if str(remembered_file.path) in {str(edit.found.path) for edit in edits_planned}:
            continue
        state = config_files.read(remembered_file.path)
        with _about(remembered_file.path, program.name):
            data = _cleared(state.data, remembered_file, program, replace)
        if state.data is not None and data != state.data:
            saved.append((state.path, state.data))
        edits_planned.append(_Edit(state, data))
    for edit in edits_planned:
        if edit.changes:
            config_files.check_writable(edit.found)
    return ConnectionPlan(
        program=program,
        home=home,
        remembered=remembered,
        edits=tuple(edits_planned),
        connection=None,
        kept=tuple(data for _, data in saved),
        notes=_where_kept(home, program, saved),
    )


def snippets(around: Surroundings, program: Program, launch: Launch) -> tuple[Snippet, ...]:
    """Return the additions to each file, for a person who makes them manually."""
    results = []
    for file in program.files(around, launch):
        data, _ = edits.apply(None, file.wanted, program.name, file.seed)
        results.append(Snippet(path=str(file.path), text=data.decode()))
    return tuple(results)


def states(home: Path, around: Surroundings) -> tuple[ProgramState, ...]:
    """Return the state of each program."""
    return tuple(_state(home, around, program) for program in PROGRAMS.values())


def _state(home: Path, around: Surroundings, program: Program) -> ProgramState:
    since: int | None = None
    changed: list[str] = []
    problem = ""
    paths: tuple[str, ...] = ()
    try:
        remembered = connections.known(home, program.name)
        if remembered is None:
            files = program.files(around, Launch(("ipfsmem",)))
            paths = tuple(str(file.path) for file in files)
            others = [name for file in files for name in _names_there(file, program)]
            if others:
                problem = f"{', '.join(dict.fromkeys(others))} exists, and was not written from this home"
        else:
            since, paths = remembered.since, tuple(file.path for file in remembered.files)
            for file in remembered.files:
                data = config_files.read(Path(file.path)).data
                changed += edits.missing(data, file.done)
    except IpfsmemError as error:
        problem = str(error)
    return ProgramState(
        program=program.name,
        title=program.title,
        here=program.is_here(around),
        connected=since is not None and not changed,
        since=since,
        changed=tuple(changed),
        files=paths,
        problem=problem,
    )


def _names_there(file: ConfigFile, program: Program) -> Iterator[str]:
    with _about(file.path, program.name):
        for one in edits.standing(config_files.read(file.path).data, file.wanted, program.name):
            yield one.name


def _refuse_what_reads_otherwise(program: Program, launch: Launch, *, quoted: bool) -> None:
    """Raise ConfigError for a word that the program, or (`quoted`) the shell that runs its hooks, would read differently."""
    hint = f"Move it, or add by hand, quoted as the program needs it: ipfsmem connect {program.name} --print"
    for word in (*launch.words, *launch.memory):
        if _variable.search(word):
            raise ConfigError(
                f"{word} would be changed: {program.title} or another program that reads the same settings puts "
                "the value of a variable there",
                hint=hint,
            )
        if quoted and not _plain.fullmatch(word):
            raise ConfigError(
                f"{word} has characters in it that the shells which run hooks on Windows read differently",
                hint=hint,
            )


def _undone(
    home: Path,
    program: Program,
    state: ConfigFileState,
    written: tuple[FileWritten, ...],
    wanted: tuple[Wanted, ...],
    replace: bool,
) -> tuple[bytes | None, list[bytes]]:
    """Return a file without the additions of one of `written` (None: removed), and the contents to keep.

    An unchanged file gets its earlier bytes back. Others' changes that the result lacks are kept. Raises ChangedError for an
    edited entry of ours, unless `replace`.
    """
    data = state.data
    digest = None if data is None else sha256(data).hexdigest()
    for file in written:
        if digest == file.sha256:
            if file.before is None:
                return None, []
            try:
                return connections.before(home, program.name, file.before), []
            except StorageError:
                if not replace:
                    raise
    if digest in {file.before for file in written}:
        return data, []  # it was never written, or was restored
    saved: list[bytes] = []
    for file in written:
        if file.others_gave_way and file.before is not None:
            with contextlib.suppress(StorageError):
                saved.append(connections.before(home, program.name, file.before))
    if data is None:
        return None, saved
    file = next((one for one in written if not [*edits.changed_since(data, one.done)]), written[0])
    edited = [*edits.changed_since(data, file.done)]
    undone = edits.undo(data, file.done)
    ours = edits.wanted_again(file.done)
    more = [one for one in wanted if edits.way_of(one) not in map(edits.way_of, ours)]
    still = [*edits.standing(undone, (*ours, *more), program.name)]
    edited += [one.name for one in still if not one.same]
    if edited and not replace:
        raise ChangedError(
            f"{', '.join(dict.fromkeys(edited))} in {state.path} was edited since it was written",
            hint="Remove it with the edit: --replace. Preview the change: --dry-run.",
        )
    if edited:
        saved.append(data)
    undone = edits.undo(undone, tuple(one.done for one in still), edited=True)
    if edits.is_empty(undone, file.seed):
        if file.before is None:
            return None, saved
        with contextlib.suppress(StorageError):
            before = connections.before(home, program.name, file.before)
            if not before.removeprefix(b"\xef\xbb\xbf").strip():  # its initial content was ours
                return before, saved
    return undone, saved


def _where_kept(home: Path, program: Program, saved: list[tuple[Path, bytes]]) -> tuple[str, ...]:
    return tuple(
        f"{path} with the edits in place of our entries is saved in "
        f"{connections.kept_for_good(home, program.name, data)}; delete it when you no longer need it."
        for path, data in saved
    )


def _cleared(base: bytes | None, file: ConfigFile, program: Program, replace: bool) -> bytes | None:
    """Return the file without other entries of our name. Raises ConfigError without `replace`."""
    others = [one for one in edits.standing(base, file.wanted, program.name) if not one.same]
    if not others or base is None:
        return base
    if not replace:
        raise ConfigError(
            f"{', '.join(dict.fromkeys(one.name for one in others))} in {file.path} exists already, and was not written from this home",
            hint="Preview the change: --replace --dry-run. Replace it: --replace.",
        )
    return edits.undo(base, tuple(one.done for one in others), edited=True)


@contextlib.contextmanager
def _about(path: Path, program: str) -> Iterator[None]:
    """Add the path to an error about a file's content."""
    try:
        yield
    except FormatError as error:
        raise FormatError(
            f"{path}: {error}. It is unchanged",
            hint=f"Fix it, then try again. To add the settings by hand: ipfsmem connect {program} --print",
        ) from None


def _missing_folders(state: ConfigFileState) -> tuple[str, ...]:
    missing: list[str] = []
    folder = state.real.parent
    while not folder.exists() and folder != folder.parent:
        missing.insert(0, str(folder))
        folder = folder.parent
    return tuple(missing)


def _remove_folders(folders: tuple[str, ...]) -> None:
    for folder in reversed(folders):
        try:
            Path(folder).rmdir()
        except OSError:
            return  # not empty any more
