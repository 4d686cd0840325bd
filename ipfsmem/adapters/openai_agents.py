"""A `Session` of the OpenAI Agents SDK on an ipfsmem vault: the conversation continues on any device, sealed in transit.

    result = await Runner.run(agent, "...", session=session(memory, "chat-1"))

`Session` is a protocol, so nothing of that package is imported. Extra: `openai-agents`, for the runner itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ipfsmem.adapters.extras import extra
from ipfsmem.bundle.session_parts import session_token
from ipfsmem.in_thread import in_thread
from ipfsmem.memory import Memory
from ipfsmem.sessions.compaction import noticed

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings

__all__ = ["MemorySession", "session"]


class MemorySession:
    """One session, with the interface of `agents.Session`. The work is done in threads."""

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        """`memory`: a vault, or one scope of it. `session_settings`: its `limit` is the default of calls; as a mapping it needs
        the package. Raises UsageError for an invalid session name."""
        session_token(session_id)
        self.session_id = session_id
        self.session_settings: SessionSettings | None = (
            _settings(session_settings) if isinstance(session_settings, Mapping) else session_settings
        )
        self._sessions = memory.sessions

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order; `limit`: the last ones. A notice precedes imported, unapproved ones."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        answer: Any = await in_thread(lambda: noticed(self._sessions.told(self.session_id), limit))
        items: list[TResponseInputItem] = answer
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, durable on return."""
        messages: list[Any] = list(items)
        await in_thread(lambda: self._sessions.add(self.session_id, messages))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item, or None."""
        answer: Any = await in_thread(lambda: self._sessions.pop(self.session_id).item)
        item: TResponseInputItem | None = answer
        return item

    async def clear_session(self) -> None:
        """Forget the session, on every device."""
        await in_thread(lambda: self._sessions.forget(self.session_id, reason="session cleared"))


def session(
    memory: Memory,
    session_id: str,
    *,
    session_settings: SessionSettings | Mapping[str, Any] | None = None,
) -> MemorySession:
    """Return the session with this name. It exists on every device of the vault from its first item on. Any printable text is a
    valid name."""
    return MemorySession(memory, session_id, session_settings)


def _settings(args: Mapping[str, Any]) -> SessionSettings:
    with extra("openai-agents"):
        from agents.memory import SessionSettings
    return SessionSettings(**args)
