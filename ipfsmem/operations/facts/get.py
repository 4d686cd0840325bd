"""The operation `facts.get`: one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.operation import Key, View, operation
from ipfsmem.operations.facts.stored import facts_of

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Fact

LATE = {"Fact": "ipfsmem.memories.facts"}


@operation(
    summary="Show a fact",
    right="read",
    about="target",
    raises=("KeyNameError: `key` is invalid.",),
    absent="there is no fact {key}",
    command="",
    http="GET /v1/facts/{key}",
)
def get(view: View, key: Key) -> Fact | None:
    """Return one entry, or None if the key has no entry or its text is not on this device yet."""
    view.opened.ingest_edits()
    return facts_of(view).get(key)
