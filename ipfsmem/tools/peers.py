"""The tools of other programs' agents, over the same vault: facts with a category, facts of a session, values by key.

Shapes are those of Infraware (`save_memory`, `save_session_context`) and LibreFang (`memory_store`, `memory_recall`,
`memory_list`), each with `scope` in addition. They write ordinary memories. Unlike in the original, a value that this session
was not shown is not replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

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
from ipfsmem.operation import ForModels
from ipfsmem.tools.derived import declared_tool, told
from ipfsmem.tools.everyday import shown_instead
from ipfsmem.tools.paging import ANSWER, page_end, weight
from ipfsmem.tools.schema import JSON
from ipfsmem.tools.tool import ToolResult, refusal
from ipfsmem.tools.tool_context import ToolContext, one_line, place, whose
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

SESSION_CATEGORIES: Final = ("host_info", "environment", "working_directory", "service_state", "discovery")
MAX_KEY: Final = 256
#: Maximum entries of one list, and characters of each.
PAGE: Final = 100
_IN_LIST: Final = 500
#: Bytes of an answer outside the value.
_AROUND: Final = 800

_Fact = Annotated[str, Meta(max_length=MAX_FACT, description="The fact, in one sentence.")]
_Topic = Annotated[str, Meta(min_length=1, max_length=MAX_CATEGORY, description="Topic, one word.")]
_Key = Annotated[str, Meta(min_length=1, max_length=MAX_KEY, description="The key.")]


class _Saved(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a fact was saved."""

    saved: bool
    message: str


class _EntryAdded(msgspec.Struct, frozen=True, kw_only=True):
    """The key and category of a procedure or an episode. `action`: `added`, `updated` or `kept`."""

    id: str
    category: str
    action: str


class _ValueStored(msgspec.Struct, frozen=True, kw_only=True):
    """The key of a value that was stored."""

    stored: bool
    key: str


class _ValueRecalled(msgspec.Struct, frozen=True, kw_only=True):
    """A value as text. `truncated`: whether it is only the beginning."""

    notice: str
    found: bool
    key: str
    value: str
    truncated: bool
    own: bool


class _ValueDeleted(msgspec.Struct, frozen=True, kw_only=True):
    """The key of a value that was deleted."""

    deleted: bool
    key: str


class _ValuesListed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of values, each with `key`, `value`, `truncated` and `own`. `total`: of all pages; `after`: where the next begins."""

    notice: str
    total: int
    entries: list[dict[str, Any]]
    after: str


@declared_tool(
    title="Save a fact",
    description=(
        "Save one lasting fact. Use it when the person says remember or always, and for personal facts, preferences, "
        "conventions, workflows and restrictions. Never for paths, transient talk, summaries of work, or facts of this "
        "session only."
    ),
    returns=_Saved,
)
def save_memory(
    tool_context: ToolContext,
    args: JSON,
    *,
    fact: _Fact,
    category: Annotated[str, Meta(description="Category of the fact."), ForModels(words=tuple(CLOSED))],
) -> ToolResult:
    """Save a fact with a category, unless another memory is there for it."""
    fact = sanitised(fact)
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


@declared_tool(
    title="Learn a procedure",
    description="Save how to do something, in one or two sentences: steps that worked, a policy. For an event use record_episode.",
    returns=_EntryAdded,
)
def learn_procedure(
    tool_context: ToolContext,
    args: JSON,
    *,
    content: Annotated[str, Meta(max_length=MAX_FACT, description="The procedure.")],
    category: _Topic = "",
) -> ToolResult:
    """Save a procedure."""
    return _entry(tool_context.there(args), content, category, "procedure", "Learned procedure")


@declared_tool(
    title="Record an episode",
    description="Save what happened and how it ended, in one or two sentences. For a way to do something use learn_procedure.",
    returns=_EntryAdded,
)
def record_episode(
    tool_context: ToolContext,
    args: JSON,
    *,
    content: Annotated[str, Meta(max_length=MAX_FACT, description="What happened.")],
    category: _Topic = "",
) -> ToolResult:
    """Save an episode."""
    return _entry(tool_context.there(args), content, category, "episode", "Recorded episode")


def _entry(there: Memory, content: str, category: str, kind: Kind, done: str) -> ToolResult:
    result = there.facts.add(content, category or GENERAL, kind=kind)
    key, category = result.fact.key, result.fact.category
    message = f"{done} (id={key}, category={category})"
    if result.action == "kept":
        message = f"Known already (id={key}, category={category})"
    elif result.action == "updated":
        message += " in the place of an earlier text, which its history keeps"
    return told(message, _EntryAdded(id=key, category=category, action=result.action))


@declared_tool(
    title="Save a fact of this session",
    description=(
        "Keep a fact for as long as this connection lasts, after a diagnosis: about the host, its environment, a service's "
        "state, a discovery. Not preferences (save_memory), not output that is outdated at once, not what is there already. "
        "It is written nowhere and gone when the connection ends; context shows it."
    ),
    returns=_Saved,
    scoped=False,
)
def save_session_context(
    tool_context: ToolContext,
    args: JSON,
    *,
    fact: _Fact,
    category: Annotated[str, Meta(description="Category of the fact."), ForModels(words=SESSION_CATEGORIES)],
) -> ToolResult:
    """Keep a fact until the connection ends."""
    fact = sanitised(fact)
    if not fact:
        return _saved(False, "The fact is empty, nothing saved")
    if (category, fact) not in tool_context.session.facts:
        tool_context.session.facts.append((category, fact))
    return _saved(True, f"Session context saved: {fact}")


def _saved(saved: bool, message: str) -> ToolResult:
    return told(message, _Saved(saved=saved, message=message))


@declared_tool(
    title="Store a value",
    description=(
        "Store a value under a key, kept across conversations. An existing value that was not shown on this connection is "
        "shown instead, and nothing is stored."
    ),
    returns=_ValueStored,
)
def memory_store(
    tool_context: ToolContext,
    args: JSON,
    *,
    key: Annotated[
        str, Meta(min_length=1, max_length=MAX_KEY, description="The key: 1 to 256 bytes of any characters.")
    ],
    value: Annotated[Any, Meta(description="The value: a text, or any JSON.")],
) -> ToolResult:
    """Store a value, unless there is one that this connection was not shown."""
    there = tool_context.there(args)
    stored = there.values.get(key)
    shown = there.read(stored.memory, counts=False) if stored is not None and stored.own else None
    if stored is not None and shown is not None:
        body, cut = _page(as_text(stored.value))
        if not cut and as_json(stored.value) == as_json(value):  # `==` treats 1 and true as equal
            tool_context.session.show(shown)
            return _stored(key)
        if not tool_context.session.was_shown(shown):
            error = ChangedError(f"{one_line(key)} has a value that you were not shown: nothing was stored")
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
                more={"key": clean_text(key), "value": clean_text(body), "truncated": cut},
            )
    if isinstance(value, str) and not value.strip():
        raise UsageError(
            "the value is empty, so nothing was stored", hint="To delete a value, use memory_delete."
        )
    entry = there.values.set(key, value, seen="" if shown is None else shown.seen)
    written = there.read(entry.memory, counts=False)
    if written is not None and written.seen == entry.seen:
        tool_context.session.show(written)
    return _stored(key)


def _stored(key: str) -> ToolResult:
    return told(f"Stored value under key '{one_line(key)}'.", _ValueStored(stored=True, key=clean_text(key)))


@declared_tool(
    title="Recall a value",
    description="Return the value stored under a key. memory_list lists the keys; recall searches memories.",
    returns=_ValueRecalled,
    read_only=True,
)
def memory_recall(tool_context: ToolContext, args: JSON, *, key: _Key) -> ToolResult:
    """Return the value of a key: in the scope of the call, else in the default scope."""
    scope = tool_context.scope_of(args, must_exist=True)
    stored = first_own(tool_context.memory.scope(one).values.get(key) for one in dict.fromkeys((scope, "")))
    recalled = _ValueRecalled(
        notice=NOTICE,
        found=stored is not None,
        key=clean_text(key),
        value="",
        truncated=False,
        own=stored is None or stored.own,
    )
    if stored is None:
        message = f"No value found for key '{one_line(key)}'."
        return told(message, recalled)
    whole = as_text(stored.value)
    value, truncated = _page(whole)
    shown = tool_context.memory.scope(stored.scope).read(stored.memory)
    if shown is not None and shown.seen == stored.seen:
        if not truncated:
            tool_context.session.show(shown)
        elif shown.readable.body == whole:
            tool_context.session.show_part(shown, 0, len(value))
    text = f"{NOTICE}\n\n{one_line(key)}{whose(stored.own)}:\n{quote(value)}"
    if truncated:
        text += (
            f"(cut here: {len(whole):,} characters in all; read on with read_memory, key={stored.memory} and "
            f"start={len(value)})\n"
        )
    return told(text, msgspec.structs.replace(recalled, value=clean_text(value), truncated=truncated))


@declared_tool(
    title="Delete a value",
    description="Delete the value stored under a key; it stays in the history of the key.",
    returns=_ValueDeleted,
    destructive=True,
    idempotent=False,
)
def memory_delete(tool_context: ToolContext, args: JSON, *, key: _Key) -> ToolResult:
    """Delete the value of a key."""
    gone = tool_context.there(args).values.delete(key)
    remark = "It stays in the history of the key." if gone.own else "It was pending, so no history keeps it."
    return told(
        f"Deleted the value under key '{one_line(gone.key)}'. {remark}",
        _ValueDeleted(deleted=True, key=clean_text(gone.key)),
    )


def _page(value: str) -> tuple[str, bool]:
    """Return the part of a value that one answer shows, and whether it was cut."""
    end = page_end(value, 0, most=ANSWER - _AROUND)
    return value[:end], end < len(value)


@declared_tool(
    title="List stored values",
    description="List the keys that memory_store wrote, with the start of each value, 100 at a time.",
    returns=_ValuesListed,
    read_only=True,
)
def memory_list(
    tool_context: ToolContext,
    args: JSON,
    *,
    prefix: Annotated[str, Meta(max_length=MAX_KEY, description="Only keys with this prefix.")] = "",
    after: Annotated[
        str, Meta(max_length=64, description="Continue after this value of the last answer.")
    ] = "",
) -> ToolResult:
    """List a page of the values."""
    scope = tool_context.scope_of(args, must_exist=True)
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
    return told(text, _ValuesListed(notice=NOTICE, total=len(by_key), entries=entries, after=following))


def _entry_line(one: JSON) -> str:
    cut = " (cut)" if one["truncated"] else ""
    return f"{one_line(one['key'])}{whose(one['own'])}: {one_line(one['value'])}{cut}"


PEERS: Final = (
    save_memory,
    save_session_context,
    learn_procedure,
    record_episode,
    memory_store,
    memory_recall,
    memory_delete,
    memory_list,
)
