"""`memory.sessions`: conversations, kept item by item, that go on on every device."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import Any

from ipfsmem.memories.purge import erase
from ipfsmem.memories.sessions import SessionFacts, Sessions
from ipfsmem.parts.open_memory import OpenMemory
from ipfsmem.parts.part import MemoryPart


class MemorySessions(MemoryPart):
    """The sessions of one scope. A session is there from its first item on; any printable text is its name."""

    def __init__(self, opened: OpenMemory, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    def list(self) -> builtins.list[SessionFacts]:
        """The sessions by name. Raises NotFoundError when one is not fetched."""
        self._open.look()
        return self._sessions().listing()

    def items(self, session: str, limit: int | None = None) -> builtins.list[dict[str, Any]]:
        """The items in the order in which they were added, on whatever device; `limit`: the last ones, none for zero and less.

        Raises UsageError, and NotFoundError when a part of it is not fetched.
        """
        self._open.look()
        found = self._sessions().items(session)
        return found if limit is None else found[-limit:] if limit > 0 else []

    def add(self, session: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Add JSON objects at the end, durable together when this returns. Raises UsageError, LimitError."""
        self._open.look()
        self._shown(self._sessions().add(session, items))

    def pop(self, session: str) -> dict[str, Any] | None:
        """Take the last item away, and the item; None when there is none."""
        self._open.look()
        item, changed = self._sessions().pop(session)
        self._shown(changed)
        return item

    def forget(self, session: str, *, reason: str = "") -> bool:
        """Forget all of a session that this device knows, on every device. What another device adds at the same time begins it
        anew. False when there is none.
        """
        self._open.look()
        sessions, scope = self._sessions(), self._target()
        gone = sessions.forget(session, reason)
        for key in gone:
            if self._open.files is not None:
                self._open.files.forget(key, scope)
            if self._open.mode.only_here:
                erase(self._replica, self._open.memories.in_scope(scope), key)
        if gone:
            self._open.changed()
        return bool(gone)

    def _target(self) -> str:
        return self._open.scopes.target(self._scope) if self._scope else ""

    def _sessions(self) -> Sessions:
        """Those of the scope in which new ones are made."""
        return Sessions(self._open.memories.in_scope(self._target()))

    def _shown(self, keys: builtins.list[str]) -> None:
        for key in keys:
            self._open.show(key, self._target())
