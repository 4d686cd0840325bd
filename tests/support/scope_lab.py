"""Collects the content of every scope of a vault, for comparing two vaults. Contains no tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ipfsmem.device.events import Timeline
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memory import Memory


def blob(files: Mapping[str, str]) -> bytes:
    """Return a blob with these files."""
    return json.dumps({"version": "memory/0.1", "files": files}).encode()


def everything_in(memory: Memory) -> dict[str, dict[str, Any]]:
    """Return by scope: each text by key with its place and author; the events without ids; the card."""
    cards = {scope.scope: scope.card for scope in memory.scopes.list()}
    found: dict[str, dict[str, Any]] = {}
    for token in ("", *cards):
        part = MemoryStore(memory.replica).in_scope(token)
        texts: dict[str, set[tuple[str, bool]]] = {}
        for item in part.listing(sessions=True):
            reading = part.read(item.key)
            assert reading is not None
            texts.setdefault(item.key, set()).add((f"shown {reading.data!r}", reading.own))
        for item in part.conflicts():
            for copy in item.copies:
                assert copy.reading is not None
                where = "behind" if item.forgotten else "beside"
                texts.setdefault(item.key, set()).add((f"{where} {copy.reading.data!r}", copy.reading.own))
        events = sorted(
            json.dumps({name: value for name, value in event.items() if name != "id"}, sort_keys=True)
            for event in Timeline(memory.replica, token).events()
            if event["type"] != "forgot"
        )
        found[token] = {"texts": texts, "events": events, "card": cards.get(token)}
    return found


def said_in(memory: Memory, key: str) -> str | None:
    """Return the shown body."""
    reading = memory.read(key)
    return None if reading is None else reading.file.body
