"""Determine the memories that a sync added, changed and removed, for a search index or a user.

Pure. Compares texts, not dots: a text under another device's name or location is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

import msgspec

from ipfsmem.causal.entries import MemoryName, marker_parts, parse_entry
from ipfsmem.causal.value import Entry

#: How a memory differs from before.
Kind = Literal["added", "changed", "removed"]
#: Changes by memory name.
Kinds = dict[MemoryName, Kind]

#: Maximum number of memories named in a report.
MOST_CHANGES: Final = 100


class Changes(msgspec.Struct, frozen=True):
    """Keys of added, changed and removed memories by scope ("" is the default scope), sorted, and the number of further ones."""

    added: Mapping[str, tuple[str, ...]] = {}
    changed: Mapping[str, tuple[str, ...]] = {}
    removed: Mapping[str, tuple[str, ...]] = {}
    unnamed: int = 0

    @property
    def kinds(self) -> Kinds:
        """Return the change of each named memory."""
        return {
            MemoryName(scope, key): kind
            for kind in get_args(Kind)
            for scope, keys in getattr(self, kind).items()
            for key in keys
        }


def kinds_between(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Kinds:
    """Return the changes of memories among these entries. A memory with only FORGOTTEN values is removed."""
    kinds: Kinds = {}
    for name in before.keys() | after.keys():
        memory = parse_entry(name)
        if isinstance(memory, MemoryName) and marker_parts(name) is None:
            kind = _kind(_texts(before.get(name, {})), _texts(after.get(name, {})))
            if kind is not None:
                kinds[memory] = kind
    return kinds


def combine_kinds(earlier: Kinds, later: Kinds) -> Kinds:
    """Combine two successive changes, `earlier` first."""
    both: Kinds = {**earlier}
    for memory, kind in later.items():
        was = both.pop(memory, None)
        if was is None:
            both[memory] = kind
        elif (was, kind) != ("added", "removed"):
            # The text after a re-creation is not compared with that before the removal.
            both[memory] = "changed" if was == "removed" else "added" if was == "added" else kind
    return both


def changes_of(kinds: Kinds, unnamed: int = 0, most: int = MOST_CHANGES) -> Changes:
    """Prepare changes for a report: the first `most` by scope and key, and the number of the others plus `unnamed`."""
    ordered = sorted(kinds, key=lambda memory: (memory.scope, memory.key))
    by_kind: dict[Kind, dict[str, tuple[str, ...]]] = {kind: {} for kind in get_args(Kind)}
    for memory in ordered[:most]:
        of_scope = by_kind[kinds[memory]]
        of_scope[memory.scope] = (*of_scope.get(memory.scope, ()), memory.key)
    return Changes(**by_kind, unnamed=unnamed + len(ordered[most:]))


def combine_changes(earlier: Changes, later: Changes) -> Changes:
    """Combine the changes of two syncs of one command."""
    return changes_of(combine_kinds(earlier.kinds, later.kinds), earlier.unnamed + later.unnamed)


def _texts(entry: Entry) -> frozenset[str]:
    return frozenset(value.body for value in entry.values() if value.body is not None)


def _kind(before: Iterable[str], after: Iterable[str]) -> Kind | None:
    if before == after:
        return None
    return "changed" if before and after else "added" if after else "removed"
