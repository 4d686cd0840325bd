"""Delete old files in the folder of a vault that can be rebuilt or are only logs.

Texts, versions, keys, undo data and files set aside are never deleted.
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

#: Temporary files that a killed process left: of a write (`new_name`), or of the page's link (`ipfsmem ui`).
_LEFT: Final = re.compile(r"\..+\.[0-9a-f]{16}\.tmp|open-\d+\.html")


class Old(NamedTuple):
    """Deleted files by name with their sizes in bytes, and the numbers of deleted operations and sync notices."""

    files: dict[str, int]
    operations: int
    reports: int


def remove_old(replica: Replica, before: int, *, dry_run: bool) -> Old:
    """Delete files older than `before` (milliseconds since 1970 UTC); with `dry_run` only list them. Raises StorageError."""
    files = {}
    for path, size in _files(replica, before):
        if not dry_run:
            try:
                path.unlink()
            except OSError:  # another process removed it first, or has it open
                continue
        files[path.name] = size
    operations = forget_operations(replica, before, dry_run=dry_run)
    with replica.reading():
        report_count = reports.count_before(replica.db.connection, before)
    if report_count and not dry_run:
        with replica.transaction():
            reports.delete_before(replica.db.connection, before)
    return Old(files, operations, report_count)


def _files(replica: Replica, before: int) -> Iterator[tuple[Path, int]]:
    folder = replica.folder
    if folder is None:
        return
    image_paths = [path for path, _ in images(replica)]
    for path in sorted([*image_paths, *(one for one in folder.iterdir() if _LEFT.fullmatch(one.name))]):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if status.st_mtime_ns // 1_000_000 < before:
                yield path, status.st_size
