"""The tools of everyday: remember, read, list, forget, note, recall, context, resolve a conflict.

Each calls the operation of `Memory` that `docs/MCP.md` names beside it. Writes replace only what the model was shown: without
the `seen` of an answer nothing is replaced, and what stands there is shown instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ipfsmem.bundle.fence import CANDIDATE, NOTICE, Quoted, clean_text, tagged
from ipfsmem.bundle.habits import shortcomings
from ipfsmem.bundle.memory_file import TYPES, MemoryFile
from ipfsmem.bundle.session_parts import SESSION
from ipfsmem.config import context_tokens
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.layouts import LAYOUTS, LEAST_TOKENS, TOKEN_BYTES, usual_tokens
from ipfsmem.memories.memories import Listed
from ipfsmem.memories.moment_kinds import KINDS
from ipfsmem.memories.readings import Reading
from ipfsmem.memories.words import MAX_QUERY
from ipfsmem.memories.write_request import WriteRequest
from ipfsmem.tools.definition import KEY, SCOPE, Definition
from ipfsmem.tools.desk import TEXT_SCHEMA, Desk, as_values, fenced, notice, one_line, place, whose
from ipfsmem.tools.schema import JSON, answer, arguments, choice, number, text, texts, yes
from ipfsmem.tools.settling import resolve_conflict
from ipfsmem.tools.tool import ToolResult, refusal
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memories.recall import MomentHit
    from ipfsmem.memories.writers import Writers

#: Characters of one text that one answer shows.
PAGE: Final = 50_000
HIT: Final = 4_000
MAX_BODY: Final = 900_000
_TAG_MARKS: Final = frozenset(",[]\n\r\"'")

_string, _flag, _count = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
_SEEN = text("The seen of the answer that showed you the text.", least=8, most=64)


# -- remember ------------------------------------------------------------------------------------------------


def _remember(desk: Desk, given: JSON) -> ToolResult:
    there, key, seen = desk.there_by_type(given), given["key"], given.get("seen")
    body, tags = given.get("body"), given.get("tags")
    fields = {name: given.get(name) for name in ("name", "description", "type")}
    for tag in tags or ():
        if not tag.strip() or not _TAG_MARKS.isdisjoint(tag):
            raise UsageError(
                f"{tag!r} cannot be a tag",
                hint="A tag is a word without commas, brackets and quotation marks.",
            )
    if body is not None and not body.strip():
        raise UsageError("the text is empty, so nothing was written", hint="To take a memory away: forget.")
    WriteRequest(
        text=None if body is None else body.encode(),
        whole=False,
        name=given.get("name"),
        description=given.get("description"),
        type=given.get("type"),
        tags=tuple(tags or ()),
    ).check()
    shown = there.read(key)
    if seen is None and shown is not None and shown.own:
        if _is_there(shown, body, tags, fields):
            return _written(desk, shown, "is there already, as you gave it")
        return shown_instead(
            desk, shown, ChangedError(f"there is a memory {place(shown)} already, so nothing was written")
        )
    if seen is not None and (shown is None or not shown.seen.startswith(seen.lower())):
        error = ChangedError(f"{key} is not what was read, so nothing was written")
        elsewhere = desk.read(key, given)
        if elsewhere is not None and elsewhere.seen.startswith(seen.lower()):
            error.hint = _elsewhere(elsewhere)
            raise error
        if shown is None:
            raise error
        return shown_instead(desk, shown, error)
    # What nobody was shown is not replaced: without `seen` there is nothing yet, or a text of others to write beside. With it
    # only what is shown is replaced, never the texts beside it, for which `seen` could stand too.
    expected = "" if shown is None else shown.sha256
    replaced = None if seen is None else shown
    try:
        written = there.write(key, body, tags=tags, seen=replaced, if_match=expected, **fields)
    except ChangedError as error:
        now = there.read(key)
        if now is None:
            raise
        return shown_instead(desk, now, error)
    return _written(desk, written, "is remembered" if shown is None else "is changed")


def _is_there(
    shown: Reading, body: str | None, tags: list[str] | None, fields: dict[str, str | None]
) -> bool:
    file = shown.readable
    return (
        (body is None or body.rstrip("\n") == file.body)
        and (tags is None or tuple(tags) == file.tags)
        and all(value is None or value == file.fields.get(name, "") for name, value in fields.items())
    )


def shown_instead(
    desk: Desk, shown: Reading, error: ChangedError, *, more: Mapping[str, Any] | None = None
) -> ToolResult:
    """A refusal that shows what stands there, with its `seen` where that is all of it."""
    item, left = _page_of(desk, shown)
    values = {"shown": as_values(item), "seen": "" if left else shown.seen, **(more or {})}
    if left:
        desk.session.show_part(shown, 0, PAGE)
        error.hint = (
            f"This is its beginning. To replace it, read on with read_memory and start={PAGE}, which gives its seen at the end; for "
            "something else choose another key."
        )
        return refusal(error, text=fenced(item), more=values)
    desk.session.show(shown)
    error.hint = (
        "This is what stands there now. To replace it, call remember again with all that shall stand there and its seen; "
        "for something else choose another key."
    )
    return refusal(error, text=f"{fenced(item)}\nseen: {shown.seen}", more=values)


def _page_of(desk: Desk, reading: Reading) -> tuple[Quoted, int]:
    """The beginning of a text, as much of it as one answer shows, and how many characters are left."""
    file = reading.readable
    item = desk.writers().quoted(reading, file=MemoryFile(file.fields, file.body[:PAGE]))
    return item, max(0, len(file.body) - PAGE)


def _elsewhere(reading: Reading) -> str:
    """What to do about a text that was found beyond the scope that was meant: a write goes only where it is named."""
    where = f"the scope {reading.scope}" if reading.scope else "what is everybody's"
    return f'It stands in {where}: call again with scope="{reading.scope}".'


def _written(desk: Desk, written: Reading, what: str) -> ToolResult:
    desk.session.show(written)
    better = shortcomings(written.key, written.readable) if written.own else []
    others = (
        ""
        if written.own
        else " What is shown under it is the word of others, a candidate until the person confirms it."
    )
    beside = (
        f" It has texts beside it ({count(len(written.conflicts), 'text')}): resolve_conflict shows them."
        if written.conflicts
        else ""
    )
    said = f"{place(written)} {what}.{others}{beside}{''.join(f' {one}' for one in better)}\nseen: {written.seen}"
    return ToolResult(
        said,
        {
            "key": written.key,
            "scope": written.scope,
            "seen": written.seen,
            "sha256": written.sha256,
            "own": written.own,
            "conflicts": list(written.conflicts),
            "better": better,
        },
    )


# -- read, list ----------------------------------------------------------------------------------------------


def _read(desk: Desk, given: JSON) -> ToolResult:
    key, start = given["key"], given.get("start", 0)
    copy = given.get("copy", "")
    if copy:
        reading: Reading | None = desk.there(given).read_conflict(key, copy)
    else:
        reading = desk.read(key, given)
    if reading is None:
        raise _no_memory(desk, key, given)
    file = reading.readable
    part, ends = file.body[start : start + PAGE], start + PAGE >= len(file.body)
    if start and start >= len(file.body):
        raise UsageError(
            f"{place(reading)} has {len(file.body):,} characters, so nothing begins at {start:,}"
        )
    item = desk.writers().quoted(reading, file=MemoryFile(file.fields, part), copy=copy)
    text = fenced(item)
    # Who saw a part of a text has not seen the text, and replaces nothing.
    seen = "" if copy else desk.session.show_part(reading, start, start + len(part))
    if not ends:
        text += f"\n(more: {len(file.body):,} characters in all; read on with start={start + PAGE})\n"
    if seen:
        text += f"\nseen: {seen}\n"
    elif ends and not copy:
        text += "\n(no seen: it is given to who read all of it from start=0, on a connection of one conversation)\n"
    if reading.conflicts:
        text += f"\nTexts beside it: {', '.join(reading.conflicts)} (read_memory with copy, or resolve_conflict)\n"
    return ToolResult(
        text,
        {
            **as_values(item),
            "seen": seen,
            "characters": len(file.body),
            "start": start,
            "whole": ends and not start,
            "conflicts": list(reading.conflicts),
        },
    )


def _no_memory(desk: Desk, key: str, given: JSON) -> NotFoundError:
    from difflib import get_close_matches

    scope = desk.scope_of(given)
    elsewhere = desk.read(key, given)
    if elsewhere is not None:
        return NotFoundError(f"there is no memory {key} in {scope}", hint=_elsewhere(elsewhere))
    near = get_close_matches(key, [item.key for item in desk.memory.stack(scope).list()], n=3)
    advice = f"Near to it: {', '.join(near)}." if near else "list_memories and recall show what there is."
    return NotFoundError(f"there is no memory {key}" + (f" in {scope}" if scope else ""), hint=advice)


def _list(desk: Desk, given: JSON) -> ToolResult:
    scope = desk.scope_of(given, must_exist=True)
    kind, tag, after, limit = (
        given.get("type"),
        given.get("tag"),
        given.get("after", ""),
        given.get("limit", 50),
    )
    category = given.get("category")
    found = [
        item
        for item in desk.memory.stack(scope).list()
        if kind in (None, item.file.type)
        and (tag is None or tag in item.file.tags)
        and category in (None, item.file.fields.get("category", ""))
    ]
    rest = [item for item in found if item.key > after]
    shown = rest[:limit]
    following = shown[-1].key if len(rest) > len(shown) else ""
    more = f"\n(more: go on with after={following})\n" if following else ""
    lines = "\n".join(map(_line, shown))
    said = f"{count(len(found), 'memory')}." if found else "No memories found."
    text = f"{said} {NOTICE}\n\n{tagged('memory-list', {'scope': scope}, lines)}{more}" if shown else said
    return ToolResult(
        text,
        {
            "notice": NOTICE,
            "total": len(found),
            "memories": [_line_values(item) for item in shown],
            "after": following,
        },
    )


def _line(item: Listed) -> str:
    file = item.file
    parts = [f"- {item.key}"]
    if item.scope:
        parts.append(f"(scope {item.scope})")
    if file.type:
        parts.append(f"[{one_line(file.type)}]")
    if file.name:
        parts.append(one_line(file.name))
    if file.description:
        parts.append(f"— {one_line(file.description)}")
    if not item.own:
        parts.append(whose(item.own).strip())
    if item.conflicts:
        parts.append(f"({count(item.conflicts, 'text')} beside it)")
    if not item.fetched:
        parts.append("(its text is not on this device)")
    return " ".join(parts)


def _line_values(item: Listed) -> dict[str, Any]:
    file = item.file
    return {
        "key": item.key,
        "scope": item.scope,
        "own": item.own,
        "name": one_line(file.name),
        "description": one_line(file.description),
        "type": one_line(file.type),
        "tags": [one_line(tag) for tag in file.tags],
        "updated": one_line(file.updated),
        "conflicts": item.conflicts,
        "fetched": item.fetched,
    }


# -- forget, note --------------------------------------------------------------------------------------------


def _forget(desk: Desk, given: JSON) -> ToolResult:
    there, key, confirm = desk.there(given), given["key"], given.get("confirm")
    reading = there.read(key)
    if reading is None:
        raise _no_memory(desk, key, given)
    item, left = _page_of(desk, reading)
    if left and not desk.session.was_shown(reading):
        desk.session.show_part(reading, 0, PAGE)
        return ToolResult(
            f"Nothing is forgotten. This is only the beginning of what would go:\n\n{fenced(item)}\nRead on with read_memory "
            f"and start={PAGE} to its end; forget gives the confirm then.",
            {"forgotten": False, "confirm": "", "shown": as_values(item)},
        )
    values = {"forgotten": False, "confirm": reading.seen, "shown": as_values(item)}
    if confirm is None:
        text = (
            f"Nothing is forgotten yet. This would be forgotten on every device:\n\n{fenced(item)}\n"
            f"To do it: forget with key={key} and confirm={reading.seen}."
        )
        return ToolResult(text, values)
    if confirm.lower() != reading.seen:
        error = ChangedError(f"{place(reading)} is not what was shown, so nothing was forgotten")
        error.hint = f"This is what stands there now. If it shall go: confirm={reading.seen}."
        return refusal(error, text=fenced(item), more=values)
    there.forget(key, reason=given.get("reason", ""), seen=reading)
    kept = (
        " Other texts stood beside it and are kept: resolve_conflict shows them." if reading.conflicts else ""
    )
    return ToolResult(
        f"{place(reading)} is forgotten here, and on every other device with the next sync.{kept}",
        {**values, "forgotten": True, "confirm": ""},
    )


def _note(desk: Desk, given: JSON) -> ToolResult:
    data = dict(given.get("data", {}))
    if "text" in given:
        if "text" in data:
            raise UsageError("the text is given twice: as text, and in data")
        data = {"text": given["text"], **data}
    if not data:
        raise UsageError("there is nothing to note: give text, data or both")
    event = desk.there(given).timeline.add(given["type"], **data)
    return ToolResult(
        f"Noted at {event['ts']}.", {"id": event["id"], "ts": event["ts"], "type": event["type"]}
    )


# -- recall, context -----------------------------------------------------------------------------------------


def _recall(desk: Desk, given: JSON) -> ToolResult:
    scope, why = desk.scope_of(given, must_exist=True), given.get("why", False)
    found = desk.memory.stack(scope).recall(
        given["query"],
        kind=given.get("kind", "memory"),
        limit=given.get("limit", 5),
        type=given.get("type"),
        tag=given.get("tag"),
        category=given.get("category"),
        since=given.get("since"),
        by=given.get("by"),
        why=why,
        joined=given.get("joined", False),
    )
    writers = desk.writers()
    items, hits = [], []
    for hit in found.hits:
        file = hit.reading.readable
        cut = len(file.body) > HIT
        if cut:
            left = f"(cut here: read_memory {hit.reading.key} shows all {len(file.body):,} characters)"
            file = MemoryFile(file.fields, f"{file.body[:HIT]}\n{left}")
        else:
            desk.session.show(hit.reading)
        items.append(item := writers.quoted(hit.reading, file=file))
        hits.append(
            {
                **as_values(item),
                "seen": "" if cut else hit.reading.seen,
                "cut": cut,
                "score": round(hit.score, 3),
                "hides": list(hit.hides),
                "parts": {part: round(value, 3) for part, value in hit.parts.items()},
                "words": list(hit.words),
                "joined": [list(one) for one in hit.joined],
            }
        )
    moments = [_moment_values(hit, writers) for hit in found.moments]
    among = {"event": "event", "message": "message", "all": "entry"}.get(given.get("kind", ""), "memory")
    how = "by words and meaning" if found.by_meaning else "by words, without a model,"
    said = f"Ranked {how} among {count(found.searched, among)}"
    if found.not_fetched:
        said += f"; {count(found.not_fetched, 'memory')} could not be looked through, as their texts are not on this device"
    if not items and not moments:
        text = f"No relevant memories found. {said}."
    else:
        seen = "\n".join(f"seen of {hit['key']}: {hit['seen']}" for hit in hits if hit["seen"])
        reasons = "\n".join(map(_reasons, hits)) if why else ""
        noted = "\n".join(map(_moment_fenced, moments))
        known = fenced(*items) or f"{NOTICE}\n"
        joined = "\n".join(" ".join(one) for hit in found.hits for one in hit.joined)
        related = tagged("memory-relations", {"whose": "own"}, joined) if joined else ""
        text = "\n".join(part for part in (f"{said}.", known, related, noted, seen, reasons) if part)
    return ToolResult(
        text,
        {
            "notice": notice(*items),
            "ranking": "words and meaning" if found.by_meaning else "words",
            "searched": found.searched,
            "not_fetched": found.not_fetched,
            "hits": hits,
            "moments": moments,
        },
    )


def _moment_values(hit: MomentHit, writers: Writers) -> JSON:
    """An event or a message, cleaned and cut."""
    moment = hit.moment
    text = clean_text(hit.text)
    return {
        "notice": NOTICE if moment.own else f"{NOTICE} {CANDIDATE}",
        "kind": moment.kind,
        "scope": moment.scope,
        "own": moment.own,
        "at": moment.when,
        "type": one_line(moment.type),
        "session": one_line(moment.session),
        "text": text if len(text) <= HIT else f"{text[:HIT]}\n(cut here: {len(text):,} characters in all)",
        "by": one_line(writers.device(moment.device)) if moment.device else "",
        "score": round(hit.score, 3),
        "parts": {part: round(value, 3) for part, value in hit.parts.items()},
        "words": list(hit.words),
    }


def _moment_fenced(values: JSON) -> str:
    shown = {name: values[name] for name in ("scope", "type", "session", "at", "by")}
    return tagged(
        f"memory-{values['kind']}", {**shown, "whose": "own" if values["own"] else "others"}, values["text"]
    )


def _reasons(hit: JSON) -> str:
    """What a hit was found for: sums and words of the query, and nothing that somebody wrote but its key."""
    parts = " + ".join(f"{part} {value:.3f}" for part, value in hit["parts"].items())
    return f"{hit['key']}: {sum(hit['parts'].values()):.3f} = {parts}; has: {', '.join(hit['words']) or 'none of the words'}"


def _context(desk: Desk, given: JSON) -> ToolResult:
    layout = given.get("layout", "index")
    most = given.get("max_tokens", context_tokens(layout))
    facts, left_out = _session_facts(desk, min(most // 2, most - LEAST_TOKENS))
    taken = -(-len(facts.encode()) // TOKEN_BYTES)
    room = most - taken if "max_tokens" in given else None
    block = desk.there(given).context(given.get("query"), max_tokens=room, layout=layout)
    text = block.text + facts
    return ToolResult(
        text or "There is nothing in this memory yet.",
        {
            "context": text,
            "tokens": -(-len(text.encode()) // TOKEN_BYTES),
            "shown": list(block.shown),
            "skipped": list(block.skipped),
            "listed": block.listed,
            "left_out": block.left_out + left_out,
        },
    )


def _session_facts(desk: Desk, most: int) -> tuple[str, int]:
    """The facts of the session in at most so many tokens, the newest of them, and how many were left out."""
    facts = [f"- [{category}] {fact}" for category, fact in desk.session.facts]
    said = "Facts of this connection only; they are gone when it ends."
    for left_out in range(len(facts)):
        more = f" {count(left_out, 'older one')} left out." if left_out else ""
        fenced_facts = tagged("session-context", {}, "\n".join(facts[left_out:]))
        text = f"\n## Current Session Context\n\n{said}{more}\n\n{fenced_facts}"
        if len(text.encode()) <= most * TOKEN_BYTES:
            return text, left_out
    return "", len(facts)


# -- what models are told ------------------------------------------------------------------------------------

_TYPES = "user (about the person), feedback (how they want things done), project (decisions, state), reference (where things are)"
_TYPE = choice(f"What kind it is: {_TYPES}.", TYPES)
_TEXTS = {"type": "array", "items": {**TEXT_SCHEMA, "additionalProperties": True}}

EVERYDAY: Final = (
    Definition(
        name="remember",
        title="Remember",
        description=(
            "Write one memory, kept on every device of the person and across conversations. Save when the person says remember, "
            "always or never, states a lasting preference, fact, convention or restriction, or decides something that later "
            "work depends on. Do not save passwords or keys, paths and output of the moment, small talk, what you did in this "
            "session, or what is there already (recall first). One subject a memory; name and description are what a later "
            "reader sees first. An existing memory is replaced only with the seen of the answer that showed it to you."
        ),
        parameters=arguments(
            "key",
            key=KEY,
            body=text(
                "The text, in Markdown. With seen it replaces the whole text; leave it out to change fields only.",
                most=MAX_BODY,
            ),
            name=text("A short title.", most=200),
            description=text("One line that says when this is of use.", most=500),
            type=_TYPE,
            tags=texts("A few words to find it by.", most=32, each=64),
            seen=_SEEN,
            scope=SCOPE,
        ),
        returns=answer(
            key=_string,
            scope=_string,
            seen=_string,
            sha256=_string,
            own=_flag,
            conflicts={"type": "array", "items": _string},
            better={"type": "array", "items": _string},
        ),
        run=_remember,
        destructive=True,
        idempotent=True,
    ),
    Definition(
        name="read_memory",
        title="Read a memory",
        description="Read one memory by its key, with who wrote it and when, and the seen that remember takes to replace it.",
        parameters=arguments(
            "key",
            key=KEY,
            copy=text("The name of a text beside it, as conflicts names it.", least=1, most=100),
            start=number("Where to read on in a long text.", 0, 1_000_000, 0),
            scope=SCOPE,
        ),
        returns=answer(
            **TEXT_SCHEMA["properties"],
            seen=_string,
            characters=_count,
            start=_count,
            whole=_flag,
            conflicts={"type": "array", "items": _string},
        ),
        run=_read,
        read_only=True,
        idempotent=True,
    ),
    Definition(
        name="list_memories",
        title="List memories",
        description="List the memories by key: name, description, type. To find some by their words use recall.",
        parameters=arguments(
            type=choice(f"Only this kind: {_TYPES}.", TYPES),
            tag=text("Only those with this tag.", least=1, most=64),
            category=text("Only those of this category.", least=1, most=64),
            limit=number("How many at most.", 1, 200, 50),
            after=text("Go on after this key, as the last answer said.", most=64),
            scope=SCOPE,
        ),
        returns=answer(
            notice=_string,
            total=_count,
            memories={"type": "array", "items": {"type": "object"}},
            after=_string,
        ),
        run=_list,
        read_only=True,
        idempotent=True,
    ),
    Definition(
        name="forget",
        title="Forget a memory",
        description=(
            "Forget one memory on every device. The first call only shows what would go; a second one with its confirm does it. "
            "Only when the person asks for it or a memory is plainly wrong."
        ),
        parameters=arguments(
            "key",
            key=KEY,
            confirm=text("The confirm of the answer that showed it.", least=8, most=64),
            reason=text("Why, for the timeline.", most=500),
            scope=SCOPE,
        ),
        returns=answer(forgotten=_flag, confirm=_string, shown=TEXT_SCHEMA),
        run=_forget,
        destructive=True,
    ),
    Definition(
        name="note",
        title="Note an event",
        description=(
            "Add an event to the timeline: something that happened (a release, a decision taken, a task done), with its moment. "
            "What shall be known later as a fact goes to remember instead."
        ),
        parameters=arguments(
            "type",
            type=text("What kind of event, one word of your own, for instance decision.", least=1, most=64),
            text=text("What happened.", least=1, most=20_000),
            data={"type": "object", "description": "Further values by name."},
            scope=SCOPE,
        ),
        returns=answer(id=_string, ts=_string, type=_string),
        run=_note,
    ),
    Definition(
        name="recall",
        title="Find memories",
        description=(
            "Find memories, before answering about the person, their projects, preferences or past decisions; the best first. They "
            "are ranked by words, whatever their case, accents and English endings: ask the question, or give the few words that "
            "would stand in the text, in each language that it may be in."
        ),
        parameters=arguments(
            "query",
            query=text("A question, or a few words.", least=1, most=MAX_QUERY),
            limit=number("How many at most.", 1, 50, 5),
            type=choice(f"Only this kind: {_TYPES}.", (*TYPES, SESSION)),
            tag=text("Only those with this tag.", least=1, most=64),
            category=text("Only those of this category.", least=1, most=64),
            by=text("Only what this device or member wrote: what it is called.", least=1, most=128),
            since=text(
                "Only what was written since then: 7d, yesterday, or an ISO 8601 date or time.",
                least=1,
                most=40,
            ),
            why=yes("Say what each score is the sum of, and which of the words each has."),
            joined=yes("Say also how each is related to others: the relations of the graph."),
            kind=choice(
                "Left out: memories. event: what was noted in the timeline; message: what was said in kept sessions; or all.",
                KINDS,
            ),
            scope=SCOPE,
        ),
        returns=answer(
            notice=_string,
            ranking=_string,
            searched=_count,
            not_fetched=_count,
            hits=_TEXTS,
            moments={"type": "array", "items": {"type": "object"}},
        ),
        run=_recall,
        read_only=True,
        idempotent=True,
    ),
    Definition(
        name="context",
        title="What to know",
        description=(
            "What to know at the beginning of a conversation: the index of the memories, and with a query the texts that match it."
        ),
        parameters=arguments(
            query=text("What the conversation is about.", most=MAX_QUERY),
            max_tokens=number(
                f"How long it may be. Left out: what the settings say, usually {usual_tokens('index'):,}, with the layout turn {usual_tokens('turn')}.",
                LEAST_TOKENS,
                20_000,
            ),
            layout=choice(
                "index, or full: also what was noted last; ranked: only what matches; turn: only the best three.",
                LAYOUTS,
            ),
            scope=SCOPE,
        ),
        returns=answer(
            context=_string,
            tokens=_count,
            shown={"type": "array", "items": _string},
            skipped={"type": "array", "items": _string},
            listed=_count,
            left_out=_count,
        ),
        run=_context,
        read_only=True,
        idempotent=True,
    ),
    Definition(
        name="resolve_conflict",
        title="Settle a conflict",
        description=(
            "Memories written on several devices at once keep every text. Without a key this lists them, with one it shows all its "
            "texts and their seen, and with that seen it settles them: body is the text that replaces them all, or keep."
        ),
        parameters=arguments(
            key=KEY,
            seen=_SEEN,
            body=text(
                "The text that replaces all of these, with everything of them that shall stay.", most=MAX_BODY
            ),
            keep=yes("Keep what is shown, or that it is forgotten; the other texts go."),
            scope=SCOPE,
        ),
        returns=answer(settled=_flag, keys={"type": "array", "items": _string}, seen=_string, texts=_TEXTS),
        run=resolve_conflict,
        destructive=True,
    ),
)
