"""The operation `usage.list`: recorded uses of models, in order."""

from __future__ import annotations

from ipfsmem.memories.usage import Used
from ipfsmem.operation import Items, View, operation
from ipfsmem.operations.usage.uses import Since, Until, Zone, uses_of


class UsageList(Items[Used], frozen=True, kw_only=True):
    """Uses of models, in order. It is a sequence of its `uses`."""

    uses: tuple[Used, ...]


@operation(
    summary="List every use of a model",
    right="read",
    about="scope",
    raises=("UsageError: an argument is not a day or time zone.",),
    command="usage export",
    http="GET /v1/usage/list",
)
def list_(view: View, *, since: Since = None, until: Until = None, tz: Zone = None) -> UsageList:
    """List every use of a model, oldest first. Costs are in millionths of a US dollar."""
    return UsageList(uses=tuple(uses_of(view, since, until, tz)))
