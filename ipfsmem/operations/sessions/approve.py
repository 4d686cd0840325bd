"""The operation `sessions.approve`: release the imported messages of a session to agents."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.errors import NotFoundError
from ipfsmem.operation import Except, Http, View, operation
from ipfsmem.operations.sessions.stored import SessionName, memories_of


class SessionApproved(msgspec.Struct, frozen=True, kw_only=True):
    """The session whose imported messages were approved, and how many messages that were."""

    session: str
    messages: int


@operation(
    summary="Approve the imported messages of a session",
    right="admin",
    about="target",
    raises=(
        "NotFoundError: the session has no pending message, or a part is not on this device yet.",
        "ChangedError: the session is not as `seen` says; nothing was approved.",
    ),
    audit="promote",
    command="",
    http="POST /v1/sessions/{session}/approve",
)
def approve(
    view: View,
    session: SessionName,
    *,
    seen: Annotated[
        str | None,
        Meta(description="Approve them only if the session still has this `seen` value."),
        Http(etag=True),
        Except(("cli",)),
    ] = None,
) -> SessionApproved:
    """Approve the pending messages of a session, that is, the imported ones, whichever program they came from.

    Read the messages first: agents receive approved messages, so a person decides, not a model.
    """
    from ipfsmem.memories.candidates import promote_session

    view.opened.scan()
    approved = promote_session(memories_of(view), session, seen)
    if not approved:
        raise NotFoundError(
            f"no pending messages in a session {session[:60]!a}",
            hint="List pending texts: ipfsmem approve --list",
        )
    view.opened.changed()
    return SessionApproved(session=session, messages=sum(one.messages for one in approved))
