"""Other programs' files and a memory to take them into. For the tests of the room `exchange`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ipfsmem.exchange.importing import Gathered, Taken, gather
from ipfsmem.exchange.places import one_file, open_place
from ipfsmem.exchange.programs import reader
from ipfsmem.exchange.records import Record
from ipfsmem.memory import Memory


def records(program: str, data: bytes, called: str = "export.json") -> Gathered:
    """What the reader of a program finds in one file."""
    return gather(reader(program)(one_file(called, data)), program)


def records_at(program: str, path: Path) -> Gathered:
    """What it finds at a path."""
    with open_place(path) as files:
        return gather(reader(program)(files), program)


def by_name(found: Gathered) -> dict[str, Record]:
    return {record.name: record for record in found.records}


def lines(*values: Any) -> bytes:
    """JSON, one value a line."""
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def tree(base: Path, files: dict[str, str]) -> Path:
    """A folder with these files by path."""
    for name, text in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return base


def everything(memory: Memory) -> tuple[dict[str, bytes], list[str], list[dict[str, Any]]]:
    """All that a memory shows, its candidates and conflict copies by file name, and its events without ids."""
    shown = {one.key: reading.data for one in memory.list() if (reading := memory.read(one.key)) is not None}
    copies = sorted(copy.file for item in memory.conflicts() for copy in item.copies)
    events = [{name: v for name, v in event.items() if name != "id"} for event in memory.timeline.read()]
    return shown, copies, events


def written(taken: Taken) -> int:
    """How many records were, or would be, written."""
    return taken.own + taken.candidates


def counted(taken: Taken, *names: str) -> int:
    return sum(taken.counts.get(name, 0) for name in names)


def twice(memory: Memory, program: str, path: Path) -> Taken:
    """Import from a path: a dry run says what the import then does, and a second one adds nothing. The first's answer."""
    before = everything(memory)
    planned = memory.bundles.import_from(program, path, dry_run=True)
    assert everything(memory) == before
    taken = memory.bundles.import_from(program, path)
    assert (taken.counts, taken.own, taken.candidates, taken.events, taken.problems) == (
        planned.counts,
        planned.own,
        planned.candidates,
        planned.events,
        planned.problems,
    )
    after = everything(memory)
    again = memory.bundles.import_from(program, path)
    assert written(again) == again.events == 0 and again.problems == taken.problems
    assert everything(memory) == after
    return taken


def keys(items: Iterable[Any]) -> list[str]:
    return sorted(item.key for item in items)
