"""The operation `facts.restore`: restore an earlier text of an entry, or a deleted entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.bundle.keys import check_key
from ipfsmem.operation import Cli, Except, ForModels, Http, Key, View, operation
from ipfsmem.operations.facts.stored import facts_of

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Fact

LATE = {"Fact": "ipfsmem.memories.facts"}


@operation(
    summary="Restore an earlier text of a fact",
    right="write",
    about="target",
    raises=(
        "NotFoundError: there is no such earlier text.",
        "ChangedError: the current text is not the one that `seen` says; nothing was restored.",
        "KeyNameError: `key` is invalid.",
    ),
    http="POST /v1/facts/{key}/restore",
    tool="restore_fact",
    title="Restore a fact",
    for_models="Restore an earlier text of a fact, or a deleted fact. The current text moves to the history; pass its seen value.",
)
def restore(
    view: View,
    key: Key,
    number: Annotated[
        int,
        Meta(ge=1, le=100_000, description="Number of the text in the history; 1 is the newest."),
        Cli(option=True, metavar="N", help="Number of the text in `fact history`."),
        ForModels("Number of the text in fact_history."),
    ] = 1,
    *,
    seen: Annotated[
        str | None,
        Meta(
            max_length=64,
            description="Restore only if this `seen` is current; empty: only if no text is shown.",
        ),
        Http(shown=True),
        ForModels("The seen value of the answer that showed it.", default=""),
        Except(("cli",)),
    ] = None,
) -> Fact:
    """Restore an earlier text of a fact, even a deleted one: the newest, or the one of `number`.

    The current text moves to the history.
    """
    from ipfsmem.memories.facts import as_fact

    check_key(key)
    view.opened.ingest_file(key, view.target)
    reading = facts_of(view).restore(key, number, seen)
    view.opened.render_file(key, view.target)
    return as_fact(reading)
