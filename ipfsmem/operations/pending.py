"""The operation `pending`: the texts of others that a person can approve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.operation import Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.candidates import PendingText

LATE = {"PendingText": "ipfsmem.memories.candidates"}


class PendingTexts(Items["PendingText"], frozen=True, kw_only=True):
    """Texts of others by key, then sessions with pending messages. It is a sequence of its `pending`."""

    pending: tuple[PendingText, ...]


@operation(
    summary="List the pending texts",
    command="",
    right="read",
    about="scope",
)
def pending(
    view: View,
    source: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=64,
            description="Only what an import of this program brought: texts on this device, messages on any.",
        ),
    ] = None,
) -> PendingTexts:
    """List the texts of others that `approve` can make your own, and the sessions with pending messages."""
    from ipfsmem.exchange.taken_before import ImportedTexts
    from ipfsmem.memories.candidates import candidates

    view.opened.ingest_edits()
    memories = view.opened.memories.in_scope(view.scope)
    imported = None if source is None else ImportedTexts(memories.replica).of_program(source)
    return PendingTexts(pending=candidates(memories, imported, source))
