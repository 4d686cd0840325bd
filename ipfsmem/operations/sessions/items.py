"""The operation `sessions.items`: the messages of a session as they were added."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ipfsmem.operation import Cli, View, operation
from ipfsmem.operations.sessions.stored import SessionName, sessions_of, told_if_there

#: The last messages of a session.
Last = Annotated[
    int | None, Meta(ge=1, le=100_000, description="Maximum number of messages."), Cli(metavar="N")
]


class SessionItems(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a session as they were added, in order. `seen` identifies the session's current contents; "" if the
    session does not exist, and then this is false."""

    session: str
    items: list[dict[str, Any]]
    seen: str

    def __bool__(self) -> bool:
        return bool(self.seen)


@operation(
    summary="List the messages of a session as added",
    right="read",
    about="target",
    raises=(
        "NotFoundError: a part of the session is not on this device yet.",
        "StorageError: the session is damaged.",
    ),
    absent="there is no session {session}",
    command="",
    http="GET /v1/sessions/{session}/items",
)
def items(view: View, session: SessionName, *, last: Last = None) -> SessionItems:
    """Return the messages of a session in the order in which they were added on all devices.

    A pending message, that is, an imported one that nobody approved, has `"own": false`.
    """
    from ipfsmem.sessions.compaction import marked

    view.opened.ingest_edits()
    sessions = sessions_of(view)
    seen = sessions.seen(session)  # before the read: later messages must not count as shown
    transcript = told_if_there(sessions, session)
    if transcript is None:
        return SessionItems(session=session, items=[], seen="")
    return SessionItems(session=session, items=marked(transcript, last), seen=seen)
