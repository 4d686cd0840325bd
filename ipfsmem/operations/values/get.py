"""The operation `values.get`: the value of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.operation import View, operation
from ipfsmem.operations.values.stored import ValueKey, values_of

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue

LATE = {"KeyValue": "ipfsmem.memories.values"}


@operation(
    summary="Print the value of a key",
    right="read",
    about="target",
    raises=("UsageError: the key is invalid.",),
    absent="no value for the key {key!a:.80}",
    http="GET /v1/value",
)
def get(view: View, key: ValueKey) -> KeyValue | None:
    """Return the value of a key, or fail if the key has no value or the value expired (in Python: return None)."""
    view.opened.ingest_edits()
    return values_of(view).get(key)
