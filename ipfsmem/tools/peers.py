"""The tools of other programs' agents, over the same vault: facts with a category, facts of a session, values by key.

Shapes are those of Infraware (`save_memory`, `save_session_context`) and LibreFang (`memory_store`, `memory_recall`,
`memory_list`), each with `scope` in addition. They write ordinary memories. Unlike in the original, a value that this session
was not shown is not replaced.
"""

from __future__ import annotations

from typing import Any, Final

from ipfsmem.bundle.fence import NOTICE, clean_text, quote
from ipfsmem.bundle.value_file import as_json, as_text
from ipfsmem.errors import ChangedError, UsageError
from ipfsmem.facts.categories import (
    CLOSED,
    GENERAL,
    MAX_CATEGORY,
    MAX_FACT,
    Kind,
    fact_key,
    sanitised,
)
from ipfsmem.memories.memory_records import first_own
from ipfsmem.memories.values import KeyValue
from ipfsmem.tools.definition import SCOPE, Definition
from ipfsmem.tools.everyday import shown_instead
from ipfsmem.tools.paging import ANSWER, page_end, weight
from ipfsmem.tools.schema import JSON, answer, anything, arguments, choice, text
from ipfsmem.tools.tool import ToolResult, refusal
from ipfsmem.tools.tool_context import ToolContext, one_line, place, whose
from ipfsmem.wording import count

SESSION_CATEGORIES: Final = ("host_info", "environment", "working_directory", "service_state", "discovery")
MAX_KEY: Final = 256
#: Maximum entries of one list, and characters of each.
PAGE: Final = 100
_IN_LIST: Final = 500
#: Bytes of an answer outside the value.
_AROUND: Final = 800

_string, _flag = {"type": "string"}, {"type": "boolean"}


def _save_memory(tool_context: ToolContext, args: JSON) -> ToolResult:
    fact, category = sanitised(args["fact"]), args["category"]
    if not fact:
        return _saved(False, "The fact is empty, nothing saved")
    there, key = tool_context.there(args), fact_key(fact)
    shown = there.read(key, counts=False)
    if shown is not None and shown.own:
        file = shown.readable
        if (file.body, file.type, category in file.tags) != (fact, CLOSED[category], True):
            error = ChangedError(
                f"another memory, {place(shown)}, exists for this fact, so nothing was saved"
            )
            return shown_instead(tool_context, shown, error, more={"saved": False, "message": str(error)})
    else:
        result = there.facts.add(fact, category)
        if result.action == "updated":
            return _saved(
                True, f"Remembered in the place of an earlier text, which its history keeps: {fact}"
            )
    return _saved(True, f"Remembered: {fact}")


def _learn_procedure(tool_context: ToolContext, args: JSON) -> ToolResult:
    return _entry(tool_context, args, "procedure", "Learned procedure")


def _record_episode(tool_context: ToolContext, args: JSON) -> ToolResult:
    return _entry(tool_context, args, "episode", "Recorded episode")


def _entry(tool_context: ToolContext, args: JSON, kind: Kind, done: str) -> ToolResult:
    result = tool_context.there(args).facts.add(args["content"], args.get("category", GENERAL), kind=kind)
    key, category = result.fact.key, result.fact.category
    message = f"{done} (id={key}, category={category})"
    if result.action == "kept":
        message = f"Known already (id={key}, category={category})"
    elif result.action == "updated":
        message += " in the place of an earlier text, which its history keeps"
    return ToolResult(message, {"id": key, "category": category, "action": result.action})


def _save_session_context(tool_context: ToolContext, args: JSON) -> ToolResult:
    fact = sanitised(args["fact"])
    if not fact:
        return _saved(False, "The fact is empty, nothing saved")
    if (args["category"], fact) not in tool_context.session.facts:
        tool_context.session.facts.append((args["category"], fact))
    return _saved(True, f"Session context saved: {fact}")


def _saved(saved: bool, message: str) -> ToolResult:
    return ToolResult(message, {"saved": saved, "message": message})


def _store(tool_context: ToolContext, args: JSON) -> ToolResult:
    name, value = args["key"], args["value"]
    there = tool_context.there(args)
    stored = there.values.get(name)
    shown = there.read(stored.memory, counts=False) if stored is not None and stored.own else None
    if stored is not None and shown is not None:
        body, cut = _page(as_text(stored.value))
        if not cut and as_json(stored.value) == as_json(value):  # `==` treats 1 and true as equal
            tool_context.session.show(shown)
            return _stored(name)
        if not tool_context.session.was_shown(shown):
            error = ChangedError(f"{one_line(name)} has a value that you were not shown: nothing was stored")
            if cut:
                error.hint = (
                    "This is its beginning. To replace it, read it to its end with read_memory and "
                    f"key={stored.memory}, then call memory_store again; or use another key."
                )
            else:
                tool_context.session.show(shown)
                error.hint = "This is it. Call memory_store again to replace it, or use another key."
            return refusal(
                error,
                text=f"{NOTICE}\n\n{quote(body)}",
                more={"key": clean_text(name), "value": clean_text(body), "truncated": cut},
            )
    if isinstance(value, str) and not value.strip():
        raise UsageError(
            "the value is empty, so nothing was stored", hint="To delete a value, use memory_delete."
        )
    entry = there.values.set(name, value, seen="" if shown is None else shown.seen)
    written = there.read(entry.memory, counts=False)
    if written is not None and written.seen == entry.seen:
        tool_context.session.show(written)
    return _stored(name)


def _stored(name: str) -> ToolResult:
    return ToolResult(
        f"Stored value under key '{one_line(name)}'.", {"stored": True, "key": clean_text(name)}
    )


def _recall(tool_context: ToolContext, args: JSON) -> ToolResult:
    name = args["key"]
    scope = tool_context.scope_of(args, must_exist=True)
    stored = first_own(tool_context.memory.scope(one).values.get(name) for one in dict.fromkeys((scope, "")))
    values: dict[str, Any] = {"notice": NOTICE, "found": stored is not None, "key": clean_text(name)}
    if stored is None:
        message = f"No value found for key '{one_line(name)}'."
        return ToolResult(message, {**values, "value": "", "truncated": False, "own": True})
    whole = as_text(stored.value)
    value, truncated = _page(whole)
    shown = tool_context.memory.scope(stored.scope).read(stored.memory)
    if shown is not None and shown.seen == stored.seen:
        if not truncated:
            tool_context.session.show(shown)
        elif shown.readable.body == whole:
            tool_context.session.show_part(shown, 0, len(value))
    text = f"{NOTICE}\n\n{one_line(name)}{whose(stored.own)}:\n{quote(value)}"
    if truncated:
        text += (
            f"(cut here: {len(whole):,} characters in all; read on with read_memory, key={stored.memory} and "
            f"start={len(value)})\n"
        )
    return ToolResult(text, {**values, "value": clean_text(value), "truncated": truncated, "own": stored.own})


def _delete(tool_context: ToolContext, args: JSON) -> ToolResult:
    gone = tool_context.there(args).values.delete(args["key"])
    remark = "It stays in the history of the key." if gone.own else "It was pending, so no history keeps it."
    return ToolResult(
        f"Deleted the value under key '{one_line(gone.key)}'. {remark}",
        {"deleted": True, "key": clean_text(gone.key)},
    )


def _page(value: str) -> tuple[str, bool]:
    """Return the part of a value that one answer shows, and whether it was cut."""
    end = page_end(value, 0, most=ANSWER - _AROUND)
    return value[:end], end < len(value)


def _list(tool_context: ToolContext, args: JSON) -> ToolResult:
    scope = tool_context.scope_of(args, must_exist=True)
    prefix, after = args.get("prefix", ""), args.get("after", "")
    by_key: dict[str, KeyValue] = {}
    for one in dict.fromkeys(("", scope)):  # the scope precedes the default scope
        for value in tool_context.memory.scope(one).values.list(prefix):
            if value.own or value.key not in by_key:
                by_key[value.key] = value
    # Pages are sorted by the keys of the memories, which have no line breaks.
    rest = sorted((one for one in by_key.values() if one.memory > after), key=lambda one: one.memory)
    entries: list[dict[str, Any]] = []
    room, shown_count = ANSWER - _AROUND, 0
    for value in rest[:PAGE]:
        whole = as_text(value.value)
        shown = whole[:_IN_LIST]
        entry = {
            "key": clean_text(value.key),
            "value": clean_text(shown),
            "truncated": len(shown) < len(whole),
            "own": value.own,
        }
        room -= weight(_entry_line(entry)) + 4
        if room < 0 and entries:
            break
        entries.append(entry)
        shown_count += 1
    following = rest[shown_count - 1].memory if len(rest) > shown_count else ""
    entries.sort(key=lambda one: one["key"])
    if not entries:
        text = "No keys are stored." if not prefix else f"No keys begin with '{one_line(prefix)}'."
    else:
        lines = "".join(quote(_entry_line(one)) for one in entries)
        text = f"{count(len(by_key), 'key')}. {NOTICE}\n\n{lines}"
        text += f"(more: continue with after={following})\n" if following else ""
    return ToolResult(text, {"notice": NOTICE, "total": len(by_key), "entries": entries, "after": following})


def _entry_line(one: JSON) -> str:
    cut = " (cut)" if one["truncated"] else ""
    return f"{one_line(one['key'])}{whose(one['own'])}: {one_line(one['value'])}{cut}"


PEERS: Final = (
    Definition(
        name="save_memory",
        title="Save a fact",
        description=(
            "Save one lasting fact. Use it when the person says remember or always, and for personal facts, preferences, "
            "conventions, workflows and restrictions. Never for paths, transient talk, summaries of work, or facts of this "
            "session only."
        ),
        parameters=arguments(
            "fact",
            "category",
            fact=text("The fact, in one sentence.", most=MAX_FACT),
            category=choice("Category of the fact.", tuple(CLOSED)),
            scope=SCOPE,
        ),
        returns=answer(saved=_flag, message=_string),
        run=_save_memory,
        idempotent=True,
    ),
    Definition(
        name="save_session_context",
        title="Save a fact of this session",
        description=(
            "Keep a fact for as long as this connection lasts, after a diagnosis: about the host, its environment, a service's "
            "state, a discovery. Not preferences (save_memory), not output that is outdated at once, not what is there already. "
            "It is written nowhere and gone when the connection ends; context shows it."
        ),
        parameters=arguments(
            "fact",
            "category",
            fact=text("The fact, in one sentence.", most=MAX_FACT),
            category=choice("Category of the fact.", SESSION_CATEGORIES),
        ),
        returns=answer(saved=_flag, message=_string),
        run=_save_session_context,
        idempotent=True,
    ),
    Definition(
        name="learn_procedure",
        title="Learn a procedure",
        description="Save how to do something, in one or two sentences: steps that worked, a policy. For an event use record_episode.",
        parameters=arguments(
            "content",
            content=text("The procedure.", most=MAX_FACT),
            category=text("Topic, one word.", least=1, most=MAX_CATEGORY),
            scope=SCOPE,
        ),
        returns=answer(id=_string, category=_string, action=_string),
        run=_learn_procedure,
        idempotent=True,
    ),
    Definition(
        name="record_episode",
        title="Record an episode",
        description="Save what happened and how it ended, in one or two sentences. For a way to do something use learn_procedure.",
        parameters=arguments(
            "content",
            content=text("What happened.", most=MAX_FACT),
            category=text("Topic, one word.", least=1, most=MAX_CATEGORY),
            scope=SCOPE,
        ),
        returns=answer(id=_string, category=_string, action=_string),
        run=_record_episode,
        idempotent=True,
    ),
    Definition(
        name="memory_store",
        title="Store a value",
        description=(
            "Store a value under a key, kept across conversations. An existing value that was not shown on this connection is "
            "shown instead, and nothing is stored."
        ),
        parameters=arguments(
            "key",
            "value",
            key=text("The key: 1 to 256 bytes of any characters.", least=1, most=MAX_KEY),
            value=anything("The value: a text, or any JSON."),
            scope=SCOPE,
        ),
        returns=answer(stored=_flag, key=_string),
        run=_store,
        idempotent=True,
    ),
    Definition(
        name="memory_recall",
        title="Recall a value",
        description="Return the value stored under a key. memory_list lists the keys; recall searches memories.",
        parameters=arguments("key", key=text("The key.", least=1, most=MAX_KEY), scope=SCOPE),
        returns=answer(notice=_string, found=_flag, key=_string, value=_string, truncated=_flag, own=_flag),
        run=_recall,
        read_only=True,
        idempotent=True,
    ),
    Definition(
        name="memory_delete",
        title="Delete a value",
        description="Delete the value stored under a key; it stays in the history of the key.",
        parameters=arguments("key", key=text("The key.", least=1, most=MAX_KEY), scope=SCOPE),
        returns=answer(deleted=_flag, key=_string),
        run=_delete,
        destructive=True,
    ),
    Definition(
        name="memory_list",
        title="List stored values",
        description="List the keys that memory_store wrote, with the start of each value, 100 at a time.",
        parameters=arguments(
            prefix=text("Only keys with this prefix.", most=MAX_KEY),
            after=text("Continue after this value of the last answer.", most=64),
            scope=SCOPE,
        ),
        returns=answer(
            notice=_string,
            total={"type": "integer"},
            entries={"type": "array", "items": {"type": "object"}},
            after=_string,
        ),
        run=_list,
        read_only=True,
        idempotent=True,
    ),
)
