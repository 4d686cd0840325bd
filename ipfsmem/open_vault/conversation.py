"""A session for the loop of an agent: resumed at its start, saved after each turn, without errors in the agent's way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ipfsmem.config import SessionSettings
from ipfsmem.errors import NotFoundError, StorageError
from ipfsmem.sessions.alignment import (
    Atom,
    all_atoms,
    items_from,
    starts_with,
    stored_atoms,
    without_notices,
    without_summary,
)
from ipfsmem.sessions.compaction import SessionTranscript, StoredSession, Summariser, resumed
from ipfsmem.sessions.cutting import trimmed
from ipfsmem.sessions.messages import read_message, without_system

_LOG = logging.getLogger("ipfsmem.sessions")


class _Sessions(Protocol):
    """Methods of `memory.sessions` that a conversation needs."""

    def kept(self, session: str) -> StoredSession: ...

    def told(self, session: str) -> SessionTranscript: ...

    def add(self, session: str, items: Iterable[Mapping[str, Any]]) -> object: ...

    def compact(self, session: str, *, summarise: Summariser | None = None) -> object: ...


class Saved(NamedTuple):
    """The result of a save."""

    #: Messages that were added.
    added: int
    #: Why messages were not added; "" if they were. The next save adds them.
    problem: str = ""


class Conversation:
    """A session. Messages are JSON objects in any of the forms that `sessions/messages.py` reads, or any other."""

    def __init__(
        self,
        sessions: _Sessions,
        session: str,
        limits: SessionSettings,
        summarise: Summariser | None = None,
        turn_over: Callable[[str], None] = lambda said: None,
    ) -> None:
        """Created by `memory.sessions.conversation`. `turn_over` is called with the messages of a saved turn."""
        self.session = session
        self._sessions = sessions
        self._limits = limits
        self._summarise = summarise
        self._turn_over = turn_over
        #: The program's history when it was last resumed or saved; None before.
        self._sent: list[Atom] | None = None
        #: The stored messages, until the first save shows which of them the program has.
        self._stored: list[Atom] | None = None
        #: The summaries that a resumed history may begin with.
        self._summaries = frozenset[str]()
        #: Messages that may be added before the session can be too long; a check reads the whole session.
        self._room = 0

    def resume(self, last: int | None = None) -> list[dict[str, Any]]:
        """Return the last messages (`last`, or the setting `sessions.resume`: 20) from the start of a turn, without system
        instructions. If the session was compacted, the summary of omitted messages comes first. Empty if the session is
        unreadable, which is logged. Raises only for wrong arguments.
        """
        try:
            stored = self._sessions.kept(self.session)
            items = resumed(stored.told, self._limits.resume if last is None else last)
        except Exception as error:
            _failed("resumed", self.session, error)
            return []
        self._summaries = stored.summaries
        self._stored = _atoms_of(stored)
        self._sent = all_atoms((one, True) for one in without_summary(items, self._summaries))
        return [dict(item) for item in items]

    def save(self, messages: Iterable[Mapping[str, Any]]) -> Saved:
        """Add the new messages of the whole history that the program has; they are durable when this returns.

        Stored messages are recognised by their content, their ids and their order, also by another process that did not call `resume`.
        The history may be cut at its beginning. System instructions are left out. An error is logged and returned, never raised into the
        agent's loop.
        """
        try:
            items = [item for one in messages if (item := without_system(one)) is not None]
            new = self._new(items)
            if new:
                self._sessions.add(self.session, new)
            self._sent = all_atoms((one, True) for one in without_summary(items, self._summaries))
            self._stored = None
        except Exception as error:
            _failed("saved", self.session, error)
            return Saved(0, str(error) or type(error).__name__)
        self._compact(len(new))
        self._tell(new)
        return Saved(len(new))

    def _new(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages, or later parts of them, that are not stored; all if the session is unreadable."""
        if not messages:
            return []
        items, items_now = self._compared(messages)
        earlier, stored = self._sent, self._stored
        if earlier and stored is None:
            shared = stored_atoms(earlier, items_now)
            if shared:
                return items_from(items, shared)
        if stored is None:
            try:
                session = self._sessions.kept(self.session)
            except (NotFoundError, StorageError) as error:
                # A duplicate is better than a loss.
                _failed("compared", self.session, error)
                return items
            self._summaries, stored = session.summaries, _atoms_of(session)
            items, items_now = self._compared(messages)
        shared = stored_atoms(stored, items_now)
        if earlier and shared < len(stored) and starts_with(items_now, earlier):
            # The program continues with the resumed messages; later ones are new, even if they are alike.
            shared = len(earlier)
        return items_from(items, shared)

    def _compared(self, messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Atom]]:
        items = without_summary(messages, self._summaries)
        return items, all_atoms((one, True) for one in items)

    def trim(self, messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Cut the history of a running agent to twice the number of resumed messages, from the start of a turn."""
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
        """Pass on the messages of a turn that ends with an answer."""
        try:
            turns = [read_message(item) for item in new]
            if turns and turns[-1].role == "assistant":
                self._turn_over("\n".join(f"{one.role}: {one.text}" for one in turns if one.text))
        except Exception as error:
            _failed("told to plugins", self.session, error)


def _atoms_of(session: StoredSession) -> list[Atom]:
    """Return the atoms of stored messages, to be compared with a program's history."""
    return all_atoms((one, own) for item, own in session.items for one in without_notices([item]))


def _failed(action: str, session: str, error: Exception) -> None:
    _LOG.warning("the session %s could not be %s: %s", session, action, error)
    _LOG.debug("why", exc_info=error)
