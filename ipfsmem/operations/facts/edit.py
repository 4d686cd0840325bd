"""The operation `facts.edit`: replace the text of an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.operation import Key, View, operation
from ipfsmem.operations.facts.stored import SeenFact, facts_of

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Fact

LATE = {"Fact": "ipfsmem.memories.facts"}


@operation(
    summary="Change the text of a fact",
    right="write",
    about="target",
    raises=(
        "NotFoundError: there is no such fact.",
        "UsageError: the text is empty or too long; nothing was changed.",
        "ChangedError: the fact is not as `seen` says; nothing was changed.",
    ),
    http="PUT /v1/facts/{key}",
)
def edit(
    view: View,
    key: Key,
    text: Annotated[str, Meta(description="The new sentence.")],
    *,
    seen: SeenFact = None,
) -> Fact:
    """Replace the text of a fact; its history keeps the earlier text."""
    view.opened.ingest_file(key, view.target)
    fact = facts_of(view).edit(key, text, seen)
    view.opened.render_file(key, view.target)
    return fact
