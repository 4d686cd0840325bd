"""LibreFang's memory tools: values by key, and the knowledge graph, with its arguments, defaults and texts.

Its own program checks keys of a tool against `[A-Za-z0-9_.-]`; here every key of 1 to 256 bytes is accepted, as in its HTTP
interface. A replaced value stays in the history of its key.
"""

from __future__ import annotations

import shlex
from typing import Final

from ipfsmem.bundle.fence import clean_text
from ipfsmem.bundle.value_file import as_json
from ipfsmem.tools.definition import Definition
from ipfsmem.tools.graph import matches
from ipfsmem.tools.schema import JSON, answer, anything, arguments, number, text
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import ToolContext, one_line

#: Entries of one page of keys.
PAGE: Final = 100
MAX_NAME: Final = 256
_RESULT: Final = answer(result={"type": "string"})
#: The names of its known types in its answers; another one is `Custom("...")`.
_ENTITIES: Final = ("person", "organization", "project", "concept", "event", "location", "document", "tool")
_RELATIONS: Final = (
    "works_at", "knows_about", "related_to", "depends_on", "owned_by", "created_by", "located_in", "part_of", "uses", "produces",
)  # fmt: skip


def _answer(message: str) -> ToolResult:
    return ToolResult(message, {"result": message})


def _store(tool_context: ToolContext, args: JSON) -> ToolResult:
    values, name = tool_context.there(args).values, one_line(args["key"])
    before = values.get(args["key"])
    value = values.set(args["key"], args["value"])
    message = f"Stored value under key '{name}'."
    if before is not None and before.own and before.value != value.value:
        scope, quoted = tool_context.scope_of({}), shlex.quote(name)
        back = f"ipfsmem value restore {quoted}"
        if scope:
            back = f"ipfsmem value restore {quoted} --scope {scope}"
        message += f" It replaced another value; a person brings that back with: {back}"
    return _answer(message)


def _recall(tool_context: ToolContext, args: JSON) -> ToolResult:
    value = tool_context.there(args).values.get(args["key"])
    if value is None or not value.own:
        return _answer(f"No value found for key '{one_line(args['key'])}'.")
    return _answer(clean_text(as_json(value.value)))


def _list(tool_context: ToolContext, args: JSON) -> ToolResult:
    keys = [one.key for one in tool_context.there(args).values.list() if one.own]
    limit, offset = args.get("limit", PAGE), args.get("offset", 0)
    shown = keys[offset : offset + limit]
    if not keys:
        return _answer("No entries found in this agent's memory.")
    if not shown:
        return _answer(f"No entries in range (offset={offset}, limit={limit}, total={len(keys)}).")
    message = clean_text(as_json(shown))
    if offset + len(shown) < len(keys):
        following = offset + len(shown)
        message += f"\n\nShowing {len(shown)} of {len(keys)} entries (offset={offset}). Use offset={following} to see more."
    return _answer(message)


def _add_entity(tool_context: ToolContext, args: JSON) -> ToolResult:
    observations = [
        f"{name}: {value if isinstance(value, str) else as_json(value)}"
        for name, value in args.get("properties", {}).items()
    ]
    node = tool_context.there(args).graph.add(args["name"], args["entity_type"], observations)
    return _answer(f"Entity '{one_line(args['name'])}' added with ID: {node.key}")


def _add_relation(tool_context: ToolContext, args: JSON) -> ToolResult:
    graph = tool_context.there(args).graph
    ends = []
    for name in (args["source"], args["target"]):
        node = graph.get(name)
        ends.append(node if node is not None else graph.add(name))
    graph.relate(ends[0].key, args["relation"], ends[1].key)
    ident = f"{ends[0].key}:{one_line(args['relation'])}:{ends[1].key}"
    source, relation, target = (one_line(args[name]) for name in ("source", "relation", "target"))
    return _answer(f"Relation '{source}' --[{relation}]--> '{target}' added with ID: {ident}")


def _query(tool_context: ToolContext, args: JSON) -> ToolResult:
    relations = matches(tool_context.there(args).graph, args)
    if not relations:
        return _answer("No matching knowledge graph entries found.")
    lines = [
        f"  {one_line(one.begin.name)} ({_type(one.begin.kind, _ENTITIES)}) --[{_type(one.type, _RELATIONS)} (100%)]--> "
        f"{one_line(one.end.name)} ({_type(one.end.kind, _ENTITIES)})"
        for one in relations[:PAGE]
    ]
    return _answer(f"Found {len(relations)} match(es) (showing {len(lines)}):\n\n" + "\n".join(lines))


def _type(word: str, types: tuple[str, ...]) -> str:
    if word in types:
        return "".join(part.capitalize() for part in word.split("_"))
    return f"Custom({as_json(one_line(word))})"


_KEY: Final = text("The storage key", least=1, most=MAX_NAME)

TOOLS: Final = (
    Definition(
        name="memory_store",
        title="Store a value",
        description="Store a value under an exact key. It is found again only by the same key.",
        parameters=arguments(
            "key",
            "value",
            key=_KEY,
            value=anything("The value to store: a plain string, or any JSON"),
        ),
        returns=_RESULT,
        run=_store,
        idempotent=True,
    ),
    Definition(
        name="memory_recall",
        title="Recall a value",
        description="Look up one value by its exact key. This is not a search.",
        parameters=arguments("key", key=_KEY),
        returns=_RESULT,
        run=_recall,
        read_only=True,
        idempotent=True,
    ),
    Definition(
        name="memory_list",
        title="List keys",
        description="List the keys, with pagination. Returns key names only.",
        parameters=arguments(
            limit=number("Max keys to return (default 100)", 1, 10_000, PAGE),
            offset=number("Number of keys to skip", 0, 10_000_000, 0),
        ),
        returns=_RESULT,
        run=_list,
        read_only=True,
        idempotent=True,
    ),
    Definition(
        name="knowledge_add_entity",
        title="Add an entity",
        description="Add an entity to the knowledge graph.",
        parameters=arguments(
            "name",
            "entity_type",
            name=text("Display name of the entity", least=1, most=200),
            entity_type=text(
                "Type: person, organization, project, concept, event, location, document, tool, or a custom type",
                least=1,
                most=64,
            ),
            properties={"type": "object", "description": "Arbitrary key-value properties (optional)"},
        ),
        returns=_RESULT,
        run=_add_entity,
        idempotent=True,
    ),
    Definition(
        name="knowledge_add_relation",
        title="Add a relation",
        description="Add a relation between two entities in the knowledge graph.",
        parameters=arguments(
            "source",
            "relation",
            "target",
            source=text("Source entity ID or name", least=1, most=200),
            relation=text(
                "Relation type: works_at, knows_about, related_to, depends_on, owned_by, created_by, located_in, part_of, uses, "
                "produces, or a custom type",
                least=1,
                most=64,
            ),
            target=text("Target entity ID or name", least=1, most=200),
            confidence={"type": "number", "description": "Confidence score 0.0-1.0 (default: 1.0)"},
            properties={"type": "object", "description": "Arbitrary key-value properties (optional)"},
        ),
        returns=_RESULT,
        run=_add_relation,
        idempotent=True,
    ),
    Definition(
        name="knowledge_query",
        title="Query the knowledge graph",
        description="Filter by source entity, relation type, and/or target entity. Returns matching triples.",
        parameters=arguments(
            source=text("Filter by source entity name or ID (optional)", most=200),
            relation=text("Filter by relation type (optional)", most=64),
            target=text("Filter by target entity name or ID (optional)", most=200),
            max_depth=number("Maximum traversal depth (default: 1)", 1, 5, 1),
        ),
        returns=_RESULT,
        run=_query,
        read_only=True,
        idempotent=True,
    ),
)
