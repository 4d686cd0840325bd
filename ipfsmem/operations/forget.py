"""The operation `forget`: remove a memory on every device."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.memories.memory_records import Seen
from ipfsmem.operation import Cli, Except, Http, Key, Reason, View, check_reason, operation


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `forget`; false if the memory did not exist. Other devices forget it with their next sync."""

    key: str
    scope: str
    forgotten: bool

    def __bool__(self) -> bool:
        return self.forgotten


@operation(
    summary="Forget a memory on every device",
    right="write",
    about="scope",
    raises=(
        "ChangedError: the memory is not as `seen` or `if_match` says; nothing was forgotten.",
        "KeyNameError: `key` is invalid.",
        "UsageError: `reason` cannot be recorded; nothing was forgotten.",
    ),
    absent="there is no memory {key}",
    http="DELETE /v1/memories/{key}",
    tool="forget",
    title="Forget a memory",
    for_models="Delete one memory on every device, when the person asks or it is plainly wrong. Without confirm, only show it. confirm "
    "is the seen value of an answer that showed all of it.",
    destructive=True,
)
def forget(
    view: View,
    key: Key,
    *,
    reason: Reason = "",
    seen: Annotated[
        Seen | None,
        Meta(
            description="Forget only this text: a MemoryRecord, its `token` or its `seen`; its other texts stay as conflicts."
        ),
        Http(etag=True),
        Except(("cli", "mcp")),
    ] = None,
    if_match: Annotated[
        str | None,
        Meta(
            description="Forget only if the text has this SHA-256; empty: only if no text is shown, which forgets its earlier texts."
        ),
        Cli(metavar="SHA256", help="Forget only if the text has this SHA-256."),
        Except(("http", "mcp")),
    ] = None,
    keep_earlier: Annotated[
        bool,
        Meta(description="Keep the earlier texts of a fact, so that it can be restored."),
        Except(("cli", "http", "mcp")),
    ] = False,
) -> Forgotten:
    """Forget a memory on every device, including concurrent edits.

    An event of the timeline records it. The earlier texts of a fact are forgotten too. Published versions
    contain the text, encrypted, until they are deleted. In mode ipfs, published data stays public.
    """
    from ipfsmem.operations.forgetting import forget_text

    check_reason(reason)  # it is recorded after the memory is gone
    gone = forget_text(
        view.opened, view.scope, key, reason=reason, seen=seen, if_match=if_match, keep_earlier=keep_earlier
    )
    return Forgotten(key=key, scope=gone[0] if gone else view.scope, forgotten=bool(gone))
