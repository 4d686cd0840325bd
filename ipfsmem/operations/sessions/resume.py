"""The operation `sessions.resume`: the messages with which an agent continues."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.bundle.session_parts import MAX_NAME
from ipfsmem.operation import View, operation
from ipfsmem.operations.sessions.items import Last, SessionItems
from ipfsmem.operations.sessions.stored import sessions_of, told_if_there


@operation(
    summary="Get the messages to resume a session with",
    right="read",
    about="target",
    raises=(
        "NotFoundError: a part of the session is not on this device yet.",
        "StorageError: the session is damaged.",
    ),
    absent="there is no session {session}",
    http="GET /v1/sessions/{session}/resume",
)
def resume(
    view: View,
    session: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_NAME,
            description=f"Its name: 1 to {MAX_NAME} characters, no control characters; without one the session last written to.",
        ),
    ] = None,
    *,
    last: Last = None,
) -> SessionItems:
    """Return the last messages of a session, from the beginning of a turn on and without system instructions.

    The default number is the setting `sessions.resume` (20). If the session was compacted, the summary
    comes first. A notice precedes pending messages, that is, imported ones that nobody approved.
    """
    from ipfsmem.config import settings
    from ipfsmem.sessions.compaction import resumed

    view.opened.ingest_edits()
    sessions = sessions_of(view)
    name = next((one.session for one in sessions.listing()), "") if session is None else session
    if not name:
        return SessionItems(session="", items=[], seen="")
    seen = sessions.seen(name)  # before the read: later messages must not count as shown
    transcript = told_if_there(sessions, name)
    if transcript is None:
        return SessionItems(session=name, items=[], seen="")
    selection = resumed(transcript, settings().sessions.resume if last is None else last)
    return SessionItems(session=name, items=selection, seen=seen)
