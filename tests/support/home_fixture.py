"""Homes written by each version of this program: `python -m tests.support.home_fixture NAME` adds one of the
current version.

A sealed home with the folder that it publishes to, and a plain one: texts, facts, values, relations,
sessions, events and scopes, with local indexes and lists. `shown.json` has what a reader was shown."""

from __future__ import annotations

import asyncio
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from ipfsmem.memory import Memory
from tests.support import prepared
from tests.support.operation_rows import CHAT
from tests.support.operation_world import MINE, NAME, fill

FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "homes"
KINDS: Final = ("sealed", "plain")


def make(kind: str, base: Path) -> None:
    """Create a home of this kind; a sealed one publishes to the folder `stick`."""
    (base / "stick").mkdir(parents=True)
    if kind == "sealed":
        made = Memory.create(
            NAME, "encrypted-ipfs", provider=str(base / "stick"), passphrase=False, home=base / "home"
        )
    else:
        made = Memory.create(NAME, "local", home=base / "home")
    with made as memory:
        fill(memory, "everybody")
        fill(memory.scope(MINE), "mine")
        memory.recall("direct")
        if kind == "sealed":
            asyncio.run(memory.sync())
            memory.write("waiting", "Not published yet.")


def shown(memory: Memory) -> dict[str, Any]:
    """Return what a reader is shown of it."""
    found: dict[str, Any] = {}
    for scope in ("", MINE):
        here = memory.scope(scope)
        keys = [one.key for one in here.list()]
        texts = {key: here.read(key, counts=False) for key in keys}
        found[scope] = {
            "texts": {key: None if one is None else one.text for key, one in texts.items()},
            "facts": [[one.key, one.text, one.category] for one in here.facts.list()],
            "earlier": [one.text for one in here.facts.history("fact_e2f077a705af4e99")],
            "values": [[one.key, one.value] for one in here.values.list()],
            "relations": [[one.begin, one.type, one.end] for one in here.graph.relations()],
            "items": here.sessions.items(CHAT).items,
            "events": [one["type"] for one in here.timeline.read()],
            "hidden": [one.key for one in here.hidden.list()],
            "found": sorted(hit.key for hit in here.recall("direct").hits),
        }
    return found


def unpack(name: str, kind: str, base: Path) -> Path:
    """Unpack a stored home into `base` with its paths adjusted; return the home."""
    with tarfile.open(FIXTURES / name / f"{kind}.tar.gz") as file:
        was = Path(json.loads((FIXTURES / name / "shown.json").read_text("utf-8"))["was"]) / kind
        # Python before 3.11.4 does not have this filter.
        file.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        file.extractall(base)
    prepared.settle(base / "home" / NAME, {str(was): str(base)})
    return base / "home"


def main(name: str) -> None:
    """Store a home of each kind."""
    folder = FIXTURES / name
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, Any] = {"was": "/home/user/made"}
    with tempfile.TemporaryDirectory() as base:
        for kind in KINDS:
            made = Path(base) / kind
            make(kind, made)
            with Memory.load(NAME, home=made / "home") as memory:
                kept[kind] = shown(memory)
            prepared.settle(made / "home" / NAME, {str(made): f"{kept['was']}/{kind}"})
            with tarfile.open(folder / f"{kind}.tar.gz", "w:gz") as file:
                for part in sorted(made.iterdir()):
                    file.add(part, part.name, filter=_nobody)
    (folder / "shown.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")


def _nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main(sys.argv[1])
