"""The operation `values.clear`: delete several values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.bundle.value_file import MAX_NAME, check_name
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.operation import Except, Items, View, operation
from ipfsmem.operations.values.stored import OfLevel, delete_value, values_of
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue


class ValueKeys(Items[str], frozen=True, kw_only=True):
    """The keys whose values were deleted. It is a sequence of its `keys`."""

    keys: tuple[str, ...]


@operation(
    summary="Delete several values",
    right="write",
    about="target",
    raises=(
        "UsageError: nothing is selected, or a key is invalid; nothing was deleted.",
        "ChangedError: some values changed meanwhile and were kept; all others were deleted.",
    ),
    http="POST /v1/values/clear",
    destructive=True,
)
def clear(
    view: View,
    *,
    prefix: Annotated[
        str | None, Meta(max_length=MAX_NAME, description="Only keys with this prefix.")
    ] = None,
    level: OfLevel = None,
    keys: Annotated[
        Iterable[str] | None, Meta(max_length=10_000, description="Only these keys."), Except(("cli",))
    ] = None,
) -> ValueKeys:
    """Delete your own values: of some keys, of a prefix or of a level; combined filters must all match.
    `value restore` restores each."""
    if prefix is None and level is None and keys is None:
        raise UsageError("no values selected: give keys, a prefix or a level")
    names = None if keys is None else {check_name(key) for key in keys}
    view.opened.ingest_edits()
    values = values_of(view).list(prefix or "", level)
    gone, changed = delete_each(view, [one for one in values if names is None or one.key in names])
    if changed:
        raise ChangedError(
            f"{count(len(changed), 'value')} changed meanwhile and were kept: {', '.join(name[:80] for name in changed[:5])}; "
            f"deleted: {len(gone)}"
        )
    return ValueKeys(keys=gone)


def delete_each(view: View, values: Iterable[KeyValue]) -> tuple[tuple[str, ...], list[str]]:
    """Delete the own ones of some values; the keys of those that are gone, and of those that changed since they were read."""
    gone, changed = list[str](), list[str]()
    for one in values:
        if not one.own:
            continue
        try:
            delete_value(view, one, one.seen)
        except ChangedError:
            changed.append(one.key)
        except NotFoundError:  # somebody else deleted it
            continue
        else:
            gone.append(one.key)
    return tuple(gone), changed
