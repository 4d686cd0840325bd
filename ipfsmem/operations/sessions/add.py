"""The operation `sessions.add`: append messages to a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ipfsmem.errors import UsageError
from ipfsmem.operation import Except, View, operation
from ipfsmem.operations.sessions.stored import SessionName, add_items
from ipfsmem.sessions.compaction import MARK, is_mark


class SessionAdded(msgspec.Struct, frozen=True, kw_only=True):
    """Number of messages that were added at the end of a session."""

    session: str
    added: int


@operation(
    summary="Add messages to a session",
    right="write",
    about="target",
    raises=(
        "UsageError: the name is invalid, a message is not a JSON object, or one approves or imports messages.",
        "LimitError: a message is too long.",
    ),
    http="POST /v1/sessions/{session}/items",
    status=201,
)
def add(
    view: View,
    session: SessionName,
    items: Annotated[
        Iterable[Mapping[str, Any]],
        Meta(description="Messages: JSON objects in the form of the agent's program."),
        Except(("cli",)),
    ],
) -> SessionAdded:
    """Add messages to the end of a session: all of them, or none.

    They are durable when this returns. The first message creates the session.
    """
    messages = list(items)
    marks = [item[MARK] for item in messages if is_mark(item)]
    if any("approved" in mark for mark in marks):
        raise UsageError("an item that approves imported messages cannot be added: only a person approves")
    if any("imported" in mark for mark in marks):
        raise UsageError("an item that marks messages as imported cannot be added: only an import does that")
    view.opened.ingest_edits()
    add_items(view, session, messages)
    return SessionAdded(session=session, added=len(messages))
