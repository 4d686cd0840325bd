"""mem0: what `get_all()` answers, a list of such memories, or an export of its platform, as JSON or JSON lines.

It also takes what others make of these: `{"results": [...]}`, `{"memories": [...]}`, pages of both. The text is `memory`, or `text`
or `data` in older dumps. Relations of its graph memory become a line each of one memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_json, read_json_lines
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import (
    Item,
    Problem,
    Record,
    Skipped,
    date_of,
    is_one_of_a_kind,
    mapping_of,
    name_of,
    records_of,
    text_of,
    texts_of,
)

_LISTS = ("results", "memories", "data", "items")
_BESIDE = ("agent_id", "app_id", "run_id", "actor_id", "role", "score", "immutable")


def read(files: Files) -> Iterator[Item]:
    """The memories of every dump in a place."""
    yield from each_file(files, files.ending(".json", ".jsonl"), _file)


def _file(name: str, data: bytes) -> Iterator[Item]:
    if not name.endswith(".jsonl"):
        yield from _dump(read_json(data, name), name)
        return
    for number, value in read_json_lines(data, name):
        where = f"line {number} of {name}"
        if isinstance(value, FormatError):
            yield Problem(where, str(value).removeprefix(f"{where} "))
        else:
            yield from records_of([value], f"{where}, memory", _memory)


def _dump(found: Any, file: str) -> Iterator[Item]:
    relations: list[Any] = []
    if isinstance(found, dict):
        relations += found["relations"] if isinstance(found.get("relations"), list) else []
        lists = [found[key] for key in _LISTS if isinstance(found.get(key), list)]
        if not lists:
            raise FormatError(f"{file} is no dump of mem0")
        found = [one for some in lists for one in some]
    if not isinstance(found, list):
        raise FormatError(f"{file} is no dump of mem0")
    # Pages that somebody put together: a list of answers.
    flat: list[Any] = []
    for value in found:
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            flat += value["results"]
            relations += value["relations"] if isinstance(value.get("relations"), list) else []
        else:
            flat.append(value)
    yield from records_of(flat, f"memory in {file}, number", _memory)
    yield from records_of(relations, f"relation in {file}, number", _relation)


def _memory(where: str, value: Any) -> Record | Skipped:
    found = mapping_of(value, "it")
    text = next((found[key] for key in ("memory", "text", "data", "content") if found.get(key)), None)
    if text is None and not {"memory", "text", "data", "content"} & found.keys():
        raise FormatError("it has no memory")
    memory = text_of(text, "its memory")
    if not memory.strip():
        return Skipped("an empty memory")
    ident = text_of(found.get("id"), "its id")
    metadata = mapping_of(found.get("metadata"), "its metadata")
    beside = {key: found[key] for key in _BESIDE if found.get(key) is not None}
    return Record(
        where=where,
        text=memory,
        ident=ident,
        unique=is_one_of_a_kind(ident),
        name=name_of(memory),
        type="user" if found.get("user_id") and not found.get("agent_id") else "reference",
        tags=(*texts_of(found.get("categories")), *texts_of(metadata.get("tags"))),
        created=date_of(found.get("created_at")),
        updated=date_of(found.get("updated_at")),
        source=f"mem0:{ident}"[:300] if ident else "mem0",
        fields={
            "category": text_of(metadata.get("category"), "its category"),
            "expires": date_of(found.get("expiration_date")),
        },
        extra={
            **{key: one for key, one in metadata.items() if key not in ("tags", "category")},
            **({"user_id": found["user_id"]} if found.get("user_id") else {}),
            **beside,
        },
    )


def _relation(where: str, value: Any) -> Record | Skipped:
    found = mapping_of(value, "it")
    parts = [
        text_of(found.get(key) or found.get(other), key)
        for key, other in (("source", "source"), ("relationship", "relation"), ("target", "destination"))
    ]
    if not all(parts):
        raise FormatError("it is no relation")
    said = " ".join(parts)
    return Record(where=where, text=said, name=name_of(said), type="reference", source="mem0:relation")
