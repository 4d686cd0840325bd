"""Update the two folders of a published root, `s/` (state nodes) and `o/` (objects), one path at a time.

Both follow the prefix rule of format section 6.1. Rows record which file is where; each folder block is stored as it
is made. An object whose block is not on this device is counted, but is not in a folder: a root names only blocks that
its device can send (format section 7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice

from ipfsmem.causal.tree import DIGITS, MAX_DEPTH, MAX_ENTRIES
from ipfsmem.content.cid import RAW_PREFIX
from ipfsmem.content.dagpb import RawLink
from ipfsmem.content.unixfs import raw_directory
from ipfsmem.device.connection import Connection
from ipfsmem.device.database import Database
from ipfsmem.device.tables import blocks, folders, nodes, objects
from ipfsmem.device.tables.folders import Folder
from ipfsmem.device.tables.objects import ObjectRow

#: Number of digits of an object's digest that are its name (format section 6.1).
_NAME = 40


def add_folder(db: Database, links: list[RawLink]) -> Folder:
    """Make a folder of links and store its blocks."""
    new_blocks, size = raw_directory(links)
    db.add_blocks((cid[4:], data) for cid, data in new_blocks)
    return new_blocks[-1][0], size


def add_file(db: Database, data: bytes) -> Folder:
    """Store a file of at most one chunk as a raw block."""
    digest = sha256(data).digest()
    db.add_blocks([(digest, data)])
    return RAW_PREFIX + digest, len(data)


def _keep(run: Connection, path: str, folder: Folder) -> Folder:
    folders.put(run, path, folder)
    return folder


def state_folder(db: Database, extension: str, touched: Iterable[str] | None) -> Folder:
    """Update the folder `s/` by the rows in `nodes`, and return it. `touched`: prefixes of nodes that changed or were deleted;
    None for all."""
    run = db.connection
    if touched is None:
        folders.forget_between(run, "s", "t")
        prefixes = nodes.prefixes(run)
    else:
        prefixes = set(touched)
    paths = {prefix[:depth] for prefix in prefixes for depth in range(len(prefix) + 1)} | {""}
    for path in sorted(paths, key=len, reverse=True):
        links: list[RawLink] = []
        for node in nodes.get_many(run, [path + digit for digit in DIGITS]):
            digit = node.prefix[-1]
            links.append(((digit + extension).encode(), RAW_PREFIX + node.file, node.size))
            below = folders.get(run, "s" + node.prefix)
            if below:
                links.append((digit.encode(), *below))
        if not path:
            (top,) = nodes.get_many(run, [""])
            links.append((f"top{extension}".encode(), RAW_PREFIX + top.file, top.size))
        if links:
            _keep(run, "s" + path, add_folder(db, links))
        else:
            folders.forget(run, ["s" + path])
    folder = folders.get(run, "s")
    assert folder is not None
    return folder


def change_objects(db: Database, deltas: Mapping[bytes, tuple[int, int]]) -> None:
    """Change the reference counts of objects (digest -> size in bytes, change), and update the folders on changed paths.

    Each digest has its own row: any writer can invent locations, which must not affect others. The size of an object that is here
    is that of its bytes, not the one in a location, which nobody signs.
    """
    run = db.connection
    deltas_of = {digest: delta for digest, (_, delta) in deltas.items() if delta}
    stored = objects.get_many(run, deltas_of)
    here = _sizes_here(db, [digest for digest in deltas_of if digest not in stored])
    rows: list[ObjectRow] = []
    changed: list[bytes] = []
    for digest, delta in deltas_of.items():
        old = stored.get(digest)
        if old is None:
            row = ObjectRow(digest, here.get(digest, deltas[digest][0]), delta, digest in here)
        else:
            row = ObjectRow(digest, old.size, old.refs + delta, old.held)
        rows.append(row)
        if row.held and (old is None or row.refs <= 0):
            changed.append(digest)
    objects.forget(run, [row.digest for row in rows if row.refs <= 0])
    objects.put(run, [row for row in rows if row.refs > 0])
    _make_folders(db, changed)


def recount_objects(db: Database, expected: Mapping[bytes, tuple[int, int]]) -> bool:
    """Correct rows of objects that the disk changed (inside a transaction). `expected`: all objects that the state names, digest ->
    (size in bytes, reference count). Returns whether a row was wrong.

    A count too low would drop a named object from the root; one too high would keep it forever.
    """
    run = db.connection
    rows = objects.counts(run)
    strange = [digest for digest in rows if digest not in expected]
    off = [digest for digest, (_, refs) in expected.items() if rows.get(digest) != refs]
    if not strange and not off:
        return False
    here = _sizes_here(db, off)
    objects.forget(run, strange)
    objects.put(
        run, [ObjectRow(one, here.get(one, expected[one][0]), expected[one][1], one in here) for one in off]
    )
    digests = (*off, *(one for one in strange if isinstance(one, bytes) and len(one) == 32))
    _make_folders(db, digests)
    return True


def add_arrived_objects(db: Database) -> bool:
    """Add to `o/` objects whose blocks arrived after they were named (inside a transaction). Returns whether there were any."""
    here = _sizes_here(db, objects.came(db.connection))
    objects.hold(db.connection, here.items())
    _make_folders(db, here)
    return bool(here)


def drop_lost(db: Database, digests: Iterable[bytes]) -> bool:
    """Remove objects from `o/` whose blocks are lost here (inside a transaction). Returns whether any were in it."""
    gone = objects.drop_lost(db.connection, digests)
    _make_folders(db, gone)
    return bool(gone)


def _sizes_here(db: Database, digests: Collection[bytes]) -> dict[bytes, int]:
    """Return those of these objects whose blocks are here, with their sizes in bytes."""
    rows = blocks.sizes_among(db.connection, digests)
    return {digest: size for digest, size in rows if not db.is_damaged(digest)}


def objects_not_here(db: Database) -> set[bytes]:
    """Return the digests of the objects that the state names and that are not in `o/`."""
    return objects.not_held(db.connection)


def objects_held(db: Database, prefix: str = "") -> Iterator[tuple[str, bytes, int]]:
    """Yield the objects in `o/` whose names begin with `prefix`: name, digest and size, sorted.

    A name is the first 40 digits of a digest. If two objects have one name (a collision of 160 bits), the lesser digest has it,
    on every device alike.
    """
    last = ""
    for digest, size in objects.held_between(db.connection, *_between(prefix)):
        name = digest.hex()[:_NAME]
        if name != last:
            last = name
            yield name, digest, size


def _between(prefix: str) -> tuple[bytes, bytes]:
    """Return the least and the greatest digest that begin with `prefix`."""
    return bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))


def _make_folders(db: Database, changed: Iterable[bytes]) -> None:
    if names := sorted(digest.hex()[:_NAME] for digest in changed):
        _objects_folder(db, "", names)


def objects_folder(db: Database) -> Folder | None:
    """Return the folder `o/`; None if it is empty."""
    return folders.get(db.connection, "o")


def _objects_folder(db: Database, prefix: str, changed: list[str] | None) -> Folder | None:
    run, path = db.connection, "o" + prefix
    object_rows = objects_held(db, prefix)
    rows = list(islice(object_rows, MAX_ENTRIES + 1))
    below = folders.any_below(run, path)
    if len(rows) <= MAX_ENTRIES or len(prefix) >= MAX_DEPTH:
        rows += object_rows
        if below:
            folders.forget_below(run, path)
        if not rows:
            folders.forget(run, [path])
            return None
        return _keep(
            run,
            path,
            add_folder(db, [(name.encode(), RAW_PREFIX + digest, size) for name, digest, size in rows]),
        )
    links: list[RawLink] = []
    for digit in DIGITS:
        # A leaf that is split now has no folders below yet: all of them are made.
        inside = [n for n in changed if n[len(prefix)] == digit] if changed is not None and below else None
        child = (
            folders.get(run, path + digit)
            if inside is not None and not inside
            else _objects_folder(db, prefix + digit, inside)
        )
        if child:
            links.append((digit.encode(), *child))
    return _keep(run, path, add_folder(db, links))


__all__ = [
    "Folder",
    "add_arrived_objects",
    "add_file",
    "add_folder",
    "change_objects",
    "drop_lost",
    "objects_folder",
    "objects_held",
    "objects_not_here",
    "recount_objects",
    "state_folder",
]
