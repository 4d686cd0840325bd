"""Shared code of the operations on the graph: entities and relations as answers, the name of an entity, and the graph of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.errors import NotFoundError
from ipfsmem.graph.graph import MOST
from ipfsmem.operation import Cli, ForModels, Http, Items, Stored, View

if TYPE_CHECKING:
    from ipfsmem.graph.entity import Entity
    from ipfsmem.graph.graph import Graph, Relation
    from ipfsmem.memories.graph import GraphIndex

#: Maximum characters of an argument that names an entity or a type.
MAX_NAMED = 1_000


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """An entity: the memory with this key. `kind`: its category."""

    key: str
    name: str
    kind: str
    observations: tuple[str, ...]


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """A relation between two entities, by their keys."""

    begin: str
    type: str
    end: str


class Entities(Items[Node], frozen=True, kw_only=True):
    """Entities of the graph. It is a sequence of its `entities`."""

    entities: tuple[Node, ...]


class Relations(Items[Edge], frozen=True, kw_only=True):
    """Relations of the graph. It is a sequence of its `relations`."""

    relations: tuple[Edge, ...]


#: The key or the name of an entity.
Named = Annotated[str, Meta(max_length=MAX_NAMED, description="Key or name of an entity.")]
#: The entity at one end of a relation.
Begin = Annotated[
    str,
    Meta(max_length=MAX_NAMED, description="Key or name of the entity where the relation begins."),
    ForModels("Name or key of the entity.", most=200),
]
End = Annotated[
    str,
    Meta(max_length=MAX_NAMED, description="Key or name of the entity where the relation ends."),
    ForModels("Name or key of the entity.", most=200),
]
RelationType = Annotated[
    str, Stored(), Meta(max_length=MAX_NAMED, description="Type of the relation, such as works_at.")
]
#: Filters of the relations that an operation shows.
OfEntity = Annotated[
    str | None,
    Meta(min_length=1, max_length=MAX_NAMED, description="Key or name of an entity; without one, all."),
]
OfType = Annotated[
    str | None, Meta(min_length=1, max_length=MAX_NAMED, description="Only relations of this type.")
]
Limit = Annotated[
    int, Meta(ge=1, le=MOST, description="Maximum number of results."), Cli(metavar="N"), Http(default=100)
]


def index_of(view: View) -> GraphIndex:
    """Return the graph index of the scope of a call."""
    from ipfsmem.memories.graph import graph_of

    return graph_of(view.opened.memories.in_scope(view.target))


def graph_in(view: View) -> Graph:
    """Return the graph of the scope of a call, with edits of linked folders."""
    view.opened.ingest_edits()
    return index_of(view).graph()


def listed(graph: Graph) -> list[Entity]:
    """Return the entities that were created as such, and those with a relation, by key."""
    joined = {key for one in graph.relations() for key in (one.begin, one.end)}
    return [one for key, one in sorted(graph.entities.items()) if one.made or key in joined]


def key_in(graph: Graph, name: str) -> str:
    """Return the key of an entity. Raises NotFoundError."""
    key = graph.find(name.strip())
    if key is None:
        raise NotFoundError(f"there is no entity {name[:80]}", hint="Look for it: ipfsmem graph search WORDS")
    return key


def render_entity(view: View, name: str) -> None:
    """Write the file of an entity to the linked folder, if there is one."""
    key = index_of(view).graph().find(name.strip())
    if key is not None:
        view.opened.render_file(key, view.target)


def node(one: Entity) -> Node:
    """Return an entity as an answer."""
    return Node(key=one.key, name=one.name, kind=one.kind, observations=one.observations)


def edge(one: Relation) -> Edge:
    """Return a relation as an answer."""
    return Edge(begin=one.begin, type=one.type, end=one.end)
