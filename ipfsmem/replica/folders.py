"""The two folders of a published root, `s/` (state nodes) and `o/` (objects), kept up to date one path at a time.

Both follow the prefix rule of format section 6.1. The rows say which file stands where; every folder block is
put among the blocks as it is made. An object whose block is not here is counted and stands in no folder: a root names
nothing that its maker could not send (format section 7). Nothing here seals, reads a body, or knows what a memory is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from sqlite3 import Connection

from ipfsmem.causal.tree import DIGITS, MAX_DEPTH, MAX_ENTRIES
from ipfsmem.content.cid import RAW_PREFIX
from ipfsmem.content.dagpb import RawLink
from ipfsmem.content.unixfs import raw_directory
from ipfsmem.errors import StorageError
from ipfsmem.replica.database import Database
from ipfsmem.replica.many import blocks_here, rows_where

#: A folder: its CID as bytes, and the bytes of all blocks below it.
Folder = tuple[bytes, int]


def add_folder(db: Database, links: list[RawLink]) -> Folder:
    """Make a folder of links, keep its blocks, return it."""
    blocks, size = raw_directory(links)
    db.add_blocks((cid[4:], data) for cid, data in blocks)
    return blocks[-1][0], size


def add_file(db: Database, data: bytes) -> Folder:
    """Keep a file of at most one chunk as a raw block."""
    digest = sha256(data).digest()
    db.add_blocks([(digest, data)])
    return RAW_PREFIX + digest, len(data)


def _folder_row(run: Connection, path: str) -> Folder | None:
    row = run.execute("SELECT cid, size FROM folders WHERE path=?", (path,)).fetchone()
    if row is None:
        return None
    if not isinstance(row[0], bytes) or len(row[0]) != 36 or not isinstance(row[1], int):
        raise StorageError(f"the row of folder {path} is damaged")
    return row[0], row[1]


def _keep(run: Connection, path: str, folder: Folder) -> Folder:
    run.execute("INSERT OR REPLACE INTO folders VALUES (?,?,?)", (path, *folder))
    return folder


def state_folder(db: Database, extension: str, touched: Iterable[str] | None) -> Folder:
    """The folder `s/` for the rows in `nodes`; `touched` are the prefixes whose node changed or went (None: all)."""
    run = db.connection
    if touched is None:
        run.execute("DELETE FROM folders WHERE path >= 's' AND path < 't'")
        prefixes = {row[0] for row in run.execute("SELECT prefix FROM nodes")}
    else:
        prefixes = set(touched)
    paths = {prefix[:depth] for prefix in prefixes for depth in range(len(prefix) + 1)} | {""}
    for path in sorted(paths, key=len, reverse=True):
        links: list[RawLink] = []
        marks = ",".join("?" * len(DIGITS))
        rows = run.execute(
            f"SELECT prefix, file, size FROM nodes WHERE prefix IN ({marks})",  # noqa: S608
            [path + digit for digit in DIGITS],
        ).fetchall()
        for prefix, file, size in rows:
            links.append(((prefix[-1] + extension).encode(), RAW_PREFIX + file, size))
            below = _folder_row(run, "s" + prefix)
            if below:
                links.append((prefix[-1].encode(), *below))
        if not path:
            top = run.execute("SELECT file, size FROM nodes WHERE prefix=''").fetchone()
            links.append((f"top{extension}".encode(), RAW_PREFIX + bytes(top[0]), top[1]))
        if links:
            _keep(run, "s" + path, add_folder(db, links))
        else:
            run.execute("DELETE FROM folders WHERE path=?", ("s" + path,))
    folder = _folder_row(run, "s")
    assert folder is not None
    return folder


def change_objects(db: Database, deltas: Mapping[bytes, tuple[int, int]]) -> None:
    """Count references to objects: digest -> (size in bytes, change); folders on changed paths are made anew.

    A name is the first 40 digits of a digest. When two digests claim one, somebody made a location up: no block can
    have it. The one whose block is here gets the name, so that a made-up location cannot push a real object out.
    """
    run = db.connection
    names = {digest: digest.hex()[:40] for digest, (_, delta) in deltas.items() if delta}
    rows = rows_where(
        db, "SELECT name, digest, size, refs, held FROM objects WHERE name IN ({})", names.values()
    )
    known = {name: (bytes(digest), size, refs, held) for name, digest, size, refs, held in rows}
    here = blocks_here(db, [digest for digest in names if digest.hex()[:40] not in known])
    changed: set[str] = set()
    for digest, name in names.items():
        size, delta = deltas[digest]
        row = known.get(name)
        if row is None:
            known[name] = (digest, size, delta, int(digest in here))
            changed.add(name)
            continue
        if row[0] != digest and db.has_block(digest) and not db.has_block(row[0]):
            row = (digest, size, row[2], 1)
            changed.add(name)
        known[name] = (row[0], row[1], row[2] + delta, row[3])
        if known[name][2] <= 0:
            changed.add(name)
    run.executemany("DELETE FROM objects WHERE name=?", [(n,) for n, row in known.items() if row[2] <= 0])
    run.executemany(
        "INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)",
        [(n, *row) for n, row in known.items() if row[2] > 0],
    )
    if changed:
        _objects_folder(db, "", sorted(changed))


def hold_what_came(db: Database) -> bool:
    """Put into `o/` the objects whose blocks have come since they were first named (inside a transaction); whether any had."""
    return _set_held(db, "held = 0 AND EXISTS (SELECT 1 FROM blocks WHERE blocks.digest = objects.digest)", 1)


def let_go(db: Database, digests: Iterable[bytes]) -> bool:
    """Take objects out of `o/` whose blocks turned out to be lost here (inside a transaction); whether any stood there."""
    changed = False
    for digest in digests:
        changed |= _set_held(db, "held = 1 AND name = ?", 0, digest.hex()[:40])
    return changed


def _set_held(db: Database, which: str, held: int, *values: object) -> bool:
    rows = db.connection.execute(f"SELECT name, digest FROM objects WHERE {which}", values).fetchall()  # noqa: S608
    names = [name for name, digest in rows if not held or db.has_block(bytes(digest))]
    if names:
        db.connection.executemany("UPDATE objects SET held=? WHERE name=?", [(held, n) for n in names])
        _objects_folder(db, "", sorted(names))
    return bool(names)


def objects_not_here(db: Database) -> set[bytes]:
    """Digests of the objects that the state names and that stand in no root of ours."""
    return {bytes(row[0]) for row in db.connection.execute("SELECT digest FROM objects WHERE held=0")}


def objects_folder(db: Database) -> Folder | None:
    """The folder `o/` of all objects that are referred to and here; None when there is none."""
    return _folder_row(db.connection, "o")


def _objects_folder(db: Database, prefix: str, changed: list[str] | None) -> Folder | None:
    run, path = db.connection, "o" + prefix
    low, high = prefix, prefix + "g"
    rows = run.execute(
        "SELECT name, digest, size FROM objects WHERE name >= ? AND name < ? AND held=1 ORDER BY name LIMIT ?",
        (low, high, MAX_ENTRIES + 1),
    ).fetchall()
    below = run.execute(
        "SELECT 1 FROM folders WHERE path > ? AND path < ? LIMIT 1", (path, path + "g")
    ).fetchone()
    if len(rows) <= MAX_ENTRIES or len(prefix) >= MAX_DEPTH:
        if len(rows) > MAX_ENTRIES:
            rows = run.execute(
                "SELECT name, digest, size FROM objects WHERE name >= ? AND name < ? AND held=1", (low, high)
            ).fetchall()
        if below:
            run.execute("DELETE FROM folders WHERE path > ? AND path < ?", (path, path + "g"))
        if not rows:
            run.execute("DELETE FROM folders WHERE path=?", (path,))
            return None
        return _keep(
            run,
            path,
            add_folder(db, [(name.encode(), RAW_PREFIX + digest, size) for name, digest, size in rows]),
        )
    links: list[RawLink] = []
    for digit in DIGITS:
        # A leaf that splits has no folders below yet: then all of it is made.
        inside = [n for n in changed if n[len(prefix)] == digit] if changed is not None and below else None
        child = (
            _folder_row(run, path + digit)
            if inside is not None and not inside
            else _objects_folder(db, prefix + digit, inside)
        )
        if child:
            links.append((digit.encode(), *child))
    return _keep(run, path, add_folder(db, links))


__all__ = [
    "Folder",
    "add_file",
    "add_folder",
    "change_objects",
    "hold_what_came",
    "let_go",
    "objects_folder",
    "objects_not_here",
    "state_folder",
]
