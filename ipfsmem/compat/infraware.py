"""Infraware's memory tools: `save_memory` and `save_session_context`, with its arguments and answers.

Each fact is a memory of its own; none is evicted. Facts of a session are kept until the connection ends.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipfsmem.compat.entries import write_entry
from ipfsmem.facts.categories import CLOSED, MAX_FACT, sanitised
from ipfsmem.tools.definition import Definition
from ipfsmem.tools.schema import JSON, answer, arguments, choice, text
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import ToolContext

PROGRAM: Final = "infraware"
SESSION_CATEGORIES: Final = ("host_info", "environment", "working_directory", "service_state", "discovery")
_RESULT: Final = answer(saved={"type": "boolean"}, message={"type": "string"})


def _save(tool_context: ToolContext, args: JSON) -> ToolResult:
    fact, category = sanitised(args["fact"]), args["category"]
    if not fact:
        return _saved(False, "Empty fact, nothing saved")
    write_entry(
        tool_context.there(args),
        PROGRAM,
        fact,
        type=CLOSED[category],
        category=category,
        source=PROGRAM,
        fields={},
    )
    return _saved(True, f"Remembered: {fact}")


def _save_session(tool_context: ToolContext, args: JSON) -> ToolResult:
    fact = sanitised(args["fact"])
    if not fact:
        return _saved(False, "Empty fact, nothing saved")
    if (args["category"], fact) not in tool_context.session.facts:
        tool_context.session.facts.append((args["category"], fact))
    return _saved(True, f"Session context saved: {fact}")


def _saved(saved: bool, message: str) -> ToolResult:
    """Return the answer, which its own program passes to the model as JSON too."""
    values = {"saved": saved, "message": message}
    return ToolResult(msgspec.json.encode(values).decode(), values)


TOOLS: Final = (
    Definition(
        name="save_memory",
        title="Save a fact",
        description=(
            "Save a lasting fact about the user. Use it when the user says remember or always, states a personal fact or a team "
            "convention, establishes a workflow, or sets a restriction. Never for file paths, transient talk, summaries of work, "
            "or what is only relevant in this session."
        ),
        parameters=arguments(
            "fact",
            "category",
            fact=text("The fact, in one sentence.", most=MAX_FACT),
            category=choice("What kind of fact.", tuple(CLOSED)),
        ),
        returns=_RESULT,
        run=_save,
        idempotent=True,
    ),
    Definition(
        name="save_session_context",
        title="Save a fact of this session",
        description=(
            "Save a fact discovered in this session: about the host, its environment, a service's state, the file system. Not "
            "preferences (save_memory), not output that changes at once, not what is there already."
        ),
        parameters=arguments(
            "fact",
            "category",
            fact=text("The fact, in one sentence.", most=MAX_FACT),
            category=choice("What kind of fact.", SESSION_CATEGORIES),
        ),
        returns=_RESULT,
        run=_save_session,
        idempotent=True,
    ),
)
