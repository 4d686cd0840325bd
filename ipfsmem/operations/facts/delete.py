"""The operation `facts.delete`: delete an entry, so that it can be restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.operation import Key, Reason, View, check_reason, operation
from ipfsmem.operations.facts.stored import SeenFact, facts_of

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Fact

LATE = {"Fact": "ipfsmem.memories.facts"}


@operation(
    summary="Delete a fact (it can be restored)",
    right="write",
    about="target",
    raises=(
        "NotFoundError: there is no such fact.",
        "ChangedError: the fact is not as `seen` says; nothing was deleted.",
        "UsageError: `reason` cannot be recorded; nothing was deleted.",
    ),
    http="DELETE /v1/facts/{key}",
    tool="delete_fact",
    title="Delete a fact",
    for_models="Delete a fact; restore_fact can restore it. To delete it with its history, use forget.",
    destructive=True,
)
def delete(view: View, key: Key, *, reason: Reason = "", seen: SeenFact = None) -> Fact:
    """Delete a fact on every device. `fact restore` restores it; `forget` also deletes its earlier texts.

    A concurrent edit on another device survives.
    """
    from ipfsmem.memories.facts import as_fact
    from ipfsmem.operations.forgetting import forget_removed

    check_reason(reason)
    view.opened.ingest_file(key, view.target)
    gone = facts_of(view).keep_deleted(key, seen)
    forget_removed(view.opened, gone, reason or "deleted; it can be restored")
    return as_fact(gone[0])
