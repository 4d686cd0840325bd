"""The operation `read`: one memory, one of its alternatives, or its text in a published version."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.errors import StorageError
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.memory_records import MemoryRecord, first_own
from ipfsmem.operation import Cli, Except, ForModels, Key, View, operation

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica


@operation(
    summary="Read a memory",
    right="read",
    about="stack",
    raises=(
        "NotFoundError: no alternative has this name, no version on this device has this address, or the text is not on this device.",
        "KeyNameError: `key` is invalid.",
    ),
    absent="there is no memory {key}",
    http="GET /v1/memories/{key}",
    tool="read_memory",
    title="Read a memory",
    for_models="Read one memory by key, page by page. The last page has the seen value that remember needs to replace it.",
)
def read(
    view: View,
    key: Key,
    *,
    alternative: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=100,
            description="Name of an alternative to read instead, from `conflicts`.",
        ),
        Cli(metavar="FILE"),
        ForModels("Name of an alternative."),
    ] = None,
    root: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=100,
            description="Published version to read from: its address from `history`, or a prefix.",
        ),
        Cli(metavar="CID"),
        Except(("mcp",)),
    ] = None,
    counts: Annotated[
        bool,
        Meta(description="Record this as a use, which delays the fading of the memory."),
        Except(("cli", "http", "mcp")),
    ] = True,
) -> MemoryRecord | None:
    """Read one memory, byte for byte.

    With several scopes, the memory is read from the first one that has it; your own text takes
    precedence over another person's. `alternative` and `root` read the first scope only. JSON also has
    the scope, the device, the SHA-256 and the conflicts of the text.
    """
    opened = view.opened
    memories = opened.memories.in_scope(view.scope)
    if root is not None:
        from ipfsmem.published.versions import read_past

        return read_past(memories, key, root)
    opened.ingest_file(key, view.scope)
    with _requesting_missing_text(opened.replica):
        if alternative is not None:
            return memories.read_conflict(key, alternative)
        record = first_own(part.read(key) for part in view.sources())
    if counts:
        opened.used(record)
    return record


@contextlib.contextmanager
def _requesting_missing_text(replica: Replica) -> Iterator[None]:
    """Let the next sync fetch a text that is missing on this device, perhaps because the disk lost it."""
    try:
        yield
    except NotHereError:
        from ipfsmem.sync.local_repair import note_missing_text

        with contextlib.suppress(StorageError), replica.transaction():
            note_missing_text(replica.db)
        raise
