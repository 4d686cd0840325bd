"""The operation `values.set`: set the value of a key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from ipfsmem.bundle.value_file import LEVEL, LEVELS, check_name
from ipfsmem.errors import UsageError
from ipfsmem.operation import Cli, View, operation
from ipfsmem.operations.values.stored import SeenValue, ValueKey, values_of

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue

LATE = {"KeyValue": "ipfsmem.memories.values"}


@operation(
    summary="Set the value of a key",
    right="write",
    about="target",
    raises=(
        "UsageError: the key or the value is invalid; nothing was written.",
        "ChangedError: the value is not as `seen` says; nothing was written.",
        "LimitError: the value does not fit into a memory file.",
    ),
    http="PUT /v1/value",
)
def set_(
    view: View,
    key: ValueKey,
    value: Annotated[Any, Meta(description="A text, or anything that JSON can say.")],
    *,
    level: Annotated[
        Literal["", "user", "session", "agent"] | None,
        Meta(description="Level: lifetime of the value; empty for none."),
        Cli(words=LEVELS),
    ] = None,
    ttl: Annotated[
        float | None,
        Meta(ge=0, le=10_000_000_000, description="Seconds until it expires; 0 for never."),
        Cli(metavar="SECONDS"),
    ] = None,
    seen: SeenValue = None,
) -> KeyValue:
    """Set the value of a key. The earlier value stays in its history.

    An omitted level or expiry time is unchanged.
    """
    check_name(key)
    fields: dict[str, str] = {} if level is None else {LEVEL: level}
    if ttl is not None:
        fields["expires"] = _ends(view, ttl)
    view.opened.ingest_edits()
    entry = values_of(view).set(key, value, fields, seen)
    view.opened.render_file(entry.memory, view.target)
    return entry


def _ends(view: View, ttl: float) -> str:
    if not ttl:
        return ""
    try:
        ends = datetime.fromtimestamp(view.opened.replica.environment.now() / 1000, UTC) + timedelta(
            seconds=ttl
        )
    except OverflowError:
        raise UsageError(f"ttl ends after the year 9999 (got {ttl:g} seconds)") from None
    return ends.isoformat(timespec="milliseconds").replace("+00:00", "Z")
