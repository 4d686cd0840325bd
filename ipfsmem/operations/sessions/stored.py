"""Shared code of the operations on sessions: the name of a session as an argument, and its messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from ipfsmem.bundle.session_parts import HISTORY, MAX_NAME
from ipfsmem.errors import UsageError
from ipfsmem.operation import ForModels, View
from ipfsmem.sessions.compaction import SessionTranscript, told

if TYPE_CHECKING:
    from ipfsmem.config import SessionSettings
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.memories.sessions_here import AllSessions

#: The name of a session; `bundle.session_parts.session_token` refuses other texts.
SessionName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_NAME,
        description=f"Its name: 1 to {MAX_NAME} characters, no control characters.",
    ),
    ForModels("Name of the session."),
]
#: Maximum number of sessions or messages of one answer.
MAX_PAGE = 1_000


def sessions_of(view: View) -> AllSessions:
    """Return the sessions of the scope of a call, and of scopes that redirect to it."""
    from ipfsmem.config import settings
    from ipfsmem.memories.sessions_here import AllSessions

    memories, *below = memories_of(view)
    return AllSessions(memories, below, here_only=settings().sessions.here_only)


def memories_of(view: View) -> list[MemoryStore]:
    """Return the memories of the scope of a call, then those of scopes that redirect to it."""
    return view.opened.memories.in_scope(view.target).stack()


def add_items(view: View, session: str, items: Iterable[Mapping[str, Any]]) -> None:
    """Add items to the end of a session. Raises UsageError, also for the history of a memory, which accepts no items, and
    LimitError."""
    check_conversation(session)
    for key in sessions_of(view).add(session, items):
        view.opened.render_file(key, view.target)


def to_cover(transcript: SessionTranscript, limits: SessionSettings, *, now: bool) -> int:
    """How many messages a summary would cover: `now`, or automatically."""
    from ipfsmem.memories.context import tokens_of
    from ipfsmem.sessions.compaction import what_to_cover

    return what_to_cover(
        transcript,
        messages=limits.compact_keep if now else limits.compact_at,
        keep=limits.compact_keep,
        tokens=0 if now else limits.compact_tokens,
        tokens_of=tokens_of,
    )


def check_conversation(session: str) -> None:
    """Raises UsageError for a session that holds the earlier texts of a memory: nobody writes them."""
    if session.startswith(HISTORY):
        raise UsageError(
            f"{session[:80]} contains the earlier texts of a memory and is not a conversation",
            hint=f"See them: ipfsmem fact history {session.removeprefix(HISTORY)[:64]}",
        )


def told_if_there(sessions: AllSessions, session: str) -> SessionTranscript | None:
    """All of a session, or None. The earlier texts of a memory are no conversation."""
    transcript = told(sessions.entries(session))
    if session.startswith(HISTORY):
        return None
    if not transcript.messages and all(one.session != session for one in sessions.listing()):
        return None
    return transcript
