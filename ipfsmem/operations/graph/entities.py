"""The operations on the entities of the graph: list, search and show them, add to them, remove from them, and delete them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from ipfsmem.errors import ChangedError, UsageError
from ipfsmem.graph.graph import MOST
from ipfsmem.operation import Cli, Except, Http, Items, Stored, View, operation
from ipfsmem.operations.graph.stored import (
    MAX_NAMED,
    Entities,
    Limit,
    Named,
    Node,
    graph_in,
    index_of,
    listed,
    node,
    render_entity,
)

#: Observations of one entity.
Observed = Annotated[
    Iterable[Annotated[str, Stored()]], Meta(max_length=1_000, description="Observations, each one sentence.")
]


class ShownEntity(Node, frozen=True, kw_only=True):
    """An entity with the `seen` of its memory, for `delete`."""

    seen: str


class Observations(Items[str], frozen=True, kw_only=True):
    """Observations that were added or removed. It is a sequence of its `observations`."""

    observations: tuple[str, ...]


@operation(
    summary="List entities",
    right="read",
    about="target",
    http="GET /v1/graph/entities",
)
def list_(
    view: View,
    kind: Annotated[
        str | None,
        Meta(min_length=1, max_length=MAX_NAMED, description="Only entities of this kind."),
        Cli(option=True),
    ] = None,
    *,
    limit: Limit = MOST,
) -> Entities:
    """List entities: key, kind, name, observations. An entity is a memory that was created as one or has a relation."""
    entities = [one for one in listed(graph_in(view)) if kind in (None, one.kind)]
    return Entities(entities=tuple(map(node, entities[:limit])))


@operation(
    summary="Search entities by words",
    right="read",
    about="target",
    raises=("UsageError: the query is empty.",),
    http="GET /v1/graph/search",
)
def search(
    view: View,
    query: Annotated[
        str, Meta(max_length=4_000, description="Words to search for."), Cli(metavar="WORDS", joined=True)
    ],
    *,
    limit: Annotated[
        int, Meta(ge=1, le=MOST, description="Maximum number of results."), Cli(metavar="N")
    ] = 20,
) -> Entities:
    """List the entities that have the query, or all its words, in their name, kind or observations."""
    if not query.strip():
        raise UsageError("the question is empty")
    graph = graph_in(view)
    return Entities(entities=tuple(node(graph.entities[key]) for key in graph.search(query, limit)))


@operation(
    summary="Show an entity",
    right="read",
    about="target",
    absent="there is no entity {entity:.60}",
    command="",
    http="GET /v1/graph/entities/{entity}",
)
def get(view: View, entity: Named) -> ShownEntity | None:
    """Return an entity, or None if it does not exist."""
    from ipfsmem.graph.entity import entity_of
    from ipfsmem.memories.memory_records import first_own

    graph = graph_in(view)
    key = graph.find(entity.strip())
    if key is None:
        return None
    one = graph.entities[key]
    parts = view.opened.memories.in_scope(view.target).stack()
    record = first_own(part.read(key) for part in parts)
    # A caller must not delete a text that it was not shown: a hidden one, or a later one.
    shown = record is not None and record.own and entity_of(key, record.readable) == one
    return ShownEntity(
        key=key,
        name=one.name,
        kind=one.kind,
        observations=one.observations,
        seen=record.seen if record is not None and shown else "",
    )


@operation(
    summary="Create an entity, or add observations to one",
    right="write",
    about="target",
    raises=("UsageError: the name or an observation is invalid; nothing was written.",),
    http="POST /v1/graph/entities",
)
def add(
    view: View,
    name: Annotated[str, Meta(max_length=MAX_NAMED, description="Name of the entity.")],
    kind: Annotated[
        str,
        Meta(max_length=MAX_NAMED, description="Kind of entity: a person, a project."),
        Cli(option=True),
    ] = "",
    observations: Annotated[Observed, Cli("say", "TEXT", "An observation; repeatable.", option=True)] = (),
) -> Node:
    """Create an entity, or add observations to the existing one of that name."""
    view.opened.ingest_edits()
    entry, _ = index_of(view).add_entity(name, kind, observations)
    view.opened.render_file(entry.key, view.target)
    return node(entry)


@operation(
    summary="Add observations to an entity",
    right="write",
    about="target",
    raises=("NotFoundError: there is no such entity.", "UsageError: an observation is invalid."),
    audit="graph add",
    command="",
)
def observe(view: View, name: Named, observations: Observed) -> Observations:
    """Add observations to an existing entity, and return the new ones."""
    view.opened.ingest_edits()
    new = index_of(view).observe(name, observations)
    render_entity(view, name)
    return Observations(observations=tuple(new))


@operation(
    summary="Remove observations of an entity",
    right="write",
    about="target",
    raises=(
        "NotFoundError: there is no such entity.",
        "UsageError: an observation is part of a person's prose, which is not rewritten.",
    ),
    audit="graph add",
    command="",
    destructive=True,
)
def unobserve(view: View, name: Named, observations: Observed) -> Observations:
    """Remove observations of an entity, and return those that existed. `facts.restore` restores the earlier text."""
    view.opened.ingest_edits()
    gone = index_of(view).unobserve(name, observations)
    render_entity(view, name)
    return Observations(observations=tuple(gone))


@operation(
    summary="Delete an entity (it can be restored)",
    right="write",
    about="target",
    raises=("ChangedError: the memory is not as `seen` says; nothing was deleted.",),
    absent="there is no entity {entity:.60}",
    http="DELETE /v1/graph/entities/{entity}",
    destructive=True,
)
def delete(
    view: View,
    entity: Named,
    *,
    seen: Annotated[
        str | None,
        Meta(max_length=64, description="Delete the entity only if this `seen` of its memory is current."),
        Http(etag=True),
        Except(("cli",)),
    ] = None,
    relations: Annotated[
        bool, Meta(description="Also remove the relations that lead to it."), Except(("cli", "http"))
    ] = False,
) -> Node | None:
    """Delete an entity on every device; `fact restore` restores it.

    Relations to it stay in their texts, without a target until it is restored.
    """
    from ipfsmem.memories.facts import keep_removed
    from ipfsmem.operations.forgetting import forget_removed

    graph = graph_in(view)
    key = graph.find(entity.strip())
    if key is None:
        return None
    if seen is None and (shown := get.work(view, key)) is not None and not shown.seen:
        raise ChangedError(f"{key} has another text, which is not in the graph, so nothing was deleted")
    removed = keep_removed(view.opened.memories.in_scope(view.target), key, seen)
    for one in graph.into(key) if relations else ():
        if one.begin != key:  # an entity's own relations go with its text
            with contextlib.suppress(UsageError):  # a person's prose is not rewritten
                index_of(view).unrelate(one.begin, one.type, key)
                render_entity(view, one.begin)
    forget_removed(view.opened, removed, "deleted; it can be restored")
    return node(graph.entities[key])
