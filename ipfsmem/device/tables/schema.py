"""Create the tables of a vault's database, and upgrade an older file.

The version is in SQLite's header (`PRAGMA user_version`); 0 means a file without tables. A new file is created in the
first version and upgraded by the same steps as an old one, so that the tables are described once. All missing steps
run in one transaction: if a process is killed in it, the file stays unchanged.

To change a table: add a step at the end of `STEPS`, make a fixture of the version before it with `python -m
tests.support.schema_fixture` (before the change), and never change an earlier step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ipfsmem.device.connection import Connection
from ipfsmem.device.tables import journal
from ipfsmem.errors import ConfigError

#: Changes the tables of one version to those of the next (inside a transaction), without losing information.
Step = Callable[[Connection], None]


def _add_hidden(db: Connection) -> None:
    """Add the table of `device.tables.hidden`, whose code most reads and writes need not load."""
    db.execute("CREATE TABLE hidden (mark BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID")


#: The oldest version that can be upgraded; no release wrote an older one.
FIRST: Final = 2


def _add_sealed_renders(db: Connection) -> None:
    from ipfsmem.device.tables import sealed_tracked_files

    sealed_tracked_files.add_tables(db)


def _add_sessions_here(db: Connection) -> None:
    from ipfsmem.device.tables import sessions_here

    sessions_here.add_table(db)


#: The step from `FIRST` to the version after it, and so on.
STEPS: Final[tuple[Step, ...]] = (
    journal.add_checksums,
    _add_sealed_renders,
    _add_hidden,
    _add_sessions_here,
)
#: The first version with hidden memories and with sessions kept on this device only.
HIDDEN: Final = FIRST + STEPS.index(_add_hidden) + 1
SESSIONS_HERE: Final = FIRST + STEPS.index(_add_sessions_here) + 1
#: The version that this program writes.
VERSION: Final = FIRST + len(STEPS)

#: What to do about a file of an unsupported version.
HINT: Final = "Use that version, or move the folder away and sync again."

_TABLES_OF_FIRST: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE blocks (digest BLOB PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE journal (seq INTEGER PRIMARY KEY AUTOINCREMENT, row BLOB NOT NULL);
CREATE TABLE nodes (prefix TEXT PRIMARY KEY, hash BLOB NOT NULL, file BLOB NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (digest BLOB PRIMARY KEY, size INTEGER NOT NULL, refs INTEGER NOT NULL, held INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX objects_not_held ON objects (digest) WHERE held = 0;
CREATE TABLE folders (path TEXT PRIMARY KEY, cid BLOB NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pairs (device TEXT NOT NULL, n INTEGER NOT NULL, r BLOB NOT NULL, PRIMARY KEY (device, n, r)) WITHOUT ROWID;
CREATE TABLE marks (device TEXT PRIMARY KEY, c INTEGER NOT NULL, digest TEXT NOT NULL, h TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE heads (root TEXT PRIMARY KEY, device TEXT NOT NULL, c INTEGER NOT NULL, digest TEXT NOT NULL,
                    seen INTEGER NOT NULL, prev BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE placed (provider TEXT NOT NULL, root TEXT NOT NULL, answered TEXT NOT NULL, handle TEXT NOT NULL,
                     at INTEGER NOT NULL, PRIMARY KEY (provider, root)) WITHOUT ROWID;
CREATE TABLE copies (id TEXT PRIMARY KEY, path TEXT NOT NULL, scope TEXT NOT NULL, inode INTEGER NOT NULL,
                     timeline INTEGER NOT NULL, secret BLOB NOT NULL, head BLOB NOT NULL, paused TEXT NOT NULL,
                     lines BLOB NOT NULL, in_step BLOB NOT NULL, vanished BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE presence (provider TEXT PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE sent_again (provider TEXT NOT NULL, digest BLOB NOT NULL, times INTEGER NOT NULL, at INTEGER NOT NULL,
                         PRIMARY KEY (provider, digest)) WITHOUT ROWID;
CREATE TABLE renders (copy TEXT NOT NULL, file TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, text BLOB NOT NULL,
                      dots TEXT NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, size INTEGER NOT NULL,
                      inode INTEGER NOT NULL, missed INTEGER, base BLOB, since INTEGER NOT NULL, fold TEXT NOT NULL,
                      mark BLOB NOT NULL, PRIMARY KEY (copy, file)) WITHOUT ROWID;
CREATE INDEX renders_by_key ON renders (key, copy);
CREATE INDEX renders_by_fold ON renders (fold, copy);
CREATE TABLE asides (copy TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, body BLOB NOT NULL, text BLOB NOT NULL,
                     mtime INTEGER NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (copy, name)) WITHOUT ROWID;
CREATE TABLE earlier (copy TEXT NOT NULL, file TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (copy, file, body)) WITHOUT ROWID;
CREATE TABLE returns (copy TEXT NOT NULL, file TEXT NOT NULL, body BLOB NOT NULL, at INTEGER NOT NULL,
                      PRIMARY KEY (copy, file)) WITHOUT ROWID;
CREATE TABLE kept (mark BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE others (mark BLOB PRIMARY KEY, of TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE authors (mark BLOB PRIMARY KEY, by TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE unscanned (seq INTEGER PRIMARY KEY AUTOINCREMENT, names BLOB NOT NULL);
CREATE TABLE reports (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
"""


def version(db: Connection) -> int:
    """Return the version of a file; 0 for one that has no tables yet."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def check(db: Connection, known: int = VERSION) -> int:
    """Return the version of a file that can be used or upgraded to `known`, or 0. Raises ConfigError for any other."""
    current = version(db)
    if current > known:
        raise ConfigError(
            f"{db.path} was written by a newer version of ipfsmem (schema {current}, this one knows {known})",
            hint=HINT,
        )
    if current and current < FIRST:
        raise ConfigError(
            f"{db.path} was written before the first release of ipfsmem (schema {current}, this one knows {FIRST} to {known})",
            hint=HINT,
        )
    return current


def bring_up_to_date(db: Connection, steps: Sequence[Step] = STEPS) -> None:
    """Create the tables, or upgrade those of an older version (inside a transaction).

    Does nothing if another process did it while this one waited for the lock. ConfigError if that was a newer program.
    """
    current = check(db, FIRST + len(steps))
    if not current:
        for statement in _TABLES_OF_FIRST.strip().split(";"):
            if statement.strip():
                db.execute(statement)
        current = FIRST
    for step in steps[current - FIRST :]:
        step(db)
    db.execute(f"PRAGMA user_version={FIRST + len(steps)}")


def compact(db: Connection) -> None:
    """Rewrite the file without free space (outside a transaction)."""
    db.execute("VACUUM")
