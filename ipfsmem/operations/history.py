"""The operation `history`: the revisions of one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.operation import Key, View, operation

if TYPE_CHECKING:
    from ipfsmem.published.versions import History

LATE = {"History": "ipfsmem.published.versions"}


@operation(
    summary="List a memory's revisions",
    right="read",
    about="scope",
    raises=(
        "NotFoundError: no text of the memory is known on this device.",
        "KeyNameError: `key` is invalid.",
    ),
    http="GET /v1/memories/{key}/history",
)
def history(view: View, key: Key) -> History:
    """List the revisions of a memory that this device can find, newest first.

    The list covers the current texts and the versions that this device keeps.
    """
    from ipfsmem.published.versions import history as revisions

    view.opened.ingest_file(key, view.scope)
    return revisions(view.opened.memories.in_scope(view.scope), key)
