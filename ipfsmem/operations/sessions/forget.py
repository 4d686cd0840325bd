"""The operation `sessions.forget`: remove a session with every message, on every device."""

from __future__ import annotations

import contextlib
from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.errors import StorageError
from ipfsmem.operation import Except, Http, Reason, View, check_reason, operation
from ipfsmem.operations.sessions.stored import SessionName, sessions_of, told_if_there


class SessionForgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `forget`; false if the session did not exist. `messages`: number of its messages; None if it was
    damaged. Other devices forget it with their next sync."""

    session: str
    messages: int | None
    forgotten: bool

    def __bool__(self) -> bool:
        return self.forgotten


@operation(
    summary="Forget a session on every device",
    right="write",
    about="target",
    raises=(
        "ChangedError: the session is not as `seen` says; nothing was forgotten.",
        "NotFoundError: a part of the session is not on this device yet; nothing was forgotten.",
        "UsageError: the name is invalid, or `reason` cannot be recorded; nothing was forgotten.",
    ),
    absent="there is no session {session}",
    audit="session delete",
    command="session delete",
    http="DELETE /v1/sessions/{session}",
    destructive=True,
)
def forget(
    view: View,
    session: SessionName,
    *,
    reason: Reason = "",
    seen: Annotated[
        str | None,
        Meta(description="Forget the session only if this `seen` is current."),
        Http(etag=True),
        Except(("cli",)),
    ] = None,
) -> SessionForgotten:
    """Forget a session with every message, on every device.

    An event of the timeline records it. Messages that another device adds concurrently start a new
    session of that name.
    """
    check_reason(reason)  # it is recorded after the session is gone
    opened, sessions = view.opened, sessions_of(view)
    opened.ingest_edits()
    messages: int | None = None
    with contextlib.suppress(StorageError):  # one that is damaged can be forgotten too
        transcript = told_if_there(sessions, session)
        if transcript is None:
            return SessionForgotten(session=session, messages=0, forgotten=False)
        messages = len(transcript.messages)
    gone = sessions.forget(session, reason, seen)
    for part in gone.parts:
        if opened.files is not None:
            opened.files.forget(part.key, part.scope)
    if opened.mode.only_here:
        from ipfsmem.memories.purge import erase

        for scope in {part.scope for part in gone.parts}:
            keys = [part.key for part in gone.parts if part.scope == scope]
            erase(opened.replica, opened.memories.in_scope(scope), keys, f"the session {session}")
    if gone.any:
        from ipfsmem.memories.kept_vectors import erase_forgotten

        erase_forgotten(opened.memories)
        opened.changed()
    return SessionForgotten(session=session, messages=messages if gone.any else 0, forgotten=gone.any)
