"""Infraware's terminal: `memory.json`, a list of facts with a category and a date."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ipfsmem.exchange.lenient import Fields
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import ImportRecord, Item, Skipped, name_of, read_records

#: The program's own categories; others are imported as well, although the program itself cannot read them.
_TYPES: Final = {
    "preference": "feedback",
    "restriction": "feedback",
    "convention": "project",
    "workflow": "project",
    "personal_fact": "user",
}


def read(files: Files) -> Iterator[Item]:
    """Yield the facts of all such files in a place."""
    yield from each_file(files, files.ending(".json"), _facts)


def _facts(file: str, data: bytes) -> Iterator[Item]:
    yield from read_records(file, data, "fact", _fact, lists=("facts", "memories"), texts=("fact",))


def _fact(place: str, value: Any) -> ImportRecord | Skipped:
    fields = Fields(value, "fact")
    fact, category = fields.body("fact", "fact"), fields.text("category")
    if not fact.strip():
        return Skipped("an empty fact")
    return ImportRecord(
        where=place,
        text=fact,
        name=name_of(fact),
        type=_TYPES.get(category, "reference"),
        created=fields.date("created_at"),
        source="infraware",
        fields={"category": category},
        extra=fields.rest(),
    )
