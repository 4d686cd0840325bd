"""Reads the memories of one scope as people and agents see them: a single memory, lists, MEMORY.md and conflicts.

Every result is a view of the state (format section 5). A text that is not on this device is reported as "not fetched", never as
absent. Never uses the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.causal.authorship import is_own
from ipfsmem.causal.entries import memory_entry, memory_name
from ipfsmem.causal.value import LIVE, Entry, Value, hash32
from ipfsmem.causal.view import (
    BaseBodies,
    Bodies,
    ConflictCopy,
    KeyView,
    Merge,
    copies_of,
    own_view,
    view_entry,
    view_of_one,
)
from ipfsmem.device.caches import Caches
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.device.texts_of_others import entries_of_others, with_retained_own
from ipfsmem.errors import NotFoundError
from ipfsmem.memories.memory_records import Alternative, Conflict, MemoryRecord, place_of
from ipfsmem.memories.overview import ScopeView, SummaryCache, head_of

if TYPE_CHECKING:
    from ipfsmem.bundle.index import IndexItem
    from ipfsmem.device.access_counts import AccessCounts
    from ipfsmem.device.state import StateMark
    from ipfsmem.recall.ranking import RankingWeights


class MemorySummary(msgspec.Struct, frozen=True, kw_only=True):
    """One memory in a list: its header without the body, and its status."""

    key: str
    #: Its scope; "" is the default scope.
    scope: str
    #: Whether the text is own; otherwise it is a text of others, and not approved.
    own: bool = True
    fields: dict[str, str]
    tags: tuple[str, ...]
    #: The SHA-256 of the whole text; None if unknown.
    sha256: str | None
    merged: bool = False
    #: Number of alternatives to the shown text.
    conflicts: int = 0
    #: Whether its text is on this device.
    fetched: bool = True

    @property
    def file(self) -> MemoryFile:
        """The header as a memory file."""
        return MemoryFile(self.fields, "")


class MemoryReader:
    """Reads the memory files of one scope of a replica."""

    def __init__(self, replica: Replica, scope: str = "", sibling: MemoryReader | None = None) -> None:
        """`sibling`: the memories of another scope of the same replica, to share their caches."""
        self.replica = replica
        self.scope = check_scope(scope) if scope else ""
        #: Cache of the shown memories of all scopes.
        self.overview: SummaryCache = sibling.overview if sibling is not None else SummaryCache(replica)
        #: Caches of other modules, for the memories of all scopes.
        self.caches: Caches = sibling.caches if sibling is not None else Caches()
        #: Opens semantic recall on demand: returns a `Meaning` for these memories; None if no model is named.
        self.meaning: Callable[[], Any] = sibling.meaning if sibling is not None else lambda: None
        #: Returns the weights of recall, called for each query; None: the defaults.
        self.weighed: Callable[[], RankingWeights] | None = sibling.weighed if sibling is not None else None
        #: Opens the table of uses on demand; None if uses are not counted.
        self.uses: Callable[[], AccessCounts] | None = sibling.uses if sibling is not None else None
        #: Returns the share of a confidence that fades each day, called for each use; None: the default.
        self.decay_rate: Callable[[], float] | None = sibling.decay_rate if sibling is not None else None
        #: Returns the scopes that are read for a scope, in order of precedence; None: only the scope itself.
        self.read_order: Callable[[str], Sequence[str]] | None = (
            sibling.read_order if sibling is not None else None
        )
        #: Headers of the last list by the hash of their texts, None before the first list; the number of headers not stored on
        #: disk.
        self._heads: dict[str, MemoryFile] | None = None
        self._new_heads = 0
        #: The state that the last list read, if its headers are to be stored.
        self._heads_of: StateMark | None = None

    @property
    def fading(self) -> float:
        """The share of a confidence that fades each day."""
        if self.decay_rate is not None:
            return self.decay_rate()
        from ipfsmem.recall.priority import FADING  # reads and writes need no priority

        return FADING

    def in_scope(self, scope: str) -> Self:
        """Return the memories of another scope of this replica. Raises KeyNameError."""
        return self if scope == self.scope else type(self)(self.replica, scope, self)

    def stack(self) -> list[Self]:
        """Return the memories that are read for this scope: its own, then those of the scopes redirected to it."""
        scopes = (self.scope,) if self.read_order is None else self.read_order(self.scope)
        return [self.in_scope(scope) for scope in scopes]

    def name(self, key: str) -> str:
        """Return the name of a memory's entry; the key is not checked."""
        return memory_entry(key, self.scope)

    def checked_name(self, key: str) -> str:
        """Return the name of a memory's entry, for a key from a caller. Raises KeyNameError."""
        return self.name(check_key(key))

    def view(
        self,
        key: str,
        entry: Entry | None = None,
        body: Callable[[str, Value], bytes | None] | None = None,
        merge: Merge | None = None,
    ) -> KeyView:
        """Return the view of a key for this reader: of the person's own texts, or of all texts if none is own (format section 5.2).

        If no text is own, `own` is false, and every text is listed in `others`. `body`: finds texts, also those of a transaction in
        progress. `merge`: a replacement for the merge of the format.
        """
        return self._view_of(key, self.entry(key, entry), body, merge)

    def _view_of(
        self,
        key: str,
        entry: Entry,
        body: Callable[[str, Value], bytes | None] | None = None,
        merge: Merge | None = None,
    ) -> KeyView:
        """Return the view of siblings that `entry` returned."""
        if not entry:
            return KeyView(key)
        if len(entry) == 1:
            # The common case, on the path of every read, write and hit.
            ((dot, value),) = entry.items()
            if value.kind == LIVE and self.is_own(dot, value.author):
                find = body or self.replica.store.body
                return view_of_one(key, dot, value, find(memory_entry(key, self.scope), value))
        owned = [self.is_own(dot, value.author) for dot, value in entry.items()]
        if all(owned):
            return view_entry(key, entry, *self._bodies(key, entry, body), merge)
        if any(owned):
            return own_view(key, entry, self.is_own, *self._bodies(key, entry, body), merge)
        whole = self.whole_view(key, entry, body)
        if whole.forgotten:
            return whole
        return msgspec.structs.replace(
            whole, own=False, conflicts=(), hidden=(), others=copies_of(key, entry)
        )

    def _view_of_ours(
        self, key: str, entry: Entry, body: Callable[[str, Value], bytes | None] | None
    ) -> KeyView | None:
        """Return the view of an entry whose only text was written by this device, in fewer steps; None for any other entry."""
        if len(entry) != 1:
            return None
        ((dot, value),) = entry.items()
        if value.kind != LIVE or value.author or dot[:16] != self.replica.device.id:
            return None
        find = body or self.replica.store.body
        return view_of_one(key, dot, value, find(memory_entry(key, self.scope), value))

    def entry(self, key: str, entry: Entry | None = None) -> Entry:
        """Return the siblings of a memory, with the last own text if others replaced all own ones (`with_retained_own`)."""
        name = memory_entry(key, self.scope)
        return with_retained_own(
            self.replica, name, self.replica.store.entry(name) if entry is None else entry
        )

    def whole_view(
        self,
        key: str,
        entry: Entry | None = None,
        body: Callable[[str, Value], bytes | None] | None = None,
    ) -> KeyView:
        """Return the view of a key from the texts of all writers: the same on every device, and as in a published root."""
        entry = self.replica.store.entry(self.name(key)) if entry is None else entry
        if not entry:
            return KeyView(key)
        return view_entry(key, entry, *self._bodies(key, entry, body))

    def forgotten(self) -> bool:
        """Return whether this scope is forgotten: no memory is shown then, and remaining texts are listed by `conflicts`."""
        return scope_forgotten(self.replica.store, self.scope)

    def is_own(self, dot: str, of: str) -> bool:
        """Return whether a value with this dot and this author was written by the owner of this device."""
        if not of and dot[:16] == self.replica.device.id:
            return True  # called for each memory of each index
        return is_own(dot, of, self.replica.is_mine)

    def has_own(self, entry: Entry, body: str) -> bool:
        """Return whether an own value of an entry has the text with this hash."""
        return any(value.body == body and self.is_own(dot, value.author) for dot, value in entry.items())

    def _bodies(
        self, key: str, entry: Entry, body: Callable[[str, Value], bytes | None] | None
    ) -> tuple[Bodies, BaseBodies]:
        store, name = self.replica.store, self.name(key)
        find = body or store.body

        def bodies(body: str) -> bytes | None:
            for value in entry.values():
                if value.body == body and (data := find(name, value)) is not None:
                    return data
            return None

        def bases(base: str) -> bytes | None:
            for value in entry.values():
                if value.b and value.b[0] == base and (data := store.base(name, value)) is not None:
                    return data
                if value.body is not None and hash32(value.body) == base:
                    return bodies(value.body)
            return None

        return bodies, bases

    def read(self, key: str) -> MemoryRecord | None:
        """Return one memory, None if the key has none or it is forgotten. Raises NotFoundError if the text is not fetched."""
        with self.replica.reading():
            entry = self.replica.store.entry(self.checked_name(key))
            return None if self.forgotten() else self.reading_of(key, entry)

    def _reading(self, view: KeyView, entry: Entry, file: MemoryFile | None = None) -> MemoryRecord | None:
        """Return the shown text, None if no text is shown. `file`: the parsed text, if the caller has it."""
        if view.data is None or view.dot is None:
            return None
        return MemoryRecord.of(
            view.key,
            view.data,
            view.dots,
            merged=view.merged,
            conflicts=tuple([copy.file for copy in (*view.conflicts, *(view.others if view.own else ()))]),
            device=view.dot[:16],
            hlc=entry[view.dot].h,
            own=view.own,
            scope=self.scope,
            file=file,
        )

    def reading_of(
        self, key: str, entry: Entry, body: Callable[[str, Value], bytes | None] | None = None
    ) -> MemoryRecord | None:
        """Return the shown text of an entry, current or past (inside `reading`). `body`: as in `view`. Raises NotFoundError if the
        text is not fetched."""
        view = self._view_of_ours(key, entry, body)  # called for each hit of a recall
        if view is None:
            entry = self.entry(key, entry)
            view = self._view_of(key, entry, body)
        if view.data is None and view.not_fetched:
            raise text_not_fetched(self.replica, key, view.not_fetched)
        return self._reading(view, entry)

    def read_conflict(self, key: str, file: str) -> MemoryRecord:
        """Return a conflict copy by its file name, `<key>.conflict-<8 hex>.md`. Raises NotFoundError."""
        name = self.checked_name(key)
        with self.replica.reading():
            entry = self.entry(key)
            view = self._behind_the_forget(key, entry) if self.forgotten() else self.view(key, entry)
            for copy in (*view.conflicts, *view.hidden, *view.others):
                if copy.file == file:
                    data = self.replica.store.body(name, entry[copy.dot])
                    if data is None:
                        raise text_not_fetched(self.replica, key, (copy.dot,))
                    return self._copy_reading(key, copy, entry, data)
        raise NotFoundError(f"{key} has no alternative {file}", hint="List them with: ipfsmem conflicts.")

    def _copy_reading(self, key: str, copy: ConflictCopy, entry: Entry, data: bytes) -> MemoryRecord:
        own = any(self.is_own(dot, entry[dot].author) for dot in copy.dots)
        first = copy.dot
        return MemoryRecord.of(
            key, data, copy.dots, device=first[:16], hlc=entry[first].h, own=own, scope=self.scope
        )

    def views(self) -> Iterator[tuple[Entry, KeyView]]:
        """Yield all entries of memories with their views (inside `reading`)."""
        for key, entry in self._entries():
            yield entry, self.view(key, entry)

    def _here(self) -> Iterator[tuple[Self, str, Entry]]:
        return ((self, key, entry) for key, entry in self._entries())

    def _everywhere(self) -> Iterator[tuple[Self, str, Entry]]:
        """Yield the memories of all scopes that are not forgotten."""
        scopes: dict[str, Self | None] = {}
        for name, entry in self.replica.store.entries():
            parsed = memory_name(name)
            if parsed is None:
                continue
            if parsed.scope not in scopes:
                memories = self.in_scope(parsed.scope)
                scopes[parsed.scope] = None if memories.forgotten() else memories
            there = scopes[parsed.scope]
            if there is not None:
                yield there, parsed.key, entry

    def _entries(self, entries: Iterable[tuple[str, Entry]] | None = None) -> Iterator[tuple[str, Entry]]:
        """Yield the memories of this scope; none while it is forgotten."""
        if self.forgotten():
            return iter(())
        return self.replica.store.memories(self.scope) if entries is None else iter(entries)

    def counts(self) -> tuple[int, int]:
        """Return the number of memories in this scope, including parts of sessions, and the number of those not fetched. Opens
        texts only of a memory with several texts."""
        with self.replica.reading():
            return self._counted(self._here()).get(self.scope, (0, 0))

    def counts_everywhere(self) -> dict[str, tuple[int, int]]:
        """Return the same numbers, without parts of sessions, for every scope that has a memory and is not forgotten, by token."""
        with self.replica.reading():
            return self._counted(self._everywhere())

    def _counted(self, entries: Iterator[tuple[Self, str, Entry]]) -> dict[str, tuple[int, int]]:
        shown: Counter[str] = Counter()
        not_fetched: Counter[str] = Counter()
        single: list[tuple[str, bytes]] = []
        from ipfsmem.bundle.session_parts import is_part_key

        for memories, key, entry in entries:
            if is_part_key(key):
                continue
            scope = memories.scope
            if len(entry) == 1:
                (value,) = entry.values()
                if value.body is not None:
                    shown[scope] += 1
                    if value.loc is not None:
                        single.append((scope, bytes.fromhex(value.loc.sha)))
                    else:
                        not_fetched[scope] += 1
            else:
                view = memories.view(key, entry)
                absent = view.data is None and bool(view.not_fetched)
                shown[scope] += absent or view.data is not None
                not_fetched[scope] += absent
        from ipfsmem.device.bulk import blocks_here

        here = blocks_here(self.replica.db, [digest for _, digest in single])
        not_fetched.update(scope for scope, digest in single if digest not in here)
        return {scope: (shown[scope], not_fetched[scope]) for scope in sorted(shown)}

    def listing(
        self,
        *,
        sessions: bool = False,
        hidden: bool = False,
        entries: Iterable[tuple[str, Entry]] | None = None,
    ) -> list[MemorySummary]:
        """Return all memories that are shown, ordered by key, headers only; parts of sessions, and memories hidden on this
        device, only on request. `entries`: the entries of this scope, if the caller has them."""
        from ipfsmem.bundle.session_parts import PART_PREFIX, is_part
        from ipfsmem.device.hidden import (  # not needed to read or write one memory
            hidden_texts,
            is_hidden,
        )

        if self._heads is None:
            from ipfsmem.memories.kept_heads import load_heads

            self._heads = load_heads(self.replica, self.scope)
        heads: dict[str, MemoryFile] = {}
        with self.replica.reading():
            hidden_here = {} if hidden else hidden_texts(self.replica)
            by_head: list[tuple[str, str]] = []
            items = [
                self._listed(key, entry, heads, by_head)
                for key, entry in self._entries(entries)
                if (self.scope, key) not in hidden_here
                or not is_hidden(hidden_here, self.scope, key, self.written(key, entry))
            ]
            if by_head and (lost := self._without_text(by_head)):
                items = [one for one in items if one is None or one.key not in lost]
                items += [self._listed(key, self.entry(key), heads) for key in lost]
            self._remember_heads(heads)
        self._keep_heads()
        listed = [
            item
            for item in items
            if item is not None
            and (sessions or not (item.key.startswith(PART_PREFIX) and is_part(item.key, item.file)))
        ]
        return sorted(listed, key=attrgetter("key"))

    def _remember_heads(self, heads: dict[str, MemoryFile]) -> None:
        """Cache the headers of a list (inside `reading`)."""
        from ipfsmem.memories.kept_heads import NEW

        self._new_heads += len(heads.keys() - (self._heads or {}).keys())
        self._heads = heads
        keeps = self._new_heads >= NEW and not self.replica.read_only
        self._heads_of = self.replica.store.mark() if keeps else None

    def _keep_heads(self) -> None:
        """Store the headers for the next process, if enough of them are new (not inside `reading`)."""
        if self._heads is None or self._heads_of is None:
            return
        from ipfsmem.memories.kept_heads import save_heads

        if save_heads(self.replica, self.scope, self._heads, self._heads_of):
            self._new_heads, self._heads_of = 0, None

    def shows(self, key: str) -> bool:
        """Return whether a memory has a text now, on this device or not (inside `reading`)."""
        view = self.view(key)
        return view.data is not None or bool(view.not_fetched)

    def written(self, key: str, entry: Entry) -> str:
        """Return the clock of the shown text of an entry; "" if none is shown (inside `reading`)."""
        entry = self.entry(key, entry)
        dot = self.view(key, entry).dot
        return entry[dot].h if dot is not None else ""

    def _without_text(self, by_head: Iterable[tuple[str, str]]) -> set[str]:
        """Return the keys whose text is not on this device although its header may be cached. `by_head`: pairs of key and SHA-256
        of the text's location."""
        from ipfsmem.device.bulk import blocks_here

        of = [(key, bytes.fromhex(sha)) for key, sha in by_head]
        here = blocks_here(self.replica.db, [digest for _, digest in of])
        return {key for key, digest in of if digest not in here}

    def _listed(
        self,
        key: str,
        entry: Entry,
        heads: dict[str, MemoryFile],
        by_head: list[tuple[str, str]] | None = None,
    ) -> MemorySummary | None:
        """Return the summary of one entry. Adds the header to `heads`. If a cached header is used without opening the text, adds
        the key and the text's location to `by_head`; None disables the cache."""
        if len(entry) == 1:
            # The common case: one text, whose header is cached by the hash of the text.
            ((dot, value),) = entry.items()
            if value.body is None:
                return None
            heads_here = self._heads if by_head is not None and value.loc is not None else None
            file = heads_here.get(value.body) if heads_here is not None else None
            if file is not None and by_head is not None and value.loc is not None:
                by_head.append((key, value.loc.sha))
            else:
                data = self.replica.store.body(self.name(key), value)
                file = head_of(data) if data is not None else None
            if file is not None and self.is_own(dot, value.author):
                heads[value.body] = file
                return _listed(key, file, value.body, self.scope)
        view = self.view(key, entry)
        if view.data is not None:
            file = head_of(view.data)
            conflicts = len(view.conflicts)
            return _listed(
                key, file, view.body, self.scope, merged=view.merged, conflicts=conflicts, own=view.own
            )
        if view.not_fetched:
            return _listed(key, _head(None), view.body, self.scope, fetched=False, own=view.own)
        return None

    def conflicts(self, key: str | None = None) -> list[Conflict]:
        """Return the conflict of every key that has several texts, a text hidden by a forget, or pending texts of others. `key`:
        only this key."""
        with self.replica.reading():
            items = [
                self.conflict_of(view, entry) for view, entry in self._contested() if key in (None, view.key)
            ]
        return sorted(items, key=lambda item: item.key)

    def view_and_siblings(
        self, key: str, entry: Entry, *, behind_a_forget: bool = False
    ) -> tuple[KeyView, Entry]:
        """Return the view of an entry, and the siblings for `conflict_of` (inside `reading`). `behind_a_forget`: whether the scope
        is forgotten."""
        if behind_a_forget:
            return self._behind_the_forget(key, entry), entry
        whole = self.entry(key, entry)
        return self.view(key, whole), whole

    def _behind_the_forget(self, key: str, entry: Entry) -> KeyView:
        """Return the view of a memory of a forgotten scope: nothing is shown, every text is listed."""
        return KeyView(key, forgotten=True, hidden=copies_of(key, entry))

    def conflicts_everywhere(self) -> list[str]:
        """Return the displayed names of all memories with a conflict, in any scope; in forgotten scopes, of those with several
        texts."""
        with self.replica.reading():
            return sorted(place_of(one.scope, key) for one, key, _ in self._contested_everywhere())

    def all_conflicts(self, key: str | None = None) -> list[Conflict]:
        """Return the conflicts of all scopes, the default scope first."""
        with self.replica.reading():
            items = [
                one.conflict_of(*one.view_and_siblings(name, entry, behind_a_forget=one.forgotten()))
                for one, name, entry in self._contested_everywhere()
                if key in (None, name)
            ]
        return sorted(items, key=lambda item: (item.scope, item.key))

    def _contested_everywhere(self) -> Iterator[tuple[Self, str, Entry]]:
        entries = dict([*self.replica.store.entries_with_siblings(), *entries_of_others(self.replica)])
        for name, entry in entries.items():
            parsed = memory_name(name)
            if parsed is not None:
                memories = self.in_scope(parsed.scope)
                view = memories.view(parsed.key, entry)
                if view.conflicts or view.hidden or view.others or view.unheeded:
                    yield memories, parsed.key, entry

    def _contested(self) -> Iterator[tuple[KeyView, Entry]]:
        if self.forgotten():
            for key, entry in self.replica.store.memories(self.scope):
                view = self._behind_the_forget(key, entry)
                if view.hidden:
                    yield view, entry
            return
        entries = dict([*self.replica.store.entries_with_siblings(), *entries_of_others(self.replica)])
        for name, stored in entries.items():
            parsed = memory_name(name)
            if parsed is not None and parsed.scope == self.scope:
                entry = self.entry(parsed.key, stored)
                view = self.view(parsed.key, entry)
                if view.conflicts or view.hidden or view.others or view.unheeded:
                    yield view, entry

    def conflict_of(self, view: KeyView, entry: Entry) -> Conflict:
        """Return the conflict of a memory with this view and these siblings (inside `reading`)."""
        copies = []
        for copy in (*view.conflicts, *view.hidden, *view.others):
            if not view.own and set(copy.dots) <= set(view.dots):
                continue  # already shown
            data = self.replica.store.body(self.name(view.key), entry[copy.dot])
            reading = None if data is None else self._copy_reading(view.key, copy, entry, data)
            copies.append(Alternative(copy.file, copy.dots, reading))
        dots = (*view.dots, *view.unheeded)
        return Conflict(view.key, self._reading(view, entry), tuple(copies), dots, view.forgotten, self.scope)

    def index(self) -> str:
        """Return the text of MEMORY.md for this person's agents and folders, without texts and names of others."""
        from ipfsmem.bundle.index import assemble_index

        return assemble_index(*self.index_lines())

    def index_lines(self, *, keep: bool = False) -> tuple[list[tuple[str, str, str]], list[IndexItem]]:
        """Return the lines of `index`: (key, section, line) of each memory, and the conflict copies. `keep`: see
        `SummaryCache.look`."""
        with self.replica.reading():
            if self.forgotten():
                return [], []
            return self._index(self.overview.look(self.scope, keep=keep), self.view, self.is_own)

    def index_of(self, scope_view: ScopeView) -> str:
        """Return `index` for the `SummaryCache` of this scope, which is not forgotten (inside `reading`)."""
        from ipfsmem.bundle.index import assemble_index

        return assemble_index(*self._index(scope_view, self.view, self.is_own))

    def whole_index(self, seen: ScopeView) -> str:
        """Return the text of MEMORY.md in a published root, with the texts of all writers. `seen`: the result of
        `SummaryCache.look`."""
        from ipfsmem.bundle.index import assemble_index

        return assemble_index(*self._index(seen, self.whole_view, lambda dot, of: True))

    def _index(
        self,
        seen: ScopeView,
        view_of: Callable[[str, Entry], KeyView],
        is_wanted: Callable[[str, str], bool],
    ) -> tuple[list[tuple[str, str, str]], list[IndexItem]]:
        from ipfsmem.bundle.index import index_line, item_of
        from ipfsmem.bundle.session_parts import is_part

        lines: list[tuple[str, str, str]] = []
        attention: list[IndexItem] = []
        entries = dict(seen[1])
        for one in seen[0]:
            if is_wanted(one.dot, one.of):
                lines.append((one.key, one.section, one.line))
            else:
                entries[self.name(one.key)] = self.replica.store.entry(self.name(one.key))
        for name, entry in entries.items():
            parsed = memory_name(name)
            if parsed is None:
                continue
            dot, value = next(iter(entry.items()))
            if len(entry) == 1 and (value.body is None or is_wanted(dot, value.author)):
                if value.body is None:
                    continue
                cached = self.overview.line(name, value)
                line = None if cached is None else (cached.section, cached.text)
            else:
                view = view_of(parsed.key, entry)
                for copy in view.conflicts:
                    data = self.replica.store.body(name, entry[copy.dot])
                    attention.append(item_of(parsed.key, _head(data), copy.file))
                if not view.own or (view.data is None and not view.not_fetched):
                    continue
                line = index_line(item_of(parsed.key, _head(view.data)))
            lines.append((parsed.key, *(line or index_line(item_of(parsed.key, _head(None))))))
        return [line for line in lines if line[1]], [
            item for item in attention if not is_part(item.key, item)
        ]


def listed(parts: Sequence[MemoryReader], *, hidden: bool = False) -> list[MemorySummary]:
    """Return the summaries of the memories that a reader of these scopes is shown, by key. `hidden`: include memories hidden on
    this device."""
    items: dict[str, MemorySummary] = {}
    first = parts[0]
    with first.replica.reading():
        entries = first.replica.store.memories_of([part.scope for part in parts]) if len(parts) > 1 else None
        for part in parts:
            if entries is not None and part.scope not in entries:
                continue
            for item in part.listing(hidden=hidden, entries=None if entries is None else entries[part.scope]):
                before = items.get(item.key)
                if before is None or (item.own and not before.own):
                    items[item.key] = item
    for part in parts:
        part._keep_heads()
    return sorted(items.values(), key=attrgetter("key"))


def _listed(key: str, file: MemoryFile, sha256: str | None, scope: str, **more: Any) -> MemorySummary:
    return MemorySummary(key=key, scope=scope, fields=file.fields, tags=file.tags, sha256=sha256, **more)


class NotHereError(NotFoundError):
    """A known text is not on this device."""


_FILE_HINT = "Its plain file may still be there: ipfsmem import {folder}"


def from_plain_files(replica: Replica) -> str:
    """Return a hint for a text that is missing in mode `local`, where no other device has it; "" in other modes."""
    if not replica.config.mode.only_here or replica.folder is None:
        return ""
    import shlex

    return _FILE_HINT.format(folder=shlex.quote(str(replica.folder / "memory")))


def text_not_fetched(replica: Replica, key: str, dots: tuple[str, ...] = ()) -> NotHereError:
    """Return the error of a known text that is not on this device."""
    by = f" (written by device {dots[0][:16]})" if dots else ""
    if hint := from_plain_files(replica):
        return NotHereError(f"{key} is known but its text is not on this disk any more", hint=hint)
    return NotHereError(
        f"{key} is known but its text is not fetched yet{by}",
        hint="Run: ipfsmem sync. Then try again.",
    )


def _head(data: bytes | None) -> MemoryFile:
    return head_of(data) if data is not None else MemoryFile({"description": "not fetched"}, "")
