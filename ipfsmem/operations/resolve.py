"""The operation `resolve`: replace all texts of a conflict with one."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.memory_records import SEEN_LEAST, MemoryRecord, Seen
from ipfsmem.operation import Cli, Except, Http, Key, Stored, View, operation


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `resolve`. `shown` None: the memory stays forgotten. `replaced`: names of the replaced alternatives."""

    key: str
    scope: str
    shown: MemoryRecord | None
    replaced: tuple[str, ...]


@operation(
    summary="Resolve a conflict",
    right="write",
    about="scope",
    raises=(
        "ChangedError: the conflict changed since `seen`; nothing was replaced.",
        "NotFoundError: there is no such conflict, no such alternative, or no text to keep.",
        "UsageError: not exactly one of `text`, `keep` and `alternative` was given, or `text` is empty.",
    ),
    http="POST /v1/memories/{key}/resolve",
    destructive=True,
)
def resolve(
    view: View,
    key: Key,
    text: Annotated[
        bytes | str | None,
        Stored(),
        Meta(description="The whole text that replaces them, header and all."),
        Http(type=str),
        Except(("cli",)),
    ] = None,
    *,
    seen: Annotated[
        Seen,
        Meta(
            description="The conflict that you looked at: an item of `conflicts`, its `token` or its `seen`."
        ),
        Http(type=str, etag=True),
        Cli(metavar="HASH", help="Hash of the texts that you saw, from `ipfsmem conflicts KEY`."),
    ],
    keep: Annotated[bool, Meta(description="Keep the current text, or the deletion.")] = False,
    alternative: Annotated[
        str | None,
        Meta(min_length=1, max_length=100, description="Keep this alternative: its name from `conflicts`."),
        Cli(metavar="FILE", help="Keep this alternative: its name from `ipfsmem conflicts`."),
    ] = None,
) -> Resolved:
    """Resolve the conflict of a memory: the chosen text replaces the texts that you saw, on every device.

    If another text has arrived since, `seen` is out of date, and nothing changes.
    """
    if sum((keep, alternative is not None, text is not None)) != 1:
        raise UsageError("give exactly one of keep, alternative and text")
    data = text.encode() if isinstance(text, str) else text
    if data is not None and not data.strip():
        raise UsageError("the text is empty, so nothing was replaced")
    opened, scope = view.opened, view.scope
    opened.ingest_file(key, scope)
    memories = opened.memories.in_scope(scope)
    item = next(iter(memories.conflicts(key)), None)
    if item is None and isinstance(seen, str):
        raise NotFoundError(f"{key} has no conflict", hint="List all: ipfsmem conflicts.")
    if item is not None and isinstance(seen, str):
        if len(seen) < SEEN_LEAST or not item.seen.startswith(seen.lower()):
            raise ChangedError(
                f"{key} changed since it was read; nothing was replaced",
                hint=f"See it first: ipfsmem conflicts {key}",
            )
        seen = item
    if alternative is not None:
        data = memories.read_conflict(key, alternative).data
    shown = memories.resolve(key, data, seen)
    unresolved = {file for one in memories.conflicts(key) for file in one.files}
    opened.render_file(key, scope)
    replaced = tuple(file for file in (item.files if item is not None else ()) if file not in unresolved)
    return Resolved(key=key, scope=scope, shown=shown, replaced=replaced)
