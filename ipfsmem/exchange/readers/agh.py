"""AGH (now Compozy): a tree of Markdown memories with front matter, global, of workspaces and of agents.

Files are imported unchanged, even with keys that its own strict reader would refuse. MEMORY.md is its generated index; `_system/`
is its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipfsmem.bundle.keys import INDEX_FILE
from ipfsmem.errors import IpfsmemError
from ipfsmem.exchange.places import Files, left_out_notes
from ipfsmem.exchange.records import ImportRecord, Item, Problem, Skipped


def read(files: Files) -> Iterator[Item]:
    """Yield the memories of a tree: each under its path, one directly in it under its name."""
    yield from left_out_notes(files, lambda name: "_system" not in name.split("/")[:-1])
    for name in files.ending(".md"):
        parts = name.split("/")
        if parts[-1] == INDEX_FILE or "_system" in parts[:-1]:
            continue
        try:
            data = files.read(name)
        except IpfsmemError as error:
            yield Problem(name, str(error))
            continue
        if data.strip():
            yield ImportRecord(where=name, file=data, file_name=name.removeprefix("memory/"))
        else:
            yield Skipped("an empty file")
