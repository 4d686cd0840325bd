"""A session as the loop of an agent has it: resumed at its start, saved after each turn, and never in the agent's way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ipfsmem.config import SessionSettings
from ipfsmem.sessions.compaction import Summariser, resumed
from ipfsmem.sessions.cutting import trimmed
from ipfsmem.sessions.messages import read_message, without_system

if TYPE_CHECKING:
    from ipfsmem.parts.sessions import MemorySessions

_LOG = logging.getLogger("ipfsmem.sessions")


class Saved(NamedTuple):
    """What one saving did."""

    #: Messages that were added.
    added: int
    #: Why they were not, in words; "" when they were. They are added with the next saving.
    problem: str = ""


class Conversation:
    """One session of a memory. Messages are JSON objects in any of the shapes that `sessions/messages.py` reads, or any other."""

    def __init__(
        self,
        sessions: MemorySessions,
        session: str,
        limits: SessionSettings,
        summarise: Summariser | None = None,
        turn_over: Callable[[str], None] = lambda said: None,
    ) -> None:
        """Made by `memory.sessions.conversation`. `turn_over` is told what was said when a turn was saved."""
        self.session = session
        self._sessions = sessions
        self._limits = limits
        self._summarise = summarise
        self._turn_over = turn_over
        #: What the program has, as far as it was resumed or saved, without the summary that it was given.
        self._known: list[dict[str, Any]] = []
        self._summary = ""
        #: So many messages may come before the session can be too long; looking reads all of it.
        self._room = 0

    def resume(self, last: int | None = None) -> list[dict[str, Any]]:
        """The last messages, 20 unless the settings or `last` say otherwise, from the beginning of a turn on, without instructions of
        the system; before them the summary of what is left out, where the session was compacted. Empty where nothing can be read: why
        is logged. Never raises but for wrong arguments."""
        try:
            found = self._sessions.told(self.session)
            given = resumed(found, self._limits.resume if last is None else last)
        except Exception as error:
            _failed("resumed", self.session, error)
            return []
        self._summary = read_message(given[0]).text if found.summary is not None and given else ""
        self._known = given[1:] if self._summary else given
        return [dict(item) for item in given]

    def save(self, messages: Iterable[Mapping[str, Any]]) -> Saved:
        """Add what is new in the whole history that the program has: durable when this returns.

        The history may be cut at its beginning since the last saving. Instructions of the system are left out. Whatever goes wrong is
        logged and said in the answer, and nothing is raised into the agent's loop.
        """
        try:
            given = [item for one in messages if (item := without_system(one)) is not None]
            if given and self._summary and read_message(given[0]).text == self._summary:
                del given[0]
            new = given[_shared(self._known, given) :]
            if new:
                self._sessions.add(self.session, new)
            self._known = given
        except Exception as error:
            _failed("saved", self.session, error)
            return Saved(0, str(error) or type(error).__name__)
        self._compact(len(new))
        self._tell(new)
        return Saved(len(new))

    def trim(self, messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The history cut to twice as many messages as are resumed, from the beginning of a turn on: what a running agent keeps."""
        return trimmed(list(messages), 2 * self._limits.resume)

    def _compact(self, added: int) -> None:
        self._room -= added
        if not self._limits.compact or (self._room >= 0 and not self._limits.compact_tokens):
            return
        try:
            self._sessions.compact(self.session, summarise=self._summarise)
            self._room = self._limits.compact_at - len(self._sessions.told(self.session).after)
        except Exception as error:
            _failed("compacted", self.session, error)

    def _tell(self, new: list[dict[str, Any]]) -> None:
        """Tell what was said in a turn that ends with an answer."""
        try:
            said = [read_message(item) for item in new]
            if said and said[-1].role == "assistant":
                self._turn_over("\n".join(f"{one.role}: {one.text}" for one in said if one.text))
        except Exception as error:
            _failed("told to plugins", self.session, error)


def _shared(known: list[dict[str, Any]], given: list[dict[str, Any]]) -> int:
    """How many of the first of `given` are the last of `known`: the most that fit."""
    for shared in range(min(len(known), len(given)), 0, -1):
        if known[-shared:] == given[:shared]:
            return shared
    return 0


def _failed(what: str, session: str, error: Exception) -> None:
    _LOG.warning("the session %s could not be %s: %s", session, what, error)
    _LOG.debug("why", exc_info=error)
