"""The routes about the graph: entities, relations, ways between entities, and what is near to one."""

from __future__ import annotations

from typing import Final

from ipfsmem.api.bodies import PAGE
from ipfsmem.api.calls import Call, Download, Reply
from ipfsmem.api.life_bodies import Entities, EntityBody, EntityDeleted, RelationBody, Relations
from ipfsmem.api.routes import Route
from ipfsmem.errors import NotFoundError
from ipfsmem.graph.drawing import Format
from ipfsmem.parts.graph import Edge, Node, Subgraph

_KINDS: Final[dict[str, tuple[str, str]]] = {
    "graphml": ("application/graphml+xml", "graph.graphml"),
    "mermaid": ("text/vnd.mermaid", "graph.mmd"),
    "html": ("text/html", "graph.html"),
}


def _most(call: Call) -> int:
    return call.query.get("limit") or PAGE


def _graph(call: Call) -> Subgraph:
    graph, entity = call.memory.graph, call.query.get("entity")
    if entity:
        return graph.around(entity, call.query.get("depth", 1), limit=_most(call))
    return graph.all(limit=_most(call))


def _drawn(call: Call) -> Download:
    form: Format = call.query.get("format", "graphml")
    entity, depth = call.query.get("entity") or None, call.query.get("depth", 2)
    return Download(call.memory.graph.drawn(form, entity=entity, depth=depth).encode(), *_KINDS[form])


def _entities(call: Call) -> Entities:
    graph, words, kind = call.memory.graph, call.query.get("words"), call.query.get("kind") or None
    if not words:
        return Entities(entities=graph.list(kind, limit=_most(call)))
    return Entities(
        entities=[one for one in graph.search(words, limit=_most(call)) if kind in (None, one.kind)]
    )


def _there(call: Call) -> Node:
    name = call.query["entity"]
    found = call.memory.graph.get(name)
    if found is None:
        raise NotFoundError(f"there is no entity {name[:60]}")
    return found


def _entity(call: Call) -> Reply:
    found = _there(call)
    return Reply(found, seen=call.memory.graph.seen(found.key))


def _add(call: Call) -> Reply:
    given: EntityBody = call.body
    new = call.memory.graph.get(given.name) is None
    made = call.memory.graph.add(given.name, given.kind, given.observations)
    return Reply(made, 201 if new else 200)


def _delete(call: Call) -> EntityDeleted:
    key = _there(call).key
    call.memory.graph.delete(key, seen=call.seen)
    return EntityDeleted(key=key)


def _relations(call: Call) -> Relations:
    query = call.query
    found = call.memory.graph.relations(query.get("entity") or None, query.get("type") or None)
    return Relations(relations=found[: _most(call)])


def _relate(call: Call) -> Reply:
    given: RelationBody = call.body
    new = call.memory.graph.relate(given.begin, given.type, given.end)
    return Reply(Relations(relations=_between(call, given.begin, given.type, given.end)), 201 if new else 200)


def _unrelate(call: Call) -> Relations:
    begin, type, end = (call.query[name] for name in ("begin", "type", "end"))
    gone = _between(call, begin, type, end)
    if not call.memory.graph.unrelate(begin, type, end):
        raise NotFoundError(f"there is no relation {type[:60]} from {begin[:60]} to {end[:60]}")
    return Relations(relations=gone)


def _between(call: Call, begin: str, type: str, end: str) -> list[Edge]:
    graph = call.memory.graph
    there = {one.key for one in (graph.get(begin), graph.get(end)) if one is not None}
    return [one for one in graph.relations(begin, type) if {one.begin, one.end} == there]


def _path(call: Call) -> Relations:
    begin, end = call.query["begin"], call.query["end"]
    found = call.memory.graph.path(begin, end)
    if found is None:
        raise NotFoundError(f"no relations lead from {begin[:60]} to {end[:60]}")
    return Relations(relations=found)


_ENTITIES: Final = "/v1/graph/entities"
_RELATIONS: Final = "/v1/graph/relations"

ROUTES: Final = (
    Route(
        "get",
        "/v1/graph",
        "graph",
        "Return entities and relations: all, or those near one entity",
        _graph,
        Subgraph,
        query=("entity", "depth", "limit"),
        led=True,
    ),
    Route(
        "get",
        "/v1/graph/drawing",
        "draw_graph",
        "Export the graph to other formats or a picture",
        _drawn,
        bytes,
        query=("format", "entity", "depth"),
        gives=tuple(kind for kind, _ in _KINDS.values()),
        led=True,
    ),
    Route(
        "get",
        "/v1/graph/path",
        "path",
        "Find a shortest path between two entities",
        _path,
        Relations,
        query=("begin", "end"),
        needs=("begin", "end"),
        led=True,
    ),
    Route(
        "get",
        _ENTITIES,
        "entities",
        "List or search entities",
        _entities,
        Entities,
        query=("words", "kind", "limit"),
        led=True,
    ),
    Route(
        "post",
        _ENTITIES,
        "add_entity",
        "Create an entity, or add observations to one",
        _add,
        Node,
        right="write",
        writes=True,
        body=EntityBody,
        statuses=("200", "201"),
    ),
    Route("get", _ENTITIES + "/{entity}", "entity", "One entity", _entity, Node, led=True, tagged=True),
    Route(
        "delete",
        _ENTITIES + "/{entity}",
        "delete_entity",
        "Delete an entity; it can be restored",
        _delete,
        EntityDeleted,
        right="write",
        writes=True,
        seen=True,
    ),
    Route(
        "get",
        _RELATIONS,
        "relations",
        "List the relations, or those of one entity",
        _relations,
        Relations,
        query=("entity", "type", "limit"),
        led=True,
    ),
    Route(
        "post",
        _RELATIONS,
        "relate",
        "Add a relation",
        _relate,
        Relations,
        right="write",
        writes=True,
        body=RelationBody,
        statuses=("200", "201"),
    ),
    Route(
        "delete",
        _RELATIONS,
        "unrelate",
        "Delete a relation",
        _unrelate,
        Relations,
        right="write",
        writes=True,
        query=("begin", "type", "end"),
        needs=("begin", "type", "end"),
    ),
)
