"""Runs a dream by a model: the prompt, the tools, and the effect of each tool call.

The model only proposes changes, and only of memories whose whole text it was shown. A call of an unknown tool, with invalid
arguments, or that would remove more than a quarter of the memories is answered with an error and has no effect. Texts are fenced.
The caller sends the requests to the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ipfsmem.bundle.fence import NOTICE, Quoted, fence_memory
from ipfsmem.bundle.index import index_line, item_of
from ipfsmem.bundle.keys import check_key
from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.dream.chat import Reply, ToolCall
from ipfsmem.dream.proposal import Change, Note, Proposal, Step
from ipfsmem.errors import IpfsmemError, UsageError

#: Maximum replies of the model in one dream, tool calls in a reply, and characters of all texts that the model is shown.
MOST_ROUNDS, MOST_CALLS, MOST_SHOWN = 40, 64, 400_000
#: Maximum changes that a model may propose, share of the memories that it may remove, and maximum characters of one text.
MOST_CHANGES, MOST_REMOVED, MOST_TEXT = 60, 0.25, 20_000
_LISTED = 500

_INSTRUCTIONS: Final = f"""You tidy up the long-term memory of an AI agent. Today is {{today}}. Work in four phases.
Orient: list the memories. Gather: read those that may say the same, contradict each other, or are out of date.
Consolidate: propose better texts: join what says the same, turn relative dates into dates, keep every fact. Prune: propose to remove what stands elsewhere by now.
Never invent a fact, and keep secrets out. When you are done, answer with one sentence and call no tool.
{NOTICE}"""

_KEY: Final = {"type": "string", "description": "The key of the memory."}
_REASON: Final = {"type": "string", "description": "Why, in one sentence for the person who decides."}
TOOLS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "list_memories",
        "description": "The keys of all memories with their names and descriptions.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
    {
        "name": "read_memory",
        "description": "The whole text of one memory.",
        "parameters": {
            "type": "object",
            "properties": {"key": _KEY},
            "required": ["key"],
            "additionalProperties": False,
        },
    },
    {
        "name": "propose_text",
        "description": "Propose a new text for a memory, or a new memory. The person sees the difference and decides.",
        "parameters": {
            "type": "object",
            "properties": {
                "key": _KEY,
                "text": {"type": "string", "description": "The whole text, Markdown."},
                "description": {
                    "type": "string",
                    "description": "One line for the index; leave it out to keep it.",
                },
                "reason": _REASON,
            },
            "required": ["key", "text", "reason"],
            "additionalProperties": False,
        },
    },
    {
        "name": "propose_removal",
        "description": "Propose to remove a memory since another one says all of it; propose that one's text first. The person decides.",
        "parameters": {
            "type": "object",
            "properties": {
                "key": _KEY,
                "stands_in": {"type": "string", "description": "The key of the memory that says it."},
                "reason": _REASON,
            },
            "required": ["key", "stands_in", "reason"],
            "additionalProperties": False,
        },
    },
)


class Asking:
    """One dream by a model. Pass `messages` and `TOOLS` to the model, and its reply to `take`, until that returns False."""

    def __init__(self, notes: Sequence[Note], today: str) -> None:
        self._notes = {note.key: note for note in notes}
        self._steps: dict[str, Step] = {}
        self._removed: dict[str, str] = {}
        #: The memories whose whole text the model was shown.
        self._read: set[str] = set()
        self._room = MOST_SHOWN
        self._rounds = 0
        self.given = 0
        #: Number of replies of the model.
        self.replies = 0
        self.said = 0
        #: Number of refused calls, including those of unknown tools.
        self.refused = 0
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": _INSTRUCTIONS.format(today=today)},
            {"role": "user", "content": f"There are {len(self._notes)} memories. Begin."},
        ]

    def take(self, reply: Reply) -> bool:
        """Carry out the allowed calls of a reply; returns whether to ask the model again."""
        self.replies += 1
        self.given += reply.given
        self.said += reply.said
        self._rounds += 1
        if not reply.calls or self._rounds >= MOST_ROUNDS:
            return False
        calls = reply.calls[:MOST_CALLS]  # the whole reply is part of the next request
        self.refused += len(reply.calls) - len(calls)
        self.messages.append(
            {
                "role": "assistant",
                "content": reply.text,
                "tool_calls": [
                    {
                        "id": one.id,
                        "type": "function",
                        "function": {"name": one.name, "arguments": one.arguments},
                    }
                    for one in calls
                ],
            }
        )
        for call in calls:
            answer = self._answer(call)
            self._room -= len(answer)
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
        return True

    def proposal(self) -> Proposal:
        """Return the proposal of the model."""
        return Proposal(steps=tuple(self._steps.values()), looked_at=len(self._notes))

    def _answer(self, call: ToolCall) -> str:
        try:
            arguments = _arguments(call)
            match call.name:
                case "list_memories":
                    return self._list()
                case "read_memory":
                    text = self._shown(self._text_of(arguments["key"]))
                    self._read.add(arguments["key"])
                    return text
                case "propose_text":
                    return self._text(arguments)
                case _:
                    return self._removal(arguments)
        except IpfsmemError as error:
            self.refused += 1
            return f"error: {error}"

    def _list(self) -> str:
        lines = [
            index_line(item_of(key, note.file))[1] for key, note in sorted(self._notes.items())[:_LISTED]
        ]
        more = f"({len(self._notes) - _LISTED} more are not listed)\n" if len(self._notes) > _LISTED else ""
        return self._shown("".join(f"> {line}" for line in lines) + more)

    def _shown(self, text: str) -> str:
        if len(text) > self._room:
            raise UsageError(
                "no more is shown in this dream: propose what you can by what you have read, and end"
            )
        return text

    def _text_of(self, key: str) -> str:
        file = self._known(key).file
        return fence_memory(
            Quoted(
                key=key,
                body=file.body,
                name=file.name,
                description=file.description,
                type=file.type,
                tags=file.tags,
            )
        )

    def _text(self, arguments: Mapping[str, str]) -> str:
        key, text = check_key(arguments["key"]), arguments["text"]
        self._room_for(key)
        if not text.strip() or len(text) > MOST_TEXT:
            raise UsageError(f"a text has 1 to {MOST_TEXT:,} characters")
        if key in self._removed or key in self._removed.values():
            raise UsageError(f"{key} is part of a removal that was proposed")
        note = self._notes.get(key)
        if note is not None:
            self._was_read(key)
        file = (note.file if note is not None else MemoryFile()).with_fields(
            {"description": arguments["description"]} if arguments.get("description") else {}, text
        )
        self._steps[key] = Step(
            why=_why(arguments), changes=(Change(key=key, text=render_memory(file).decode()),)
        )
        return "proposed"

    def _removal(self, arguments: Mapping[str, str]) -> str:
        key, stands_in = arguments["key"], arguments["stands_in"]
        self._room_for(key)
        self._was_read(key)
        self._was_read(stands_in)
        if key == stands_in or stands_in in self._removed or key in self._removed.values():
            raise UsageError(f"{stands_in} would not be there to say what {key} says")
        if len(self._removed.keys() | {key}) > MOST_REMOVED * len(self._notes):
            raise UsageError("no more than a quarter of the memories may be removed in one dream")
        self._removed[key] = stands_in
        self._steps.pop(key, None)
        change, before = Change(key=key), self._steps.get(stands_in)
        if before is None:
            self._steps[key] = Step(why=_why(arguments), changes=(change,), reads=(stands_in,))
        else:  # the memory that contains it is in the same step, so that both are applied or neither
            why = f"{before.why}; {_why(arguments)}"
            self._steps[stands_in] = Step(why=why, changes=(*before.changes, change), reads=before.reads)
        return "proposed"

    def _room_for(self, key: str) -> None:
        changed = {change.key for step in self._steps.values() for change in step.changes}
        if len(changed | {key}) > MOST_CHANGES:
            raise UsageError(f"no more than {MOST_CHANGES} changes may be proposed in one dream")

    def _was_read(self, key: str) -> None:
        self._known(key)
        if key not in self._read:
            raise UsageError(f"read {key} first")

    def _known(self, key: str) -> Note:
        note = self._notes.get(key)
        if note is None:
            raise UsageError(f"there is no memory {key[:80]!a}")
        return note


def _why(arguments: Mapping[str, str]) -> str:
    return " ".join(arguments["reason"].split())[:300] or "the model gave no reason"


def _arguments(call: ToolCall) -> dict[str, str]:
    """Return the arguments of an allowed call. Raises UsageError."""
    tool = next((one for one in TOOLS if one["name"] == call.name), None)
    if tool is None:
        raise UsageError(f"unknown tool {call.name[:80]!a} in a dream")
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise UsageError("the arguments are no JSON object")
    schema = tool["parameters"]
    wrong = [
        name for name in arguments if name not in schema["properties"] or not isinstance(arguments[name], str)
    ]
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if wrong or missing:
        raise UsageError(f"the arguments do not fit: {', '.join([*wrong, *missing])[:200]}")
    for text in arguments.values():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError("an argument is not Unicode text") from None
    return arguments
