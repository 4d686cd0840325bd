"""One flipped bit of one stored value of `state.db`, in each table, column and row of a small vault with a
folder.

Either it has no effect, or an error says what happened and what to do: no traceback, no wrong text with
exit code 0, and no loss of a line outside of the damaged row."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ipfsmem.causal.value import encode_entry
from ipfsmem.device.tables import held_texts
from ipfsmem.memory import Memory
from tests.support import effort, prepared
from tests.support.cli_lab import Cli, Result

#: A line of each text; the last is in a file that is not imported yet.
LINES = {
    "log": "a line of the log",
    "tone": "a second tone",
    "own": "own line",
    "pending": "nobody saw this yet",
}
MODES = ("local", "ipfs", "encrypted-ipfs")
SYNC: dict[str, tuple[str, ...]] = {"ipfs": ("--yes-public",), "encrypted-ipfs": ()}
READ = ("log", "tone", "own")


class Place:
    """A vault with a folder and a provider whose files can be restored in place."""

    def __init__(self, base: Path, cli: Cli, mode: str) -> None:
        self.cli, self.folder = cli, base / "agent"
        self.state = cli.home / "default" / "state.db"
        self.folder.mkdir()
        (self.folder / "own.md").write_text("own line\n")
        if mode == "local":
            prepared.local(cli.home)
        else:
            (prepared.public if mode == "ipfs" else prepared.sealed)(cli.home, base / "stick")
        for name in ("log", "tone", "plan"):
            cli.ok("write", name, "--body", f"a line of the {name}\n\nlast\n")
        cli.ok("folder", "attach", str(self.folder))
        cli.ok("timeline", "add", "remark", "text=hello")
        if mode != "local":
            cli.ok("sync", *SYNC[mode])
        plan = (self.folder / "plan.md").read_bytes()
        cli.ok("write", "plan", "--body", "another plan\n")
        (self.folder / "plan.md").write_bytes(plan)  # an earlier revision, not yet synced
        cli.ok("status")
        cli.ok("write", "tone", "--body", "a second tone\n\nlast\n")
        with Memory.load(home=cli.home) as memory, memory.replica.transaction():
            replica = memory.replica
            row = replica.codec.seal_row(encode_entry(replica.store.entry("m/own")))
            held_texts.keep(replica.db.connection, bytes(16), row)
        (self.folder / "log.md").write_text((self.folder / "log.md").read_text() + "\nnobody saw this yet\n")
        with self.database() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._roots = [cli.home, base / "stick", self.folder]
        self._kept = [{path: path.read_bytes() for path in files_in(root)} for root in self._roots]

    @contextlib.contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self.state)) as db, db:
            yield db

    def put_back(self) -> None:
        for root, kept in zip(self._roots, self._kept, strict=True):
            for path in files_in(root):
                if path not in kept:
                    path.unlink()
            for path, data in kept.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists() or path.read_bytes() != data:
                    path.write_bytes(data)

    def words(self) -> str:
        """Return the content of all files in the folder, including files set aside."""
        return "\n".join(path.read_text(errors="replace") for path in files_in(self.folder))


def files_in(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


_PLACES = (0.0, 0.5, 1.0)


class Flip(NamedTuple):
    table: str
    column: str
    row: tuple[tuple[str, object], ...]
    value: object

    def __str__(self) -> str:
        return f"{self.table}.{self.column} of {self.row}"


def flips(db: sqlite3.Connection) -> list[Flip]:
    """Yield values with one flipped bit: of two rows of each table at the beginning, the middle and the
    end, of other rows at one of these; in a short run of one row of each table at one. The modes
    alternate."""
    tables = [
        name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
    ]
    found = []
    for table in tables:
        if table.startswith("sqlite_"):
            continue
        columns = [(name, key) for _, name, _, _, _, key in db.execute(f"PRAGMA table_info({table})")]
        names = [name for name, _ in columns]
        for number, values in enumerate(db.execute(f"SELECT {','.join(names)} FROM {table}")):
            row = tuple((name, value) for (name, key), value in zip(columns, values, strict=True) if key)
            for name, value in zip(names, values, strict=True):
                if value in (None, b"", "") or (number and not effort.THOROUGH):
                    continue
                # Rows of one table are alike: the first two at each position, others at one.
                where = _PLACES if effort.THOROUGH and number < 2 else (_PLACES[len(found) % 3],)
                found += [Flip(table, name, row, flipped(value, at)) for at in where]
    return list(dict.fromkeys(found))


def flipped(value: object, at: float) -> object:
    if isinstance(value, int):
        return value ^ 4
    data = bytearray(value if isinstance(value, bytes) else str(value).encode())
    data[int(at * (len(data) - 1))] ^= 4
    return bytes(data) if isinstance(value, bytes) else data.decode("utf-8", "replace")


def said_well(result: Result) -> bool:
    """Check that there is no traceback, and that an error says why and what to do."""
    if "Traceback" in result.err or "unexpected" in result.err:
        return False
    if result.code == 0:
        return True
    told = [line for line in result.err.splitlines() if not line.startswith("Mode ")]
    return len(told) >= 2 or bool(result.out)


COMMANDS = (
    *(("read", name, "--body") for name in READ),
    ("list",),
    ("timeline", "show"),
    ("folder", "list"),
    ("status",),
    ("write", "fresh", "--body", "new"),
    ("sync",),
    *(("read", name, "--body") for name in READ),
)
FOLDER_COMMANDS = ("copies", "renders", "earlier", "returns", "asides", "file_names", "file_texts")
PATHS: dict[str, tuple[tuple[str, ...], ...]] = {"use": COMMANDS, "detach": (("folder", "detach", "FOLDER"),)}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", PATHS)
def test_flipped_bit_of_any_row_is_harmless_or_reported(
    bare: Cli, stick: Path, tmp_path: Path, mode: str, way: str
) -> None:
    place = Place(tmp_path, bare, mode)
    with place.database() as db:
        todo = flips(db)
    if way == "detach" and not effort.THOROUGH:
        todo = [one for one in todo if one.table in FOLDER_COMMANDS]
    assert {"renders", "asides", "returns"} <= {one.table for one in todo}
    if effort.PROFILE != "explore":
        todo = todo[MODES.index(mode) :: len(MODES)]
    wrong: list[str] = []
    for one in todo:
        place.put_back()
        with place.database() as db:
            where = " AND ".join(f"{name}=?" for name, _ in one.row)
            query = f"UPDATE {one.table} SET {one.column}=? WHERE {where}"
            try:
                db.execute(query, (one.value, *(value for _, value in one.row)))
            except sqlite3.IntegrityError:
                continue  # that value belongs to another row
        wrong += [f"{one}: {what}" for what in played(place, PATHS[way], mode)]
    assert not wrong, "\n".join(wrong)


def played(place: Place, commands: tuple[tuple[str, ...], ...], mode: str) -> Iterator[str]:
    """Run the commands; return the failures."""
    for command in commands:
        if command == ("sync",):
            if mode not in SYNC:
                continue
            command = ("sync", *SYNC[mode])
        result = place.cli(*(str(place.folder) if word == "FOLDER" else word for word in command))
        if not said_well(result):
            yield f"{command}: {result}"
        if result.code != 0:
            continue
        if command[0] == "read" and LINES[command[1]] not in result.out:
            yield f"{command}: {result}"
        if command[0] == "list" and not all(name in result.out for name in READ):
            yield f"{command}: {result}"
        if command[0] == "timeline" and "hello" not in result.out:
            yield f"{command}: {result}"
    out = place.cli("export")
    files = place.words()
    for line in LINES.values():
        if line not in out.out and line not in files:
            yield f"lost: {line!r}; {out}"
