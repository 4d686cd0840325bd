"""The operation `sessions.export`: all messages of a session as a file."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ipfsmem.operation import Document, Except, Http, View, operation
from ipfsmem.operations.sessions.stored import SessionName, sessions_of, told_if_there


class SessionExport(Document, frozen=True, kw_only=True):
    """All messages of a session as a text: Markdown for people, or the JSON list that `sessions.add` accepts."""

    format: Literal["markdown", "json"]
    session: str


@operation(
    summary="Export a session as Markdown or JSON",
    right="read",
    about="target",
    raises=(
        "NotFoundError: a part of the session is not on this device yet.",
        "StorageError: the session is damaged.",
    ),
    absent="there is no session {session}",
    http="GET /v1/sessions/{session}/export",
)
def export(
    view: View,
    session: SessionName,
    *,
    format: Annotated[
        Literal["markdown", "json"],
        Meta(description="markdown: a page for people. json: the list of messages that can be added again."),
    ] = "markdown",
    tz: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=64,
            description="Time zone of the times in Markdown, such as America/Los_Angeles; that of the machine without one.",
        ),
        Http(default="UTC"),
        Except(("cli",)),
    ] = None,
) -> SessionExport | None:
    """Return all messages of a session as Markdown or as a JSON list.

    The output is unencrypted, also for an encrypted vault.

    Fails if the session does not exist (in Python: returns None).
    """
    from ipfsmem.sessions.compaction import marked
    from ipfsmem.sessions.transcript import as_markdown
    from ipfsmem.wording import local_moment, moment, zone_of

    show_time = local_moment if tz is None else functools.partial(moment, zone=zone_of(tz))
    view.opened.ingest_edits()
    transcript = told_if_there(sessions_of(view), session)
    if transcript is None:
        return None
    if format == "json":
        text = msgspec.json.encode(marked(transcript)).decode()
    else:
        text = as_markdown(transcript, show_time)
        text = text.encode("utf-8", "replace").decode()
    return SessionExport(session=session, format=format, text=text)
