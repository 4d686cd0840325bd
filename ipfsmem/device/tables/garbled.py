"""Rows that the disk changed into something else than rows of their kind, in the tables of what was seen, sent or counted.

Nothing of what a person wrote stands there: without such a row more is read, sent or counted again, and with it a sync fails.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.device.connection import Connection

_ASCII = "typeof({0})!='text' OR {0} GLOB '*[^ -~]*'"
_NUMBER = "typeof({0})!='integer' OR {0} NOT BETWEEN 0 AND 9007199254740991"
_BYTES = "typeof({0})!='blob'"


def _strange(
    *, texts: tuple[str, ...] = (), numbers: tuple[str, ...] = (), blobs: tuple[str, ...] = ()
) -> str:
    columns = ((_ASCII, texts), (_NUMBER, numbers), (_BYTES, blobs))
    return " OR ".join(condition.format(name) for condition, names in columns for name in names)


#: What a row of these tables is that nobody put there.
_STRANGE = {
    "heads": _strange(texts=("root", "device", "digest"), numbers=("c", "seen"), blobs=("prev",)),
    "marks": _strange(texts=("device", "digest", "h"), numbers=("c",)),
    "placed": _strange(texts=("root", "answered"), numbers=("at",)),
    "objects": _strange(numbers=("refs", "size"), blobs=("digest",))
    + " OR refs=0 OR length(digest)!=32 OR held NOT IN (0, 1)",
    "nodes": _strange(numbers=("size",)),
}


def tables(db: Connection) -> set[str]:
    """The tables that have such rows."""
    find = "SELECT 1 FROM {} WHERE {} LIMIT 1"
    return {
        table
        for table, strange in _STRANGE.items()
        if db.execute(find.format(table, strange)).fetchone() is not None
    }


def forget(db: Connection, tables: Iterable[str]) -> None:
    """Forget such rows of these tables (inside a transaction). A part of the state keeps its row, and gets its size back."""
    for table in tables:
        do = (
            "UPDATE nodes SET size=coalesce((SELECT length(data) FROM blocks WHERE digest=file), 0)"
            if table == "nodes"
            else f"DELETE FROM {table}"  # noqa: S608
        )
        db.execute(f"{do} WHERE {_STRANGE[table]}")
