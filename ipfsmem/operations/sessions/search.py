"""The operation `sessions.search`: search the messages of all sessions."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.errors import StorageError, UsageError
from ipfsmem.memories.query_words import MAX_QUERY
from ipfsmem.memories.session_search import SessionHit
from ipfsmem.operation import Cli, Except, Http, Items, View, operation
from ipfsmem.operations.sessions.list import SessionProblem
from ipfsmem.operations.sessions.stored import MAX_PAGE, sessions_of


class SessionHits(Items[SessionHit], frozen=True, kw_only=True):
    """Messages that match a question, best first. It is a sequence of its `hits`. `problems`: damaged sessions, which were not
    searched."""

    hits: tuple[SessionHit, ...]
    problems: tuple[SessionProblem, ...]


@operation(
    summary="Search the messages of all sessions",
    right="read",
    about="target",
    raises=(
        "UsageError: the question is empty, or the time zone is unknown.",
        "NotFoundError: a part of a session is not on this device yet.",
    ),
    audit="session search",
    http="POST /v1/sessions/search",
)
def search(
    view: View,
    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY, description="A question or a few words.")],
    *,
    limit: Annotated[
        int, Meta(ge=1, le=MAX_PAGE, description="Maximum number of results."), Cli(metavar="N")
    ] = 10,
    tz: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=64,
            description="Time zone of days in the question, such as America/Los_Angeles; default: that of the machine.",
        ),
        Http(query=True),
        Except(("cli",)),
    ] = None,
) -> SessionHits:
    """Find the messages of all sessions that match a question, best first, including those that a summary covers.

    Days in the question, such as "yesterday", match the dates of messages. A damaged session is skipped
    with a warning.
    """
    from ipfsmem.memories.session_search import search as found_in
    from ipfsmem.wording import zone_of

    if not query.strip():
        raise UsageError("the question is empty")
    zone = None if tz is None else zone_of(tz)
    view.opened.ingest_edits()
    sessions, entries, problems = sessions_of(view), {}, []
    for facts in sessions.listing():
        try:
            entries[facts.session] = sessions.entries(facts.session)
        except StorageError as error:
            problems.append(SessionProblem.of(sessions, facts.session, error))
    hits = found_in(entries, query, limit, view.opened.replica.environment.today(zone), zone)
    return SessionHits(hits=tuple(hits), problems=tuple(problems))
