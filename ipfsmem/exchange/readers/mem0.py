"""mem0: the result of `get_all()`, a list of such memories, or an export of its platform, as JSON or JSON lines.

Also accepts wrapped forms: `{"results": [...]}`, `{"memories": [...]}`, pages of both. The text is `memory`, or `text` or `data`
in older dumps. Relations of its graph memory become a line each of one memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipfsmem.errors import FormatError
from ipfsmem.exchange.lenient import Fields
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import ImportRecord, Item, Skipped, is_one_of_a_kind, name_of, read_records

_LISTS = ("results", "memories", "data", "items", "relations")
_TEXTS = ("memory", "text", "data", "content")
_BESIDE = ("agent_id", "app_id", "run_id", "actor_id", "role", "score", "immutable")


def read(files: Files) -> Iterator[Item]:
    """Yield the memories of every dump in a place."""
    yield from each_file(files, files.ending(".json", ".jsonl"), _file)


def _file(name: str, data: bytes) -> Iterator[Item]:
    yield from read_records(name, data, "memory", _record, lists=_LISTS, texts=_TEXTS)


def _record(place: str, value: Any) -> ImportRecord | Skipped:
    if (
        isinstance(value, dict)
        and not value.keys() & {*_TEXTS}
        and value.keys() & {"relationship", "relation", "target"}
    ):
        return _relation(place, value)
    return _memory(place, value)


def _memory(place: str, value: Any) -> ImportRecord | Skipped:
    fields = Fields(value, "memory")
    memory = fields.body("memory", *_TEXTS)
    if not memory.strip():
        return Skipped("an empty memory")
    ident = fields.text("id")
    metadata = Fields(fields.mapping("metadata"))
    beside = {key: fields.value[key] for key in _BESIDE if fields.value.get(key) is not None}
    user = fields.value.get("user_id")
    category, tags = metadata.text("category"), metadata.texts("tags")
    return ImportRecord(
        where=place,
        text=memory,
        ident=ident,
        unique=is_one_of_a_kind(ident),
        name=name_of(memory),
        type="user" if user and not fields.value.get("agent_id") else "reference",
        tags=(*fields.texts("categories"), *tags),
        created=fields.date("created_at"),
        updated=fields.date("updated_at"),
        source=f"mem0:{ident}"[:300] if ident else "mem0",
        fields={
            "category": category,
            "expires": fields.date("expiration_date"),
        },
        extra=fields.rest(
            {key: one for key, one in metadata.value.items() if key not in ("tags", "category")},
            metadata.odd,
            {"user_id": user} if user else {},
            beside,
        ),
    )


def _relation(place: str, value: Any) -> ImportRecord | Skipped:
    fields = Fields(value, "relationship")
    parts = [
        fields.text("source"),
        fields.text("relationship", "relation"),
        fields.text("target", "destination"),
    ]
    sentence = " ".join(filter(None, parts))
    if sum(map(bool, parts)) < 2:
        raise FormatError("it is not a relation")
    return ImportRecord(
        where=place,
        text=sentence,
        name=name_of(sentence),
        type="reference",
        source="mem0:relation",
        extra=fields.rest(),
    )
