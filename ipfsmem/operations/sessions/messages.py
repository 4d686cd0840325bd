"""The operation `sessions.messages`: the last messages of a session as people read them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.operation import ForModels, View, operation
from ipfsmem.operations.sessions.stored import MAX_PAGE, SessionName, sessions_of, told_if_there
from ipfsmem.sessions.compaction import PlacedItem, SessionTranscript
from ipfsmem.sessions.messages import read_message


class SessionMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a session as people read it, whatever program wrote it. `role`: `user`, `assistant`, `system` or
    `tool`; "" for an unknown form. `at`: milliseconds since 1970 UTC, by the clock of the device that added it. `tools`:
    names of the tools that it calls. `own`: false if it is pending, that is, imported and not approved."""

    role: str
    at: int
    text: str
    tools: tuple[str, ...]
    own: bool

    @classmethod
    def of(cls, entry: PlacedItem, session: SessionTranscript) -> SessionMessage:
        """Return a message of a session."""
        message = read_message(entry.item)
        return cls(
            role=message.role,
            at=entry.place[0],
            text=message.text,
            tools=message.tools,
            own=entry.place not in session.pending,
        )


class SessionMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a session as people read them; `before` counts the older ones. `summary`: replaces the older ones when
    the session is resumed; empty if it was not compacted. `summary_own`: false if the summary covers a pending message, or
    was imported and not approved. `seen` identifies the session's current contents."""

    session: str
    before: int
    messages: tuple[SessionMessage, ...]
    summary: str
    summary_own: bool
    seen: str


@operation(
    summary="Read the last messages of a session",
    right="read",
    about="target",
    raises=(
        "NotFoundError: a part of the session is not on this device yet.",
        "StorageError: the session is damaged.",
    ),
    absent="there is no session {session}",
    command="",
    http="GET /v1/sessions/{session}/messages",
    tool="read_session",
    title="Read a session",
    for_models="Return the last messages of a stored conversation, and the summary of the earlier ones.",
)
def messages(
    view: View,
    session: SessionName,
    *,
    last: Annotated[
        int,
        Meta(ge=1, le=MAX_PAGE, description="Maximum number of messages."),
        ForModels("Number of messages.", default=20, most=200),
    ] = 100,
) -> SessionMessages | None:
    """Return the last messages of a session as people read them.

    Whatever program wrote them, they have a role, a time and a text. Messages that a summary covers are among them.
    """
    view.opened.ingest_edits()
    sessions = sessions_of(view)
    seen = sessions.seen(session)  # before the read: later messages must not count as shown
    transcript = told_if_there(sessions, session)
    if transcript is None:
        return None
    shown = tuple(SessionMessage.of(entry, transcript) for entry in transcript.messages[-last:])
    return SessionMessages(
        session=session,
        before=len(transcript.messages) - len(shown),
        messages=shown,
        summary=transcript.summary.text if transcript.summary is not None else "",
        summary_own=not transcript.summary_pending,
        seen=seen,
    )
