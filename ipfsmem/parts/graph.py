"""`memory.graph`: what stands in relation to what, read from the memories of one scope."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterable
from itertools import islice

import msgspec

from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.graph.drawing import FORMATS, Format, drawn
from ipfsmem.graph.entity import Entity, relation_type
from ipfsmem.graph.graph import MAX_DEPTH, MOST, Graph
from ipfsmem.graph.graph import Relation as Joined
from ipfsmem.memories.facts import keep_removed
from ipfsmem.memories.graph import GraphIndex, graph_of
from ipfsmem.memories.memory_records import first_own
from ipfsmem.parts.forgetting import forget_removed
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.vault_handle import VaultHandle


class Node(msgspec.Struct, frozen=True):
    """An entity: the memory with this key. `kind`: its category."""

    key: str
    name: str
    kind: str
    observations: tuple[str, ...]


class Edge(msgspec.Struct, frozen=True):
    """A relation between two entities, by their keys."""

    begin: str
    type: str
    end: str


class Subgraph(msgspec.Struct, frozen=True):
    """Entities and the relations among them. `more`: there were more than the answer has room for."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    more: bool = False


class MemoryGraph(MemoryPart):
    """The graph of one scope. An entity is said by its key or its name."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    # -- reading -------------------------------------------------------------------------------------------------

    def list(self, kind: str | None = None, *, limit: int = MOST) -> builtins.list[Node]:
        """What was made as an entity, and what a relation leads to or from, by key; `kind`: only those of it."""
        graph = self._graph()
        joined = {key for one in graph.relations() for key in (one.begin, one.end)}
        found = [
            one
            for key, one in sorted(graph.entities.items())
            if (one.made or key in joined) and kind in (None, one.kind)
        ]
        return [_node(one) for one in found[: _most(limit)]]

    def relations(self, entity: str | None = None, type: str | None = None) -> builtins.list[Edge]:
        """The relations, of one entity if it is named, in both directions. Raises NotFoundError."""
        graph = self._graph()
        if entity is None:
            found = graph.relations()
        else:
            key = _there(graph, entity)
            found = builtins.list(dict.fromkeys([*graph.out(key), *graph.into(key)]))
        wanted = None if type is None else relation_type(type)
        return [_edge(one) for one in found if wanted in (None, one.type)]

    def search(self, query: str, *, limit: int = 20) -> builtins.list[Node]:
        """The entities that have a query as it stands, or all its words, in their name, kind or observations. Raises UsageError for an
        empty one."""
        if not query.strip():
            raise UsageError("the question is empty")
        graph = self._graph()
        return [_node(graph.entities[key]) for key in graph.search(query, _most(limit))]

    def named(self, names: Iterable[str]) -> builtins.list[Node]:
        """The entities of these names or keys, by key; what is not there is left out."""
        graph = self._graph()
        keys = sorted({key for name in names for key in graph.named(name.strip())})
        return [_node(graph.entities[key]) for key in keys]

    def touching(self, keys: Iterable[str], *, limit: int = MOST) -> builtins.list[Edge]:
        """The relations that begin or end at one of these entities. Raises NotFoundError."""
        graph = self._graph()
        there = [_there(graph, key) for key in keys]
        return [_edge(one) for one in islice(graph.touching(there), _most(limit))]

    def called(self, keys: Iterable[str]) -> dict[str, str]:
        """What entities are called by their keys, where that name means the entity and no other; else the key stands for it."""
        graph = self._graph()
        return {key: graph.called(key) if key in graph.entities else key for key in keys}

    def query(self, begin: str, type: str | None = None) -> builtins.list[Node]:
        """What an entity is related to in one way: where the relations lead that begin there. Raises NotFoundError."""
        graph = self._graph()
        wanted = None if type is None else relation_type(type)
        found = dict.fromkeys(
            one.end for one in graph.out(_there(graph, begin)) if wanted in (None, one.type)
        )
        return [_node(graph.entities[key]) for key in found]

    def path(self, begin: str, end: str) -> builtins.list[Edge] | None:
        """The relations of a shortest way, in whichever direction they lead; None where there is none. Raises NotFoundError."""
        graph = self._graph()
        found = graph.path(_there(graph, begin), _there(graph, end))
        return None if found is None else [_edge(one) for one in found]

    def around(self, entity: str, depth: int = 1, *, limit: int = MOST) -> Subgraph:
        """The entities at most so many relations away, the nearest first, and the relations among them. Raises NotFoundError."""
        if not 0 <= depth <= MAX_DEPTH:
            raise UsageError(f"depth is 0 to {MAX_DEPTH}, not {depth}")
        graph = self._graph()
        keys, more = graph.around(_there(graph, entity), depth, _most(limit))
        return _part(graph, keys, more)

    def all(self, *, limit: int = MOST) -> Subgraph:
        """The entities that `list` has, and the relations among them."""
        graph = self._graph()
        found = self.list(limit=MOST)
        keys = [one.key for one in found][: _most(limit)]
        return _part(graph, keys, len(found) > len(keys) or len(found) == MOST)

    def drawn(self, format: Format, *, entity: str | None = None, depth: int = 2) -> str:
        """The graph as `graphml`, `mermaid` or a page (`html`): all of it, or what lies around one entity. Raises NotFoundError."""
        if format not in FORMATS:
            raise UsageError(f"unknown format {format[:40]!r}", hint=f"Formats: {', '.join(FORMATS)}.")
        graph = self._graph()
        part = self.all() if entity is None else self.around(entity, depth)
        keys = [one.key for one in part.nodes]
        return drawn(format, [graph.entities[key] for key in keys], graph.relations(keys))

    # -- writing -------------------------------------------------------------------------------------------------

    def add(self, name: str, kind: str = "", observations: Iterable[str] = ()) -> Node:
        """Make an entity, or add to the one of that name what is said of it. Raises UsageError."""
        self._open.ingest_edits()
        made, _ = self._index.add_entity(name, kind, observations)
        return self._written(made)

    def observe(self, name: str, observations: Iterable[str]) -> builtins.list[str]:
        """Add observations to an entity; those that are new. Raises NotFoundError, UsageError."""
        self._open.ingest_edits()
        new = self._index.observe(name, observations)
        self._shown(name)
        return new

    def unobserve(self, name: str, observations: Iterable[str]) -> builtins.list[str]:
        """Take observations away; those that were there. Raises NotFoundError, UsageError for those of a person's prose."""
        self._open.ingest_edits()
        gone = self._index.unobserve(name, observations)
        self._shown(name)
        return gone

    def relate(self, begin: str, type: str, end: str) -> bool:
        """Add a relation between two entities; False where it is there already. Raises NotFoundError, UsageError."""
        self._open.ingest_edits()
        new = self._index.relate(begin, type, end)
        self._shown(begin)
        return new

    def unrelate(self, begin: str, type: str, end: str) -> bool:
        """Take a relation away; False where there is none. Raises UsageError for one of a person's prose."""
        self._open.ingest_edits()
        gone = self._index.unrelate(begin, type, end)
        self._shown(begin)
        return gone

    def get(self, name: str) -> Node | None:
        """One entity; None where there is none."""
        graph = self._graph()
        key = graph.find(name.strip())
        return None if key is None else _node(graph.entities[key])

    def seen(self, name: str) -> str:
        """The `seen` of the memory of an entity, for `delete`; "" where there is none."""
        key = self._graph().find(name.strip())
        parts = self._open.memories.in_scope(self._target()).stack()
        found = None if key is None else first_own(part.read(key) for part in parts)
        return "" if found is None else found.seen

    def delete(self, name: str, *, seen: str | None = None, relations: bool = False) -> bool:
        """Take an entity away on every device, so that `memory.facts.restore` can bring it back; False where there is none. Relations
        that lead to it stay in their texts and lead nowhere meanwhile; with `relations` they are taken away too, but for those of a
        person's prose. `seen`: of the memory that is to go. What somebody writes meanwhile stays. Raises ChangedError."""
        graph = self._graph()
        key = graph.find(name)
        if key is None:
            return False
        for one in graph.into(key) if relations else ():
            with contextlib.suppress(UsageError):
                self.unrelate(one.begin, one.type, key)
        removed = keep_removed(self._open.memories.in_scope(self._target()), key, seen)
        forget_removed(self._open, removed, "deleted; it can be restored")
        return True

    @property
    def _index(self) -> GraphIndex:
        return graph_of(self._open.memories.in_scope(self._target()))

    def _target(self) -> str:
        return self._open.scopes.target(self._scope) if self._scope else ""

    def _graph(self) -> Graph:
        self._open.ingest_edits()
        return self._index.graph()

    def _written(self, one: Entity) -> Node:
        self._open.render_file(one.key, self._target())
        return _node(one)

    def _shown(self, name: str) -> None:
        key = self._index.graph().find(name)
        if key is not None:
            self._open.render_file(key, self._target())


def _node(one: Entity) -> Node:
    return Node(one.key, one.name, one.kind, one.observations)


def _edge(one: Joined) -> Edge:
    return Edge(one.begin, one.type, one.end)


def _part(graph: Graph, keys: builtins.list[str], more: bool) -> Subgraph:
    edges = tuple(map(_edge, graph.relations(keys)))
    return Subgraph(tuple(_node(graph.entities[key]) for key in keys), edges, more)


def _there(graph: Graph, said: str) -> str:
    key = graph.find(said.strip())
    if key is None:
        raise NotFoundError(f"there is no entity {said[:80]}", hint="Look for it: ipfsmem graph search WORDS")
    return key


def _most(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise UsageError(f"limit is 1 to {MOST}, not {limit}")
    return limit
