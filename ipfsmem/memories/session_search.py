"""Searches the messages of sessions with the ranking of recall. The index is in memory only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, tzinfo

import msgspec

from ipfsmem.recall.index import Document, Index
from ipfsmem.recall.ranking import rank
from ipfsmem.sessions.compaction import PlacedItem, told
from ipfsmem.sessions.messages import Message, read_message
from ipfsmem.wording import local_day


class SessionHit(msgspec.Struct, frozen=True):
    """One message that was found."""

    session: str
    #: Milliseconds since 1970 UTC of its addition, by the clock of the adding device.
    at: int
    role: str
    text: str
    #: As in recall: comparable only within one search.
    score: float
    #: False if the message is pending: imported and not approved.
    own: bool = True


def search(
    sessions: Mapping[str, Sequence[PlacedItem]],
    query: str,
    limit: int,
    today: date,
    zone: tzinfo | None = None,
) -> list[SessionHit]:
    """Return the messages that share a word with the query, best first. `zone`: the time zone of days, None: this machine's.
    Summaries are not searched, because the messages that they cover are."""
    messages: dict[str, tuple[str, PlacedItem, Message, bool]] = {}
    index = Index()
    for session, entries in sessions.items():
        session_told = told(entries)
        for entry in session_told.messages:
            message = read_message(entry.item)
            if message.text and message.role != "system":
                number = f"{len(messages):09}"
                messages[number] = session, entry, message, entry.place not in session_told.pending
                # Each message is a group of its own, so that neighbours of a match are not found.
                index.add(Document(number, message.text, at=local_day(entry.place[0], zone)))
    chosen = []
    for hit in rank(index, query, today=today, limit=limit):
        session, entry, message, own = messages[hit.id]
        score = round(hit.score, 3)
        chosen.append(SessionHit(session, entry.place[0], message.role, message.text, score, own))
    return chosen
