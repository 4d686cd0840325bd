"""Tools and their answers as the protocol writes them. Pure functions on values.

The text of an answer is what a model is to see: everything that somebody wrote stands quoted in it. Some programs give their model the
structured form instead and drop the text, so that form is offered only on request, and holds the same text and no unquoted one.
"""

from __future__ import annotations

from typing import Any, Final

from ipfsmem.bundle.fence import attribute, quote
from ipfsmem.tools.schema import JSON, published
from ipfsmem.tools.tool import Tool, ToolResult

#: The value of a structured answer that holds its text.
ANSWER: Final = "answer"
#: Values in which somebody wrote lines of text, and those in which somebody wrote a word or a title.
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
    """A tool of `tools/list`."""
    told: JSON = {
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
        told["outputSchema"] = {
            **one.returns,
            "properties": {ANSWER: {"type": "string"}, **one.returns["properties"]},
            "required": [ANSWER, *one.returns["required"]],
        }
    return told


def result(one: ToolResult, *, structured: bool) -> JSON:
    """An answer of `tools/call`."""
    told: JSON = {"content": [{"type": "text", "text": one.text}], "isError": one.is_error}
    if structured:
        told["structuredContent"] = {ANSWER: one.text, **_fenced(one.structured)}
    return told


def _fenced(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        # A proposed change has a text before and one after; elsewhere these are a count and a key.
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
