"""Find and delete rows that a damaged disk changed, in the tables of seen, sent or counted objects.

These tables contain no text of the user: without such a row something is read, sent or counted again; with it a sync
fails.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.content.cid import is_cid
from ipfsmem.device.connection import Connection

_ASCII = "typeof({0})!='text' OR {0} GLOB '*[^ -~]*'"
_ROOT = "NOT is_root(CAST({0} AS BLOB))"
_NUMBER = "typeof({0})!='integer' OR {0} NOT BETWEEN 0 AND 9007199254740991"
_BYTES = "typeof({0})!='blob'"


def _condition(
    *,
    roots: tuple[str, ...] = (),
    texts: tuple[str, ...] = (),
    numbers: tuple[str, ...] = (),
    blobs: tuple[str, ...] = (),
) -> str:
    columns = ((_ASCII, (*roots, *texts)), (_ROOT, roots), (_NUMBER, numbers), (_BYTES, blobs))
    return " OR ".join(condition.format(name) for condition, names in columns for name in names)


#: By table: the condition that only a damaged row meets.
_DAMAGED = {
    "heads": _condition(roots=("root",), texts=("device", "digest"), numbers=("c", "seen"), blobs=("prev",)),
    "marks": _condition(texts=("device", "digest", "h"), numbers=("c",)),
    "placed": _condition(roots=("root", "answered"), numbers=("at",)),
    "objects": _condition(numbers=("refs", "size"), blobs=("digest",))
    + " OR refs=0 OR length(digest)!=32 OR held NOT IN (0, 1)",
    "nodes": _condition(numbers=("size",)),
}


def tables(db: Connection) -> set[str]:
    """Return the tables that have such rows."""
    _define(db)
    find = "SELECT 1 FROM {} WHERE {} LIMIT 1"
    return {
        table
        for table, damaged in _DAMAGED.items()
        if db.execute(find.format(table, damaged)).fetchone() is not None
    }


def forget(db: Connection, tables: Iterable[str]) -> None:
    """Delete such rows of these tables (inside a transaction). A row of `nodes` is kept, and its size corrected."""
    _define(db)
    for table in tables:
        do = (
            "UPDATE nodes SET size=coalesce((SELECT length(data) FROM blocks WHERE digest=file), 0)"
            if table == "nodes"
            else f"DELETE FROM {table}"  # noqa: S608
        )
        db.execute(f"{do} WHERE {_DAMAGED[table]}")


def _define(db: Connection) -> None:
    """Define `is_root` on the connection: whether bytes are a CID as text."""
    db.create_function(
        "is_root", 1, lambda stored: is_cid((stored or b"").decode("ascii", "replace")), deterministic=True
    )
