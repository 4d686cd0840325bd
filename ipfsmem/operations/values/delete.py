"""The operation `values.delete`: delete the value of a key, so that it can be restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.operation import View, operation
from ipfsmem.operations.values.stored import SeenValue, ValueKey, delete_value, no_value, values_of

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue

LATE = {"KeyValue": "ipfsmem.memories.values"}


@operation(
    summary="Delete the value of a key (it can be restored)",
    right="write",
    about="target",
    raises=(
        "NotFoundError: the key has no value.",
        "ChangedError: the value is not as `seen` says; nothing was deleted.",
    ),
    http="DELETE /v1/value",
    destructive=True,
)
def delete(view: View, key: ValueKey, *, seen: SeenValue = None) -> KeyValue:
    """Delete the value of a key, on every device. `value restore` restores it, unless it was pending."""
    view.opened.ingest_edits()
    value = values_of(view).get(key)
    if value is None:
        raise no_value(key)
    delete_value(view, value, seen)
    return value
