"""Infraware's terminal: `memory.json`, a list of facts with a category and a date."""

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
    mapping_of,
    name_of,
    records_of,
    text_of,
)

#: The program's own categories; any other is taken as well, which the program itself cannot read.
_TYPES: Final = {
    "preference": "feedback",
    "restriction": "feedback",
    "convention": "project",
    "workflow": "project",
    "personal_fact": "user",
}


def read(files: Files) -> Iterator[Item]:
    """The facts of all such files in a place."""
    yield from each_file(files, files.ending(".json"), _facts)


def _facts(file: str, data: bytes) -> Iterator[Item]:
    found = read_json(data, file)
    if not isinstance(found, list):
        raise FormatError(f"{file} is no list of facts")
    yield from records_of(found, f"fact in {file}, number", _fact)


def _fact(where: str, value: Any) -> Record | Skipped:
    found = mapping_of(value, "it")
    if "fact" not in found:
        raise FormatError("it has no fact")
    fact, category = text_of(found["fact"], "the fact"), text_of(found.get("category"), "the category")
    if not fact.strip():
        return Skipped("an empty fact")
    created = date_of(found.get("created_at"))
    return Record(
        where=where,
        text=fact,
        name=name_of(fact),
        type=_TYPES.get(category, "reference"),
        created=created,
        source="infraware",
        fields={"category": category},
    )
