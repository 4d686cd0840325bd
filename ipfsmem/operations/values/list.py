"""The operation `values.list`: the values by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.bundle.value_file import MAX_NAME
from ipfsmem.operation import Cli, Http, Items, View, operation
from ipfsmem.operations.values.stored import OfLevel, values_of

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue

LATE = {"KeyValue": "ipfsmem.memories.values"}

#: Maximum number of values of one page.
MAX_PAGE = 1_000


class ValuePage(Items["KeyValue"], frozen=True, kw_only=True):
    """All values that match, or a page of them, by key. It is a sequence of its `values`."""

    values: tuple[KeyValue, ...]
    #: The `cursor` of the next page; None after the last page.
    next: str | None


@operation(
    summary="List keys and values",
    right="read",
    about="target",
    http="GET /v1/values",
)
def list_(
    view: View,
    prefix: Annotated[
        str, Meta(max_length=MAX_NAME, description="Only keys with this prefix."), Cli(option=True)
    ] = "",
    *,
    level: OfLevel = None,
    expired: Annotated[bool, Meta(description="List expired values that are not deleted yet.")] = False,
    limit: Annotated[
        int | None,
        Meta(ge=1, le=MAX_PAGE, description="Maximum number of results."),
        Cli(metavar="N", help="Maximum number of results (default: all)."),
        Http(default=100),
    ] = None,
    cursor: Annotated[
        str,
        Meta(max_length=MAX_NAME, description="Cursor from `next` of the previous page."),
        Cli(metavar="KEY"),
    ] = "",
) -> ValuePage:
    """List keys and values, sorted by key."""
    view.opened.ingest_edits()
    rest = [one for one in values_of(view).list(prefix, level, expired=expired) if one.key > cursor]
    shown = tuple(rest[:limit])
    return ValuePage(values=shown, next=shown[-1].key if len(rest) > len(shown) else None)
