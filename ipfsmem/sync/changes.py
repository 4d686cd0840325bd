"""Which memories a sync added, changed and removed, by name: what a search index, or a person, has to look at again.

Pure. By the texts that stand in an entry, not by who wrote them when: a text that goes on under another device's name, or at
another location, is no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

import msgspec

from ipfsmem.causal.entries import MemoryName, parse_entry
from ipfsmem.causal.value import Entry

#: How a memory differs from before.
Kind = Literal["added", "changed", "removed"]
#: What happened to memories, by their names.
Kinds = dict[MemoryName, Kind]

#: A report names so many memories; a sync may bring any number of them.
MOST_CHANGES: Final = 100


class Changes(msgspec.Struct, frozen=True):
    """The keys of the memories that were added, changed and removed, by scope ("" is the nameless one), sorted; and how many
    more there were."""

    added: Mapping[str, tuple[str, ...]] = {}
    changed: Mapping[str, tuple[str, ...]] = {}
    removed: Mapping[str, tuple[str, ...]] = {}
    unnamed: int = 0

    @property
    def kinds(self) -> Kinds:
        """What happened to each memory that is named."""
        return {
            MemoryName(scope, key): kind
            for kind in get_args(Kind)
            for scope, keys in getattr(self, kind).items()
            for key in keys
        }


def kinds_between(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Kinds:
    """What happened to the memories among these entries. A memory of which only a wish to forget it is left counts as removed."""
    found: Kinds = {}
    for name in before.keys() | after.keys():
        memory = parse_entry(name)
        if isinstance(memory, MemoryName):
            kind = _kind(_texts(before.get(name, {})), _texts(after.get(name, {})))
            if kind is not None:
                found[memory] = kind
    return found


def combine_kinds(earlier: Kinds, later: Kinds) -> Kinds:
    """What happened to memories in both together, `earlier` first."""
    both: Kinds = {**earlier}
    for memory, kind in later.items():
        was = both.pop(memory, None)
        if was is None:
            both[memory] = kind
        elif (was, kind) != ("added", "removed"):
            # Of what went and came back nobody looks at the text in between.
            both[memory] = "changed" if was == "removed" else "added" if was == "added" else kind
    return both


def changes_of(kinds: Kinds, unnamed: int = 0, most: int = MOST_CHANGES) -> Changes:
    """These for a report: the first `most` by scope and key. The others are counted, together with `unnamed` ones of before."""
    ordered = sorted(kinds, key=lambda memory: (memory.scope, memory.key))
    by_kind: dict[Kind, dict[str, tuple[str, ...]]] = {kind: {} for kind in get_args(Kind)}
    for memory in ordered[:most]:
        of_scope = by_kind[kinds[memory]]
        of_scope[memory.scope] = (*of_scope.get(memory.scope, ()), memory.key)
    return Changes(**by_kind, unnamed=unnamed + len(ordered[most:]))


def combine_changes(earlier: Changes, later: Changes) -> Changes:
    """What two syncs of one command changed together."""
    return changes_of(combine_kinds(earlier.kinds, later.kinds), earlier.unnamed + later.unnamed)


def _texts(entry: Entry) -> frozenset[str]:
    return frozenset(value.body for value in entry.values() if value.body is not None)


def _kind(before: Iterable[str], after: Iterable[str]) -> Kind | None:
    if before == after:
        return None
    return "changed" if before and after else "added" if after else "removed"
