"""LibreFang: the JSON of an agent's proactive memories, of its keys and values, or of a list of entries.

`GET /api/memory/agents/ID/export` returns {agent_id, count, memories}, `GET /api/agents/ID/memory/export` {agent_id, version,
kv}, `GET /api/memory` {memories}. Keys and values are imported as values under these keys (`memory.values`).
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

from ipfsmem.bundle.value_file import memory_key, value_file
from ipfsmem.errors import FormatError, UsageError
from ipfsmem.exchange.json_input import read_json
from ipfsmem.exchange.lenient import Fields, items_of, json_block, unicode_text
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import ImportRecord, Item, Skipped, is_one_of_a_kind, name_of, records_of, shown

#: The program's levels, and its categories for feedback.
_FEEDBACK: Final = frozenset(("communication_style", "preference", "work_style", "frustration"))
_LEVELS: Final = {"user": "user", "user_memory": "user", "session": "project", "session_memory": "project"}


def read(files: Files) -> Iterator[Item]:
    """Yield the entries of every export in a place."""
    yield from each_file(files, files.ending(".json"), _export)


def _export(file: str, data: bytes) -> Iterator[Item]:
    content = read_json(data, file)
    if isinstance(content, list):
        content = {"memories": content}
    if not isinstance(content, dict) or not ("memories" in content or "kv" in content):
        raise FormatError(f"{file} is not an export of LibreFang")
    # Of a fixed length: it precedes every key.
    whose = sha256(Fields(content).text("agent_id").encode()).hexdigest()
    memories = items_of(content.get("memories"))
    yield from records_of(memories, f"memory in {file}, number", _memory)
    for key, value in _pairs(content.get("kv")):
        yield _value(f"{shown(key)} in {file}", whose, key, value)


def _memory(place: str, value: Any) -> ImportRecord | Skipped:
    fields = Fields(value, "content")
    content = fields.body("content", "content")
    if not content.strip():
        return Skipped("an empty memory")
    if fields.value.get("deleted") is True:
        return Skipped("a deleted memory")
    metadata = Fields(fields.mapping("metadata"))
    category = fields.text("category") or metadata.text("category")
    level, key = fields.text("level", "scope"), fields.text("key")
    ident = fields.text("id") or key
    confidence = fields.number("confidence", 0, 1)
    return ImportRecord(
        where=place,
        text=content,
        ident=ident,
        unique=is_one_of_a_kind(ident),
        name=name_of(key or content),
        type="feedback" if category in _FEEDBACK else _LEVELS.get(level, "reference"),
        created=fields.date("created_at"),
        updated=fields.date("updated_at"),
        source=f"librefang:{ident or level or 'memory'}"[:300],
        fields={"category": category, "confidence": "" if confidence is None else f"{confidence:.6g}"},
        extra=fields.rest(
            {name: one for name, one in metadata.value.items() if name != "category"},
            metadata.odd,
            {"key": key} if key else {},
        ),
    )


def _pairs(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of an export: an object, or a list of objects with `key` and `value`."""
    if isinstance(content, dict):
        yield from ((unicode_text(key), value) for key, value in content.items())
    for number, one in enumerate(content if isinstance(content, list) else (), 1):
        if isinstance(one, dict) and "value" in one:
            yield Fields(one).text("key") or str(number), one["value"]
        else:
            yield str(number), one


def _value(place: str, whose: str, key: str, value: Any) -> ImportRecord:
    source, ident = f"librefang:{key}"[:300], f"{whose}\n{key}"
    try:
        return ImportRecord(
            where=place,
            file=value_file(key, value, {"source": source}),
            key=memory_key(key),
            ident=ident,
        )
    except UsageError:  # a key too long for our values, or invalid JSON: the text is imported without it
        text = unicode_text(value) if isinstance(value, str) else json_block(value)
        return ImportRecord(
            where=place, text=text, ident=ident, name=name_of(key), type="reference", source=source
        )
