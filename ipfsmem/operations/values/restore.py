"""The operation `values.restore`: restore an earlier value of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.errors import NotFoundError
from ipfsmem.operation import Cli, Http, View, operation
from ipfsmem.operations.values.stored import SeenValue, ValueKey, values_of

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue

LATE = {"KeyValue": "ipfsmem.memories.values"}


@operation(
    summary="Restore an earlier value of a key",
    right="write",
    about="target",
    raises=(
        "NotFoundError: there is no such earlier value.",
        "ChangedError: the value is not as `seen` says; nothing was restored.",
        "UsageError: the key is invalid.",
    ),
    http="POST /v1/value/restore",
)
def restore(
    view: View,
    key: ValueKey,
    number: Annotated[
        int,
        Meta(ge=1, le=100_000, description="Number of the value in the history; 1 is the newest."),
        Cli(option=True, metavar="N", help="Number of the value in `value history`."),
    ] = 1,
    *,
    seen: Annotated[SeenValue, Http(shown=True)] = None,
) -> KeyValue:
    """Restore an earlier value of a key, even a deleted one: the newest, or the one of `number`.

    The current value moves to the history.
    """
    from ipfsmem.memories.fact_history import earlier
    from ipfsmem.operations.facts.stored import facts_of

    values, target = values_of(view), view.target
    memory = values.place(key)
    if not earlier(view.opened.memories.in_scope(target), memory):
        raise NotFoundError(f"no earlier value of the key {key[:80]!a}")
    view.opened.ingest_file(memory, target)
    reading = facts_of(view).restore(memory, number, seen)
    view.opened.render_file(memory, target)
    return values.value(reading)
