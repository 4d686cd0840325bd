"""The operation `sessions.compact`: replace the older messages of a session with a summary when it is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.bundle.session_parts import MAX_NAME
from ipfsmem.errors import NotFoundError, StorageError
from ipfsmem.operation import Cli, Except, Http, Items, View, operation
from ipfsmem.operations.sessions.list import SessionProblem
from ipfsmem.operations.sessions.stored import add_items, sessions_of, to_cover, told_if_there
from ipfsmem.sessions.compaction import SessionTranscript, Summariser, extract, summarised, summary_mark

if TYPE_CHECKING:
    from ipfsmem.config import SessionSettings

#: The author of a summary that no model wrote.
_BY_SENTENCES = "choosing its sentences"


class SessionCompacted(msgspec.Struct, frozen=True, kw_only=True):
    """The number of messages that the summary of a session covers in addition."""

    session: str
    covered: int


class SessionsCompacted(Items[SessionCompacted], frozen=True, kw_only=True):
    """The result for each session. It is a sequence of its `sessions`. `problems`: damaged sessions, which are omitted."""

    sessions: tuple[SessionCompacted, ...]
    problems: tuple[SessionProblem, ...]


@operation(
    summary="Summarise the older messages of a session",
    right="write",
    about="target",
    raises=(
        "NotFoundError: there is no such session, or a part is not on this device yet.",
        "StorageError: the named session is damaged.",
        "ConfigError: a model is asked for, and the settings name none.",
    ),
    http="POST /v1/sessions/{session}/compact",
    waits=True,
)
def compact(
    view: View,
    session: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_NAME,
            description=f"Its name: 1 to {MAX_NAME} characters, no control characters; without one all sessions.",
        ),
        Cli(help="Its name: all but its last messages are covered, however short it is."),
    ] = None,
    *,
    now: Annotated[
        bool,
        Meta(
            description="Cover all but the last messages, however short the session is; otherwise only a session that is longer than the settings allow is compacted."
        ),
        Http(query=True),
        Except(("cli",)),
    ] = False,
    model: Annotated[
        bool,
        Meta(description="Let the model of the settings write the summary; it receives the messages."),
        Except(("http", "mcp")),
    ] = False,
    summarise: Annotated[
        Summariser | None,
        Meta(
            description="A function that receives the messages and the maximum number of characters, and returns the summary."
        ),
        Except(("cli", "http", "mcp")),
    ] = None,
    by: Annotated[
        str,
        Meta(max_length=200, description="The name of `summarise`."),
        Except(("cli", "http", "mcp")),
    ] = "a summariser",
) -> SessionsCompacted:
    """Summarise the older messages of a session: `resume` then returns the summary instead of them.

    Nothing is deleted: export and search have every message. Without a model the summary consists of
    sentences of the session. If no summary can be made, the session does not change.
    """
    from ipfsmem.config import settings

    limits, opened, compacted, problems = settings().sessions, view.opened, [], []
    if model:
        from ipfsmem.operations.sessions.summaries import ModelSummariser

        summarise = ModelSummariser()
        by = summarise.name
    with opened.lock:
        opened.ingest_edits()
        sessions = sessions_of(view)
        names = [one.session for one in sessions.listing()] if session is None else [session]
    for name in names:
        try:
            with opened.lock:
                transcript = told_if_there(sessions, name)
            if transcript is not None:
                number = _compact(view, name, transcript, limits, now, summarise, by)
                compacted.append(SessionCompacted(session=name, covered=number))
        except StorageError as error:
            if session is not None:
                raise
            problems.append(SessionProblem.of(sessions, name, error))
    if session is not None and not compacted:
        raise NotFoundError(
            f"there is no session {session}", hint="List the sessions: ipfsmem session list --all"
        )
    return SessionsCompacted(sessions=tuple(compacted), problems=tuple(problems))


def _compact(
    view: View,
    session: str,
    transcript: SessionTranscript,
    limits: SessionSettings,
    now: bool,
    summarise: Summariser | None,
    by: str,
) -> int:
    """Add a summary that covers more messages, and return how many more."""
    number = to_cover(transcript, limits, now=now)
    if not number:
        return 0
    try:
        if summarise is None:
            summary = summarised(transcript, number, extract, _BY_SENTENCES, limits.summary)
        else:
            summary = summarised(transcript, number, summarise, by, limits.summary)
    finally:
        _note_use(view, summarise)
    with view.opened.lock:
        view.opened.refuse_closed("compact")
        add_items(view, session, [summary_mark(summary)])
    return number


def _note_use(view: View, summarise: Summariser | None) -> None:
    """Record the use of a model for a summary."""
    from ipfsmem.operations.sessions.summaries import ModelSummariser
    from ipfsmem.operations.usage.recording import note_model_use

    if isinstance(summarise, ModelSummariser) and summarise.given + summarise.said:
        tokens_in, tokens_out = summarise.given, summarise.said
        summarise.given = summarise.said = 0
        with view.opened.lock:
            note_model_use(view.opened, view.target, "compact", summarise.name, tokens_in, tokens_out)
