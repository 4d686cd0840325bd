"""The operation `conflicts`: memories with texts that are not shown, and late values of revoked members."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.errors import NotFoundError
from ipfsmem.memories.after_revoke import Late, late_writes
from ipfsmem.memories.memory_records import Conflict, MemoryRecord
from ipfsmem.memories.writers import Writers
from ipfsmem.operation import Except, Http, Items, View, operation


class Conflicts(Items[Conflict], frozen=True, kw_only=True):
    """Memories with a conflict, by key, and late values of revoked members. It is a sequence of its `conflicts`."""

    conflicts: tuple[Conflict, ...]
    late: tuple[Late, ...]
    #: The names of the devices that wrote these texts, by id.
    labels: dict[str, str]

    def writer(self, reading: MemoryRecord | None) -> str:
        """Return the name of the device that wrote a text; "" for None."""
        return "" if reading is None else self.labels[reading.device]


@operation(
    summary="List conflicts, or show one",
    right="read",
    about="scope",
    raises=("NotFoundError: `key` has no conflict.",),
    http="GET /v1/conflicts",
)
def conflicts(
    view: View,
    key: Annotated[
        str | None, Meta(min_length=1, max_length=200, description="Only the conflict of this memory.")
    ] = None,
    *,
    everywhere: Annotated[
        bool,
        Meta(description="Of all scopes, as `status` counts them."),
        Http(reaches="all"),
        Except(("cli",)),
    ] = False,
) -> Conflicts:
    """List memories with concurrent edits that could not be merged, or with pending texts of others.

    Each has its current text, its alternatives, and the `seen` value for `resolve`. Values that a
    revoked member wrote after its revocation are listed too.
    """
    view.opened.ingest_edits()
    memories = view.opened.memories.in_scope(view.scope)
    items = memories.all_conflicts(key) if everywhere else memories.conflicts(key)
    late = [
        one
        for one in late_writes(view.opened.replica)
        if everywhere or one.scope == view.scope
        if key is None or one.place.removeprefix(f"{one.scope}/") == key
    ]
    if key is not None and not items and not late:
        raise NotFoundError(f"{key} has no conflict", hint="List all: ipfsmem conflicts.")
    writers = Writers(view.opened.replica)
    readings = [one for item in items for one in (item.shown, *(copy.reading for copy in item.copies))]
    return Conflicts(
        conflicts=tuple(items),
        late=tuple(late),
        labels={one.device: writers.device(one.device) for one in readings if one is not None},
    )
