"""InitRunner's memory tools: `remember`, `recall`, `list_memories`, `learn_procedure`, `record_episode`, with its arguments,
defaults and texts.

Each `remember` is a memory of its own, kept unchanged; nothing is pruned. The number in an answer is the place of the entry by
date, from 1. Search and lists have the person's own texts of the scope and of the default scope.
"""

from __future__ import annotations

from typing import Final, get_args

from ipfsmem.compat import initrunner_texts as texts
from ipfsmem.compat.entries import own_readings, write_entry
from ipfsmem.compat.initrunner_texts import AnswerEntry, Form
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.exchange.program_forms import INITRUNNER as PROGRAM
from ipfsmem.exchange.program_forms import TYPES, category_of, created_at, type_of
from ipfsmem.exchange.program_forms import category as category_form
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memories.query_words import MAX_HITS
from ipfsmem.recall.recipe import WEIGHTS
from ipfsmem.tools.definition import Definition
from ipfsmem.tools.schema import JSON, answer, arguments, text
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import ToolContext

FORMS: Final[tuple[Form, ...]] = get_args(Form)
GENERAL: Final = "general"
#: The sum of the weights, to scale to InitRunner's maximum score of 1.
_MOST: Final = sum(weight for weight in WEIGHTS.values() if weight > 0)
_MAX_TEXT: Final = 900_000
_RESULT: Final = answer(result={"type": "string"})


def tools(form: Form) -> tuple[Definition, ...]:
    """Return the tools, which answer in one of the two forms."""

    def recall(tool_context: ToolContext, args: JSON) -> ToolResult:
        return _answer(_recalled(tool_context, args, form))

    def listing(tool_context: ToolContext, args: JSON) -> ToolResult:
        return _answer(_listed(tool_context, args, form))

    kinds = {"type": "string", "enum": list(TYPES)}
    return (
        _writer(
            "remember",
            "Remember",
            "Store a piece of information in long-term memory for later recall.",
            "semantic",
            "Remembered",
        ),
        Definition(
            name="recall",
            title="Recall",
            description="Search long-term memory for information relevant to the query.",
            parameters=arguments(
                "query",
                query=text("The search query.", most=10_000),
                top_k={
                    "type": "integer",
                    "description": "Maximum number of results to return.",
                    "default": 5,
                },
                memory_types={
                    "type": "array",
                    "description": "Optional filter by type (episodic, semantic, procedural).",
                    "items": kinds,
                },
            ),
            returns=_RESULT,
            run=recall,
            read_only=True,
            idempotent=True,
        ),
        Definition(
            name="list_memories",
            title="List memories",
            description="List recent memories, optionally filtered by category or type.",
            parameters=arguments(
                category=text("Optional category filter.", most=200),
                limit={"type": "integer", "description": "Maximum number of results.", "default": 20},
                memory_type={
                    **kinds,
                    "description": "Optional filter by type (episodic, semantic, procedural).",
                },
            ),
            returns=_RESULT,
            run=listing,
            read_only=True,
            idempotent=True,
        ),
        _writer(
            "learn_procedure",
            "Learn a procedure",
            "Store a learned procedure, policy, or pattern for future reference.",
            "procedural",
            "Learned procedure",
        ),
        _writer(
            "record_episode",
            "Record an episode",
            "Record an episode: what happened during a task or interaction.",
            "episodic",
            "Recorded episode",
        ),
    )


def _writer(name: str, title: str, description: str, kind: str, label: str) -> Definition:
    """Return a tool that stores a text as an entry of a type. `label`: the beginning of its answer."""

    def run(tool_context: ToolContext, args: JSON) -> ToolResult:
        return _written(tool_context, args, kind, label)

    return Definition(
        name=name,
        title=title,
        description=description,
        parameters=arguments(
            "content",
            content=text("The text to keep.", least=1, most=_MAX_TEXT),
            category={**text("A word for what it is about.", most=200), "default": GENERAL},
        ),
        returns=_RESULT,
        run=run,
        side=frozenset(("category",)),
        idempotent=True,
    )


def _answer(message: str) -> ToolResult:
    return ToolResult(message, {"result": message})


def _written(tool_context: ToolContext, args: JSON, kind: str, label: str) -> ToolResult:
    category = category_form(args.get("category", GENERAL))
    written = write_entry(
        tool_context.there(args),
        PROGRAM,
        args["content"],
        type=TYPES[kind],
        category=category,
        source=f"{PROGRAM}:{kind}",
        fields={},
    )
    if not written.own:
        raise NotFoundError(f"{written.key} shows the text of another device")
    return _answer(f"{label} (id={_number(tool_context, args, written)}, category={category})")


def _number(tool_context: ToolContext, args: JSON, written: MemoryRecord) -> int:
    """Return the place of an entry by date, from 1; entries of one millisecond in the order in which they were written."""
    created, place = written.readable.created, 1
    for item in tool_context.memory.stack(tool_context.scope_of(args)).list():
        if not item.own or item.file.created > created:
            continue
        if item.file.created < created:
            place += 1
        elif item.key != written.key:
            other = tool_context.memory.scope(item.scope).read(item.key, counts=False)
            place += other is not None and other.hlc < written.hlc
    return place


def _recalled(tool_context: ToolContext, args: JSON, form: Form) -> str:
    memory, scope = tool_context.memory, tool_context.scope_of(args)
    kinds, limit = args.get("memory_types"), args.get("top_k", 5)
    if limit < 1:
        return texts.NOTHING_FOUND
    try:
        matches = memory.stack(scope).recall(args["query"], limit=MAX_HITS if kinds else min(limit, MAX_HITS))
    except UsageError:  # the query has no word
        return texts.NOTHING_FOUND if memory.stack(scope).list() else texts.NOTHING_STORED
    if not matches.searched:
        return texts.NOTHING_STORED
    hits = [hit for hit in matches.hits if hit.own and (not kinds or type_of(hit.file) in kinds)][:limit]
    readings = ((hit, memory.scope(hit.scope).read(hit.key, counts=False)) for hit in hits)
    entries = [
        _entry(one)._replace(score=min(1.0, hit.score / _MOST)) for hit, one in readings if one is not None
    ]
    return texts.recalled(form, entries)


def _listed(tool_context: ToolContext, args: JSON, form: Form) -> str:
    readings = own_readings(tool_context.memory, tool_context.scope_of(args))
    if not readings:
        return texts.NOTHING_STORED
    category, kind = args.get("category"), args.get("memory_type")
    category_wanted = None if category is None else category_form(category)
    entries = [
        one
        for one in readings
        if category_wanted in (None, category_of(one)) and (kind is None or type_of(one.readable) == kind)
    ]
    return texts.listed(form, map(_entry, entries[: max(0, args.get("limit", 20))]))


def _entry(reading: MemoryRecord) -> AnswerEntry:
    return AnswerEntry(
        reading.readable.body, category_of(reading), type_of(reading.readable), created_at(reading)
    )
