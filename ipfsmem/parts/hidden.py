"""`memory.hidden`: what this device leaves out of its lists and answers. Nothing of it leaves this device, and nothing is deleted."""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from ipfsmem.device.hidden import MAX_REASON, Hidden, hidden_texts, hide, show
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.vault_handle import VaultHandle


class MemoryHidden(MemoryPart):
    """The hidden memories of one scope. `read` shows them all the same; who writes one anew has it in sight again."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope
        self._memories = opened.memories.in_scope(scope)

    def list(self, *, everywhere: bool = False) -> builtins.list[Hidden]:
        """What is hidden here of this scope, the last hidden first; `everywhere`: of all scopes."""
        self._open.ingest_edits()
        with self._replica.reading():
            found = [
                one
                for one in hidden_texts(self._replica).values()
                if (everywhere or one.scope == self._scope) and self._is_true(one)
            ]
        return sorted(found, key=lambda one: (-one.at, one.scope, one.key))

    def add(self, keys: Iterable[str], *, why: str = "by hand") -> builtins.list[str]:
        """Leave these memories out of lists, recall and context on this device; those that were not hidden before. Raises NotFoundError
        when there is none under a key, before anything is hidden."""
        if len(why) > MAX_REASON or not why.isprintable():
            raise UsageError(f"a reason has at most {MAX_REASON} printable characters")
        self._open.ingest_edits()
        now, new = self._replica.world.now(), []
        with self._replica.transaction():
            known = hidden_texts(self._replica)
            for key in dict.fromkeys(keys):
                name = self._memories.checked_name(key)
                hlc = self._memories.written(key, self._replica.store.entry(name))
                if not hlc:
                    raise NotFoundError(f"there is no memory {key}", hint="List them with: ipfsmem list")
                if (before := known.get((self._scope, key))) is None or before.hlc != hlc:
                    new.append(Hidden(self._scope, key, hlc, now, why))
            hide(self._replica, new)
        return [one.key for one in new]

    def bring_back(self, keys: Iterable[str] | None = None) -> builtins.list[str]:
        """Have these memories in sight again, all of this scope without `keys`; those that were hidden. Raises NotFoundError for one
        that is not, before anything changes."""
        there = [one.key for one in self.list()]
        wanted = there if keys is None else builtins.list(dict.fromkeys(keys))
        for key in wanted:
            if key not in there:
                raise NotFoundError(f"{key} is not hidden here", hint="List them: ipfsmem list --hidden")
        with self._replica.transaction():
            show(self._replica, [(self._scope, key) for key in wanted])
        return wanted

    def _is_true(self, one: Hidden) -> bool:
        """Whether the text that was hidden is still the one that stands there."""
        part = self._memories.in_scope(one.scope)
        if part.forgotten():
            return False
        return part.written(one.key, self._replica.store.entry(part.name(one.key))) == one.hlc
