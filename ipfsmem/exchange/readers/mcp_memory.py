"""The file of the MCP reference server `memory`: a knowledge graph, one JSON object per line.

An entity becomes one memory, its observations a list, followed by the relations that begin at it. A relation whose start is not
an entity of the file becomes a memory of its own, so that none is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_values
from ipfsmem.exchange.lenient import Fields, items_of, plain_text
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import ImportRecord, Item, Problem, name_of


def read(files: Files) -> Iterator[Item]:
    """Yield the graphs of all files of this kind in a place."""
    yield from each_file(files, files.ending(".jsonl", ".json"), _graph)


class _Entity(msgspec.Struct):
    where: str
    kind: str
    extra: dict[str, Any]
    observations: dict[str, None]


def _graph(file: str, data: bytes) -> Iterator[Item]:
    entities: dict[str, _Entity] = {}
    relations: dict[str, list[str]] = {}
    for place, value in read_values(data, file):
        if isinstance(value, FormatError):
            yield Problem(place, str(value).removeprefix(f"{place} "))
            continue
        for one in _flat(value):
            try:
                _take(Fields(one), place, entities, relations)
            except FormatError as error:
                yield Problem(place, str(error))
    for name, entity in entities.items():
        lines = ["- " + one.strip().replace("\n", "\n  ") for one in entity.observations]
        if lines_of_entity := relations.pop(name, []):
            lines += ["", "Relations:", "", *(f"- {one}" for one in lines_of_entity)]
        yield ImportRecord(
            where=entity.where,
            text="\n".join(lines),
            ident=name,
            name=name,
            description=entity.kind,
            type="reference",
            tags=("entity",),
            source=f"mcp-memory:{name}"[:300],
            fields={"category": entity.kind},
            extra=entity.extra,
        )
    for name, lines_of_entity in relations.items():
        yield ImportRecord(
            where=f"relations of {name} in {file}",
            text="\n".join(["Relations:", "", *(f"- {one}" for one in lines_of_entity)]),
            ident=name,
            name=name,
            type="reference",
            tags=("entity",),
            source=f"mcp-memory:{name}"[:300],
        )


def _flat(value: Any) -> Iterator[Any]:
    """Yield the entities and relations of a line, of a list of them, and of the result of `read_graph`."""
    if isinstance(value, list):
        for one in value:
            yield from _flat(one)
    elif isinstance(value, dict) and "type" not in value and isinstance(value.get("structuredContent"), dict):
        yield from _flat(value["structuredContent"])
    elif (
        isinstance(value, dict)
        and not isinstance(value.get("type"), str)
        and value.keys() & {"entities", "relations"}
    ):
        for kind, name in (("entity", "entities"), ("relation", "relations")):
            for one in items_of(value.get(name)):
                yield _called(one, kind) if isinstance(one, dict) else one
    else:
        yield value


def _called(one: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return an item of a graph as a line of its own: many programs write its kind as `type`, which in a line tells entity from
    relation."""
    field = "entityType" if kind == "entity" else "relationType"
    word = {} if one.get(field) or one.get("type") in (None, "", kind) else {field: one["type"]}
    return {**one, **word, "type": kind}


def _take(fields: Fields, place: str, entities: dict[str, _Entity], relations: dict[str, list[str]]) -> None:
    """Add one entity or relation; the observations of an entity that is listed twice are joined. Raises FormatError."""
    kind = fields.value.get("type")
    if kind == "relation" or (kind != "entity" and {"from", "to"} <= fields.value.keys()):
        begin, end = fields.text("from"), fields.text("to")
        relation = fields.text("relationType", *(() if kind == "relation" else ("type",)))
        if not (begin or end) or sum(map(bool, (begin, end, relation))) < 2:
            raise FormatError("it is a relation without its ends")
        sentence = ": ".join(filter(None, (relation, end if begin else "")))
        relations.setdefault(begin or end, []).append(sentence)
    elif kind == "entity" or fields.value.keys() & {"observations", "entityType"}:
        stored = fields.value.get("observations")
        observed = (plain_text(one) for one in (stored if isinstance(stored, list) else [stored]))
        texts = [one for one in observed if one.strip()]
        name = fields.text("name") or (name_of(texts[0]) if texts else "")
        if not name:
            raise FormatError("it is an entity without a name")
        word = fields.text("entityType", *(() if kind == "entity" else ("type",)))
        entity = _Entity(place, word, fields.rest(), {})
        entities.setdefault(name, entity).observations.update(dict.fromkeys(texts))
    else:
        raise FormatError("it is neither an entity nor a relation")
