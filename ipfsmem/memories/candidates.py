"""Texts that are not this person's word yet, as a person goes through them after an import: listed, and promoted many at once.

Where a text came from is what its header says (`source`), which its writer chose: so a source names texts, and proves nothing.
"""

from __future__ import annotations

import msgspec

from ipfsmem.device.bulk import no_collection
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.writing import writing
from ipfsmem.memories.memories import Memories
from ipfsmem.memories.overview import head_of
from ipfsmem.memories.readings import Reading


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A text of others that can be promoted."""

    key: str
    #: The name of the conflict copy that it is, where it stands beside another text; "" where it is what is shown.
    copy: str
    source: str
    name: str
    description: str
    sha256: str
    scope: str = ""


def candidates(memories: Memories, source: str | None = None) -> tuple[Candidate, ...]:
    """The texts of others of one scope that are at hand, by key; with `source` those whose header names it, alone or before a colon."""
    found = []
    for item in memories.conflicts():
        if item.forgotten:
            continue
        texts: list[tuple[str, Reading | None]] = [("", item.shown)]
        texts += [(copy.file, copy.reading) for copy in item.copies]
        for file, reading in texts:
            if reading is None or reading.own:
                continue
            head = head_of(reading.data)
            if source is None or head.source.partition(":")[0] == source:
                found.append(
                    Candidate(
                        key=item.key,
                        copy=file,
                        source=head.source,
                        name=head.name,
                        description=head.description,
                        sha256=reading.sha256,
                        scope=memories.scope,
                    )
                )
    return tuple(found)


def promote_all(memories: Memories, source: str) -> tuple[Candidate, ...]:
    """Make every candidate from there the person's own word, in one transaction: all of them, or none. Answers what was promoted.

    One that stands beside another text stays what it is: whoever takes many at once has not compared the two.
    """
    found = tuple(one for one in candidates(memories, source) if not one.copy)
    with writing(memories.replica) as change, no_collection():
        for one in found:
            memories.promote_in(change, one.key)
        if found:
            note_irrevocable(memories.replica, "a promotion of many")
    return found
