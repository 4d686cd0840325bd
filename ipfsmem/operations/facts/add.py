"""The operation `facts.add`: add one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.errors import UsageError
from ipfsmem.facts.categories import GENERAL, MAX_CATEGORY, MAX_FACT, Kind
from ipfsmem.operation import Cli, Except, ForModels, View, operation
from ipfsmem.operations.facts.stored import facts_of

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Remembered

LATE = {"Remembered": "ipfsmem.memories.facts"}


@operation(
    summary="Add a fact",
    right="write",
    about="target",
    raises=(
        "UsageError: the text is empty or too long; nothing was written.",
        "LimitError: the fact does not fit into a memory file.",
        "ChangedError: another text was written in its place meanwhile.",
    ),
    http="POST /v1/facts",
    tool="add_fact",
    title="Add a fact",
    for_models="Remember one sentence with a category. A known fact stays as it is; a fact that says more than an older one replaces it.",
)
def add(
    view: View,
    text: Annotated[str, Meta(description="The sentence."), ForModels("The sentence.", most=MAX_FACT)],
    category: Annotated[
        str,
        Meta(description="Category: any word."),
        Cli(option=True),
        ForModels("Topic, one word.", most=MAX_CATEGORY),
    ] = GENERAL,
    *,
    kind: Annotated[
        Kind,
        Meta(description="Kind of entry."),
        ForModels("fact: what holds; procedure: how something is done; episode: what happened."),
    ] = "fact",
    confidence: Annotated[
        float | None, Meta(ge=0, le=1, description="Confidence in the fact."), Cli(metavar="0..1")
    ] = None,
    important: Annotated[
        bool,
        Meta(description="Important: hidden last if there are too many facts."),
        ForModels("Hidden last when facts are too many."),
    ] = False,
    source: Annotated[
        str, Meta(description="Where it comes from, for its header."), Except(("cli", "http", "mcp"))
    ] = "",
) -> Remembered:
    """Add a fact. The result is added, kept (already known), or updated.

    A fact that restates an existing entry or says more replaces the entry's text; the history keeps the
    replaced text.
    """
    view.opened.ingest_edits()
    result = facts_of(view).add(
        text, category, kind, confidence=confidence, important=important, source=source
    )
    if result is None:
        raise UsageError("the text has only spaces and dashes, so nothing was written")
    if result.action != "kept":
        view.opened.render_file(result.fact.key, view.target)
    return result
