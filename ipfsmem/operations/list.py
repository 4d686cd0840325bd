"""The operation `list`: the memories by key, headers only."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.bundle.keys import check_key
from ipfsmem.bundle.memory_file import ENTRY_TYPES, TYPES
from ipfsmem.memories.memory_reader import MemorySummary, listed
from ipfsmem.operation import MAX_WORD, Category, Cli, Except, ForModels, Http, Items, Tag, View, operation

#: Maximum number of memories of one page.
MAX_PAGE = 1_000


class MemoryPage(Items[MemorySummary], frozen=True, kw_only=True):
    """All memories that match, or a page of them, by key. It is a sequence of its `memories`."""

    memories: tuple[MemorySummary, ...]
    #: The `cursor` of the next page; None after the last page.
    next: str | None
    #: Number of matches on all pages.
    total: int


@operation(
    summary="List memories",
    right="read",
    about="stack",
    raises=("KeyNameError: `cursor` is invalid.",),
    http="GET /v1/memories",
    tool="list_memories",
    title="List memories",
    for_models="List memories and scopes. To search, use recall.",
)
def list_(
    view: View,
    *,
    type: Annotated[
        str | None,
        Meta(min_length=1, max_length=MAX_WORD, description="Only memories of this type."),
        Cli(words=(*TYPES, *ENTRY_TYPES)),
        ForModels("Only this kind.", words=(*TYPES, *ENTRY_TYPES)),
    ] = None,
    tag: Tag = None,
    category: Category = None,
    match: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_WORD,
            description="Only memories with this text in their key, name or description.",
        ),
        Except(("mcp",)),
    ] = None,
    limit: Annotated[
        int | None,
        Meta(ge=1, le=MAX_PAGE, description="Maximum number of results."),
        Cli(metavar="N", help="Maximum number of results (default: all)."),
        Http(default=100),
        ForModels("Most results.", default=50, most=200),
    ] = None,
    cursor: Annotated[
        str | None,
        Meta(max_length=64, description="Cursor from `next` of the previous page."),
        Cli(metavar="KEY"),
        ForModels("Continue after this key."),
    ] = None,
    hidden: Annotated[
        bool,
        Meta(description="Include memories that are hidden on this device."),
        Except(("cli", "http", "mcp")),
    ] = False,
    expired: Annotated[
        bool, Meta(description="Include expired memories."), Except(("cli", "http", "mcp"))
    ] = True,
) -> MemoryPage:
    """List memories by key, headers only.

    A memory that exists in several scopes of a stack is listed once, from the first of them; your own
    text takes precedence over another person's. JSON also has the scope and the number of conflicts of each
    memory. A memory that is not on this device yet has no header.
    """
    if cursor:
        check_key(cursor)
    view.opened.ingest_edits()
    today = None if expired else view.opened.replica.environment.today()
    word = (match or "").casefold()

    def made() -> list[MemorySummary]:
        summaries = [
            one
            for one in listed(view.sources(), hidden=hidden)
            if type in (None, one.file.type)
            and tag in (None, *one.tags)
            and category in (None, one.fields.get("category", ""))
            and (not word or word in f"{one.key}\n{one.file.name}\n{one.file.description}".casefold())
        ]
        if today is None:
            return summaries
        from ipfsmem.memories.priority import expired_on

        return [one for one in summaries if not expired_on(one.file, today)]

    summaries = view.kept(("list", view.scopes, type, tag, category, word, hidden, today), made)
    return _page(summaries, cursor, limit)


def _page(summaries: list[MemorySummary], cursor: str | None, limit: int | None) -> MemoryPage:
    from bisect import bisect_right

    begin = bisect_right(summaries, cursor, key=lambda one: one.key) if cursor else 0
    shown = tuple(summaries[begin:] if limit is None else summaries[begin : begin + limit])
    more = shown[-1].key if shown and begin + len(shown) < len(summaries) else None
    return MemoryPage(memories=shown, next=more, total=len(summaries))
