"""Groups of methods of a memory, such as `memory.sessions`: the declared operations with what is not declared yet."""

from __future__ import annotations

from ipfsmem.methods import SessionMethods
from ipfsmem.operation import View
from ipfsmem.parts.conversation import Conversation
from ipfsmem.parts.sessions import MemorySessions
from ipfsmem.sessions.compaction import Summariser


class Sessions(SessionMethods, MemorySessions):
    """The sessions of one scope. A session is there from its first item on; any printable text is its name."""

    def conversation(self, session: str, *, summarise: Summariser | None = None) -> Conversation:
        """The session as an agent's loop has it: resumed, saved after each turn, trimmed, compacted by itself; it raises nothing.

        `summarise` makes the summaries; without it their sentences are chosen from what was said. Raises ConfigError for settings that
        cannot be used.
        """
        from ipfsmem.config import settings

        def turn_over(said: str) -> None:
            running = self._open.plugins()
            if running is not None:
                running.turn_complete(session, said)

        return Conversation(self, session, settings().sessions, summarise, turn_over)

    def _view(self) -> View:
        return View(self._open, self._scope)
