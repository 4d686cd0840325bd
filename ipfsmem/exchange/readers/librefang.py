"""LibreFang: the JSON of an agent's proactive memories, of its keys and values, or of a list of entries.

`GET /api/memory/agents/ID/export` answers {agent_id, count, memories}, `GET /api/agents/ID/memory/export` {agent_id, version, kv},
`GET /api/memory` {memories}. A value that is no text keeps its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec

from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_json
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import (
    Item,
    Problem,
    Record,
    Skipped,
    date_of,
    is_one_of_a_kind,
    list_of,
    mapping_of,
    name_of,
    records_of,
    shown,
    text_of,
)

#: Its levels and the categories that say how to work with somebody.
_FEEDBACK: Final = frozenset(("communication_style", "preference", "work_style", "frustration"))
_LEVELS: Final = {"user": "user", "user_memory": "user", "session": "project", "session_memory": "project"}


def read(files: Files) -> Iterator[Item]:
    """The entries of every export in a place."""
    yield from each_file(files, files.ending(".json"), _export)


def _export(file: str, data: bytes) -> Iterator[Item]:
    found = read_json(data, file)
    if isinstance(found, list):
        found = {"memories": found}
    if not isinstance(found, dict) or not ("memories" in found or "kv" in found):
        raise FormatError(f"{file} is no export of LibreFang")
    # Of a fixed length: it stands in front of every key.
    whose = sha256(text_of(found.get("agent_id"), "the agent").encode()).hexdigest()
    memories = list_of(found.get("memories"), "the memories")
    yield from records_of(memories, f"memory in {file}, number", _memory)
    for key, value in mapping_of(found.get("kv"), "the keys").items():
        try:
            yield _value(f"{shown(key)} in {file}", whose, key, value)
        except FormatError as error:
            yield Problem(f"{shown(key)} in {file}", str(error))


def _memory(where: str, value: Any) -> Record | Skipped:
    found = mapping_of(value, "it")
    if "content" not in found:
        raise FormatError("it has no content")
    content = text_of(found["content"], "its content")
    if not content.strip():
        return Skipped("an empty memory")
    if found.get("deleted") is True:
        return Skipped("a deleted memory")
    metadata = mapping_of(found.get("metadata"), "its metadata")
    category = text_of(found.get("category") or metadata.get("category"), "its category")
    level = text_of(found.get("level") or found.get("scope"), "its level")
    ident = text_of(found.get("id"), "its id")
    confidence = found.get("confidence")
    known = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
    return Record(
        where=where,
        text=content,
        ident=ident,
        unique=is_one_of_a_kind(ident),
        name=name_of(content),
        type="feedback" if category in _FEEDBACK else _LEVELS.get(level, "reference"),
        created=date_of(found.get("created_at")),
        updated=date_of(found.get("updated_at")),
        source=f"librefang:{ident or level or 'memory'}"[:300],
        fields={"category": category, "confidence": f"{confidence:.6g}" if known else ""},
        extra={key: one for key, one in metadata.items() if key != "category"},
    )


def _value(where: str, whose: str, key: str, value: Any) -> Record | Skipped:
    name = text_of(key, "its key")
    if value is None or value == "":
        return Skipped("an empty value")
    text = text_of(value, "its value") if isinstance(value, str) else f"```json\n{_indented(value)}\n```"
    return Record(
        where=where,
        text=text,
        ident=f"{whose}\n{name}",
        name=name,
        type="reference",
        source=f"librefang:{name}"[:300],
        fields={"category": "kv"},
    )


def _indented(value: Any) -> str:
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        raise FormatError("its value has no form that others read alike") from None
