"""What lies in a memory's folder beside the state, may be made anew or only tells of the past, and is older than somebody wants to keep.

Texts, versions, keys, what can still be undone and what was set aside are none of it: nothing goes of which this is the only copy.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ipfsmem.device.operations import forget_operations
from ipfsmem.device.recall_image import images
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import reports

#: What a process that was killed left of a file that it wrote (`new_name`), and of the page's link (`ipfsmem ui`).
_LEFT: Final = re.compile(r"\..+\.[0-9a-f]{16}\.tmp|open-\d+\.html")
#: Nothing younger than this goes, milliseconds: a process may be writing it.
YOUNGEST: Final = 3_600_000
#: Longer ago is nothing, milliseconds.
OLDEST: Final = 366_000 * 86_400_000


class Old(NamedTuple):
    """Files by name with their bytes, and how many operations and notices of earlier syncs."""

    files: dict[str, int]
    operations: int
    reports: int


def remove_old(replica: Replica, before: int, *, dry_run: bool) -> Old:
    """Take away what is older than a moment (milliseconds since 1970 UTC); with `dry_run` only say what. Raises
    StorageError."""
    files = {}
    for path, size in _files(replica, before):
        if not dry_run:
            try:
                path.unlink()
            except OSError:  # another process was faster, or holds it open
                continue
        files[path.name] = size
    operations = forget_operations(replica, before, dry_run=dry_run)
    with replica.reading():
        told = reports.count_before(replica.db.connection, before)
    if told and not dry_run:
        with replica.transaction():
            reports.delete_before(replica.db.connection, before)
    return Old(files, operations, told)


def _files(replica: Replica, before: int) -> Iterator[tuple[Path, int]]:
    folder = replica.folder
    if folder is None:
        return
    known = [path for path, _ in images(replica)]
    for path in sorted([*known, *(one for one in folder.iterdir() if _LEFT.fullmatch(one.name))]):
        with contextlib.suppress(OSError):
            found = path.lstat()
            if found.st_mtime_ns // 1_000_000 < before:
                yield path, found.st_size
