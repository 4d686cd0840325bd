"""The texts that are hidden on this device and still shown under their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.device.hidden import Hidden, hidden_texts

if TYPE_CHECKING:
    from ipfsmem.parts.vault_handle import VaultHandle


def hidden_here(opened: VaultHandle, scope: str | None = None) -> list[Hidden]:
    """The hidden texts of a scope, or of all, the last hidden first. One that was written again since is not hidden."""
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
