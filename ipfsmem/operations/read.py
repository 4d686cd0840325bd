"""`read`: one memory as it is shown, a text beside it, or as a published version had it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.errors import StorageError
from ipfsmem.memories.memories import NotHereError
from ipfsmem.memories.readings import Reading, first_own
from ipfsmem.operation import Cli, Except, ForModels, Key, View, operation

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica


@operation(
    summary="Read a memory",
    right="read",
    about="stack",
    raises=(
        "NotFoundError: no text beside it has the name `conflict`, no version here is `root`, or its text is not on this device.",
        "KeyNameError: `key` is not a key.",
    ),
    absent="there is no memory {key}",
    http="GET /v1/memories/{key}",
    tool="read_memory",
    title="Read a memory",
    for_models="Read one memory by key, page by page. The last page has the seen value that remember needs to replace it.",
    idempotent=True,
)
def read(
    view: View,
    key: Key,
    *,
    conflict: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=100,
            description="A conflict copy instead: its name, as `conflicts` lists it.",
        ),
        Cli(metavar="FILE"),
        ForModels("Name of a conflicting text.", name="copy"),
    ] = None,
    root: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=100,
            description="As it was in a published version: the CID of its root, or the beginning of it.",
        ),
        Cli(metavar="CID"),
        Except(("mcp",)),
    ] = None,
    counts: Annotated[
        bool,
        Meta(description="Whether this counts as use, so that the memory fades later."),
        Except(("cli", "http", "mcp")),
    ] = True,
) -> Reading | None:
    """Return one memory as it is shown, byte for byte; none if there is none.

    Of several scopes the first that has the memory shows it, an own text before one of others. `conflict` and `root` are about the
    first scope alone. The result names the scope and device that the text came from, its SHA-256 and its conflicts.
    """
    opened = view.opened
    memories = opened.memories.in_scope(view.scope)
    if root is not None:
        from ipfsmem.published.versions import read_past

        return read_past(memories, key, root)
    opened.take(key, view.scope)
    with _misses_what_is_not_here(opened.replica):
        if conflict is not None:
            return memories.read_conflict(key, conflict)
        found = first_own(part.read(key) for part in view.sources())
    if counts:
        opened.used(found)
    return found


@contextlib.contextmanager
def _misses_what_is_not_here(replica: Replica) -> Iterator[None]:
    """The next sync asks for a text that turns out not to be here, since the disk lost it perhaps."""
    try:
        yield
    except NotHereError:
        from ipfsmem.sync.lost_objects import miss

        with contextlib.suppress(StorageError), replica.transaction():
            miss(replica.db)
        raise
