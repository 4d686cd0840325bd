"""MIF 2.0, the Memory Interchange Format of shodh: a JSON document with `mif_version` and `memories`.

What a memory says beside its text (entities, relations to others, embeddings left out) stays with it as its further data. The
document's knowledge graph is counted and passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_json
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import (
    Item,
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

_KNOWN: Final = frozenset(
    ("id", "content", "created_at", "updated_at", "memory_type", "tags", "embeddings", "version", "agent_id")
)


def read(files: Files) -> Iterator[Item]:
    """The memories of every document in a place."""
    yield from each_file(files, files.ending(".json"), _document)


def _document(file: str, data: bytes) -> Iterator[Item]:
    found = read_json(data, file)
    if not isinstance(found, dict) or not isinstance(found.get("memories"), list):
        raise FormatError(f"{file} is no MIF document")
    if not isinstance(found.get("mif_version"), str) or not found["mif_version"].startswith(("1", "2")):
        raise FormatError(f"{file} has no MIF version that is known here")
    yield from records_of(found["memories"], f"memory in {file}, number", _memory)
    graph = found.get("knowledge_graph")
    entities = graph.get("entities") if isinstance(graph, dict) else None
    for _ in entities if isinstance(entities, list) else ():
        yield Skipped("an entity of the knowledge graph")


def _memory(where: str, value: Any) -> Record | Skipped:
    found = mapping_of(value, "it")
    if "content" not in found:
        raise FormatError("it has no content")
    text, ident = text_of(found["content"], "its content"), text_of(found.get("id"), "its id")
    if not text.strip():
        return Skipped("an empty memory")
    return Record(
        where=where,
        text=text,
        ident=ident,
        unique=is_one_of_a_kind(ident),
        name=name_of(text),
        type="reference",
        tags=texts_of(found.get("tags")),
        created=date_of(found.get("created_at")),
        updated=date_of(found.get("updated_at")),
        source=f"mif:{ident}"[:300],
        fields={
            "category": text_of(found.get("memory_type"), "its type"),
            "agent_name": text_of(found.get("agent_id"), "its agent"),
        },
        extra={key: one for key, one in found.items() if key not in _KNOWN and one},
    )
