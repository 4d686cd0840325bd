"""The operations on the relations of the graph: list, follow and draw them, add and remove one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.graph.drawing import Format
from ipfsmem.graph.graph import MAX_DEPTH, MOST
from ipfsmem.operation import Cli, Document, Http, View, operation
from ipfsmem.operations.graph.stored import (
    Begin,
    Edge,
    End,
    Entities,
    Named,
    Node,
    OfEntity,
    OfType,
    Relations,
    RelationType,
    edge,
    graph_in,
    index_of,
    key_in,
    listed,
    node,
)

if TYPE_CHECKING:
    from ipfsmem.graph.graph import Relation

Depth = Annotated[
    int,
    Meta(ge=0, le=MAX_DEPTH, description="Maximum distance in relations."),
    Cli(option=True, metavar="N"),
]


class Subgraph(msgspec.Struct, frozen=True, kw_only=True):
    """Entities and the relations among them. `more`: there are more than the limit."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    more: bool


class GraphDrawing(Document, frozen=True, kw_only=True):
    """A graph for other programs, or a page with a picture."""

    format: Format


@operation(
    summary="List relations",
    right="read",
    about="target",
    raises=("NotFoundError: there is no such entity.",),
    http="GET /v1/graph/relations",
)
def relations(
    view: View,
    entity: OfEntity = None,
    type: Annotated[OfType, Cli(option=True)] = None,
    *,
    limit: Annotated[
        int | None,
        Meta(ge=1, le=MOST, description="Maximum number of results."),
        Cli(metavar="N", help="Maximum number of results (default: all)."),
        Http(default=100),
    ] = None,
) -> Relations:
    """List all relations, or only those from and to one entity."""
    from ipfsmem.graph.entity import relation_type

    graph = graph_in(view)
    if entity is None:
        edges = graph.relations()
    else:
        key = key_in(graph, entity)
        edges = list(dict.fromkeys([*graph.out(key), *graph.into(key)]))
    kind = None if type is None else relation_type(type)
    return Relations(relations=tuple([edge(one) for one in edges if kind in (None, one.type)][:limit]))


@operation(
    summary="List the targets of an entity's relations",
    right="read",
    about="target",
    raises=("NotFoundError: there is no such entity.",),
)
def query(view: View, entity: Named, type: OfType = None) -> Entities:
    """List the entities that the relations of an entity point to, optionally of one type only."""
    from ipfsmem.graph.entity import relation_type

    graph = graph_in(view)
    kind = None if type is None else relation_type(type)
    keys = dict.fromkeys(one.end for one in graph.out(key_in(graph, entity)) if kind in (None, one.type))
    return Entities(entities=tuple(node(graph.entities[key]) for key in keys))


@operation(
    summary="Find a shortest path between two entities",
    right="read",
    about="target",
    raises=("NotFoundError: there is no such entity.",),
    absent="no relations lead from {begin:.60} to {end:.60}",
    http="GET /v1/graph/path",
    tool="find_path",
    title="Find a path between entities",
    for_models="Find a shortest path between two entities of the knowledge graph, along relations in either direction.",
)
def path(view: View, begin: Begin, end: End) -> Relations | None:
    """Return the relations of a shortest path; each relation can be followed in both directions.

    Fails if no path exists (in Python: returns None)."""
    graph = graph_in(view)
    edges = graph.path(key_in(graph, begin), key_in(graph, end))
    return None if edges is None else Relations(relations=tuple(map(edge, edges)))


@operation(
    summary="List the relations around an entity",
    right="read",
    about="target",
    raises=("NotFoundError: there is no such entity.",),
    http="GET /v1/graph",
)
def around(
    view: View,
    entity: OfEntity = None,
    depth: Depth = 1,
    *,
    limit: Annotated[
        int, Meta(ge=1, le=MOST, description="Maximum number of entities."), Cli(metavar="N")
    ] = 100,
) -> Subgraph:
    """Return the neighbors of an entity, nearest first, and the relations among them; without an entity, the whole graph."""
    graph = graph_in(view)
    if entity is not None:
        keys, more = graph.around(key_in(graph, entity), depth, limit)
    else:
        every = [one.key for one in listed(graph)]
        keys, more = every[:limit], len(every) > limit
    return Subgraph(
        nodes=tuple(node(graph.entities[key]) for key in keys),
        edges=tuple(map(edge, graph.relations(keys))),
        more=more,
    )


@operation(
    summary="Export the graph to other formats or a picture",
    right="read",
    about="target",
    raises=("NotFoundError: there is no such entity.", "UsageError: the format is unknown."),
    command="graph export",
    http="GET /v1/graph/drawing",
)
def drawn(
    view: View,
    entity: OfEntity = None,
    *,
    format: Annotated[Format, Meta(description="GraphML, Mermaid, or a page with a picture.")] = "graphml",
    depth: Depth = 2,
) -> GraphDrawing:
    """Export the whole graph, or an entity and its neighbors, as GraphML, Mermaid or an HTML page."""
    from ipfsmem.graph.drawing import drawn as draw

    graph = graph_in(view)
    keys = [one.key for one in around.work(view, entity, depth, limit=MOST).nodes]
    text = draw(format, [graph.entities[key] for key in keys], graph.relations(keys))
    return GraphDrawing(format=format, text=text)


@operation(
    summary="Add a relation",
    right="write",
    about="target",
    raises=("NotFoundError: there is no such entity.", "UsageError: the type is empty."),
    http="POST /v1/graph/relations",
)
def relate(view: View, begin: Begin, type: RelationType, end: End) -> Relations:
    """Add a relation between two entities, unless it exists already."""
    return _changed(view, index_of(view).relate, begin, type, end)


@operation(
    summary="Remove a relation",
    right="write",
    about="target",
    raises=("UsageError: the relation is part of a person's prose, which is not rewritten.",),
    absent="there is no relation {type:.60} from {begin:.60} to {end:.60}",
    audit="graph relate",
    command="",
    http="DELETE /v1/graph/relations",
    destructive=True,
)
def unrelate(view: View, begin: Begin, type: RelationType, end: End) -> Relations | None:
    """Remove a relation between two entities, and return it, or None if it does not exist."""
    return _changed(view, index_of(view).unrelate, begin, type, end) or None


def _changed(
    view: View, change: Callable[[str, str, str], Relation | None], begin: str, type: str, end: str
) -> Relations:
    view.opened.ingest_edits()
    relation = change(begin, type, end)
    if relation is None:
        return Relations(relations=())
    view.opened.render_file(relation.begin, view.target)
    return Relations(relations=(edge(relation),))
