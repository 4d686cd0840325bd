"""Helpers of the translations: write a text that has no key, and read the person's own texts of a scope with their dates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ipfsmem.errors import ChangedError, UsageError
from ipfsmem.exchange.program_forms import age
from ipfsmem.exchange.records import made_key, name_of
from ipfsmem.memories.memory_records import MemoryRecord

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Maximum keys that are tried for one text.
_TRIES: Final = 100


def write_entry(
    there: Memory,
    program: str,
    text: str,
    *,
    type: str,
    category: str,
    source: str,
    fields: Mapping[str, str],
) -> MemoryRecord:
    """Write a text unchanged as a new memory, unless a memory with this text, category and type exists. Never replaces a memory.
    Raises UsageError for an empty text."""
    if not text.strip():
        raise UsageError("the text is empty, so nothing was written")
    for number in range(_TRIES):
        origin = f"{type}\n{category}\n{text}" + (f"\n{number}" if number else "")
        key = made_key(program, name_of(text), origin)
        shown = there.read(key, counts=False)
        if shown is not None and shown.own:
            file = shown.readable
            if (file.body, file.type, file.fields.get("category")) == (text.rstrip("\n"), type, category):
                return shown
            continue
        return there.write(
            key,
            text,
            name=name_of(text),
            type=type,
            fields={
                "category": category,
                "created": instant(there.replica.environment.now()),
                "source": source,
                **fields,
            },
            if_match="" if shown is None else shown.sha256,
        )
    raise ChangedError(f"{_TRIES} other texts have the keys of this one, so nothing was written")


def instant(ms: int) -> str:
    """Return milliseconds since 1970 in the form of a header."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def own_readings(memory: Memory, scope: str) -> list[MemoryRecord]:
    """Return the person's own memories that are read for a scope, newest first."""
    readings = []
    for item in memory.stack(scope).list():
        if item.own and item.fetched:
            reading = memory.scope(item.scope).read(item.key, counts=False)
            if reading is not None:
                readings.append(reading)
    return sorted(readings, key=age, reverse=True)


def own_in(there: Memory) -> list[MemoryRecord]:
    """Return the person's own memories of one scope, newest first."""
    records = (there.read(item.key, counts=False) for item in there.list() if item.own and item.fetched)
    return sorted((one for one in records if one is not None), key=age, reverse=True)
