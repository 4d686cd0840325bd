"""MIF 2.0, the Memory Interchange Format of shodh: a JSON document with `mif_version` and `memories`.

Other data of a memory (entities and relations, not embeddings) goes to its `extra`. The document's knowledge graph is
counted and skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_json
from ipfsmem.exchange.lenient import Fields, items_of
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import ImportRecord, Item, Skipped, is_one_of_a_kind, name_of, records_of

_KNOWN: Final = frozenset(
    ("id", "content", "created_at", "updated_at", "memory_type", "tags", "embeddings", "version", "agent_id")
)


def read(files: Files) -> Iterator[Item]:
    """Yield the memories of every document in a place."""
    yield from each_file(files, files.ending(".json"), _document)


def _document(file: str, data: bytes) -> Iterator[Item]:
    content = read_json(data, file)
    if not isinstance(content, dict) or not isinstance(content.get("memories"), list | dict):
        raise FormatError(f"{file} is not a MIF document")
    yield from records_of(items_of(content["memories"]), f"memory in {file}, number", _memory)
    graph = content.get("knowledge_graph")
    entities = graph.get("entities") if isinstance(graph, dict) else None
    for _ in entities if isinstance(entities, list) else ():
        yield Skipped("an entity of the knowledge graph")


def _memory(place: str, value: Any) -> ImportRecord | Skipped:
    fields = Fields(value, "content")
    text, ident = fields.body("content", "content"), fields.text("id")
    if not text.strip():
        return Skipped("an empty memory")
    return ImportRecord(
        where=place,
        text=text,
        ident=ident,
        unique=is_one_of_a_kind(ident),
        name=name_of(text),
        type="reference",
        tags=fields.texts("tags"),
        created=fields.date("created_at"),
        updated=fields.date("updated_at"),
        source=f"mif:{ident}"[:300],
        fields={
            "category": fields.text("memory_type"),
            "agent_name": fields.text("agent_id"),
        },
        extra=fields.rest({key: one for key, one in fields.value.items() if key not in _KNOWN and one}),
    )
