"""The operation `facts.history`: the earlier texts of an entry, or the deleted entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.bundle.keys import check_key
from ipfsmem.errors import NotFoundError
from ipfsmem.operation import ForModels, Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.memories import MemoryStore


class EarlierFact(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier text of an entry. `number`: its number for `restore`, 1 for the newest; `until`: time of its replacement,
    in milliseconds since 1970 UTC; `why`: `updated` by a new fact, `edited`, `deleted`, or replaced when another text was
    `restored`."""

    number: int
    key: str
    text: str
    until: int
    why: str


class EarlierFacts(Items[EarlierFact], frozen=True, kw_only=True):
    """The earlier texts of one entry, newest first, or the deleted entries, last deleted first. It is a sequence of its `facts`."""

    facts: tuple[EarlierFact, ...]


@operation(
    summary="List the earlier texts of a fact, or deleted facts",
    right="read",
    about="target",
    raises=(
        "NotFoundError: no text of the fact is known, or a part of its history is not fetched.",
        "KeyNameError: `key` is invalid.",
    ),
    http="GET /v1/history/facts",
    tool="fact_history",
    title="History of a fact",
    for_models="List the earlier texts of a fact, newest first; without a key, the deleted facts that can be restored.",
)
def history(
    view: View,
    key: Annotated[
        str | None,
        Meta(min_length=1, max_length=64, description="Its key; without one the deleted facts are listed."),
        ForModels("Key: a-z, 0-9, _ and -."),
    ] = None,
) -> EarlierFacts:
    """List the earlier texts of a fact, newest first; without `key`, the deleted facts that can be restored.

    Each has a number, the time of its replacement and the reason.
    """
    from ipfsmem.memories.fact_history import keys_with_history

    if key is not None:
        check_key(key)
    view.opened.ingest_edits()
    memories = view.opened.memories.in_scope(view.target)
    if key is None:
        with view.opened.replica.reading():
            gone = [one for one in keys_with_history(memories) if not is_shown(memories, one)]
        return EarlierFacts(facts=tuple(one for key in gone for one in earlier_facts(memories, key)[:1]))
    facts = earlier_facts(memories, key)
    with view.opened.replica.reading():
        is_there = bool(facts) or is_shown(memories, key)
    if not is_there:
        raise NotFoundError(f"there is no fact {key}", hint="List them with: ipfsmem fact list")
    return EarlierFacts(facts=tuple(facts))


def is_shown(memories: MemoryStore, key: str) -> bool:
    """Return whether a scope, or one that leads to it, shows a text under a key (inside `reading`)."""
    return any(part.shows(key) for part in memories.stack())


def earlier_facts(memories: MemoryStore, key: str) -> list[EarlierFact]:
    """Return the earlier texts of an entry, newest first."""
    from ipfsmem.bundle.memory_file import parse_memory
    from ipfsmem.memories.fact_history import earlier

    return [
        EarlierFact(number=number, key=key, text=parse_memory(one.data).body, until=one.until, why=one.why)
        for number, one in enumerate(earlier(memories, key), 1)
    ]
