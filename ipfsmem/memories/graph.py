"""The graph of entities and relations in one scope and the scopes redirected to it: derived from the memories, updated by changes,
and stored next to the index of recall for the next process.

Additions and removals edit memory files, whose earlier texts are stored in their history (`fact_history`), so each step can be
undone. The graph contains no pending texts of others and no memory that is hidden on this device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from hashlib import blake2b

import msgspec

from ipfsmem.bundle.header_edit import render_over
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.bundle.session_parts import is_part
from ipfsmem.bundle.value_file import name_of
from ipfsmem.causal.entries import memory_name
from ipfsmem.causal.value import decode_entry
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.hidden import hidden_texts, is_hidden
from ipfsmem.device.recall_image import RecallImage, load_image, save_image
from ipfsmem.device.state import StateMark
from ipfsmem.errors import FormatError, IpfsmemError, NotFoundError, UsageError
from ipfsmem.facts.categories import category_of
from ipfsmem.graph.entity import (
    BLANKS,
    Entity,
    Out,
    entity_file,
    entity_key,
    entity_of,
    observation,
    relation_type,
)
from ipfsmem.graph.graph import Graph, GraphImage, Relation
from ipfsmem.memories.fact_history import keep_in
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.memory_records import readable_file
from ipfsmem.memories.search_index import index_kind, unchanged_since

#: Computes the name, kind, observations and relations of an entity from its current content, None for a new one.
_Make = Callable[[Entity | None], tuple[str, str, list[str], list[Out]]]


#: Minimum entities of a graph that is stored, and changes (or one removal) after which it is stored again.
FEW, STALE = 200, 100


class _CachedGraph(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A graph and the state entries from which it was derived."""

    mark: StateMark
    #: The hash of each entry in the state, by name; decoded after a change.
    known: msgspec.Raw
    not_here: set[str]
    graph: GraphImage


_kept = msgspec.msgpack.Decoder(_CachedGraph).decode
_known = msgspec.msgpack.Decoder(dict[str, bytes]).decode
_pack = msgspec.msgpack.Encoder().encode


def graph_of(memories: MemoryStore) -> GraphIndex:
    """Return the graph of a scope, shared by all callers of one open vault."""
    return memories.caches.of(Graphs).setdefault(memories.scope, GraphIndex(memories))


class Graphs(dict[str, "GraphIndex"]):
    """The graphs in use, by scope."""

    def keep(self) -> None:
        """Store the graphs for the next process, which derives again any graph that cannot be stored."""
        for graph in self.values():
            with contextlib.suppress(IpfsmemError):
                graph.keep()


class GraphIndex:
    """The graph of one scope. It caches the scope's own entities and reads those of the scopes redirected to it."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories
        self._replica = memories.replica
        #: Number of changes of the person's own entities.
        self._changes = 0
        #: The merged graph of several scopes, and the scopes and changes on which it is based.
        self._united: tuple[list[tuple[str, int, list[str]]], Graph] = ([], Graph())
        self._clear(b"")

    def _clear(self, kind: bytes) -> None:
        self._kind = kind
        self._mark = StateMark()
        self._hashes: dict[str, bytes] = {}
        self._unread: msgspec.Raw | None = None
        #: The entries without a text on this device, which are looked up again.
        self._not_here = set[str]()
        self._graph = Graph()
        #: Number of entities changed since the graph was stored.
        self._stale = STALE
        self._changes += 1

    def graph(self) -> Graph:
        """Return the current graph, without memories hidden on this device. If several scopes have a key, the entity of the first
        scope is used."""
        with self._replica.reading():
            indexes = [graph_of(part) for part in self._memories.stack()]
            first, *below = graphs = [one._own() for one in indexes]
            if not any(one.entities for one in below):
                return first
            made_of = [(one._memories.scope, one._changes, one._hidden()) for one in indexes]
            if self._united[0] != made_of:
                entities = {key: one for graph in reversed(graphs) for key, one in graph.entities.items()}
                self._united = made_of, Graph(entities.values())
            return self._united[1]

    def _own(self) -> Graph:
        """Return the current entities of this scope alone (inside `reading`)."""
        memories = self._memories
        with self._replica.reading():
            if memories.forgotten():
                return Graph()
            kind = index_kind([memories])
            if self._kind != kind and not self._open(kind):
                self._clear(kind)
            self._refresh()
            hidden = self._hidden()
            if not hidden:
                return self._graph
            return Graph(one for key, one in self._graph.entities.items() if key not in hidden)

    def _refresh(self) -> None:
        """Apply changes."""
        store, changed = self._replica.store, set[str]()
        mark = store.mark()
        if mark == self._mark and not self._not_here:
            return
        if self._unread is not None:
            self._hashes, self._unread = _known(self._unread), None
        since = store.changes_since(self._mark)
        for name, text in since.texts.items():
            place = memory_name(name)
            if place is None or place.scope != self._memories.scope:
                continue
            hash = blake2b(text, digest_size=8).digest()
            if self._hashes.get(name) != hash:
                self._hashes[name] = hash
                changed.add(name)
        for name in since.may_be_gone(self._hashes):
            del self._hashes[name]
            changed.add(name)
            self._stale = STALE  # a removed text is erased from the disk at the next save
        again, self._not_here = self._not_here, set()
        try:
            with no_collection():
                for name in changed | again:
                    self._update(name)
        except BaseException:  # a partial update would be taken for a complete one
            self._clear(b"")
            raise
        self._stale += len(changed)
        self._changes += bool(changed | again)
        self._mark = mark

    # -- for the next process --------------------------------------------------------------------------------

    def _open(self, kind: bytes) -> bool:
        """Load the graph that an earlier process stored. Returns False if there is none, or it was derived from other scopes or
        readers."""
        image = load_image(self._replica, self._memories.scope, kind="graph")
        if image is None or image.state != kind:
            return False
        try:
            with no_collection():
                stored = _kept(image.rest)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        self._clear(kind)
        self._mark, self._unread, self._graph = stored.mark, stored.known, Graph.of_image(stored.graph)
        self._not_here = stored.not_here
        self._stale = 0
        return True

    def keep(self) -> None:
        """Store the graph if enough of it changed. Raises StorageError."""
        self._own()
        if self._stale < STALE or len(self._graph.entities) < FEW:
            return
        packed = msgspec.Raw(_pack(self._hashes))
        rest = _pack(_CachedGraph(self._mark, packed, self._not_here, self._graph.image()))
        if save_image(
            self._replica,
            RecallImage(self._kind, memoryview(rest), memoryview(b"")),
            self._memories.scope,
            kind="graph",
            holds=self._holds,
        ):
            self._stale = 0

    def _holds(self) -> bool:
        """Return whether no entry from which the graph was derived changed (inside `reading`)."""
        if self._kind != index_kind([self._memories]):
            return False
        return unchanged_since(self._replica.store, self._mark, self._hashes)

    def _update(self, name: str) -> None:
        place, text = memory_name(name), self._replica.store.raw(name)
        assert place is not None
        self._graph.drop(place.key)
        if text is None:
            return
        try:
            reading = self._memories.reading_of(place.key, decode_entry(name, text))
        except NotHereError:
            self._not_here.add(name)
            return
        if reading is not None and reading.own:
            file = readable_file(reading.data)
            # A value's file is written by its key alone, not by an entity of the same name.
            if not is_part(place.key, file) and name_of(file, place.key) is None:
                self._graph.put(entity_of(place.key, file))

    def _hidden(self) -> list[str]:
        """Return the keys of the person's own entities that are hidden on this device."""
        hidden, memories, store = hidden_texts(self._replica), self._memories, self._replica.store
        return [
            one.key
            for one in hidden.values()
            if one.scope == memories.scope
            and one.key in self._graph.entities
            and is_hidden(
                hidden, one.scope, one.key, memories.written(one.key, store.entry(memories.name(one.key)))
            )
        ]

    # -- writing -------------------------------------------------------------------------------------------------

    def add_entity(self, name: str, kind: str, observations: Iterable[str]) -> tuple[Entity, bool]:
        """Create an entity with these observations, or add the missing ones to the entity of that name; returns it, and whether it
        is new. Raises UsageError."""
        new = [observation(one) for one in observations]
        existing = self.graph().find(name.strip())
        key = existing or entity_key(name)
        entity = self._change(
            key,
            lambda old: (
                name.strip() if old is None else old.name,
                category_of(kind) if kind and (old is None or not old.made) else old.kind if old else "thing",
                list(dict.fromkeys((*(old.observations if old else ()), *new))),
                list(old.out if old else ()),
            ),
            must_exist=existing is not None,
        )
        return entity, existing is None

    def observe(self, name: str, texts: Iterable[str]) -> list[str]:
        """Add observations to an entity; returns the new ones. Raises NotFoundError, UsageError."""
        observations = [observation(one) for one in texts]
        old = self._entity(name)
        new = [one for one in dict.fromkeys(observations) if one not in old.observations]
        if new:
            self.add_entity(old.key, "", new)
        return new

    def relate(self, begin: str, type: str, end: str) -> Relation | None:
        """Add a relation between two entities; None if it exists already. Raises NotFoundError, UsageError."""
        if not type.strip(BLANKS):
            raise UsageError("a relation requires a type, such as works at")
        one, other = self._entity(begin), self._entity(end)
        out = Out(relation_type(type), other.key)
        new = Relation(one.key, out.type, other.key)
        if new in self.graph().out(one.key):
            return None
        self._edit(one.key, out=lambda old: list(dict.fromkeys((*old.out, out))))
        return new

    def unrelate(self, begin: str, type: str, end: str) -> Relation | None:
        """Remove a relation and return it, or None."""
        graph = self.graph()
        key, other, kind = graph.find(begin), graph.find(end), relation_type(type)
        if key is None or other is None:
            return None

        def kept(one: Entity) -> list[Out]:
            return [out for out in one.out if out.type != kind or graph.find(out.to) != other]

        one = graph.entities[key]
        if len(kept(one)) == len(one.out):
            return None
        self._edit(key, out=kept)
        return Relation(key, kind, other)

    def unobserve(self, name: str, texts: Iterable[str]) -> list[str]:
        """Remove observations of an entity; returns those that existed. Raises NotFoundError."""
        old, gone = self._entity(name), {" ".join(one.split()) for one in texts}
        removed = [one for one in old.observations if one in gone]
        if removed:
            self._edit(
                old.key, observations_of=lambda now: [one for one in now.observations if one not in gone]
            )
        return removed

    def _entity(self, name: str) -> Entity:
        graph = self.graph()
        key = graph.find(name.strip())
        if key is None:
            raise NotFoundError(
                f"there is no entity {name[:80]}", hint="Look for it: ipfsmem graph search WORDS"
            )
        return graph.entities[key]

    def _edit(
        self,
        key: str,
        *,
        observations_of: Callable[[Entity], list[str]] = lambda old: list(old.observations),
        out: Callable[[Entity], list[Out]] = lambda old: list(old.out),
    ) -> None:
        """Replace observations or relations of an entity, computed from the current content inside the transaction. Raises
        NotFoundError."""

        def make(old: Entity | None) -> tuple[str, str, list[str], list[Out]]:
            assert old is not None
            return old.name, old.kind, observations_of(old), out(old)

        self._change(key, make)

    def _change(self, key: str, make: _Make, *, must_exist: bool = True) -> Entity:
        """Write an entity, and its earlier text to the history, in one transaction. A file that consists of observations and
        relations only is rewritten; additions to any other file are appended."""
        memories, today = self._memories, self._replica.environment.today().isoformat()
        with memories.changing("write", key) as change:
            shown = memories.shown_in_stack(change, key)
            if shown is not None and not shown.own:
                raise UsageError(f"{key} is pending: approve it first, or choose another name")
            if shown is None and must_exist:
                raise NotFoundError(f"there is no entity {key}")
            file = parse_memory(shown.data) if shown is not None else MemoryFile({"created": today})
            old = entity_of(key, file) if shown is not None else None
            name, kind, observations, out = make(old)
            new = entity_file(file, name, kind, observations, out)
            if old is not None and not _is_rewritable(file, old):
                new = _appended(file, old, observations, out)
            data = render_over(None if shown is None else shown.data, new, stamps={"updated": today})
            if shown is not None:
                keep_in(change, memories, key, shown.data, "edited")
            memories.write_over(change, key, data, shown)
        return entity_of(key, parse_memory(data))


def _is_rewritable(file: MemoryFile, one: Entity) -> bool:
    """Return whether a text consists of observations and relations only, so that it can be rewritten from these."""
    again = entity_of("x", entity_file(file, one.name, one.kind, one.observations, one.out))
    lines = [line for line in file.body.split("\n") if line.strip()]
    listed = all(line.startswith(("- ", "* ")) or line.strip() == "Relations:" for line in lines)
    return listed and (again.observations, again.out) == (one.observations, one.out)


def _appended(file: MemoryFile, old: Entity, observations: list[str], out: list[Out]) -> MemoryFile:
    """Return the text with the additions appended. Raises UsageError if a removal would change prose that a person wrote."""
    if not set(old.observations) <= set(observations) or not set(old.out) <= set(out):
        raise UsageError(
            f"{old.key} is not an entity of the graph tools, so nothing was removed from its text",
            hint=f"Change it: ipfsmem write {old.key}",
        )
    lines = [f"- {one}" for one in observations if one not in old.observations]
    lines += [f"- {one.type} [[{one.to}]]" for one in out if one not in old.out]
    if not lines:
        return file
    edited = file.with_fields({}, f"{file.body.rstrip()}\n\n" + "\n".join(lines))
    if len(edited.body) > 900_000:
        raise FormatError(f"{old.key} would be too long")
    return edited
