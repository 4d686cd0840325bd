"""The operation `sessions.list`: the sessions with title, size and the beginning of the last message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.errors import StorageError
from ipfsmem.operation import Cli, Except, ForModels, Http, Items, View, operation
from ipfsmem.operations.sessions.stored import MAX_PAGE, sessions_of
from ipfsmem.sessions.compaction import SessionTranscript, told
from ipfsmem.sessions.transcript import preview_of, title_of

if TYPE_CHECKING:
    from ipfsmem.memories.session_reader import SessionFacts
    from ipfsmem.memories.sessions_here import AllSessions


class SessionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One session in a list. `changed`: time of the last write. `preview`: beginning of the last message. `here`: whether
    it is stored, wholly or partly, on this device only. `own`: false if a message is pending, that is, imported and not
    approved."""

    session: str
    scope: str
    title: str
    preview: str
    messages: int
    changed: int
    here: bool
    own: bool

    @classmethod
    def of(cls, facts: SessionFacts, session: SessionTranscript) -> SessionLine:
        """Return the list entry of a session."""
        return cls(
            session=facts.session,
            scope=facts.scope,
            title=title_of(session),
            preview=preview_of(session),
            messages=len(session.messages),
            changed=facts.changed,
            here=facts.here,
            own=not session.pending,
        )


class SessionProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A damaged session, with the reason and the next step. `seen` in quotes is the ETag to forget it with."""

    session: str
    detail: str
    hint: str
    seen: str

    @classmethod
    def of(cls, sessions: AllSessions, session: str, error: StorageError) -> SessionProblem:
        """Return the problem of a session."""
        return cls(session=session, detail=str(error), hint=error.hint, seen=sessions.seen(session))


class SessionPage(Items[SessionLine], frozen=True, kw_only=True):
    """Sessions, last changed first. It is a sequence of its `sessions`. `older`: number of omitted sessions. `problems`:
    damaged sessions, which are omitted."""

    sessions: tuple[SessionLine, ...]
    older: int
    problems: tuple[SessionProblem, ...]


@operation(
    summary="List the sessions",
    right="read",
    about="target",
    raises=("NotFoundError: a part of a session is not on this device yet.",),
    http="GET /v1/sessions",
    tool="list_sessions",
    title="List sessions",
    for_models="List stored conversations, the latest first. To search their messages, use recall with kind=message.",
)
def list_(
    view: View,
    *,
    limit: Annotated[
        int | None,
        Meta(ge=1, le=MAX_PAGE, description="Maximum number of results."),
        Cli(metavar="N"),
        ForModels(default=20, most=100),
    ] = None,
    all: Annotated[
        bool,
        Meta(description="Include sessions beyond `sessions.shown`."),
        Http(default=False),
        Except(("mcp",)),
    ] = True,
) -> SessionPage:
    """List sessions, last changed first.

    Each has its title, its number of messages and the beginning of the last one. Without `all`, only
    the newest sessions are listed, as many as the setting `sessions.shown` (10). A damaged session is
    skipped with a warning.
    """
    view.opened.ingest_edits()
    sessions = sessions_of(view)
    rows = sessions.listing()
    if limit is None and not all:
        from ipfsmem.config import settings

        limit = settings().sessions.shown
    lines, problems = [], []
    for facts in rows[:limit]:
        try:
            lines.append(SessionLine.of(facts, told(sessions.entries(facts.session))))
        except StorageError as error:
            problems.append(SessionProblem.of(sessions, facts.session, error))
    older = len(rows) - len(lines) - len(problems)
    return SessionPage(sessions=tuple(lines), older=older, problems=tuple(problems))
