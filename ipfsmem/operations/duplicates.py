"""The operation `duplicates`: memories with nearly the same content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.operation import Cli, Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.duplicates import Duplicate

LATE = {"Duplicate": "ipfsmem.memories.duplicates"}


class Duplicates(Items["Duplicate"], frozen=True, kw_only=True):
    """Pairs of similar memories. It is a sequence of its `duplicates`."""

    duplicates: tuple[Duplicate, ...]


@operation(
    summary="List similar memories",
    command="dream duplicates",
    right="read",
    about="stack",
    http="GET /v1/duplicates",
)
def duplicates(
    view: View,
    *,
    similarity: Annotated[
        float,
        Meta(ge=0.5, le=1, description="Minimum share of distinct words that both texts have in common."),
        Cli(metavar="SHARE"),
    ] = 0.8,
) -> Duplicates:
    """List pairs of similar memories; nothing is changed.

    Both texts have the same words, or one contains the other verbatim, or they share most of their
    words. If recall uses a model, pairs of similar meaning come last.
    """
    from ipfsmem.memories.duplicates import duplicates as pairs
    from ipfsmem.memories.memory_reader import listed

    view.opened.ingest_edits()
    sources = view.sources()
    return Duplicates(duplicates=tuple(pairs(sources, listed(sources), similarity)))
