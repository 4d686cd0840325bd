"""The operations `revision` and `restore`: an earlier text of a memory, read or written again."""

from __future__ import annotations

from hashlib import sha256 as digest_of
from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.memories.memory_records import MemoryRecord, Seen
from ipfsmem.operation import Cli, Http, Key, View, operation


class RevisionText(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier text of a memory. Bytes that are not UTF-8 are replaced."""

    key: str
    sha256: str
    text: str


@operation(
    summary="Read a revision of a memory",
    right="read",
    about="scope",
    raises=("NotFoundError: this device has no such text.", "UsageError: several texts match."),
    command="",
    http="GET /v1/memories/{key}/history/{sha256}",
)
def revision(
    view: View,
    key: Key,
    sha256: Annotated[str, Meta(description="Its SHA-256, or the first 8 or more digits.")],
) -> RevisionText:
    """Read an earlier text of a memory."""
    from ipfsmem.published.versions import find_text

    view.opened.ingest_file(key, view.scope)
    data = find_text(view.opened.memories.in_scope(view.scope), key, None, sha256).data
    return RevisionText(key=key, sha256=digest_of(data).hexdigest(), text=data.decode("utf-8", "replace"))


@operation(
    summary="Restore an earlier revision of a memory",
    right="write",
    about="scope",
    raises=(
        "NotFoundError: this device has no such text or version.",
        "UsageError: neither a version nor a SHA-256 was given, or several texts match.",
        "ChangedError: the current text is not the one that `seen` says; nothing was restored.",
    ),
    http="POST /v1/restore",
)
def restore(
    view: View,
    key: Key,
    *,
    root: Annotated[
        str | None,
        Meta(description="Version with the text: its address from `history`, or a prefix."),
        Cli(
            metavar="CID",
            help="Version with the text: its address from `ipfsmem history` or `ipfsmem vault log`.",
        ),
    ] = None,
    sha256: Annotated[
        str | None,
        Meta(description="SHA-256 of the text, or at least its first 8 digits."),
        Cli(name="text", metavar="SHA256", help="SHA-256 of the text, or at least its first 8 digits."),
    ] = None,
    seen: Annotated[
        Seen | None,
        Meta(
            description="Restore only if this reading, its `token` or its `seen` is current; empty: only if no text is shown."
        ),
        Http(type=str, shown=True),
        Cli(
            metavar="HASH",
            help="Hash of the text to replace, from `ipfsmem read --json`; refuse any other text.",
        ),
    ] = None,
) -> MemoryRecord:
    """Restore an earlier revision of a memory, in place of the current text or its deletion.

    `restore` is a write like any other: other devices get it with their next sync, and `undo` undoes it.
    """
    from ipfsmem.bundle.session_parts import is_part_key
    from ipfsmem.published.versions import find_text, pending_then

    opened, memories = view.opened, view.opened.memories.in_scope(view.scope)
    opened.ingest_file(key, view.scope)
    data, of = find_text(memories, key, root, sha256)
    pending = frozenset() if of or not is_part_key(key) else pending_then(memories, key, data)
    written = memories.restore(key, data, of, seen=seen, pending=pending)
    opened.render_file(key, view.scope)
    return written
