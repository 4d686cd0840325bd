"""The operation `why`: explain the rank of one memory for a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.bundle.keys import check_key
from ipfsmem.memories.query_words import MAX_QUERY
from ipfsmem.operation import Cli, Key, View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.recall import Explained

LATE = {"Explained": "ipfsmem.memories.recall"}


@operation(
    summary="Explain why a memory does or does not match a question",
    command="explain",
    right="read",
    about="stack",
    raises=(
        "NotFoundError: there is no such memory, or its text is not on this device.",
        "KeyNameError: `key` is invalid.",
        "UsageError: the question has no word.",
    ),
)
def why(
    view: View,
    key: Key,
    query: Annotated[
        str,
        Meta(min_length=1, max_length=MAX_QUERY, description="A question or a few words."),
        Cli(metavar="WORDS", joined=True),
    ],
) -> Explained:
    """Explain why a memory does or does not match a question.

    The result has the memory's rank among all hits of `recall`, the parts of its score and of the score
    one rank higher, and the words of the question that it contains.
    """
    from ipfsmem.memories.recall import why as explained

    view.opened.ingest_edits()
    return explained(view.sources(), check_key(key), query)
