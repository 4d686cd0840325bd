"""The operation `values.sweep`: delete the expired values."""

from __future__ import annotations

from ipfsmem.operation import View, operation
from ipfsmem.operations.values.clear import ValueKeys, delete_each
from ipfsmem.operations.values.stored import values_of


@operation(
    summary="Delete expired values",
    right="write",
    about="target",
    http="POST /v1/values/sweep",
    destructive=True,
)
def sweep(view: View) -> ValueKeys:
    """Delete expired values. Before that, they are only hidden.

    A value that is set again meanwhile is kept.
    """
    view.opened.ingest_edits()
    return ValueKeys(keys=delete_each(view, values_of(view).list(expired=True))[0])
