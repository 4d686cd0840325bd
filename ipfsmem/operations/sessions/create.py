"""The operation `sessions.create`: create a session, with an optional title."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.bundle.session_parts import MAX_NAME
from ipfsmem.errors import UsageError
from ipfsmem.operation import View, operation
from ipfsmem.operations.sessions.stored import add_items, sessions_of
from ipfsmem.sessions.compaction import title_mark

#: Characters of a title.
MAX_TITLE = 200


class SessionBegun(msgspec.Struct, frozen=True, kw_only=True):
    """The created session, with its title in one line."""

    session: str
    title: str


@operation(
    summary="Create a session",
    right="write",
    about="target",
    raises=("UsageError: the name or the title is invalid, or a session of this name exists.",),
    http="POST /v1/sessions",
    status=201,
)
def create(
    view: View,
    session: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_NAME,
            description=f"Name: 1 to {MAX_NAME} characters, no control characters; default: 12 random hex digits.",
        ),
    ] = None,
    *,
    title: Annotated[str, Meta(max_length=MAX_TITLE, description="Title for people.")] = "",
) -> SessionBegun:
    """Create a session. The result is its name.

    A first message also creates a session, without a title.
    """
    name = view.opened.replica.environment.random(6).hex() if session is None else session
    line = " ".join(title.split())
    if not line.isprintable():
        raise UsageError("title has unprintable characters")
    view.opened.ingest_edits()
    if any(one.session == name for one in sessions_of(view).listing()):
        raise UsageError(f"session {name} already exists")
    add_items(view, name, [title_mark(line)])
    return SessionBegun(session=name, title=line)
