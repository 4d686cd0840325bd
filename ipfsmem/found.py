"""The answers of recall; `results` has all others. A process that asks one question loads no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ipfsmem.answer import Answer
from ipfsmem.memories.writers import Writers, written_on

if TYPE_CHECKING:
    from ipfsmem.memories.recall import Hit, MomentHit, Recall


class Found(Answer, frozen=True, kw_only=True):
    """One memory that `recall` found. `own` False: the word of others, a candidate. `hides`: scopes whose text under this key is
    not shown for it. Where it was asked why, `parts` add up to the score, and `words` are those of the query that occur in it.
    `joined`, where that was asked for: its relations in the graph, each as what it begins at, its type and what it ends at."""

    key: str
    scope: str
    own: bool
    fields: dict[str, str]
    body: str
    seen: str
    #: What the device that wrote it is called, and the UTC date of that device's clock; empty where it is not known.
    by: str
    written: str
    #: How well it fits this question, beside the other hits.
    score: float
    hides: tuple[str, ...]
    parts: dict[str, float] | None
    words: tuple[str, ...] | None
    joined: tuple[tuple[str, str, str], ...] | None = None
    #: Among all hits, of whatever kind, from 1.
    place: int

    @classmethod
    def of(cls, hit: Hit, writers: Writers, *, why: bool, joined: bool = False) -> Found:
        """A hit; `writers` are those of the memory."""
        reading = hit.reading
        file = reading.readable
        return cls(
            key=reading.key,
            scope=reading.scope,
            own=reading.own,
            fields=file.fields,
            body=file.body,
            seen=reading.seen,
            by=writers.device(reading.device),
            written=written_on(reading.hlc),
            score=hit.score,
            hides=hit.hides,
            parts=hit.parts if why else None,
            words=hit.words if why else None,
            joined=hit.joined if joined else None,
            place=hit.place,
        )


class FoundMoment(Answer, frozen=True, kw_only=True):
    """An event of the timeline or a message of a session that `recall` found. `own` False: it was imported, a history. `at`: when,
    in UTC; `type`: that of the event, or who says the message (`user`, `assistant`, `tool`). `text`: the event's line, or what is
    said, after the name of its speaker where it has one. The rest as with a memory; its place tells the order among all that was found."""

    kind: Literal["event", "message"]
    scope: str
    own: bool
    at: str
    type: str
    session: str
    text: str
    event: dict[str, Any] | None
    by: str
    score: float
    parts: dict[str, float] | None
    words: tuple[str, ...] | None
    #: Among all hits, of whatever kind, from 1.
    place: int

    @classmethod
    def of(cls, hit: MomentHit, writers: Writers, *, why: bool) -> FoundMoment:
        """A hit; `writers` are those of the memory."""
        moment = hit.moment
        return cls(
            kind=moment.kind,
            scope=moment.scope,
            own=moment.own,
            at=moment.when,
            type=moment.type,
            session=moment.session,
            text=hit.text,
            event=None if hit.event is None else dict(hit.event),
            by=writers.device(moment.device) if moment.device else "",
            score=hit.score,
            parts=hit.parts if why else None,
            words=hit.words if why else None,
            place=hit.place,
        )


class Recalled(Answer, frozen=True, kw_only=True):
    """What `recall` found: the best hits of `searched` memories, and `moments`, where events or messages were asked for. `ranking`
    says by what they are in order: `words` is without a
    model. In `not_fetched` memories nothing could be looked for. `notice`: what a person should know of the model, said once."""

    ranking: Literal["words", "words and meaning"] = "words"
    searched: int
    not_fetched: int
    hits: tuple[Found, ...]
    notice: str = ""
    moments: tuple[FoundMoment, ...] = ()

    def in_order(self) -> list[Found | FoundMoment]:
        """All that was found, the best first, own ones before those of others."""
        return sorted((*self.hits, *self.moments), key=lambda one: one.place)

    @classmethod
    def of(cls, found: Recall, writers: Writers, *, why: bool = False, joined: bool = False) -> Recalled:
        """What was found; `writers` are those of the memory."""
        hits = tuple(Found.of(hit, writers, why=why, joined=joined) for hit in found.hits)
        return cls(
            ranking="words and meaning" if found.by_meaning else "words",
            searched=found.searched,
            not_fetched=found.not_fetched,
            hits=hits,
            notice=found.notice,
            moments=tuple(FoundMoment.of(hit, writers, why=why) for hit in found.moments),
        )
