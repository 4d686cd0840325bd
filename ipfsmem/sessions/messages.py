"""Reads an item of a session as a message: its speaker, its text, the tools that it calls and the calls that it answers.

Four shapes are known, each as its program writes it into JSON: plain (`role`, `content`, also with `tool_calls` as OpenAI's chat
completions have them), items of OpenAI's responses (`type`), Anthropic's content blocks, and PydanticAI's `kind` with `parts`. A
plain item without a role is a user's; `text` may replace `content`, and `speaker` may replace `name`, as in transcripts of people.
An item of another shape is kept, but has no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

Item = Mapping[str, Any]
Role = Literal["user", "assistant", "system", "tool", ""]

_ROLES: Final[Mapping[object, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
#: Maximum characters of a speaker's name.
_NAME: Final = 64
#: PydanticAI's parts with text, and the parts that answer a tool's call.
_SYSTEM, _PROMPT = "system-prompt", "user-prompt"
_ANSWERS = ("tool-return", "retry-prompt", "builtin-tool-return")


class Message(NamedTuple):
    """The content of an item."""

    role: Role
    text: str
    #: The tools that it calls, and the ids of these calls.
    tools: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    #: The ids of the calls that it answers; "" for an answer without an id.
    answers: tuple[str, ...] = ()
    #: The speaker among several users or assistants (`name` of a chat completion's message, or `speaker`); "" if unknown.
    speaker: str = ""

    @property
    def is_request(self) -> bool:
        """Whether it begins a turn: a user's words, not a tool's answer."""
        return self.role == "user" and not self.answers


def read_message(item: Item) -> Message:
    """Return an item as a message; for an unknown shape an empty message without a role. A lone surrogate, left by programs that
    cut a text within an emoji, becomes U+FFFD, because it could not be encoded."""
    message = _as_written(item)
    text, speaker, tools = whole(message.text), whole(message.speaker), tuple(map(whole, message.tools))
    if text is message.text and speaker is message.speaker and tools == message.tools:
        return message
    return message._replace(text=text, speaker=speaker, tools=tools)


def whole(text: str) -> str:
    """Replace each lone surrogate of a text by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _as_written(item: Item) -> Message:
    if item.get("kind") in ("request", "response"):
        return _pydantic_ai(item)
    kind = item.get("type")
    if isinstance(kind, str) and "role" not in item:
        return _response_item(item, kind)
    words = _words(item["content"] if "content" in item else item.get("text"))
    role = _role(item["role"]) if "role" in item else "user" if words else ""
    if not role:
        return Message("", "")
    tools, calls, answers = [], [], []
    for call in _objects(item.get("tool_calls")):
        tools.append(_text_of(_object(call.get("function")).get("name")))
        calls.append(_text_of(call.get("id")))
    for block in _objects(item.get("content")):
        if block.get("type") == "tool_use":
            tools.append(_text_of(block.get("name")))
            calls.append(_text_of(block.get("id")))
        elif block.get("type") == "tool_result":
            answers.append(_text_of(block.get("tool_use_id")))
    if role == "tool":
        answers.append(_text_of(item.get("tool_call_id")))
    # The name in a tool's answer is that of the tool.
    name = _text_of(item.get("name")) or _text_of(item.get("speaker"))
    speaker = " ".join(name.split())[:_NAME] if role in ("user", "assistant") else ""
    return Message(role, words, _some(tools), tuple(calls), tuple(answers), speaker)


def without_system(item: Item) -> dict[str, Any] | None:
    """Return the item without system instructions, which the resuming program adds itself; None if nothing is left."""
    if item.get("kind") == "request" and isinstance(item.get("parts"), list):
        parts = [part for part in item["parts"] if _object(part).get("part_kind") != _SYSTEM]
        if not parts:
            return None
        return {name: value for name, value in item.items() if name != "instructions"} | {"parts": parts}
    return None if _role(item.get("role")) == "system" else dict(item)


def _pydantic_ai(item: Item) -> Message:
    words, tools, calls, answers, has_user_part = [], [], [], [], False
    for part in _objects(item.get("parts")):
        kind = part.get("part_kind")
        if kind in ("tool-call", "builtin-tool-call"):
            tools.append(_text_of(part.get("tool_name")))
            calls.append(_text_of(part.get("tool_call_id")))
        elif kind in _ANSWERS and (kind != "retry-prompt" or part.get("tool_name")):
            answers.append(_text_of(part.get("tool_call_id")))
            words.append(_words(part.get("content")))
        elif kind in (_PROMPT, "text", "retry-prompt"):
            has_user_part = True
            words.append(_words(part.get("content")))
    if item.get("kind") == "response":
        # The call and the answer of a tool that the model's provider runs are in one response.
        return Message("assistant", _joined(words), _some(tools), tuple(calls), tuple(answers))
    role: Role = "user" if has_user_part else "tool" if answers else "system"
    return Message(role, _joined(words), (), (), tuple(answers))


def _response_item(item: Item, kind: str) -> Message:
    if kind.endswith("_call_output"):
        return Message("tool", _words(item.get("output")), (), (), (_text_of(item.get("call_id")),))
    if kind.endswith("_call"):
        name = _text_of(item.get("name")) or kind.removesuffix("_call")
        call = item.get("call_id")
        return Message("assistant", "", (name,), (call,) if isinstance(call, str) else ())
    if kind == "reasoning":
        return Message("assistant", "")
    return Message("", "")


def _role(name: object) -> Role:
    return _ROLES.get(name, "") if isinstance(name, str) else ""


def _words(content: object) -> str:
    """Return the text of a content: a string, or the texts of its blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _text_of(content.get("text")) or _nested(content.get("content"))
    if not isinstance(content, list):
        return ""
    texts = []
    for one in content:
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one, Mapping):
            texts.append(_text_of(one.get("text")) or _nested(one.get("content")))
    return _joined(texts)


def _nested(content: object) -> str:
    """Return the text of blocks in a block, one level deep; deeper blocks are ignored."""
    if isinstance(content, str):
        return content
    return _joined(_text_of(block.get("text")) for block in _objects(content))


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _objects(value: object) -> Iterator[Item]:
    return (one for one in value if isinstance(one, Mapping)) if isinstance(value, list) else iter(())


def _object(value: object) -> Item:
    return value if isinstance(value, Mapping) else {}


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def _some(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, names))
