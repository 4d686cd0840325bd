"""The operation `promote`: move or copy a person's own text from one scope to another."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.bundle.keys import check_scope
from ipfsmem.memories.memory_records import MemoryRecord, Seen
from ipfsmem.operation import Except, Http, Key, View, operation


@operation(
    summary="Move your own text from one scope to another",
    command="",
    right="write",
    about="scope",
    raises=(
        "NotFoundError: there is no such memory in the scope.",
        "ChangedError: the memory is not as `seen` says, or the other scope has a text that `if_match` does not name; nothing was moved.",
        "UsageError: the text is pending, has conflicts, is a part of a session, or is in that scope already.",
        "KeyNameError: `key` or `to` is invalid.",
    ),
    http="POST /v1/memories/{key}/promote",
)
def promote(
    view: View,
    key: Key,
    *,
    to: Annotated[
        str,
        Meta(max_length=200, description="The scope to move it to; empty: the default scope."),
        Http(reaches="named"),
    ],
    seen: Annotated[
        Seen | None,
        Meta(description="Move only this text: a MemoryRecord, its `token` or its `seen`."),
        Http(etag=True),
        Except(("cli",)),
    ] = None,
    if_match: Annotated[
        str | None,
        Meta(description="Replace the text there only if it has this SHA-256."),
    ] = None,
    keep: Annotated[bool, Meta(description="Copy it instead of moving it.")] = False,
) -> MemoryRecord:
    """Move your own text from one scope to another, and return the text that is there now.

    It replaces a text there only if `if_match` names that one. Its earlier texts move too, unless it is copied.
    """
    from ipfsmem.memories.promoting import promote_to

    opened = view.opened
    there = opened.scopes.target(check_scope(to) if to else "")
    for scope in (view.scope, there):
        opened.ingest_file(key, scope)
    memories = opened.memories
    record = promote_to(
        memories.in_scope(view.scope), memories.in_scope(there), key, seen=seen, if_match=if_match, keep=keep
    )
    if not keep and opened.files is not None:
        opened.files.forget(key, view.scope)
    opened.render_file(key, there)
    return record
