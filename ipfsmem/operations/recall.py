"""The operation `recall`: find the memories, events or messages that match a question, best first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.bundle.session_parts import RECALLED_TYPES
from ipfsmem.errors import UsageError
from ipfsmem.memories.event_entries import Kind
from ipfsmem.memories.query_words import MAX_HITS, MAX_PHRASINGS, MAX_QUERY, MAX_RANGE
from ipfsmem.operation import MAX_WORD, Category, Cli, Except, ForModels, Tag, View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.recall import Hit, Matches, MomentHit
    from ipfsmem.memories.writers import Writers

#: Maximum characters of the name of a device, member, speaker or thing.
MAX_NAME = 128


class RecallHit(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that `recall` found. `own` is false for a pending text of others. `hides`: the scopes whose text under this
    key it overrides. With `explain`, `parts` add up to the score, and `words` are the words of the question that it
    contains. With `include_relations`: its relations in the graph, each as begin, type and end."""

    key: str
    scope: str
    own: bool
    fields: dict[str, str]
    body: str
    #: Identifies this text: `write` and `forget` with it replace this text only.
    seen: str
    #: The label of the device that wrote it; empty if unknown.
    by: str
    #: For a text of others, the label of the member who owns that device; empty if unknown.
    member: str
    #: The UTC date on which it was written, by that device's clock; empty if unknown.
    written: str
    #: The score for this question; comparable only among hits of one question.
    score: float
    hides: tuple[str, ...]
    parts: dict[str, float] | None
    words: tuple[str, ...] | None
    joined: tuple[tuple[str, str, str], ...] | None = None
    #: Its rank among the hits of every kind, from 1.
    place: int

    @property
    def file(self) -> MemoryFile:
        """Return header and body as a memory file."""
        return MemoryFile(self.fields, self.body)


class FoundMoment(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the timeline or a message of a session that `recall` found. `own` is false for an event that was imported or that
    others wrote, and for an imported message that nobody approved. `at`: its time, in UTC. `type`: the type of the event, or the role of the message (`user`,
    `assistant`, `tool`). `text`: the line of the event, or the message after the name of its speaker, if it has one. `place`: its rank
    among the hits of every kind. The other fields are those of a memory."""

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
    place: int


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `recall`: the best hits among the `searched` memories, and `moments` if events or messages were searched.
    `ranking`: what the order is based on; `words` without a model. `not_fetched`: memories that were not searched because their text is
    not on this device yet. `notice`: a problem of the model, for a person to read; reported once."""

    ranking: Literal["words", "words and meaning"] = "words"
    searched: int
    not_fetched: int
    hits: tuple[RecallHit, ...]
    notice: str = ""
    moments: tuple[FoundMoment, ...] = ()

    @property
    def by_meaning(self) -> bool:
        """Tell whether the ranking used vectors of a model."""
        return self.ranking != "words"

    def in_order(self) -> list[RecallHit | FoundMoment]:
        """Return all hits, best first, own ones before those of others."""
        return sorted((*self.hits, *self.moments), key=lambda one: one.place)


@operation(
    summary="Find the memories that match a question",
    right="read",
    about="stack",
    audit="recall",
    http="POST /v1/recall",
    tool="recall",
    title="Recall memories",
    for_models=(
        "Search the memory, best match first. Use it before answering about the person, their projects, preferences or past "
        "decisions. Ask whole questions, with names, not pronouns. Pass two phrasings as queries, one in words and languages the text "
        "likely has. Several hops: ask each, then again with what you found."
    ),
    waits=True,
    raises=(
        "UsageError: the question has no word, `by` names nobody, or `threshold` is given without a model.",
    ),
)
def recall(
    view: View,
    query: Annotated[
        str | None,
        Meta(min_length=1, max_length=MAX_QUERY, description="A question or a few words."),
        Cli(metavar="WORDS", joined=True),
        ForModels("Question or words."),
    ] = None,
    *,
    queries: Annotated[
        Iterable[Annotated[str, Meta(min_length=1, max_length=MAX_QUERY)]],
        Meta(
            max_length=MAX_PHRASINGS,
            description="Other phrasings of the question, or the questions that it consists of.",
        ),
        Cli("also", "TEXT", "Another phrasing of the question; repeatable."),
        ForModels("Phrasings."),
    ] = (),
    kind: Annotated[
        Kind,
        Meta(
            description="Entries to search: memories, events of the timeline, messages of sessions, or all of them."
        ),
        ForModels("Search events or session messages instead, or all."),
    ] = "memory",
    limit: Annotated[
        int,
        Meta(ge=1, le=MAX_HITS, description="Maximum number of results."),
        Cli(metavar="N"),
        ForModels("Most results.", default=5, most=50),
    ] = 10,
    type: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_WORD,
            description="Only memories of this type, events of this type, or messages of this role (user, assistant, tool).",
        ),
        Cli(metavar="TYPE"),
        ForModels("Only this kind.", words=RECALLED_TYPES),
    ] = None,
    tag: Tag = None,
    category: Category = None,
    when: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_RANGE,
            description="Only texts from this time range: last week, may 2023, since friday.",
        ),
        Cli(metavar="RANGE"),
        ForModels("Only then: last week, may 2023, until friday."),
    ] = None,
    since: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_RANGE,
            description="Only texts since this time: 7d, yesterday, friday, 2023-05-08.",
        ),
        Cli(metavar="TIME"),
        ForModels("Only since: 7d or a date."),
    ] = None,
    until: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_RANGE,
            description="Only texts until the end of this time: yesterday, may 2023, 2023-05-08.",
        ),
        Cli(metavar="TIME"),
        Except(("mcp",)),
    ] = None,
    by: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=MAX_NAME,
            description="Only texts that this device, member or speaker wrote or said.",
        ),
        Cli(metavar="NAME"),
        ForModels("Only by: device, member, speaker."),
    ] = None,
    about: Annotated[
        str | None,
        Meta(min_length=1, max_length=MAX_NAME, description="Only texts that name this person or thing."),
        Cli(metavar="NAME"),
        ForModels("Only naming this."),
    ] = None,
    threshold: Annotated[
        float | None,
        Meta(ge=-1, le=1, description="Minimum cosine similarity to the question; needs a model."),
        Cli(metavar="COSINE"),
        Except(("mcp",)),
    ] = None,
    explain: Annotated[
        bool,
        Meta(
            description="Show the parts of each score, and the words of the question that each hit contains."
        ),
        ForModels("Scores."),
    ] = False,
    include_relations: Annotated[
        bool,
        Meta(description="Show the relations of each memory in the graph."),
        ForModels("Of the graph."),
    ] = False,
) -> Recalled:
    """Find the memories that match a question or a few words, best first.

    The ranking compares words (in name, description, tags, key and text, ignoring case, accents and
    English endings), then type, tags, importance and age, and embeddings if a model is installed or
    configured. Your own texts come before pending texts of others.

    With `kind`, events of the timeline and messages of sessions are searched too. With `queries`, each
    phrasing is ranked separately, and a hit is placed by its highest score relative to the best hit of
    a phrasing.
    """
    from ipfsmem.memories.recall import Question, search
    from ipfsmem.memories.writers import Writers

    view.opened.ingest_edits()
    times = (when, since, until)
    matches = search(
        view.sources(),
        Question(
            query,
            queries,
            kind,
            limit,
            type,
            tag,
            category,
            *times,
            by,
            about,
            threshold,
            explain,
            include_relations=include_relations,
        ),
        read=True,
    )
    if (
        type is not None
        and kind == "memory"
        and type not in RECALLED_TYPES
        and not _is_there(matches, type, view)
    ):
        raise UsageError(f"unknown memory type {type!a}; supported: {', '.join(RECALLED_TYPES)}")
    writers = Writers(view.opened.replica)
    memories = [hit for one in matches.memories if (hit := one.hit) is not None]
    moments = [moment for one in matches.moments if (moment := one.moment_hit) is not None]
    return Recalled(
        ranking="words and meaning" if matches.by_meaning else "words",
        searched=matches.searched,
        not_fetched=matches.not_fetched,
        hits=tuple(
            _recall_hit(hit, writers, explain=explain, include_relations=include_relations)
            for hit in memories
        ),
        notice=matches.notice,
        moments=tuple(_moment(one, writers, explain=explain) for one in moments),
    )


def _is_there(matches: Matches, type: str, view: View) -> bool:
    """Tell whether a memory here has this type: files written by hand may have other types."""
    from ipfsmem.memories.search_index import Filter

    if matches.searched:
        return True
    filter_ = Filter(type)
    with view.opened.replica.reading():
        index = matches.source.index(view.sources(), filter_.of_index)
        passing = matches.source.passing(index, filter_)
    return bool(len(index) if passing is None else passing)


def _recall_hit(hit: Hit, writers: Writers, *, explain: bool, include_relations: bool) -> RecallHit:
    from ipfsmem.memories.writers import written_on

    reading = hit.reading
    file = reading.readable
    return RecallHit(
        key=reading.key,
        scope=reading.scope,
        own=reading.own,
        fields=file.fields,
        body=file.body,
        seen=reading.seen,
        by=writers.device(reading.device) if reading.device else "",
        member="" if reading.own else writers.member(reading.device),
        written=written_on(reading.hlc),
        score=hit.score,
        hides=hit.hides,
        parts=hit.parts if explain else None,
        words=hit.words if explain else None,
        joined=hit.joined if include_relations else None,
        place=hit.place,
    )


def _moment(hit: MomentHit, writers: Writers, *, explain: bool) -> FoundMoment:
    moment = hit.moment
    return FoundMoment(
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
        parts=hit.parts if explain else None,
        words=hit.words if explain else None,
        place=hit.place,
    )
