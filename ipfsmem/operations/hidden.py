"""The operations on memories that this device hides: list them, hide some, and show them again. Nothing leaves this device or is deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.device.hidden import MAX_REASON, Hidden, hidden_texts, hide, show
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.operation import Except, Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.open_vault.handle import VaultHandle

#: Keys of memories.
_KEYS = Meta(max_length=10_000, description="Keys of memories.")


class HiddenText(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is hidden on this device. `at`: since when, in milliseconds since 1970 UTC; `why`: the reason."""

    scope: str
    key: str
    at: int
    why: str


class HiddenTexts(Items[HiddenText], frozen=True, kw_only=True):
    """Memories that are hidden on this device, the last hidden first. It is a sequence of its `hidden`."""

    hidden: tuple[HiddenText, ...]


class ChangedKeys(Items[str], frozen=True, kw_only=True):
    """The memories that were hidden, or shown again. It is a sequence of its `keys`."""

    keys: tuple[str, ...]


@operation(
    name="hidden.list",
    summary="List the memories that are hidden on this device",
    right="read",
    about="scope",
    command="",
    http="GET /v1/hidden",
)
def list_(
    view: View,
    *,
    everywhere: Annotated[bool, Meta(description="Of all scopes."), Except(("cli", "http", "mcp"))] = False,
) -> HiddenTexts:
    """List the memories that are hidden on this device, the last hidden first."""
    rows = hidden_here(view.opened, None if everywhere else view.scope)
    return HiddenTexts(
        hidden=tuple(HiddenText(scope=one.scope, key=one.key, at=one.at, why=one.why) for one in rows)
    )


@operation(
    name="hidden.add",
    summary="Hide memories on this device",
    right="write",
    about="scope",
    raises=(
        "NotFoundError: there is no memory under a key; nothing was hidden.",
        "UsageError: the reason is too long or not printable.",
    ),
    audit="hide",
    command="hide",
    http="POST /v1/hidden",
)
def add(
    view: View,
    keys: Annotated[Iterable[str], _KEYS, Except(("cli",))],
    *,
    why: Annotated[
        str, Meta(max_length=MAX_REASON, description="The reason."), Except(("cli", "http", "mcp"))
    ] = "by hand",
) -> ChangedKeys:
    """Hide memories from lists, recall and context on this device.

    Nothing is deleted, other devices are not affected, and `read` still returns hidden memories. A new
    write shows a memory again.
    """
    if not why.isprintable():
        raise UsageError(f"a reason has at most {MAX_REASON} printable characters")
    view.opened.ingest_edits()
    replica, memories = view.opened.replica, view.opened.memories.in_scope(view.scope)
    now, new = replica.environment.now(), list[Hidden]()
    with replica.transaction():
        texts = hidden_texts(replica)
        for key in dict.fromkeys(keys):
            hlc = memories.written(key, replica.store.entry(memories.checked_name(key)))
            if not hlc:
                raise NotFoundError(f"there is no memory {key}", hint="List them with: ipfsmem list")
            if (before := texts.get((view.scope, key))) is None or before.hlc != hlc:
                new.append(Hidden(view.scope, key, hlc, now, why))
        hide(replica, new)
    return ChangedKeys(keys=tuple(one.key for one in new))


@operation(
    name="hidden.bring_back",
    summary="Show hidden memories again",
    right="write",
    about="scope",
    raises=("NotFoundError: a memory is not hidden here; nothing was changed.",),
    audit="hide",
    command="",
    http="POST /v1/hidden/back",
)
def bring_back(
    view: View, keys: Annotated[Iterable[str] | None, _KEYS, Except(("cli",))] = None
) -> ChangedKeys:
    """Show hidden memories again, all of this scope without `keys`, and return those that were hidden."""
    there = [one.key for one in hidden_here(view.opened, view.scope)]
    chosen = there if keys is None else list(dict.fromkeys(keys))
    for key in chosen:
        if key not in there:
            raise NotFoundError(f"{key} is not hidden here", hint="List them: ipfsmem list --hidden")
    with view.opened.replica.transaction():
        show(view.opened.replica, [(view.scope, key) for key in chosen])
    return ChangedKeys(keys=tuple(chosen))


def hidden_here(opened: VaultHandle, scope: str | None = None) -> list[Hidden]:
    """The hidden texts of a scope, or of all, last hidden first. A memory written since is not hidden."""
    opened.ingest_edits()
    replica = opened.replica

    def is_current(one: Hidden) -> bool:
        part = opened.memories.in_scope(one.scope)
        return (
            not part.forgotten() and part.written(one.key, replica.store.entry(part.name(one.key))) == one.hlc
        )

    with replica.reading():
        every = hidden_texts(replica).values()
        rows = [one for one in every if scope in (None, one.scope) and is_current(one)]
    return sorted(rows, key=lambda one: (-one.at, one.scope, one.key))
