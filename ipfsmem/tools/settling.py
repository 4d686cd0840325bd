"""The resolution of a conflict by a model: it is shown all texts of one memory, and replaces them with one of its own, or keeps
the shown one. Pending texts are left to the person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.bundle.fence import fence_memory, shows_fields_whole
from ipfsmem.bundle.header_edit import edit_memory, refuse_over_unclosed
from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.errors import ChangedError, FormatError, NotFoundError, UsageError
from ipfsmem.memories.memory_records import Conflict, MemoryRecord
from ipfsmem.tools.paging import ANSWER, beginning, weight
from ipfsmem.tools.schema import JSON
from ipfsmem.tools.tool import ToolResult, refusal
from ipfsmem.tools.tool_context import ToolContext, as_values, fenced

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Maximum number of keys in one answer.
_LISTED: Final = 60
#: Bytes of an answer outside the texts of a conflict, and the minimum for each text.
_AROUND: Final = 1_200
_LEAST: Final = 300


def resolve_conflict(tool_context: ToolContext, args: JSON) -> ToolResult:
    """Return the conflicts without a key, the texts of one and their `seen` with a key, and resolve it with both."""
    if args.get("key") is None:
        return _conflicts(tool_context, args)
    item = _conflict(tool_context, args)
    own = tuple(copy for copy in item.copies if copy.reading is None or copy.reading.own)
    for_person = not own and not item.forgotten
    shown, seen = _texts_of(tool_context, item, to_settle=not for_person)
    if for_person:
        refused = UsageError(
            f"all alternatives of {item.key} are texts of others, and only the person can decide on them",
            hint=f"For the person: ipfsmem conflicts {item.key}",
        )
        return refusal(refused, text=shown.text, more=shown.structured)
    body, keep = args.get("body"), args.get("keep", False)
    if "seen" not in args:
        if body is not None or keep:
            raise UsageError(
                "pass the seen value of the texts too: call resolve_conflict with the key alone to see them"
            )
        return shown
    if (body is None) == (not keep):
        raise UsageError(
            "pass either body, the text that replaces all of these, or keep, to keep the shown text"
        )
    if args["seen"].lower() != seen:
        error = ChangedError(f"{item.key} changed since it was shown, so nothing was written")
        error.hint = "These are the current texts, with their seen value." if seen else ""
        return refusal(error, text=shown.text, more=shown.structured)
    # Texts of others stay: a text that replaces one would be theirs.
    there = _place(tool_context, args)
    settled = there.resolve(
        item.key,
        _merged(tool_context, item, body) if body is not None else None,
        seen=msgspec.structs.replace(item, copies=own),
        keep=body is None,
    ).shown
    outcome = "stays deleted" if settled is None else "keeps the shown text"
    return _settled(there, args, settled, "now has your text" if body is not None else outcome)


def _conflicts(tool_context: ToolContext, args: JSON) -> ToolResult:
    conflicts = [item for there in _places(tool_context, args) for item in there.conflicts()]
    keys = [f"{item.key} (scope {item.scope})" if item.scope else item.key for item in conflicts]
    names = ", ".join(keys[:_LISTED]) + (f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else "")
    message = f"Memories with conflicts: {names}." if keys else "There are no conflicts."
    return ToolResult(
        message, {"settled": False, "keys": [item.key for item in conflicts], "seen": "", "texts": []}
    )


def _places(tool_context: ToolContext, args: JSON) -> list[Memory]:
    """Return the scopes of a call: the named one, else the usual one and the default scope."""
    usual = tool_context.scope_of(args)
    scopes = (usual,) if "scope" in args else tuple(dict.fromkeys((usual, "")))
    return [tool_context.memory.scope(one) for one in scopes]


def _place(tool_context: ToolContext, args: JSON) -> Memory:
    """Return the scope with the conflict of a key, else the first scope searched."""
    places = _places(tool_context, args)
    here = (there for there in places if any(one.key == args["key"] for one in there.conflicts()))
    return next(here, places[0])


def _conflict(tool_context: ToolContext, args: JSON) -> Conflict:
    """Return the conflict of the given key. Raises NotFoundError, which names another scope with a conflict of that key."""
    key = args["key"]
    item = next((one for one in _place(tool_context, args).conflicts() if one.key == key), None)
    if item is not None:
        return item
    elsewhere = [*tool_context.memory.conflicts()] if tool_context.scope_of(args) else []
    raise NotFoundError(
        f"{key} has no conflict here",
        hint='It has one in the default scope: call again with scope="".'
        if any(one.key == key for one in elsewhere)
        else "resolve_conflict without a key lists the conflicts.",
    )


def _settled(there: Memory, args: JSON, settled: MemoryRecord | None, outcome: str) -> ToolResult:
    """Return the result, with the texts that are still alternatives."""
    key = args["key"]
    alternatives = next((one.copies for one in there.conflicts() if one.key == key), ())
    others = [copy.file for copy in alternatives if copy.reading is not None and not copy.reading.own]
    absent = [copy.file for copy in alternatives if copy.reading is None]
    later = [copy.file for copy in alternatives if copy.file not in (*others, *absent)]
    stay = "".join(
        f" {', '.join(names)} stayed: {why}."
        for names, why in (
            (others, "texts of others, which only the person can decide on"),
            (absent, "not on this device, so they were not shown"),
            (later, "written since"),
        )
        if names
    )
    went = (
        "the alternatives that you were shown were dropped, but not all"
        if stay
        else "the alternatives were dropped"
    )
    return ToolResult(
        f"{key} {outcome}; {went}.{stay}",
        {
            "settled": not (absent or later),
            "keys": [key],
            "seen": "",
            "texts": [],
        },
    )


def _texts_of(tool_context: ToolContext, item: Conflict, *, to_settle: bool) -> tuple[ToolResult, str]:
    """Return all texts of a conflict as an answer, and the hash that identifies them; empty unless they are shown whole and
    `to_settle` it."""
    writers = tool_context.writers()
    readings = [(item.shown, "")] if item.shown is not None else []
    readings += [(copy.reading, copy.file) for copy in item.copies if copy.reading is not None]
    room, items, alternatives = ANSWER - _AROUND, [], list[str]()
    for at, (reading, name) in enumerate(readings):
        file = reading.readable
        later = len(readings) - at - 1
        frame = weight(fence_memory(writers.quoted(reading, file=MemoryFile(file.fields, ""), copy=name)))
        part = MemoryFile(
            file.fields, beginning(file.body, max(room - later * _LEAST, room // (later + 1)) - frame)
        )
        quoted = writers.quoted(reading, file=part, copy=name)
        whole = len(part.body) == len(file.body) and shows_fields_whole(quoted)
        if whole:
            tool_context.session.show(reading, name)
        elif not tool_context.session.was_shown(reading, name):
            alternatives.append(f"alternative={name}" if name else "no alternative")
        if (cost := weight(fence_memory(quoted))) <= room:
            items.append(quoted)
            room -= cost
        elif whole:
            alternatives.append(f"alternative={name}" if name else "no alternative")
    seen = item.seen if to_settle and not alternatives else ""
    absent = [copy.file for copy in item.copies if copy.reading is None]
    lines = [fenced(*items)]
    if item.forgotten:
        lines.insert(0, f"{item.key} was deleted; these texts were written concurrently.")
    if absent:
        lines.append(f"Not on this device: {', '.join(absent[:5])}{', ...' if len(absent) > 5 else ''}.")
    if seen:
        lines.append(
            f"To resolve it: resolve_conflict with key={item.key}, seen={seen} and body (a text with everything to keep) or "
            "keep=true."
        )
    elif alternatives and to_settle:
        names = "; ".join(alternatives[:5]) + ("; ..." if len(alternatives) > 5 else "")
        lines.append(
            f"The texts are cut here: read each one to its end with read_memory ({names}), then call resolve_conflict again, "
            f"which returns the seen value. Or the person resolves it: ipfsmem conflicts {item.key}"
        )
    texts = [{**as_values(one), "copy": one.file} for one in items]
    values = {"settled": False, "keys": [item.key], "seen": seen, "texts": texts}
    return ToolResult("\n".join(lines), values), seen


def _merged(tool_context: ToolContext, item: Conflict, body: str) -> bytes:
    """Put a new body under the header of the shown text, else of the first alternative."""
    readings = [item.shown, *(copy.reading for copy in item.copies)]
    stamps = {"updated": tool_context.memory.replica.environment.today().isoformat()}
    old = next((reading.data for reading in readings if reading is not None), b"")
    refuse_over_unclosed(old, body)
    try:
        return edit_memory(old, {}, body, stamps=stamps)
    except FormatError:  # not a memory file
        return render_memory(MemoryFile().with_fields(stamps, body))
