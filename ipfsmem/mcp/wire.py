"""Tools and their answers in the form of the protocol. Pure functions on values.

The text of an answer is for the model: every text that others can write is quoted in it. Some programs give their model the
structured form instead and drop the text, so that form is offered only on request, and has the same text and no unquoted one.
"""

from __future__ import annotations

from typing import Any, Final

from ipfsmem.bundle.fence import attribute, quote
from ipfsmem.tools.schema import JSON, published
from ipfsmem.tools.tool import Tool, ToolResult

#: The field of a structured answer with its text.
ANSWER: Final = "answer"
#: Fields with lines of text that others can write, and those with a word or a title.
_LINES: Final = frozenset(["body", "text", "value", "summary", "context", "was"])
_WORDS: Final = frozenset(
    [
        "name",
        "description",
        "title",
        "updated",
        "preview",
        "source",
        "member",
        "by",
        "category",
        "from",
        "to",
        "type",
        "relationType",
        "entityType",
        "observations",
        "tags",
        "role",
        "tools",
        "session",
        "detail",
        "why",
    ]
)


def tool(one: Tool, *, structured: bool) -> JSON:
    """Return a tool of `tools/list`."""
    definition: JSON = {
        "name": one.name,
        "title": one.title,
        "description": one.description,
        "inputSchema": published(one.parameters),
        "annotations": {
            "readOnlyHint": one.read_only,
            "destructiveHint": one.destructive,
            "idempotentHint": one.idempotent,
            "openWorldHint": False,
        },
    }
    if structured:
        definition["outputSchema"] = {
            **one.returns,
            "properties": {ANSWER: {"type": "string"}, **one.returns["properties"]},
            "required": [ANSWER, *one.returns["required"]],
        }
    return definition


def result(one: ToolResult, *, structured: bool) -> JSON:
    """Return an answer of `tools/call`."""
    answer: JSON = {"content": [{"type": "text", "text": one.text}], "isError": one.is_error}
    if structured:
        answer["structuredContent"] = {ANSWER: one.text, **_fenced(one.structured)}
    return answer


def _fenced(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        # A proposed change has texts in `before` and `after`; elsewhere these are a count and a key.
        is_change = "gone" in value
        return {
            key: _fenced(each, "text" if is_change and key in ("before", "after") else key)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_fenced(each, name) for each in value]
    if isinstance(value, str) and name in _LINES:
        return quote(value)
    if isinstance(value, str) and name in _WORDS:
        return attribute(value)
    return value
