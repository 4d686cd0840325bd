"""The operation `sessions.pop`: remove the last message of a session."""

from __future__ import annotations

from typing import Any

import msgspec

from ipfsmem.operation import View, operation
from ipfsmem.operations.sessions.stored import SessionName, check_conversation, sessions_of


class SessionPopped(msgspec.Struct, frozen=True, kw_only=True):
    """The removed message; None, and false, if the session has none."""

    session: str
    item: dict[str, Any] | None

    def __bool__(self) -> bool:
        return self.item is not None


@operation(
    summary="Remove the last message of a session",
    right="write",
    about="target",
    raises=(
        "UsageError: the name is invalid.",
        "NotFoundError: a part of the session is not on this device yet.",
    ),
    command="",
    destructive=True,
)
def pop(view: View, session: SessionName) -> SessionPopped:
    """Remove the last message of a session, on every device, and return it."""
    check_conversation(session)
    view.opened.ingest_edits()
    item, changed = sessions_of(view).pop(session)
    for part in changed:
        view.opened.render_file(part.key, part.scope)
    return SessionPopped(session=session, item=item)
