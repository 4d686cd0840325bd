"""The operation `facts.list`: facts, procedures and episodes, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.operation import Category, Cli, Except, ForModels, Http, Items, View, operation
from ipfsmem.operations.facts.stored import OfKind, facts_of

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Fact

LATE = {"Fact": "ipfsmem.memories.facts"}

#: Maximum number of facts of one page.
MAX_PAGE = 1_000


class FactPage(Items["Fact"], frozen=True, kw_only=True):
    """All entries that match, or a page of them, newest first. It is a sequence of its `facts`."""

    facts: tuple[Fact, ...]
    #: The `cursor` of the next page; None after the last page.
    next: str | None


@operation(
    summary="List facts",
    right="read",
    about="target",
    http="GET /v1/facts",
    tool="list_facts",
    title="List facts",
    for_models="List facts, procedures and episodes, newest first, each with its seen value.",
)
def list_(
    view: View,
    kind: Annotated[OfKind, Cli(option=True)] = None,
    category: Annotated[Category, Cli(option=True)] = None,
    *,
    limit: Annotated[
        int | None,
        Meta(ge=1, le=MAX_PAGE, description="Maximum number of results."),
        Cli(metavar="N", help="Maximum number of results (default: all)."),
        Http(default=100),
        ForModels(default=50, most=200),
    ] = None,
    cursor: Annotated[
        str,
        Meta(max_length=200, description="Cursor from `next` of the previous page."),
        Cli(metavar="CURSOR"),
        ForModels("Continue after this next of the last answer."),
    ] = "",
    hidden: Annotated[
        bool,
        Meta(description="List the entries that are hidden on this device instead."),
        Except(("cli", "mcp")),
    ] = False,
) -> FactPage:
    """List entries: facts, procedures and episodes, newest first.

    Entries that are hidden on this device, expired, or not on this device yet are omitted.
    """
    view.opened.ingest_edits()
    page, following = facts_of(view).page(kind, category, limit, cursor, hidden=hidden)
    return FactPage(facts=tuple(page), next=following or None)
