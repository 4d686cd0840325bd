"""SQL is in `device/tables` only; an older database is upgraded, a newer one is refused."""

from __future__ import annotations

import ast
import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.device.connection import Connection
from ipfsmem.device.database import Database
from ipfsmem.device.tables import (
    authors,
    folders,
    heads,
    meta,
    placed,
    presence,
    schema,
    tracked_files,
    working_copies,
)
from ipfsmem.device.tables.heads import HeadRow
from ipfsmem.device.tables.placed import PlacedRow
from ipfsmem.errors import ConfigError, StorageError
from ipfsmem.memory import Memory
from tests.support.device_lab import VAULT_NAME, lab_in
from tests.support.schema_fixture import TEXTS, unpack, versions

PACKAGE = Path(__file__).parents[3] / "ipfsmem"
TABLES = PACKAGE / "device" / "tables"
#: SQLite statements that other modules may use: about the file and transactions, not about rows.
OF_THE_FILE = ("PRAGMA ", "BEGIN", "COMMIT", "ROLLBACK")
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP) .*\b(FROM|INTO|SET|TABLE|INDEX)\b", re.S
)


def statements(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every text in a module that may be SQL, except docstrings, and every call that executes one."""
    text = path.read_text("utf-8")
    if not re.search(r"execute|sqlite3|\b(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP) ", text):
        return
    tree = ast.parse(text)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            if SQL.match(node.value):
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("execute", "executemany", "executescript"):
                yield node.lineno, ast.unparse(node.args[0]) if node.args else ""
        elif isinstance(node, ast.Import) and any(alias.name == "sqlite3" for alias in node.names):
            yield node.lineno, "import sqlite3"


def test_sql_is_in_the_table_modules_only() -> None:
    """Exceptions read files that are not opened as a vault, or other programs' databases."""
    elsewhere = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if path.parent == TABLES or name in ("device/connection.py", "exchange/sqlite_input.py"):
            continue
        for line, text in statements(path):
            if text == "import sqlite3" and name in ("device/database.py", "device/creation.py"):
                continue
            if name == "device/database.py" and text.lstrip("f'\"").startswith(OF_THE_FILE):
                continue
            elsewhere[f"{name}:{line}"] = text
    assert not elsewhere


def test_sql_search_finds_statements(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""SELECT nothing FROM nowhere"""\nimport sqlite3\nx = f"DELETE FROM {t}"\ny.execute(z)\n'
    )
    assert {text for _, text in statements(module)} == {"import sqlite3", "DELETE FROM ", "z"}


def test_insert_statements_name_their_columns() -> None:
    """A column that is added or moved changes no other."""
    for path in sorted(TABLES.glob("*.py")):
        assert not re.search(r"INTO \w+\s+(VALUES|SELECT)", path.read_text("utf-8")), path


def test_meta_names_are_used_in_one_module_only() -> None:
    """No name is written out, and none is used twice."""
    names = [value for name, value in vars(meta).items() if name.isupper()]
    assert len(names) == len(set(names)) > 40
    for path in sorted(PACKAGE.rglob("*.py")):
        assert not re.search(r"\b[gs]et_meta\(\s*f?[\"']", path.read_text("utf-8")), path


# -- versions ------------------------------------------------------------------------------------------------------


def test_each_database_version_has_a_fixture() -> None:
    assert versions() == list(range(schema.FIRST, schema.VERSION + 1))


@pytest.mark.parametrize("version", versions())
def test_sealed_vault_of_each_version_is_read_and_written(tmp_path: Path, version: int) -> None:
    with lab_in(tmp_path) as lab:
        unpack(version, "sealed", lab.home("a") / VAULT_NAME)
        a = lab.open("a")
        assert a.replica.db.version() and schema.version(a.replica.db.connection) == schema.VERSION
        _as_it_was(a.replica.db.connection, lab.provider("a").name)
        assert {row.key for row in a.list()} == {*TEXTS, "of_b", "waiting"} - {"note_01"}
        assert a.read("note_02").file.body == TEXTS["note_02"]
        assert a.read("of_b").file.body == "b alone wrote this."
        assert [conflict.key for conflict in a.conflicts()] == ["note_00"]
        assert [event["type"] for event in a.timeline.read()] == ["remark", "forgot"]
        a.write("new", "Written by a later version.")
        a.close()
        again = lab.open("a")
        assert again.read("new").file.body == "Written by a later version."
        lab.sync(again)
        assert not again.status().unpublished


def _as_it_was(db: Connection, provider: str) -> None:
    known = heads.newest_first(db)
    assert len(known) >= 2 and len({row.device for row in known}) == 2
    assert heads.past(db)
    assert placed.at_provider(db, provider)
    assert presence.get(db, provider)
    root = meta.get(db, meta.ROOT)
    assert root is not None and heads.get(db, root.decode()) is not None


def test_plain_vault_of_each_version_is_read_and_written(tmp_path: Path) -> None:
    """A missing folder is written completely."""
    for version in versions():
        home = tmp_path / str(version)
        unpack(version, "plain", home / VAULT_NAME)
        db = Database(home / VAULT_NAME, make=False)
        (copy,) = working_copies.Copies(db.connection).all()
        rows = tracked_files.TrackedFiles(db.connection, copy.id)
        assert {row.key for row in rows.all().values()} >= TEXTS.keys()
        assert rows.had("note_03.md") and not rows.had("note_04.md")
        assert [aside.file for aside in rows.asides()] == ["note_03.md"]
        db.close()
        with Memory.load(VAULT_NAME, home=home) as memory:
            assert memory.read("note_02").file.body.endswith("A line by hand.")
            assert memory.read("note_03").file.body == "Text 3, once more."
            memory.write("note_04", "Written by a later version.")
        with Memory.load(VAULT_NAME, home=home) as memory:
            assert memory.read("note_04").file.body == "Written by a later version."


# -- steps ---------------------------------------------------------------------------------------------------------


def add_column(db: Connection) -> None:
    db.execute("ALTER TABLE marks ADD COLUMN seen INTEGER NOT NULL DEFAULT 0")


def fail(db: Connection) -> None:
    db.execute("DELETE FROM heads")
    raise StorageError("the disk is full")


def columns(db: Database) -> set[str]:
    return {str(row[1]) for row in db.connection.execute("PRAGMA table_info(marks)")}


def test_upgrade_steps_run_once_and_in_order(tmp_path: Path) -> None:
    db = Database(tmp_path)
    ran: list[str] = []
    one, two = lambda _: ran.append("one"), lambda _: ran.append("two")
    with db.transaction():
        schema.bring_up_to_date(db.connection, (*schema.STEPS, one))
        schema.bring_up_to_date(db.connection, (*schema.STEPS, one, two))
        schema.bring_up_to_date(db.connection, (*schema.STEPS, one, two))
    assert ran == ["one", "two"]
    assert schema.version(db.connection) == schema.VERSION + 2
    db.close()


def test_failed_upgrade_step_leaves_the_file_unchanged(tmp_path: Path) -> None:
    """All steps are one transaction."""
    db = Database(tmp_path)
    with db.transaction():
        heads.put(db.connection, HeadRow("bafkroot", "dev", 1, "00", 5), ["11" * 32])
    with pytest.raises(StorageError, match="full"), db.transaction():
        schema.bring_up_to_date(db.connection, (*schema.STEPS, add_column, fail))
    assert schema.version(db.connection) == schema.VERSION
    assert "seen" not in columns(db)
    assert heads.get(db.connection, "bafkroot") == HeadRow("bafkroot", "dev", 1, "00", 5)
    db.close()


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (schema.VERSION + 1, "newer version of ipfsmem"),
        (1, "before the first release"),
        (-7, "before the first release"),
    ],
)
def test_unknown_versions_are_refused(tmp_path: Path, version: int, words: str) -> None:
    """The file stays unchanged."""
    db = Database(tmp_path)
    db.connection.execute(f"PRAGMA user_version={version}")
    db.close()
    before = (tmp_path / "state.db").read_bytes()
    with pytest.raises(ConfigError, match=f"{words}.*schema {version}, this one knows"):
        Database(tmp_path)
    assert (tmp_path / "state.db").read_bytes() == before


@pytest.mark.parametrize("used", [False, True])
def test_database_of_a_newer_version_is_not_compacted(tmp_path: Path, used: bool) -> None:
    db = Database(tmp_path)
    if used:
        with db.transaction():
            db.set_meta("place", b"x")
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as other:
        other.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    with pytest.raises(ConfigError, match="changed meanwhile"):
        db.compact()
    db.close()


def test_running_process_stops_writing_after_an_upgrade_by_another(tmp_path: Path) -> None:
    db = Database(tmp_path)
    other = sqlite3.connect(tmp_path / "state.db")
    other.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    other.close()
    with pytest.raises(ConfigError, match="changed meanwhile"), db.transaction():
        db.set_meta("a", b"1")
    assert db.get_meta("a") is None
    db.close()


# -- rows ----------------------------------------------------------------------------------------------------------


def test_placed_and_presence_rows_read_back_as_written() -> None:
    db = Database(None)
    run = db.connection
    with db.transaction():
        for at, root in enumerate(("r1", "r2", "r3")):
            placed.put(run, PlacedRow("usb", root, f"{root}-there", "", at))
    assert placed.newest_at(run, "usb", 2) == [
        PlacedRow("usb", "r3", "r3-there", "", 2),
        PlacedRow("usb", "r2", "r2-there", "", 1),
    ]
    assert placed.under_either_name(run, "usb", "r1-there") == placed.get(run, "usb", "r1")
    assert placed.get(run, "other", "r1") is None
    assert placed.providers_of(run, "r2") == {"usb"}
    with db.transaction():
        placed.forget(run, "usb", "r2-there")
    assert placed.all_answered(run) == {"r1-there", "r3-there"}
    with db.transaction():
        presence.count_sent(run, "usb", [b"1", b"2"], 10)
        presence.count_sent(run, "usb", [b"2"], 20)
    assert presence.often_sent(run, "usb", 2, 0, 20) == {b"2"}
    assert presence.often_sent(run, "usb", 2, 20, 30) == set()
    db.close()


@pytest.mark.parametrize(
    "cid", [b"\x05" + b"\x55\x12\x20" + bytes(32), b"\x01\x55\x12\x20" + bytes(31), "x", 5]
)
def test_folder_row_with_an_invalid_cid_is_ignored(tmp_path: Path, cid: object) -> None:
    good = b"\x01\x55\x12\x20" + bytes(32)
    with Memory.create(VAULT_NAME, "local", home=tmp_path) as memory:
        db = memory.replica.db.connection
        with memory.replica.transaction():
            for path in ("p//2026-11-22/a", "p//2026-11-23/b"):
                folders.put(db, path, (good, 5))
            db.execute("UPDATE folders SET cid=? WHERE path='p//2026-11-23/b'", (cid,))
        assert folders.between(db, "p//", "p/0") == {"p//2026-11-22/a": (good, 5)}
        with pytest.raises(StorageError, match="an invalid value"):
            folders.get(db, "p//2026-11-23/b")


def test_forgotten_authors_of_a_text_are_deleted_alone(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        db = memory.replica.db.connection
        with memory.replica.transaction():
            authors.put(db, [(b"one", "a b"), (b"two", "a c"), (b"three", "b c")])
            authors.forget(db, [b"one", b"three"])
        assert authors.everyone(db) == {b"two": ["a", "c"]}
