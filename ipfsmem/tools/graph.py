"""The tools of a knowledge graph: the nine of the MCP reference server `memory`, and LibreFang's three, over entities that are
memories.

Shapes are those of the originals. The person can restore deleted and changed entities (`ipfsmem fact history KEY`, `ipfsmem
fact restore KEY`), so no tool asks for a confirmation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ipfsmem.bundle.fence import NOTICE, clean_text, quote, unquote
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.graph.entity import entity_key, is_made, observation
from ipfsmem.tools.definition import SCOPE, Definition
from ipfsmem.tools.paging import ANSWER, beginning, weight
from ipfsmem.tools.schema import JSON, answer, arguments, number, text, texts
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import ToolContext, place
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.groups import Graph
    from ipfsmem.operations.graph.stored import Edge, Node

#: Maximum entities, relations and observations of one call, and entities of one answer; and relations.
MOST: Final = 200
_EDGES: Final = 1_000
#: Bytes of an answer outside the graph.
_AROUND: Final = 600
_string, _count, _list = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "array", "items": {"type": "object"}},
)
_GRAPH = answer(notice=_string, entities=_list, relations=_list, more={"type": "boolean"})
_NAME = text("Name or key of the entity.", least=1, most=200)
_TYPE = text("Relation of the first to the second, in the active voice, such as works_at.", least=1, most=64)


_GONE = answer(changed=_count, success={"type": "boolean"}, message=_string)
#: Schemas of the answers without a part of the graph.
_RETURNS: Final = {
    "create_relations": answer(changed=_count, relations=_list),
    "add_observations": answer(changed=_count, results=_list),
    "delete_entities": _GONE,
    "delete_observations": _GONE,
    "delete_relations": _GONE,
    "knowledge_add_relation": answer(changed=_count),
}


#: Names for which many programs write `type`.
_TYPES: Final = ("relationType", "entityType")


def _objects(description: str) -> JSON:
    return {"type": "array", "description": description, "items": {"type": "object"}, "maxItems": MOST}


def _graph(tool_context: ToolContext, args: JSON) -> Graph:
    return tool_context.there(args).graph


def _texts_of(one: dict[str, Any], *names: str) -> list[str]:
    """Return values of an object, each a text; `type` may replace `relationType` and `entityType`. Raises UsageError."""
    values = [one.get(name, one.get("type") if name in _TYPES else None) for name in names]
    if not all(isinstance(value, str) and value.strip() for value in values):
        raise UsageError(f"each object has the texts {', '.join(names)}")
    return [str(value) for value in values]


def _list_of(one: dict[str, Any], name: str) -> list[str]:
    values = one.get(name) or []
    if isinstance(values, str):  # some programs send a list of one so
        values = [values]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise UsageError(f"{name} is a list of texts")
    return values


def _observations(one: dict[str, Any], name: str) -> list[str]:
    """Return the same, each in its stored form. Raises UsageError."""
    return [observation(line) for line in _list_of(one, name)]


def _create_entities(tool_context: ToolContext, args: JSON) -> ToolResult:
    entities = [
        (_texts_of(one, "name", "entityType"), _observations(one, "observations")) for one in args["entities"]
    ]
    for (name, _), _ in entities:
        entity_key(name)  # refused before any is created
    graph = _graph(tool_context, args)
    nodes: dict[str, Node] = {}
    for (name, kind), observations in entities:
        new = graph.get(name) is None
        node = graph.add(name, kind, observations)
        if new or node.key in nodes:
            nodes[node.key] = node
    there = len(entities) - len(nodes)
    more = f", {there:,} existed: new observations were added to them" if there else ""
    return shown(graph, nodes.values(), [], f"{count(len(nodes), 'entity')} made{more}")


def _create_relations(tool_context: ToolContext, args: JSON) -> ToolResult:
    edges = [_texts_of(one, "from", "relationType", "to") for one in args["relations"]]
    graph = _graph(tool_context, args)
    # One that fails comes first, before any change.
    edges.sort(key=lambda one: _are_there(graph, one[0], one[2]))
    with _hint_of_missing():
        new = [one for one in edges if graph.relate(*one)]
    relations = [
        {"from": clean_text(begin), "relationType": clean_text(type), "to": clean_text(end)}
        for begin, type, end in new
    ]
    return _done(len(new), f"{count(len(new), 'relation')} added.", relations=relations)


def _add_observations(tool_context: ToolContext, args: JSON) -> ToolResult:
    additions = [
        (_texts_of(one, "entityName")[0], _observations(one, "contents")) for one in args["observations"]
    ]
    graph = _graph(tool_context, args)
    # One that fails comes first, before any change.
    additions.sort(key=lambda one: _are_there(graph, one[0]))
    with _hint_of_missing():
        added = [(name, graph.observe(name, observations)) for name, observations in additions]
    new = sum(len(observations) for _, observations in added)
    results = [
        {"entityName": clean_text(name), "addedObservations": list(map(clean_text, observations))}
        for name, observations in added
    ]
    return _done(new, f"{count(new, 'observation')} added.", results=results)


def _are_there(graph: Graph, *names: str) -> bool:
    return all(graph.get(name) is not None for name in names)


@contextlib.contextmanager
def _hint_of_missing() -> Iterator[None]:
    try:
        yield
    except NotFoundError as error:
        error.hint = "Create it: create_entities."
        raise


def _delete_entities(tool_context: ToolContext, args: JSON) -> ToolResult:
    there, graph = tool_context.there(args), _graph(tool_context, args)
    for name in args["entityNames"]:
        node = graph.get(name)
        reading = None if node is None else there.read(node.key, counts=False)
        # A memory that the graph did not create has more than the graph shows of it.
        if (
            reading is not None
            and not is_made(reading.readable)
            and not tool_context.session.was_shown(reading)
        ):
            raise UsageError(
                f"{place(reading)} is a memory that you were not shown, so nothing was deleted",
                hint="First read the whole text with read_memory, or use forget.",
            )
    gone = sum(graph.delete(name, relations=True) is not None for name in args["entityNames"])
    return _gone(gone, f"{count(gone, 'entity')} deleted; the person can restore them.")


def _delete_observations(tool_context: ToolContext, args: JSON) -> ToolResult:
    deletions = [
        (_texts_of(one, "entityName")[0], _list_of(one, "observations")) for one in args["deletions"]
    ]
    graph = _graph(tool_context, args)
    gone = sum(
        len(graph.unobserve(name, observations))
        for name, observations in deletions
        if graph.get(name) is not None
    )
    return _gone(gone, f"{count(gone, 'observation')} deleted.")


def _delete_relations(tool_context: ToolContext, args: JSON) -> ToolResult:
    relations = [_texts_of(one, "from", "relationType", "to") for one in args["relations"]]
    graph = _graph(tool_context, args)
    gone = sum(graph.unrelate(*one) is not None for one in relations)
    return _gone(gone, f"{count(gone, 'relation')} deleted.")


def _read_graph(tool_context: ToolContext, args: JSON) -> ToolResult:
    graph = _graph(tool_context, args)
    subgraph = graph.around(limit=MOST)
    return shown(
        graph, subgraph.nodes, subgraph.edges, count(len(subgraph.nodes), "entity"), more=subgraph.more
    )


def _search_nodes(tool_context: ToolContext, args: JSON) -> ToolResult:
    graph = _graph(tool_context, args)
    return _nodes(graph, [*graph.search(args["query"], limit=MOST + 1)])


def _open_nodes(tool_context: ToolContext, args: JSON) -> ToolResult:
    graph = _graph(tool_context, args)
    return _nodes(graph, graph.named(args["names"]))


class Match(NamedTuple):
    """A relation with both of its entities."""

    begin: Node
    type: str
    end: Node


def matches(graph: Graph, args: JSON) -> list[Match]:
    """Return the relations that begin at `source`, are of the type `relation` and end at `target`, as far as these are given,
    within `max_depth` steps of the source, else of the target. Raises UsageError if none of them is given."""
    source, relation, target = (args.get(name) for name in ("source", "relation", "target"))
    if not (source or relation or target):
        raise UsageError("at least one of source, target or relation is required")
    ends = [graph.get(name) if name else None for name in (source, target)]
    if (source and ends[0] is None) or (target and ends[1] is None):
        return []
    around, depth = ends[0] or ends[1], args.get("max_depth", 1)
    edges: Iterable[Edge]
    if around is not None and depth > 1:
        edges = graph.around(around.key, depth, limit=MOST).edges
    else:
        edges = graph.relations(around.key if around is not None else None, relation or None)
        edges = [
            one
            for one in edges
            if (ends[0] is None or one.begin == ends[0].key) and (ends[1] is None or one.end == ends[1].key)
        ]
    chosen = [one for one in edges if not relation or one.type == relation]
    nodes = {one.key: one for one in graph.named({key for one in chosen for key in (one.begin, one.end)})}
    return [
        Match(nodes[one.begin], one.type, nodes[one.end])
        for one in chosen
        if one.begin in nodes and one.end in nodes
    ]


def _query(tool_context: ToolContext, args: JSON) -> ToolResult:
    graph = _graph(tool_context, args)
    relations = matches(graph, args)[:_EDGES]
    nodes = {node.key: node for one in relations for node in (one.begin, one.end)}
    from ipfsmem.operations.graph.stored import Edge

    edges = [Edge(begin=one.begin.key, type=one.type, end=one.end.key) for one in relations]
    return shown(
        graph, list(nodes.values())[:MOST], edges, count(len(relations), "relation"), more=len(nodes) > MOST
    )


def _add_entity(tool_context: ToolContext, args: JSON) -> ToolResult:
    observations = [f"{name}: {value}" for name, value in args.get("properties", {}).items()]
    graph = _graph(tool_context, args)
    return shown(graph, [graph.add(args["name"], args["entity_type"], observations)], [], "1 entity")


def _add_relation(tool_context: ToolContext, args: JSON) -> ToolResult:
    new = _graph(tool_context, args).relate(args["source"], args["relation"], args["target"])
    return _done(len(new), "The relation is added." if new else "The relation exists already.")


def _nodes(graph: Graph, matching: list[Node]) -> ToolResult:
    """Return entities with every relation that begins or ends at one of them, also if the other end is not among these."""
    nodes = matching[:MOST]
    edges = graph.touching([one.key for one in nodes], limit=_EDGES) if nodes else []
    more = len(matching) > MOST or len(edges) == _EDGES
    return shown(graph, nodes, edges, count(len(nodes), "entity"), more=more)


def _done(number: int, message: str, **values: list[dict[str, Any]]) -> ToolResult:
    return ToolResult(message, {"changed": number, **values})


def _gone(number: int, message: str) -> ToolResult:
    return ToolResult(message, {"changed": number, "success": True, "message": message})


def shown(
    graph: Graph, nodes: Iterable[Node], edges: Iterable[Edge], summary: str, *, more: bool = False
) -> ToolResult:
    """Return entities and relations, quoted. Ends of relations are given by the names by which they are found."""
    edges = list(edges)
    called = graph.called(key for one in edges for key in (one.begin, one.end))
    entities = [
        {
            "key": one.key,
            "name": clean_text(one.name),
            "entityType": clean_text(one.kind),
            "observations": [clean_text(each) for each in one.observations],
        }
        for one in nodes
    ]
    relations = [
        {
            "from": clean_text(called[one.begin]),
            "relationType": clean_text(one.type),
            "to": clean_text(called[one.end]),
        }
        for one in edges
    ]
    parts = [
        quote(
            "\n".join(
                (
                    f"{one['name']} ({one['entityType']}, key {one['key']})",
                    *(f"- {each}" for each in one["observations"]),
                )
            )
        )
        for one in entities
    ] + [quote(f"{one['from']} {one['relationType']} {one['to']}") for one in relations]
    lines, is_cut = _within(parts)
    tail = "\n(there is more: search_nodes, open_nodes)" if more or is_cut else ""
    shown = f"{summary}. {NOTICE}\n\n{lines}{tail}" if entities else f"{summary}."
    values = {"notice": NOTICE, "entities": entities, "relations": relations, "more": more or is_cut}
    return ToolResult(shown, values)


def _within(parts: list[str]) -> tuple[str, bool]:
    """Return the quoted parts that fit into one answer, and whether some were omitted."""
    room, kept_parts = ANSWER - _AROUND, list[str]()
    for part in parts:
        room -= weight(part.removesuffix("\n"))
        if room < 0:
            first = "" if kept_parts else quote(beginning(unquote(part), ANSWER - 2 * _AROUND))
            return first + "".join(kept_parts), True
        kept_parts.append(part)
    return "".join(kept_parts), False


def _one(
    name: str,
    title: str,
    description: str,
    run: Callable[[ToolContext, JSON], ToolResult],
    parameters: JSON,
    *,
    changes: bool = False,
    takes: bool = False,
) -> Definition:
    return Definition(
        name=name,
        title=title,
        description=description,
        parameters=parameters,
        returns=_RETURNS.get(name, _GRAPH),
        run=run,
        read_only=not changes,
        destructive=takes,
        idempotent=True,
    )


_relations = _objects("Objects with from, relationType and to: names or keys of existing entities.")
GRAPH: Final = (
    _one("create_entities", "Create entities", "Create entities of the graph, each a memory. An existing entity gets the new observations.", _create_entities, arguments("entities", entities=_objects("Objects with name, entityType and observations (a list of texts)."), scope=SCOPE), changes=True),
    _one("create_relations", "Create relations", "Add relations between existing entities.", _create_relations, arguments("relations", relations=_relations, scope=SCOPE), changes=True),
    _one("add_observations", "Add observations", "Add observations to existing entities.", _add_observations, arguments("observations", observations=_objects("Objects with entityName and contents (a list of texts)."), scope=SCOPE), changes=True),
    _one("delete_entities", "Delete entities", "Delete entities and the relations that lead to them. The person can restore them.", _delete_entities, arguments("entityNames", entityNames=texts("Names or keys of the entities.", most=MOST, each=200), scope=SCOPE), changes=True, takes=True),
    _one("delete_observations", "Delete observations", "Delete observations of entities.", _delete_observations, arguments("deletions", deletions=_objects("Objects with entityName and observations (a list of texts)."), scope=SCOPE), changes=True, takes=True),
    _one("delete_relations", "Delete relations", "Delete relations between entities.", _delete_relations, arguments("relations", relations=_relations, scope=SCOPE), changes=True, takes=True),
    _one("read_graph", "The graph", "Return the entities and their relations, at most 200.", _read_graph, arguments(scope=SCOPE)),
    _one("search_nodes", "Search the graph", "Find entities whose name, type or observations contain the query or all its words, with their relations.", _search_nodes, arguments("query", query=text("Words.", least=1, most=500), scope=SCOPE)),
    _one("open_nodes", "Open entities", "Return entities by name or key, with their relations.", _open_nodes, arguments("names", names=texts("Names or keys of the entities.", most=MOST, each=200), scope=SCOPE)),
    _one("knowledge_add_entity", "Add an entity", "Add an entity to the knowledge graph, with properties.", _add_entity, arguments("name", "entity_type", name=text("Name of the entity.", least=1, most=200), entity_type=text("Type of the entity: person, organization, project, concept, event, location, document, tool, or another word.", least=1, most=64), properties={"type": "object", "description": "Properties by name."}, scope=SCOPE), changes=True),
    _one("knowledge_add_relation", "Add a relation", "Add a relation between two existing entities.", _add_relation, arguments("source", "relation", "target", source=_NAME, relation=_TYPE, target=_NAME, scope=SCOPE), changes=True),
    _one("knowledge_query", "Query the knowledge graph", "Find relations by source, relation and target; each is optional.", _query, arguments(source=_NAME, relation=_TYPE, target=_NAME, max_depth=number("Maximum distance in relations.", 1, 5, 1), scope=SCOPE)),
)  # fmt: skip
