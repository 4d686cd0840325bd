"""The operation `sessions.status`: which sessions are compacted, and which could be."""

from __future__ import annotations

from ipfsmem.errors import StorageError
from ipfsmem.operation import Items, View, operation
from ipfsmem.operations.sessions.info import SessionInfo, info_of
from ipfsmem.operations.sessions.list import SessionProblem
from ipfsmem.operations.sessions.stored import sessions_of


class SessionStatus(Items[SessionInfo], frozen=True, kw_only=True):
    """The state of each session, last changed first. It is a sequence of its `sessions`. `problems`: damaged sessions,
    which are omitted."""

    sessions: tuple[SessionInfo, ...]
    problems: tuple[SessionProblem, ...]


@operation(
    summary="Show which sessions are compacted, or could be",
    right="read",
    about="target",
    raises=("NotFoundError: a part of a session is not on this device yet.",),
    http="GET /v1/status/sessions",
)
def status(view: View) -> SessionStatus:
    """List sessions with their number of messages, of summarised messages, and of messages that would be summarised.

    A damaged session is skipped with a warning.
    """
    view.opened.ingest_edits()
    sessions = sessions_of(view)
    infos, problems = [], []
    for facts in sessions.listing():
        try:
            info = info_of(sessions, facts.session)
        except StorageError as error:
            problems.append(SessionProblem.of(sessions, facts.session, error))
        else:
            infos += [] if info is None else [info]
    return SessionStatus(sessions=tuple(infos), problems=tuple(problems))
