"""`memory.sessions`: conversations, kept item by item, that go on on every device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from ipfsmem.bundle.session_parts import HISTORY
from ipfsmem.config import SessionSettings, settings
from ipfsmem.errors import StorageError, UsageError
from ipfsmem.memories.context import tokens_of
from ipfsmem.memories.session_search import SessionHit, search
from ipfsmem.memories.sessions import SessionFacts
from ipfsmem.memories.sessions_here import AllSessions
from ipfsmem.memories.words import MAX_QUERY
from ipfsmem.parts.open_memory import OpenMemory
from ipfsmem.parts.part import MemoryPart, waits_outside
from ipfsmem.sessions.compaction import (
    Entry,
    StoredSession,
    Summariser,
    Told,
    extract,
    is_mark,
    resumed,
    summaries_given,
    summarised,
    summary_mark,
    told,
    what_to_cover,
)

if TYPE_CHECKING:
    from ipfsmem.parts.summaries import ModelSummariser

#: What a summary is made by when nobody gave a summariser.
_BY_SENTENCES = "choosing its sentences"


class MemorySessions(MemoryPart):
    """The sessions of one scope. A session is there from its first item on; any printable text is its name."""

    def __init__(self, opened: OpenMemory, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    # -- reading -------------------------------------------------------------------------------------------------

    def known(self) -> list[SessionFacts]:
        """The sessions without their messages, also damaged ones, the last written to first. Raises NotFoundError when one is not fetched."""
        self._open.look()
        return self._sessions().listing()

    def latest(self) -> str | None:
        """The session that was last written to; None when there is none."""
        return next((one.session for one in self.known()), None)

    def items(self, session: str, limit: int | None = None) -> list[dict[str, Any]]:
        """The items in the order in which they were added, on whatever device; `limit`: the last ones, none for zero and less.

        Raises UsageError, and NotFoundError when a part of it is not fetched.
        """
        found = [entry.item for entry in self.told(session).messages]
        return found if limit is None else found[-limit:] if limit > 0 else []

    def told(self, session: str) -> Told:
        """All of a session, with its title and its last summary. Raises NotFoundError when a part of it is not fetched."""
        self._open.look()
        return told(self._sessions().entries(session))

    def kept(self, session: str) -> StoredSession:
        """All of a session, for a program that has a history of its own. Raises NotFoundError when a part of it is not fetched."""
        self._open.look()
        entries = self._sessions().entries(session)
        device = self._replica.device.id
        return StoredSession(
            told(entries),
            [(entry.item, entry.place[1] == device) for entry in entries if not is_mark(entry.item)],
            frozenset(summaries_given(entries)),
        )

    def told_each(self, sessions: Iterable[str], problems: dict[str, StorageError]) -> dict[str, Told]:
        """`told` of several, by name. One that is damaged is left out, and `problems` gets why, by name. Raises NotFoundError when a part is
        not fetched."""
        self._open.look()
        return {name: told(entries) for name, entries in self._sound(sessions, problems).items()}

    def seen(self, session: str) -> str:
        """A hash that stands for all of a session as it is now, for `forget`. Raises NotFoundError when a part of it is not fetched."""
        self._open.look()
        return self._sessions().seen(session)

    def due(self, session: str) -> int:
        """How many messages `compact` would cover now. Raises NotFoundError when a part of it is not fetched."""
        return to_cover(self.told(session), _limits(), now=False)

    def resume(self, session: str, last: int | None = None) -> list[dict[str, Any]]:
        """The last messages, 20 unless the settings or `last` say otherwise, from the beginning of a turn on and without instructions of
        the system; before them the summary of what is left out, where the session was compacted.

        Raises UsageError, and NotFoundError when a part of it is not fetched.
        """
        return resumed(self.told(session), _limits().resume if last is None else last)

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        problems: dict[str, StorageError] | None = None,
        zone: tzinfo | None = None,
    ) -> list[SessionHit]:
        """The messages of all sessions that fit a question best. `zone`: the time zone of days in the question, such as "yesterday"; None for
        this machine's. Raises UsageError for an empty one, StorageError where a session is
        damaged: with `problems` that one is left out, and these get why, by name."""
        if not query.strip():
            raise UsageError("the question is empty")
        if len(query) > MAX_QUERY:
            raise UsageError(f"a query has at most {MAX_QUERY:,} characters")
        self._open.look()
        named = [one.session for one in self._sessions().listing()]
        today = self._replica.world.today(zone)
        damaged: dict[str, StorageError] = {} if problems is None else problems
        found = self._sound(named, damaged)
        if problems is None and damaged:
            raise next(iter(damaged.values()))
        return search(found, query, max(0, limit), today, zone)

    def _sound(self, named: Iterable[str], problems: dict[str, StorageError]) -> dict[str, list[Entry]]:
        sessions, found = self._sessions(), {}
        for name in named:
            try:
                found[name] = sessions.entries(name)
            except StorageError as error:
                problems[name] = error
        return found

    def is_here(self, session: str) -> bool:
        """Whether a session is kept on this device only, or some of it."""
        return self._sessions().is_here(session)

    # -- writing -------------------------------------------------------------------------------------------------

    def _add(self, session: str, items: Iterable[Mapping[str, Any]]) -> None:
        check_conversation(session)
        self._open.look()
        self._shown(self._sessions().add(session, items))

    def pop(self, session: str) -> dict[str, Any] | None:
        """Take the last item away, and the item; None when there is none. Raises UsageError."""
        check_conversation(session)
        self._open.look()
        item, changed = self._sessions().pop(session)
        self._shown(changed)
        return item

    @waits_outside
    def compact(
        self,
        session: str,
        *,
        now: bool = False,
        summarise: Summariser | None = None,
        by: str = "a summariser",
    ) -> int:
        """Let a summary stand for what was said longer ago when the session is resumed; how many messages it covers more than before.

        Nothing is taken away. Without `now` only a session that is longer than the settings allow is compacted, 0 else; with it all
        but the last `compact_keep` messages are covered. `summarise` is given what is covered and the most characters, `by` says what made
        the summary. Raises NotFoundError when a part is not fetched, and what `summarise` raises: then nothing is changed.
        """
        limits, found = _limits(), self.told(session)
        number = to_cover(found, limits, now=now)
        if number:
            try:
                made = (
                    summarised(found, number, extract, _BY_SENTENCES, limits.summary)
                    if summarise is None
                    else summarised(found, number, summarise, by, limits.summary)
                )
            finally:
                self._note_use(summarise)
            self._add(session, [summary_mark(made)])
        return number

    def _note_use(self, summarise: Summariser | None) -> None:
        """Note what a model was used for a summary."""
        from ipfsmem.parts.summaries import ModelSummariser  # few ask one
        from ipfsmem.parts.usage import note_model_use

        if isinstance(summarise, ModelSummariser) and summarise.given + summarise.said:
            given, said = summarise.given, summarise.said
            summarise.given = summarise.said = 0
            note_model_use(self._open, self._target(), "compact", summarise.name, given, said)

    def model_summariser(self) -> ModelSummariser:
        """A summariser for `compact` and `conversation` that asks the model of the settings' table `[model]`: what is covered leaves the
        device. Raises ConfigError where the settings name none."""
        from ipfsmem.parts.summaries import ModelSummariser  # few ask one

        return ModelSummariser()

    def _target(self) -> str:
        return self._open.scopes.target(self._scope) if self._scope else ""

    def _sessions(self) -> AllSessions:
        """Those of the scope in which new ones are made."""
        return AllSessions(self._open.memories.in_scope(self._target()), here_only=_limits().here_only)

    def _shown(self, keys: list[str]) -> None:
        for key in keys:
            self._open.show(key, self._target())


def check_conversation(session: str) -> None:
    """Raises UsageError for a session that holds the earlier texts of a memory: they are what it said, and nobody writes them."""
    if session.startswith(HISTORY):
        raise UsageError(
            f"{session[:80]} holds the earlier texts of a memory, so it is no conversation",
            hint=f"See them: ipfsmem fact history {session.removeprefix(HISTORY)[:64]}",
        )


def to_cover(found: Told, limits: SessionSettings, *, now: bool) -> int:
    """How many messages a summary would cover: `now`, or by itself."""
    return what_to_cover(
        found,
        messages=limits.compact_keep if now else limits.compact_at,
        keep=limits.compact_keep,
        tokens=0 if now else limits.compact_tokens,
        tokens_of=tokens_of,
    )


def _limits() -> SessionSettings:
    return settings().sessions
