"""A whole memory as plain files: the layout that people read and every importer takes.

`<key>.md`, conflict copies beside them, `MEMORY.md`, `timeline/<day>.jsonl`, as in mode `local`. The folder appears
complete or not at all, and nothing that is there already is touched. What goes in is decided by the caller.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ipfsmem.bundle.keys import INDEX_FILE
from ipfsmem.bundle.timeline import day_of, event_line
from ipfsmem.errors import StorageError
from ipfsmem.replica.disk import make_directory, new_name, storage_errors


def export_folder(
    folder: Path, texts: Mapping[str, bytes], events: Iterable[dict[str, Any]], index: str
) -> int:
    """Write `texts` (by file name), the events and the index to a folder that is new or empty; how many files.

    The files are readable by their owner only. Raises StorageError, also when something is in the folder.
    """
    with storage_errors(folder, "look into"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise StorageError(
                f"{folder} is not an empty folder", hint="Nothing was overwritten. Name another folder."
            )
    days: dict[str, list[bytes]] = {}
    for event in events:
        days.setdefault(day_of(event["ts"]), []).append(event_line(event) + b"\n")
    files = {**texts, INDEX_FILE: index.encode()}
    files.update({f"timeline/{day}.jsonl": b"".join(lines) for day, lines in days.items()})
    folder = folder.absolute()
    make_directory(folder.parent)
    scratch = Path(new_name(folder))
    with storage_errors(folder, "write"):
        scratch.mkdir(mode=0o700)
        try:
            for name, data in files.items():
                path = scratch / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
                    file.write(data)
            if folder.exists():
                folder.rmdir()
            scratch.rename(folder)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return len(files)
