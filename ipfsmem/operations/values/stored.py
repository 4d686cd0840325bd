"""Shared code of the operations on values: a key, a level, the `seen` of a value, and the values of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.bundle.value_file import MAX_NAME, Level
from ipfsmem.errors import NotFoundError
from ipfsmem.operation import Except, Http, View

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue, Values

#: A key; `bundle.value_file.check_name` refuses other texts. A path of HTTP cannot hold each, so it is in the query.
ValueKey = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_NAME, description=f"Its key: 1 to {MAX_NAME} bytes of any characters."),
    Http(query=True),
]
#: Filters of the values that an operation works on.
OfLevel = Annotated[Level | None, Meta(description="Only values of this level.")]
#: The `seen` of the value that a change replaces.
SeenValue = Annotated[
    str | None,
    Meta(
        max_length=64,
        description="Change the value only if this `seen` is current; empty: only if no value exists.",
    ),
    Except(("cli",)),
    Http(empty=True),
]


def values_of(view: View) -> Values:
    """The values of the scope that a call works on."""
    from ipfsmem.memories.values import Values

    return Values(view.opened.memories.in_scope(view.target))


def no_value(key: str) -> NotFoundError:
    """The error for a key without a value."""
    return NotFoundError(f"no value for the key {key[:80]!a}", hint="List the keys: ipfsmem value list")


def delete_value(view: View, one: KeyValue, seen: str | None) -> None:
    """Delete a value; its history keeps it unless it is pending. Raises NotFoundError, ChangedError."""
    from ipfsmem.memories.facts import keep_removed
    from ipfsmem.operations.forgetting import forget_removed

    view.opened.ingest_file(one.memory, view.target)
    removed = keep_removed(view.opened.memories.in_scope(view.target), one.memory, seen)
    own = removed[0].own
    forget_removed(
        view.opened, removed, "value deleted; it can be restored" if own else "pending value deleted"
    )
