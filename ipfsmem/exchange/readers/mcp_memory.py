"""The file of the MCP reference server `memory`: a knowledge graph, one JSON object a line.

An entity becomes one memory, its observations a list; the relations that begin at it stand below. A relation whose beginning
is no entity of the file becomes a memory of its own, so that none is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_json_lines
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import Item, Problem, Record, list_of, mapping_of, needed_text, text_of


def read(files: Files) -> Iterator[Item]:
    """The graphs of all files of this kind in a place."""
    yield from each_file(files, files.ending(".jsonl", ".json"), _graph)


def _graph(file: str, data: bytes) -> Iterator[Item]:
    entities: dict[str, tuple[str, dict[str, None], int]] = {}
    relations: dict[str, list[str]] = {}
    for number, value in read_json_lines(data, file):
        where = f"line {number} of {file}"
        try:
            if isinstance(value, FormatError):
                raise value
            _take(mapping_of(value, "the line"), number, entities, relations)
        except FormatError as error:
            yield Problem(where, str(error).removeprefix(f"{where} "))
    for name, (kind, observations, number) in entities.items():
        lines = ["- " + one.strip().replace("\n", "\n  ") for one in observations]
        if known := relations.pop(name, []):
            lines += ["", "Relations:", "", *(f"- {one}" for one in known)]
        yield Record(
            where=f"line {number} of {file}",
            text="\n".join(lines),
            ident=name,
            name=name,
            description=kind,
            type="reference",
            source=f"mcp-memory:{name}"[:300],
            fields={"category": kind},
        )
    for name, known in relations.items():
        yield Record(
            where=f"relations of {name} in {file}",
            text="\n".join(["Relations:", "", *(f"- {one}" for one in known)]),
            ident=name,
            name=name,
            type="reference",
            source=f"mcp-memory:{name}"[:300],
        )


def _take(
    value: dict[str, Any],
    number: int,
    entities: dict[str, tuple[str, dict[str, None], int]],
    relations: dict[str, list[str]],
) -> None:
    """Sort one line in: of an entity that stands twice the observations are put together. Raises FormatError."""
    kind = value.get("type")
    if kind == "entity":
        name = needed_text(value.get("name"), "the name of an entity")
        said = [
            needed_text(one, "an observation")
            for one in list_of(value.get("observations"), "the observations")
        ]
        new = (text_of(value.get("entityType"), "the type of an entity"), dict[str, None](), number)
        entities.setdefault(name, new)[1].update(dict.fromkeys(said))
    elif kind == "relation":
        begin = needed_text(value.get("from"), "the beginning of a relation")
        end = needed_text(value.get("to"), "the end of a relation")
        relation = needed_text(value.get("relationType"), "the type of a relation")
        relations.setdefault(begin, []).append(f"{relation}: {end}")
    else:
        raise FormatError("it is neither an entity nor a relation")
