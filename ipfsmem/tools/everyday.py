"""The everyday tools (remember, read, list, forget, recall, resolve a conflict), and those for notes and contexts.

Each calls the operation of `Memory` that `docs/reference/mcp.md` names. A write replaces only text that the model was shown: without the
`seen` of an answer nothing is replaced, and the current text is shown instead. Only an answer that shows a whole text has its
`seen`, and every answer is short enough for programs to pass it on whole (`paging`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from ipfsmem.bundle.fence import (
    CANDIDATE,
    MAX_ATTRIBUTE,
    NOTICE,
    Quoted,
    clean_text,
    fence,
    fence_memory,
    shows_fields_whole,
    tagged,
)
from ipfsmem.bundle.memory_file import ENTRY_TYPES, TYPES, MemoryFile
from ipfsmem.bundle.writing_advice import shortcomings
from ipfsmem.config import context_tokens
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.context_layouts import LEAST_TOKENS, TOKEN_BYTES
from ipfsmem.memories.memory_reader import MemorySummary
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memories.priority import expired_on
from ipfsmem.memories.write_request import WriteRequest
from ipfsmem.operations.context import context
from ipfsmem.operations.forget import Forgotten, forget
from ipfsmem.operations.list import MemoryPage, list_
from ipfsmem.operations.read import read
from ipfsmem.operations.recall import FoundMoment, Recalled, RecallHit, recall
from ipfsmem.operations.timeline import add
from ipfsmem.operations.write import MAX_BODY, write
from ipfsmem.tools.definition import KEY, SCOPE, Definition
from ipfsmem.tools.derived import RenderedAnswer, answered, tool
from ipfsmem.tools.paging import ANSWER, beginning, page_end, weight
from ipfsmem.tools.schema import JSON, answer, arguments, choice, number, text, yes
from ipfsmem.tools.settling import resolve_conflict
from ipfsmem.tools.tool import ToolResult, refusal
from ipfsmem.tools.tool_context import TEXT_SCHEMA, ToolContext, as_values, fenced, one_line, place, whose
from ipfsmem.wording import count

#: Maximum characters of one recalled text in an answer, bytes reserved for each further one, and for its last lines.
HIT: Final = 4_000
_FURTHER: Final = 400
_TAIL: Final = 600
#: Maximum characters of a field in the fence of read_memory.
_FIELD: Final = 1_000
_TAG_MARKS: Final = frozenset(",[]\n\r\"'")

#: Header fields that a fence has.
_FENCED: Final = ("name", "description", "type", "tags", "source")

_string, _flag, _count = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
_SEEN = text("The seen value of the text shown.", least=8, most=64)


# -- remember ------------------------------------------------------------------------------------------------


def _remember(tool_context: ToolContext, args: JSON) -> ToolResult:
    tool_context.memory  # noqa: B018 - a locked memory is reported first
    key, seen = args["key"], args.get("seen")
    body, tags = args.get("body"), _tags(args.get("tags"))
    fields = {name: args.get(name) for name in ("name", "description", "type")}
    if body is not None and not body.strip():
        raise UsageError("the text is empty, so nothing was written", hint="To delete a memory: forget.")
    if body is None and tags is None and not any(fields.values()):
        raise _nothing_to_write()
    WriteRequest(
        text=None if body is None else body.encode(),
        whole=False,
        name=args.get("name"),
        description=args.get("description"),
        type=args.get("type"),
        tags=tuple(tags or ()),
        fields={"tags": ""} if tags == [] else {},
    ).check()
    if seen is None:
        there = tool_context.there_by_type(args)
        shown = there.read(key, counts=False)
        if shown is None and body is None and not tags and not any(fields.values()):
            raise _nothing_to_write()
    else:
        there, shown = tool_context.found(key, args)
    if seen is None and shown is not None and shown.own:
        if _is_there(shown, body, tags, fields):
            is_known = body is not None and _says_all(shown, tags, fields)
            return _written(tool_context, shown, "exists already with this text", is_known=is_known)
        return shown_instead(
            tool_context, shown, ChangedError(f"{place(shown)} exists already, so nothing was written")
        )
    if seen is not None and (shown is None or not shown.seen.startswith(seen.lower())):
        error = ChangedError(f"{key} changed since it was read, so nothing was written")
        elsewhere = tool_context.read(key, {})
        if elsewhere is not None and elsewhere.seen.startswith(seen.lower()):
            error.hint = _elsewhere(elsewhere)
            raise error
        if shown is None:
            raise error
        return shown_instead(tool_context, shown, error)
    # Unseen text is not replaced: without `seen` the key is new, or has a pending text to which this one is an alternative.
    # With `seen` only the shown text is replaced, never its alternatives, to which `seen` could refer, too.
    expected = "" if shown is None else shown.sha256
    replaced = None if seen is None else shown
    try:
        call_args = {"key": key, "body": body, "tags": tags, "seen": replaced, "if_match": expected, **fields}
        written = write.run(there._view(), call_args, "mcp")
    except ChangedError as error:
        now = there.read(key, counts=False)
        if now is None:
            raise
        return shown_instead(tool_context, now, error)
    # The current text may differ from the given one: pending, or written meanwhile.
    before = replaced.readable.body if replaced is not None else ""
    is_known = written.readable.body == (before if body is None else body.rstrip("\n"))
    return _written(
        tool_context,
        written,
        "is remembered" if shown is None else "is changed",
        is_known=is_known and (written.own or replaced is not None),
        note="" if shown is not None or "scope" in args else _namesake(tool_context, written),
    )


def _nothing_to_write() -> UsageError:
    return UsageError(
        "there is nothing to write",
        hint="Give body, or a name, description, type or tags that are not empty.",
    )


def _tags(raw_tags: list[str] | None) -> list[str] | None:
    """Return the words of tags; a text with commas is several. Raises UsageError."""
    if raw_tags is None:
        return None
    tags = [word.strip() for tag in raw_tags for word in tag.split(",")]
    for tag in tags:
        if not tag or not _TAG_MARKS.isdisjoint(tag):
            raise UsageError(
                f"invalid tag {tag!r}",
                hint="A tag is a word without commas, brackets and quotation marks.",
            )
    return tags


def _says_all(shown: MemoryRecord, tags: list[str] | None, fields: dict[str, str | None]) -> bool:
    """Tell whether a call that matches a memory named everything that a write can replace."""
    file = shown.readable
    return (tags is not None or not file.tags) and all(
        value is not None or not file.fields.get(name, "") for name, value in fields.items()
    )


def _namesake(tool_context: ToolContext, written: MemoryRecord) -> str:
    """Return a notice on the memory of the same key that a new one of a scope hides."""
    below = (
        tool_context.memory.read(written.key, counts=False)
        if written.scope and not tool_context.memory.in_scope
        else None
    )
    if below is None or not below.own:
        return ""
    return (
        f" Everybody's memory has {written.key} too, which stays as it was: to change that one instead, forget this one and call "
        'remember with scope="" and its seen.'
    )


def _is_there(
    shown: MemoryRecord, body: str | None, tags: list[str] | None, fields: dict[str, str | None]
) -> bool:
    file = shown.readable
    return (
        (body is None or body.rstrip("\n") == file.body)
        and (tags is None or tuple(tags) == file.tags)
        and all(value is None or value == file.fields.get(name, "") for name, value in fields.items())
    )


def shown_instead(
    tool_context: ToolContext,
    shown: MemoryRecord,
    error: ChangedError,
    *,
    more: Mapping[str, Any] | None = None,
) -> ToolResult:
    """Return a refusal that shows the current text, with its `seen` if that is the whole text."""
    item, text, seen, end = first_page(tool_context, shown)
    values = {"shown": as_values(item), "seen": seen, **(more or {})}
    if not seen:
        error.hint = _read_on(shown, end)
        return refusal(error, text=text, more=values)
    error.hint = "This is the current text. To replace it, call remember again with the whole new text and this seen value; for another subject choose another key."
    return refusal(error, text=f"{text}\nseen: {seen}", more=values)


def _read_on(shown: MemoryRecord, end: int) -> str:
    if end >= len(shown.readable.body):
        return _FIELDS_CUT.format(key=shown.key)
    return f"This is its beginning. To replace it, read on with read_memory and start={end}, which returns the seen value at the end; for another subject choose another key."


_FIELDS_CUT: Final = "Its name, description or tags are too long to show here, so only the person can change it: ipfsmem write {key}"


def first_page(
    tool_context: ToolContext, reading: MemoryRecord, around: int = 0
) -> tuple[Quoted, str, str, int]:
    """Return the beginning of a text, its fence, its `seen` if that is the whole text, and the end of the page. `around`: bytes
    of the answer outside the fence."""
    item, text, end, whole = _page(tool_context, reading, 0, around=around)
    return item, text, tool_context.session.show_part(reading, 0, end, fields=whole), end


def _page(
    tool_context: ToolContext, reading: MemoryRecord, start: int, *, copy: str = "", around: int = 0
) -> tuple[Quoted, str, int, bool]:
    """Return a page of a text: its values, its fence, its end, and whether its fields are complete."""
    file, writers, most = reading.readable, tool_context.writers(), MAX_ATTRIBUTE
    frame = writers.quoted(reading, file=MemoryFile(file.fields, ""), copy=copy)
    whole = shows_fields_whole(frame, most)
    if not whole and not start and shows_fields_whole(frame, _FIELD):
        whole = weight(fence([frame], _FIELD)) < ANSWER // 2
        most = _FIELD if whole else most
    end = page_end(file.body, start, fence([frame], most), most=ANSWER - _TAIL - around)
    item = writers.quoted(reading, file=MemoryFile(file.fields, file.body[start:end]), copy=copy)
    return item, fence([item], most), end, whole


def _fenced_fields(fields: Mapping[str, str], *more: str) -> dict[str, str]:
    """Return the header fields of a structured answer."""
    return {name: text for name, text in fields.items() if name in (*_FENCED, *more)}


def _elsewhere(reading: MemoryRecord) -> str:
    """Return a hint on a text in another scope than the call's: a write goes only to the scope that it names."""
    place_text = f"the scope {reading.scope}" if reading.scope else "the default scope"
    return f'It is in {place_text}: call again with scope="{reading.scope}".'


def _written(
    tool_context: ToolContext, written: MemoryRecord, outcome: str, *, is_known: bool, note: str = ""
) -> ToolResult:
    """Return the answer of a write; `is_known`: the caller knows the whole current text, and so gets its `seen`."""
    is_known = is_known or tool_context.session.was_shown(written)
    if is_known:
        tool_context.session.show(written)
    better = shortcomings(written.key, written.readable) if written.own else []
    others = "" if written.own else " Its shown text is by others, pending until the person approves it."
    note += (
        f" It has {count(len(written.conflicts), 'alternative')}: resolve_conflict shows them."
        if written.conflicts
        else ""
    )
    seen = written.seen if is_known else ""
    tail = f"seen: {seen}" if seen else "(no seen: read_memory shows the whole text and returns it)"
    message = f"{place(written)} {outcome}.{others}{note}{''.join(f' {one}' for one in better)}\n{tail}"
    return ToolResult(
        message,
        {
            "key": written.key,
            "scope": written.scope,
            "seen": seen,
            "sha256": written.sha256,
            "own": written.own,
            "conflicts": list(written.conflicts),
            "better": better,
        },
    )


# -- read, list ----------------------------------------------------------------------------------------------


def _read(tool_context: ToolContext, reading: MemoryRecord | None, args: JSON) -> RenderedAnswer:
    key, start, copy = args["key"], args.get("start", 0), args["alternative"] or ""
    if reading is None:
        raise _no_memory(tool_context, key, args)
    file = reading.readable
    if start and start >= len(file.body):
        raise UsageError(
            f"{place(reading)} has {len(file.body):,} characters, so nothing begins at {start:,}"
        )
    item, text, end, whole = _page(tool_context, reading, start, copy=copy)
    ends = end >= len(file.body)
    # A reader of a part has not seen the text, and replaces nothing.
    seen = tool_context.session.show_part(reading, start, end, copy, fields=whole)
    if expired_on(file, tool_context.memory.replica.environment.today()):
        text += f"\n(expired: valid until {file.expires[:10]})\n"
    if not ends:
        text += f"\n(more: {len(file.body):,} characters in all; read on with start={end})\n"
    if copy:
        seen = ""  # resolve_conflict returns one for all texts together
    elif seen:
        text += f"\nseen: {seen}\n"
    elif ends and not start and not whole:
        text += f"\n(no seen: {_FIELDS_CUT.format(key=key)})\n"
    elif ends:
        text += "\n(no seen: read the whole text from start=0, on a connection of one conversation)\n"
    if reading.conflicts:
        alternatives = ", ".join(reading.conflicts[:5]) + (", ..." if len(reading.conflicts) > 5 else "")
        text += f"\nAlternatives: {alternatives} (read_memory with alternative, or resolve_conflict)\n"
    shown = replace(reading, fields=_fenced_fields(file.fields), body=item.body, text="", seen=seen, token=())
    by = {name: clean_text(getattr(item, name)) for name in ("by", "member", "written")}
    return RenderedAnswer(
        text, shown, {**by, "start": start, "next": 0 if ends else end, "characters": len(file.body)}
    )


def _no_memory(tool_context: ToolContext, key: str, args: JSON) -> NotFoundError:
    from difflib import get_close_matches

    scope = tool_context.scope_of(args)
    elsewhere = tool_context.read(key, args)
    if elsewhere is not None:
        return NotFoundError(f"there is no memory {key} in {scope}", hint=_elsewhere(elsewhere))
    near = get_close_matches(key, [item.key for item in tool_context.memory.stack(scope).list()], n=3)
    advice = f"Similar keys: {', '.join(near)}." if near else "list_memories and recall show the memories."
    return NotFoundError(f"there is no memory {key}" + (f" in {scope}" if scope else ""), hint=advice)


def _list(tool_context: ToolContext, page: MemoryPage, args: JSON) -> RenderedAnswer:
    lines, room = list[str](), ANSWER - _TAIL - weight(NOTICE)
    scopes = _scopes(tool_context)
    room -= weight(scopes)
    for item in page:
        line = _line(item)
        room -= weight(line) + 4
        if room < 0 and lines:
            break
        lines.append(line)
    shown = page.memories[: len(lines)]
    following = page.next if len(shown) == len(page) else shown[-1].key
    more = f"\n(more: go on with cursor={following})\n" if following else ""
    message = f"{count(page.total, 'memory')}." if page.total else "No memories found."
    listed = tagged("memory-list", {"scope": tool_context.scope_of(args)}, "\n".join(lines)) if shown else ""
    text = f"{message} {NOTICE}\n\n{listed}{more}{scopes}" if shown else f"{message}{scopes}"
    shown = tuple(replace(item, fields=_fenced_fields(item.fields, "updated")) for item in shown)
    return RenderedAnswer(
        text, replace(page, memories=shown, next=following), {"project": tool_context.session.project}
    )


def _scopes(tool_context: ToolContext) -> str:
    """Return the scopes that a call can name, and the default for calls; empty if only the default scope exists."""
    usual = tool_context.usual_scope
    others = [one for one in tool_context.memory.scopes.names() if one != usual]
    if not usual and not others:
        return ""
    is_project = " (this project)" if usual and usual == tool_context.session.project else ""
    first = f"{usual}{is_project}, then the default scope" if usual else "the default scope"
    message = f"\nScope without the argument: {first}."
    if others:
        more = f" and {len(others) - 20} more" if len(others) > 20 else ""
        message += f" Other scopes: {', '.join(others[:20])}{more}."
    return message + ' scope="" is the default scope.\n' if usual else message + "\n"


def _line(item: MemorySummary) -> str:
    file = item.file
    parts = [f"- {item.key}"]
    if item.scope:
        parts.append(f"(scope {item.scope})")
    if file.type:
        parts.append(f"[{_short(file.type)}]")
    if file.name:
        parts.append(_short(file.name))
    if file.description:
        parts.append(f"— {_short(file.description)}")
    if not item.own:
        parts.append(whose(item.own).strip())
    if item.conflicts:
        parts.append(f"({count(item.conflicts, 'alternative')})")
    if not item.fetched:
        parts.append("(its text is not on this device)")
    return " ".join(parts)


def _short(text: str) -> str:
    """Return a field on one line, cut as in a fence."""
    line = one_line(text)
    return line if len(line) <= MAX_ATTRIBUTE else f"{line[: MAX_ATTRIBUTE - 1]}…"


# -- forget, note --------------------------------------------------------------------------------------------


def _forget(tool_context: ToolContext, args: JSON) -> ToolResult:
    key, confirm = args["key"], args.get("confirm")
    there, reading = tool_context.found(key, args)
    if reading is None:
        forget.refuse(there._view(), {"key": key}, "mcp", _no_memory(tool_context, key, args))
    was_shown = tool_context.session.was_shown(reading)
    item, fenced_text, seen, end = first_page(tool_context, reading)
    not_forgotten = Forgotten(key=key, scope=reading.scope, forgotten=False)
    values = {"confirm": reading.seen, "shown": as_values(item)}
    if not seen and not was_shown:
        text = f"Nothing was deleted. This is only the beginning of the text to delete:\n\n{fenced_text}\n{_end_first(reading, end)}"
        return answered(RenderedAnswer(text, not_forgotten, {**values, "confirm": ""}))
    if confirm is None:
        text = (
            f"Nothing was deleted yet. This would be deleted on every device:\n\n{fenced_text}\n"
            f"To delete it: forget with key={key} and confirm={reading.seen}."
        )
        return answered(RenderedAnswer(text, not_forgotten, values))
    if confirm.lower() != reading.seen:
        error = ChangedError(f"{place(reading)} changed since it was shown, so nothing was deleted")
        error.hint = f"This is the current text. To delete it: confirm={reading.seen}."
        return refusal(
            error, text=fenced_text, more=answered(RenderedAnswer("", not_forgotten, values)).structured
        )
    call_args = {"key": key, "reason": args.get("reason", ""), "seen": reading}
    if not (done := forget.run(there._view(), call_args, "mcp")):
        raise _no_memory(tool_context, key, args)
    alternatives_note = (
        " Its alternatives are kept: resolve_conflict shows them." if reading.conflicts else ""
    )
    text = f"{place(reading)} is deleted here, and on every other device at its next sync.{alternatives_note}"
    return answered(RenderedAnswer(text, done, {**values, "confirm": ""}))


def _end_first(reading: MemoryRecord, end: int) -> str:
    if end >= len(reading.readable.body):
        return _FIELDS_CUT.format(key=reading.key).replace(
            "changes it: ipfsmem write", "deletes it: ipfsmem forget"
        )
    return f"Read on with read_memory and start={end} to its end; then forget returns the confirm value."


def _note(tool_context: ToolContext, args: JSON) -> ToolResult:
    data = dict(args.get("data", {}))
    if "text" in args:
        if "text" in data:
            raise UsageError("the text is passed twice: as text, and in data")
        data = {"text": args["text"], **data}
    if not data:
        raise UsageError("nothing to note: pass text, data or both")
    event = add.run(tool_context.there(args)._view(), {"type": args["type"], "data": data}, "mcp")
    return ToolResult(
        f"Noted at {event['ts']}.", {"id": event["id"], "ts": event["ts"], "type": event["type"]}
    )


# -- recall, context -----------------------------------------------------------------------------------------


def _recall(tool_context: ToolContext, recalled: Recalled, args: JSON) -> RenderedAnswer:
    among = {"event": "event", "message": "message", "all": "entry"}.get(args["kind"], "memory")
    how = "by words and meaning" if recalled.by_meaning else "by words, without a model,"
    summary = f"Ranked {how} among {count(recalled.searched, among)}"
    if recalled.not_fetched:
        summary += f"; {count(recalled.not_fetched, 'memory')} could not be searched, as their texts are not on this device"
    room = ANSWER - _TAIL - weight(summary) - weight(f"{NOTICE} {CANDIDATE}")
    many = len(recalled.hits) + len(recalled.moments)
    items, hits, unshown, moments = list[Quoted](), list[RecallHit](), list[str](), list[FoundMoment]()
    tail, reasons, joined = list[str](), list[str](), list[str]()
    for at, hit in enumerate(recalled.hits):
        reason = [_reasons(hit)] if args["explain"] else []
        relations = [" ".join(one) for one in (hit.joined or ())[:5]]
        more = sum(weight(line) + 4 for line in (*reason, *relations)) + len(hit.key) + 40
        frame = weight(fence_memory(_quoted(hit, ""))) + more
        share = max(room - _FURTHER * (many - at - 1), room // 3) - frame
        if share < _FURTHER // 4:
            unshown.append(hit.key)
            continue
        body = beginning(hit.body[:HIT], share)
        cut = len(body) < len(hit.body)
        if cut:
            body += f"\n(cut here: read_memory {hit.key} shows all {len(hit.body):,} characters)"
        item = _quoted(hit, body)
        seen = "" if cut or not shows_fields_whole(item) else hit.seen
        if seen:
            tool_context.session.show(hit)
            tail.append(f"seen of {hit.key}: {seen}")
        items.append(item)
        reasons += reason
        joined += relations
        room -= weight(fence_memory(item)) + more
        hits.append(replace(hit, body=body, seen=seen, fields=_fenced_fields(hit.fields)))
    for at, moment in enumerate(recalled.moments):
        later = len(recalled.moments) - at - 1
        shown = _shown_moment(moment, max(room - _FURTHER * later, room // 3) - 300)
        room -= weight(_moment_fenced(shown))
        if room < 0 and (items or moments):
            unshown += [""] * (later + 1)
            break
        moments.append(shown)
    if not items and not moments:
        text = f"No relevant memories found. {summary}."
    else:
        noted = "\n".join(map(_moment_fenced, moments))
        memories_block = fenced(*items) or f"{NOTICE}\n"
        related = tagged("memory-relations", {"whose": "own"}, "\n".join(joined)) if joined else ""
        left_out = _not_shown(unshown)
        text = "\n".join(
            part
            for part in (
                f"{summary}.",
                memories_block,
                related,
                noted,
                "\n".join(tail),
                "\n".join(reasons),
                left_out,
            )
            if part
        )
    return RenderedAnswer(text, replace(recalled, hits=tuple(hits), moments=tuple(moments)))


def _quoted(hit: RecallHit, body: str) -> Quoted:
    """Return a hit for a fence, with this part of its body."""
    file = hit.file
    return Quoted(
        key=hit.key,
        body=body,
        scope=hit.scope,
        name=file.name,
        description=file.description,
        type=file.type,
        tags=file.tags,
        own=hit.own,
        by=hit.by,
        member=hit.member,
        source=file.source,
        written=hit.written,
    )


def _not_shown(keys: list[str]) -> str:
    """Return a notice on matches that do not fit into the answer."""
    if not keys:
        return ""
    names = ", ".join([key for key in keys if key][:10])
    return f"({count(len(keys), 'further match', 'further matches')} not shown here{f': {names}' if names else ''}; read_memory shows one, more words narrow it)"


def _shown_moment(hit: FoundMoment, room: int) -> FoundMoment:
    """Return an event or a message, cut to `room` bytes."""
    text = clean_text(hit.text)
    shown = beginning(text[:HIT], max(room, _FURTHER // 2))
    cut = "" if text == shown else f"\n(cut here: {len(text):,} characters in all)"
    # The text quotes the fields of an event; as values they would be repeated, and unquoted.
    return replace(
        hit,
        type=one_line(hit.type),
        session=one_line(hit.session),
        by=one_line(hit.by),
        text=shown + cut,
        event=None,
    )


def _moment_fenced(hit: FoundMoment) -> str:
    shown = {"scope": hit.scope, "type": hit.type, "session": hit.session, "at": hit.at, "by": hit.by}
    return tagged(f"memory-{hit.kind}", {**shown, "whose": "own" if hit.own else "others"}, hit.text)


def _reasons(hit: RecallHit) -> str:
    """Return the reasons for a hit: scores and words of the query, and no stored text but its key."""
    scores = hit.parts or {}
    parts = " + ".join(f"{part} {round(value, 3):.3f}" for part, value in scores.items())
    total = sum(round(value, 3) for value in scores.values())
    return f"{hit.key}: {total:.3f} = {parts}; has: {', '.join(hit.words or ()) or 'none of the words'}"


def _context(tool_context: ToolContext, args: JSON) -> ToolResult:
    layout = args.get("layout", "index")
    most = args.get("max_tokens", context_tokens(layout))
    facts, left_out = _session_facts(tool_context, min(most // 2, most - LEAST_TOKENS))
    facts_tokens = -(-len(facts.encode()) // TOKEN_BYTES)
    call_args = {**args, "max_tokens": most - facts_tokens if "max_tokens" in args else None}
    call_args.pop("scope", None)
    read = tool_context.memory.stack(tool_context.scope_of(args, must_exist=True))
    block = context.run(read._view(), call_args, "mcp")
    text = block.text + facts
    tokens, left_out = -(-len(text.encode()) // TOKEN_BYTES), block.left_out + left_out
    shown = replace(block, text=text, tokens=tokens, left_out=left_out, marks=())
    return answered(RenderedAnswer(text or "This memory is empty.", shown))


def _session_facts(tool_context: ToolContext, most: int) -> tuple[str, int]:
    """Return the newest facts of the session within `most` tokens, and the number of omitted ones."""
    facts = [f"- [{category}] {fact}" for category, fact in tool_context.session.facts]
    intro = "Facts of this connection only; they are gone when it ends."
    for left_out in range(len(facts)):
        more = f" {count(left_out, 'older one')} left out." if left_out else ""
        fenced_facts = tagged("session-context", {}, "\n".join(facts[left_out:]))
        text = f"\n## Current Session Context\n\n{intro}{more}\n\n{fenced_facts}"
        if len(text.encode()) <= most * TOKEN_BYTES:
            return text, left_out
    return "", len(facts)


# -- definitions for models ----------------------------------------------------------------------------------

_TYPE = choice("Only this kind.", (*TYPES, *ENTRY_TYPES))
_TEXTS = {"type": "array", "items": {**TEXT_SCHEMA, "additionalProperties": True}}

EVERYDAY: Final = (
    tool(recall, _recall),
    tool(
        write,
        run=_remember,
        further={"seen": _SEEN},
        returns=answer(
            key=_string,
            scope=_string,
            seen=_string,
            sha256=_string,
            own=_flag,
            conflicts={"type": "array", "items": _string},
            better={"type": "array", "items": _string},
        ),
    ),
    tool(
        read,
        _read,
        further={"start": number("Start of the next page.", 0, 10_000_000, 0)},
        more=dict.fromkeys(("by", "member", "written"), _string)
        | dict.fromkeys(("start", "next", "characters"), _count),
        ask=lambda args: {"counts": not args.get("start")},
    ),
    tool(list_, _list, more={"project": _string}, ask=lambda args: {"expired": False}),
    tool(
        forget,
        run=_forget,
        further={"confirm": text("The seen value.", least=8, most=64)},
        more={"confirm": _string, "shown": TEXT_SCHEMA},
    ),
    Definition(
        name="resolve_conflict",
        title="Resolve a conflict",
        description=(
            "Resolve a memory that was edited on several devices at once. Without key: list conflicts; with key: show the texts and "
            "their seen value; with seen: resolve with body or keep."
        ),
        parameters=arguments(
            key=KEY,
            seen=_SEEN,
            body=text("Text that replaces all of them.", most=MAX_BODY),
            keep=yes("Keep the shown text and drop the others."),
            scope=SCOPE,
        ),
        returns=answer(settled=_flag, keys={"type": "array", "items": _string}, seen=_string, texts=_TEXTS),
        run=resolve_conflict,
        destructive=True,
    ),
)

TIMELINE: Final = (
    tool(
        add,
        run=_note,
        further={"text": text("What happened.", least=1, most=20_000)},
        returns=answer(id=_string, ts=_string, type=_string),
    ),
    tool(context, run=_context),
)
