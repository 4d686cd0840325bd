"""The two folders of a published root, `s/` (state nodes) and `o/` (objects), kept up to date one path at a time.

Both follow the prefix rule of format section 6.1. The rows say which file stands where; every folder block is
put among the blocks as it is made. An object whose block is not here is counted and stands in no folder: a root names
nothing that its maker could not send (format section 7). Nothing here seals, reads a body, or knows what a memory is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice

from ipfsmem.causal.tree import DIGITS, MAX_DEPTH, MAX_ENTRIES
from ipfsmem.content.cid import RAW_PREFIX
from ipfsmem.content.dagpb import RawLink
from ipfsmem.content.unixfs import raw_directory
from ipfsmem.device.bulk import rows_where
from ipfsmem.device.database import Connection, Database, damaged

#: A folder: its CID as bytes, and the bytes of all blocks below it.
Folder = tuple[bytes, int]
#: So many digits of a digest are the name of an object (format section 6.1).
_NAME = 40


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
        raise damaged(run.path, f"the row of the folder {path} is none")
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

    Every digest that a value names has a row of its own, whatever it begins with: anybody who may write can make a location
    up, and none of those may stand in the way of another. Of an object that is here the size is that of its bytes, not what
    a location says, for nobody signs that.
    """
    run = db.connection
    wanted = {digest: delta for digest, (_, delta) in deltas.items() if delta}
    known = {
        bytes(digest): (size, refs, held)
        for digest, size, refs, held in rows_where(
            db, "SELECT digest, size, refs, held FROM objects WHERE digest IN ({})", wanted
        )
    }
    here = _sizes_here(db, [digest for digest in wanted if digest not in known])
    rows: dict[bytes, tuple[int, int, int]] = {}
    changed: list[bytes] = []
    for digest, delta in wanted.items():
        size, refs, held = known.get(digest, (here.get(digest, deltas[digest][0]), 0, int(digest in here)))
        rows[digest] = (size, refs + delta, held)
        if held and (digest not in known or refs + delta <= 0):
            changed.append(digest)
    run.executemany("DELETE FROM objects WHERE digest=?", [(d,) for d, row in rows.items() if row[1] <= 0])
    run.executemany(
        "INSERT OR REPLACE INTO objects VALUES (?,?,?,?)",
        [(d, *row) for d, row in rows.items() if row[1] > 0],
    )
    _make_folders(db, changed)


def recount_objects(db: Database, named: Mapping[bytes, tuple[int, int]]) -> bool:
    """Put right what the rows say of objects, where the disk changed it: `named` is what the whole state names, digest ->
    (size in bytes, how often). Whether anything was wrong (inside a transaction).

    A count that is too low takes an object out of the root while somebody still names it, one too high keeps it for good.
    """
    run = db.connection
    rows = dict(run.execute("SELECT digest, refs FROM objects"))
    strange = [digest for digest in rows if digest not in named]
    off = [digest for digest, (_, refs) in named.items() if rows.get(digest) != refs]
    if not strange and not off:
        return False
    here = _sizes_here(db, off)
    run.executemany("DELETE FROM objects WHERE digest=?", [(digest,) for digest in strange])
    run.executemany(
        "INSERT OR REPLACE INTO objects VALUES (?,?,?,?)",
        [(one, here.get(one, named[one][0]), named[one][1], int(one in here)) for one in off],
    )
    digests = (*off, *(one for one in strange if isinstance(one, bytes) and len(one) == 32))
    _make_folders(db, digests)
    return True


def hold_what_came(db: Database) -> bool:
    """Put into `o/` the objects whose blocks have come since they were first named (inside a transaction); whether any had."""
    rows = db.connection.execute(
        "SELECT digest FROM objects WHERE held = 0 AND EXISTS (SELECT 1 FROM blocks WHERE blocks.digest = objects.digest)"
    )
    here = _sizes_here(db, [bytes(digest) for (digest,) in rows])
    db.connection.executemany(
        "UPDATE objects SET held=1, size=? WHERE digest=?", [(size, digest) for digest, size in here.items()]
    )
    _make_folders(db, here)
    return bool(here)


def let_go(db: Database, digests: Iterable[bytes]) -> bool:
    """Take objects out of `o/` whose blocks turned out to be lost here (inside a transaction); whether any stood there."""
    gone = [
        bytes(digest)
        for (digest,) in rows_where(
            db, "SELECT digest FROM objects WHERE held = 1 AND digest IN ({})", digests
        )
    ]
    db.connection.executemany("UPDATE objects SET held=0 WHERE digest=?", [(digest,) for digest in gone])
    _make_folders(db, gone)
    return bool(gone)


def _sizes_here(db: Database, digests: Collection[bytes]) -> dict[bytes, int]:
    """Those of these objects whose blocks are here, and how long they are."""
    rows = rows_where(db, "SELECT digest, length(data) FROM blocks WHERE digest IN ({})", digests)
    return {digest: size for digest, size in rows if not db.is_damaged(digest)}


def objects_not_here(db: Database) -> set[bytes]:
    """Digests of the objects that the state names and that stand in no root of ours."""
    return {bytes(row[0]) for row in db.connection.execute("SELECT digest FROM objects WHERE held=0")}


def objects_held(db: Database, prefix: str = "") -> Iterator[tuple[str, bytes, int]]:
    """The objects that are referred to and here and whose names begin with `prefix`: name, digest, size, by name.

    A name is the first 40 digits of a digest. Two objects that are here and share one would be a collision of 160 bits; the
    lesser digest has the name then, on every device alike.
    """
    last = ""
    for digest, size in db.connection.execute(
        "SELECT digest, size FROM objects WHERE digest BETWEEN ? AND ? AND held=1 ORDER BY digest",
        _between(prefix),
    ):
        name = bytes(digest).hex()[:_NAME]
        if name != last:
            last = name
            yield name, bytes(digest), size


def _between(prefix: str) -> tuple[bytes, bytes]:
    """The least and the greatest digest whose digits begin with `prefix`."""
    return bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))


def _make_folders(db: Database, changed: Iterable[bytes]) -> None:
    if names := sorted(digest.hex()[:_NAME] for digest in changed):
        _objects_folder(db, "", names)


def objects_folder(db: Database) -> Folder | None:
    """The folder `o/` of all objects that are referred to and here; None when there is none."""
    return _folder_row(db.connection, "o")


def _objects_folder(db: Database, prefix: str, changed: list[str] | None) -> Folder | None:
    run, path = db.connection, "o" + prefix
    held = objects_held(db, prefix)
    rows = list(islice(held, MAX_ENTRIES + 1))
    below = run.execute(
        "SELECT 1 FROM folders WHERE path > ? AND path < ? LIMIT 1", (path, path + "g")
    ).fetchone()
    if len(rows) <= MAX_ENTRIES or len(prefix) >= MAX_DEPTH:
        rows += held
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
    "objects_held",
    "objects_not_here",
    "recount_objects",
    "state_folder",
]
