"""The tools of a knowledge graph: the nine of the MCP reference server `memory`, and LibreFang's three, over entities that are
memories.

Shapes are those of the originals. The person can restore deleted and changed entities (`ipfsmem fact history KEY`, `ipfsmem
fact restore KEY`), so no tool asks for a confirmation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from ipfsmem.bundle.fence import NOTICE, clean_text, quote, unquote
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.graph.entity import entity_key, is_made, observation
from ipfsmem.operation import ForModels
from ipfsmem.tools.derived import declared_tool, told
from ipfsmem.tools.paging import ANSWER, beginning, weight
from ipfsmem.tools.schema import JSON
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
_Objects = list[dict[str, Any]]
_Entities = Annotated[
    _Objects,
    Meta(max_length=MOST, description="Objects with name, entityType and observations (a list of texts)."),
]
_Relations = Annotated[
    _Objects,
    Meta(
        max_length=MOST,
        description="Objects with from, relationType and to: names or keys of existing entities.",
    ),
]
_Names = Annotated[
    list[Annotated[str, Meta(max_length=200)]],
    Meta(max_length=MOST, description="Names or keys of the entities."),
]
_Name = Annotated[str, Meta(min_length=1, max_length=200, description="Name or key of the entity.")]
_Relation = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="Relation of the first to the second, in the active voice, such as works_at.",
    ),
]


class _GraphShown(msgspec.Struct, frozen=True, kw_only=True):
    """Entities and relations. `more`: whether some were left out."""

    notice: str
    entities: _Objects
    relations: _Objects
    more: bool


class _RelationsAdded(msgspec.Struct, frozen=True, kw_only=True):
    """The relations that were added, and their number."""

    changed: int
    relations: _Objects


class _ObservationsAdded(msgspec.Struct, frozen=True, kw_only=True):
    """The observations that were added, by entity, and their number."""

    changed: int
    results: _Objects


class _RelationAdded(msgspec.Struct, frozen=True, kw_only=True):
    """The number of relations that were added, 0 or 1."""

    changed: int


class _Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """The number of entities, observations or relations that were deleted."""

    changed: int
    success: bool
    message: str


#: Names for which many programs write `type`.
_TYPES: Final = ("relationType", "entityType")


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


@declared_tool(
    title="Create entities",
    description="Create entities of the graph, each a memory. An existing entity gets the new observations.",
    returns=_GraphShown,
)
def create_entities(tool_context: ToolContext, args: JSON, *, entities: _Entities) -> ToolResult:
    """Create entities, or add observations to them."""
    named = [(_texts_of(one, "name", "entityType"), _observations(one, "observations")) for one in entities]
    for (name, _), _ in named:
        entity_key(name)  # refused before any is created
    graph = _graph(tool_context, args)
    nodes: dict[str, Node] = {}
    for (name, kind), observations in named:
        new = graph.get(name) is None
        node = graph.add(name, kind, observations)
        if new or node.key in nodes:
            nodes[node.key] = node
    there = len(named) - len(nodes)
    more = f", {there:,} existed: new observations were added to them" if there else ""
    return shown(graph, nodes.values(), [], f"{count(len(nodes), 'entity')} made{more}")


@declared_tool(
    title="Create relations",
    description="Add relations between existing entities.",
    returns=_RelationsAdded,
)
def create_relations(tool_context: ToolContext, args: JSON, *, relations: _Relations) -> ToolResult:
    """Add relations."""
    edges = [_texts_of(one, "from", "relationType", "to") for one in relations]
    graph = _graph(tool_context, args)
    # One that fails comes first, before any change.
    edges.sort(key=lambda one: _are_there(graph, one[0], one[2]))
    with _hint_of_missing():
        new = [one for one in edges if graph.relate(*one)]
    added = [
        {"from": clean_text(begin), "relationType": clean_text(type), "to": clean_text(end)}
        for begin, type, end in new
    ]
    return told(f"{count(len(new), 'relation')} added.", _RelationsAdded(changed=len(new), relations=added))


@declared_tool(
    title="Add observations",
    description="Add observations to existing entities.",
    returns=_ObservationsAdded,
)
def add_observations(
    tool_context: ToolContext,
    args: JSON,
    *,
    observations: Annotated[
        _Objects, Meta(max_length=MOST, description="Objects with entityName and contents (a list of texts).")
    ],
) -> ToolResult:
    """Add observations."""
    additions = [(_texts_of(one, "entityName")[0], _observations(one, "contents")) for one in observations]
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
    return told(f"{count(new, 'observation')} added.", _ObservationsAdded(changed=new, results=results))


def _are_there(graph: Graph, *names: str) -> bool:
    return all(graph.get(name) is not None for name in names)


@contextlib.contextmanager
def _hint_of_missing() -> Iterator[None]:
    try:
        yield
    except NotFoundError as error:
        error.hint = "Create it: create_entities."
        raise


@declared_tool(
    title="Delete entities",
    description="Delete entities and the relations that lead to them. The person can restore them.",
    returns=_Deleted,
    destructive=True,
)
def delete_entities(
    tool_context: ToolContext, args: JSON, *, entity_names: Annotated[_Names, ForModels(name="entityNames")]
) -> ToolResult:
    """Delete entities, and the relations that lead to them."""
    there, graph = tool_context.there(args), _graph(tool_context, args)
    for name in entity_names:
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
    gone = sum(graph.delete(name, relations=True) is not None for name in entity_names)
    return _deleted(gone, f"{count(gone, 'entity')} deleted; the person can restore them.")


@declared_tool(
    title="Delete observations",
    description="Delete observations of entities.",
    returns=_Deleted,
    destructive=True,
)
def delete_observations(
    tool_context: ToolContext,
    args: JSON,
    *,
    deletions: Annotated[
        _Objects,
        Meta(max_length=MOST, description="Objects with entityName and observations (a list of texts)."),
    ],
) -> ToolResult:
    """Delete observations."""
    named = [(_texts_of(one, "entityName")[0], _list_of(one, "observations")) for one in deletions]
    graph = _graph(tool_context, args)
    gone = sum(
        len(graph.unobserve(name, observations))
        for name, observations in named
        if graph.get(name) is not None
    )
    return _deleted(gone, f"{count(gone, 'observation')} deleted.")


@declared_tool(
    title="Delete relations",
    description="Delete relations between entities.",
    returns=_Deleted,
    destructive=True,
)
def delete_relations(tool_context: ToolContext, args: JSON, *, relations: _Relations) -> ToolResult:
    """Delete relations."""
    edges = [_texts_of(one, "from", "relationType", "to") for one in relations]
    graph = _graph(tool_context, args)
    gone = sum(graph.unrelate(*one) is not None for one in edges)
    return _deleted(gone, f"{count(gone, 'relation')} deleted.")


@declared_tool(
    title="The graph",
    description="Return the entities and their relations, at most 200.",
    returns=_GraphShown,
    read_only=True,
)
def read_graph(tool_context: ToolContext, args: JSON) -> ToolResult:
    """Return the graph."""
    graph = _graph(tool_context, args)
    subgraph = graph.around(limit=MOST)
    return shown(
        graph, subgraph.nodes, subgraph.edges, count(len(subgraph.nodes), "entity"), more=subgraph.more
    )


@declared_tool(
    title="Search the graph",
    description="Find entities whose name, type or observations contain the query or all its words, with their relations.",
    returns=_GraphShown,
    read_only=True,
)
def search_nodes(
    tool_context: ToolContext,
    args: JSON,
    *,
    query: Annotated[str, Meta(min_length=1, max_length=500, description="Words.")],
) -> ToolResult:
    """Return the entities that match words."""
    graph = _graph(tool_context, args)
    return _nodes(graph, [*graph.search(query, limit=MOST + 1)])


@declared_tool(
    title="Open entities",
    description="Return entities by name or key, with their relations.",
    returns=_GraphShown,
    read_only=True,
)
def open_nodes(tool_context: ToolContext, args: JSON, *, names: _Names) -> ToolResult:
    """Return entities by name or key."""
    graph = _graph(tool_context, args)
    return _nodes(graph, graph.named(names))


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


@declared_tool(
    title="Query the knowledge graph",
    description="Find relations by source, relation and target; each is optional.",
    returns=_GraphShown,
    read_only=True,
)
def knowledge_query(
    tool_context: ToolContext,
    args: JSON,
    *,
    source: _Name = "",
    relation: _Relation = "",
    target: _Name = "",
    max_depth: Annotated[int, Meta(ge=1, le=5, description="Maximum distance in relations.")] = 1,
) -> ToolResult:
    """Return the relations that match."""
    graph = _graph(tool_context, args)
    chosen = {"source": source, "relation": relation, "target": target, "max_depth": max_depth}
    relations = matches(graph, chosen)[:_EDGES]
    nodes = {node.key: node for one in relations for node in (one.begin, one.end)}
    from ipfsmem.operations.graph.stored import Edge

    edges = [Edge(begin=one.begin.key, type=one.type, end=one.end.key) for one in relations]
    return shown(
        graph, list(nodes.values())[:MOST], edges, count(len(relations), "relation"), more=len(nodes) > MOST
    )


@declared_tool(
    title="Add an entity",
    description="Add an entity to the knowledge graph, with properties.",
    returns=_GraphShown,
)
def knowledge_add_entity(
    tool_context: ToolContext,
    args: JSON,
    *,
    name: Annotated[str, Meta(min_length=1, max_length=200, description="Name of the entity.")],
    entity_type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="Type of the entity: person, organization, project, concept, event, location, document, tool, or another word.",
        ),
    ],
    properties: Annotated[dict[str, Any] | None, Meta(description="Properties by name.")] = None,
) -> ToolResult:
    """Add an entity."""
    observations = [f"{label}: {value}" for label, value in (properties or {}).items()]
    graph = _graph(tool_context, args)
    return shown(graph, [graph.add(name, entity_type, observations)], [], "1 entity")


@declared_tool(
    title="Add a relation",
    description="Add a relation between two existing entities.",
    returns=_RelationAdded,
)
def knowledge_add_relation(
    tool_context: ToolContext, args: JSON, *, source: _Name, relation: _Relation, target: _Name
) -> ToolResult:
    """Add a relation."""
    new = _graph(tool_context, args).relate(source, relation, target)
    message = "The relation is added." if new else "The relation exists already."
    return told(message, _RelationAdded(changed=len(new)))


def _nodes(graph: Graph, matching: list[Node]) -> ToolResult:
    """Return entities with every relation that begins or ends at one of them, also if the other end is not among these."""
    nodes = matching[:MOST]
    edges = graph.touching([one.key for one in nodes], limit=_EDGES) if nodes else []
    more = len(matching) > MOST or len(edges) == _EDGES
    return shown(graph, nodes, edges, count(len(nodes), "entity"), more=more)


def _deleted(number: int, message: str) -> ToolResult:
    return told(message, _Deleted(changed=number, success=True, message=message))


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
    values = _GraphShown(notice=NOTICE, entities=entities, relations=relations, more=more or is_cut)
    return told(shown, values)


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


GRAPH: Final = (
    create_entities,
    create_relations,
    add_observations,
    delete_entities,
    delete_observations,
    delete_relations,
    read_graph,
    search_nodes,
    open_nodes,
    knowledge_add_entity,
    knowledge_add_relation,
    knowledge_query,
)
