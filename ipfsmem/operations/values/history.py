"""The operation `values.history`: the earlier values of a key."""

from __future__ import annotations

from typing import Any

import msgspec

from ipfsmem.operation import Items, View, operation
from ipfsmem.operations.values.stored import ValueKey, no_value, values_of


class EarlierValue(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier value of a key. `number`: of `restore`, 1 is the newest; `until`: when it was replaced, in milliseconds since 1970 UTC;
    `why`: `updated`, `deleted`, or replaced when another was `restored`. A concurrent value that is not shown is a `conflict`, which
    `resolve` resolves, and one that others proposed is `pending`; both have number 0 and the time at which they were written."""

    number: int
    key: str
    value: Any
    until: int
    why: str


class EarlierValues(Items[EarlierValue], frozen=True, kw_only=True):
    """Earlier values, newest first, after the conflicts and the pending values. It is a sequence of its `values`."""

    values: tuple[EarlierValue, ...]


@operation(
    summary="List the earlier values of a key",
    right="read",
    about="target",
    raises=(
        "NotFoundError: the key has no value and had none, or a part of its history is not fetched.",
        "UsageError: the key is invalid.",
    ),
    http="GET /v1/value/history",
)
def history(view: View, key: ValueKey) -> EarlierValues:
    """List the earlier values of a key, newest first: number, time of replacement, reason, value."""
    from ipfsmem.bundle.memory_file import parse_memory
    from ipfsmem.bundle.value_file import value_of
    from ipfsmem.causal.clock import hlc_ms
    from ipfsmem.memories.fact_history import earlier

    view.opened.ingest_edits()
    values = values_of(view)
    conflicts = [
        EarlierValue(
            number=0,
            key=key,
            value=value_of(one.readable),
            until=hlc_ms(one.hlc) if one.hlc else 0,
            why="conflict" if one.own else "pending",
        )
        for one in values.copies(key)
    ]
    replaced = [
        EarlierValue(
            number=number, key=key, value=value_of(parse_memory(one.data)), until=one.until, why=one.why
        )
        for number, one in enumerate(
            earlier(view.opened.memories.in_scope(view.target), values.place(key)), 1
        )
    ]
    if not conflicts and not replaced and values.get(key) is None:
        raise no_value(key)
    return EarlierValues(values=(*conflicts, *replaced))
