"""`memory.scopes`: the scopes of a vault: create, rename, redirect, forget and restore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ipfsmem.causal.cards import ProjectId
from ipfsmem.causal.entries import MemoryName, SegmentName, memory_entry, parse_entry, segment_name
from ipfsmem.causal.value import FORGOTTEN, Entry, decode_entry
from ipfsmem.content.cid import parse_cid
from ipfsmem.device.events import events_of
from ipfsmem.device.scopes import live_scopes
from ipfsmem.errors import IpfsmemError, NotFoundError
from ipfsmem.memories.scopes import Scope
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.method_group import MethodGroup
from ipfsmem.published.history import open_past, published_log
from ipfsmem.results import ScopeCounts


class MemoryScopes(MethodGroup):
    """The scopes of an open vault. `memory.scope(token)` reads and writes the contents of one."""

    def __init__(self, opened: VaultHandle) -> None:
        super().__init__(opened)
        self._scopes = opened.scopes

    def names(self, *, forgotten: bool = False) -> list[str]:
        """Return the names of the scopes; with `forgotten`, of the forgotten ones instead."""
        return [one.token for one in self._scopes.listing(forgotten=forgotten)]

    def get(self, token: str) -> Scope | None:
        """Return one scope, also a forgotten one; None if it does not exist. Raises KeyNameError."""
        return self._scopes.get(token)

    def known(self, token: str, *, live: bool = False) -> Scope:
        """Return one scope. Raises KeyNameError, and NotFoundError for an unknown one, or with `live` a forgotten one."""
        scope = self.get(token)
        if scope is None:
            raise NotFoundError(f"there is no scope {token}", hint="List them with: ipfsmem scope list")
        if live and scope.forgotten:
            raise NotFoundError(
                f"the scope {token} is forgotten", hint=f"Restore it with: ipfsmem scope restore {token}"
            )
        return scope

    def having(self, key: str) -> list[str]:
        """Return the scopes, by token, that have a memory under a key. Only for a person who named no scope: reads for a
        model never leave the scopes that it was given. Raises KeyNameError."""
        memories = self._open.memories
        name = memories.checked_name(key)
        with memories.replica.reading():
            tokens = [token for token in ("", *live_scopes(memories.replica.store)) if name]
            parts = [memories.in_scope(token) for token in dict.fromkeys(tokens)]
            return [part.scope for part in parts if part.view(key).dots]

    def target(self, token: str) -> str:
        """Return the scope that writes to a scope go to: itself, or the target of its redirection."""
        return self._scopes.target(token)

    def find(self, ids: Iterable[ProjectId]) -> list[str]:
        """Return the scopes of a project with one of these IDs, by token."""
        return self._scopes.find(ids)

    def stand_for(self, token: str, ids: Iterable[ProjectId]) -> Scope:
        """Add IDs to the project of a scope. Raises NotFoundError, UsageError in mode ipfs, LimitError."""
        scope = self._scopes.change(token, add=ids)
        self._open.changed()
        return scope

    def held_anything(self, token: str) -> bool:
        """Tell whether a scope has or had a text or an event."""
        with self._replica.reading():
            names = (parse_entry(name) for name in self._replica.store.names())
            return any(isinstance(one, MemoryName | SegmentName) and one.scope == token for one in names)

    def newest_version(self, token: str) -> str | None:
        """Return the newest published version on this device with texts or events of a scope."""
        with self._replica.reading():
            for line in published_log(self._replica):
                try:
                    tree = open_past(self._replica, parse_cid(line.root)).tree
                    for name, text in tree.items():
                        parsed = parse_entry(name)
                        if (
                            isinstance(parsed, MemoryName | SegmentName)
                            and parsed.scope == token
                            and any(value.kind != FORGOTTEN for value in decode_entry(name, text).values())
                        ):
                            return line.root
                except IpfsmemError:
                    continue  # not kept whole, damaged, or sealed for others
        return None

    def unpublished(self, token: str) -> int:
        """Count the memories of a scope whose text is not in its newest published version: after a forget they cannot be
        restored."""
        root = self.newest_version(token) if self._replica.config.mode.published else None
        with self._replica.reading():
            tree = None if root is None else open_past(self._replica, parse_cid(root)).tree
            lost = 0
            for key, entry in self._replica.store.memories(token):
                name = memory_entry(key, token)
                then = None if tree is None else tree.get(name)
                published = (
                    set() if then is None else {value.body for value in decode_entry(name, then).values()}
                )
                lost += any(
                    value.kind != FORGOTTEN and value.body not in published for value in entry.values()
                )
        return lost

    def counts(self) -> list[ScopeCounts]:
        """Return the counts of each live scope, the default scope first. Conflicts in a forgotten scope are counted with
        those of the default scope, which records the forget.
        """
        with self._replica.reading():
            store = self._replica.store
            scopes = ["", *live_scopes(store)]
            segments: dict[str, list[tuple[SegmentName, Entry]]] = {}
            for name in store.names():
                if (segment := segment_name(name)) is not None:
                    segments.setdefault(segment.scope, []).append((segment, store.entry(name)))
            events = {scope: len(events_of(store, segments.get(scope, []))) for scope in scopes}
        memories = self._open.memories.counts_everywhere()
        conflicts = Counter(
            scope if scope in events else ""
            for place in self._open.memories.conflicts_everywhere()
            for scope in (place.rpartition("/")[0],)
        )
        return [
            ScopeCounts(
                scope=scope,
                memories=memories.get(scope, (0, 0))[0],
                events=events[scope],
                conflicts=conflicts[scope],
                not_fetched=memories.get(scope, (0, 0))[1],
            )
            for scope in scopes
        ]
