"""ChatGPT's data export: a zip or folder with `conversations.json`, or with `conversations-000.json` and so on.

A conversation is one event: its title, when, and how many messages; what was said stays in the export. What ChatGPT remembers of a
person is not in its export as such; where the texts that it saved (messages to its tool `bio`) are, they become candidates. So do
the custom instructions, which the person wrote, but for ChatGPT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ipfsmem.errors import FormatError, IpfsmemError, LimitError
from ipfsmem.exchange.json_input import read_items, read_json, read_typed
from ipfsmem.exchange.places import Files
from ipfsmem.exchange.records import (
    Happened,
    Item,
    Problem,
    Record,
    Skipped,
    date_of,
    list_of,
    mapping_of,
    name_of,
    one_line,
    records_of,
    text_of,
)

_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_MEMORIES = re.compile(r"(?:.*/)?(?:memories|memory|saved_memories)\.json")
#: Messages to this tool are what it was to remember.
_TOOL = "bio"


class _Content(msgspec.Struct):
    content_type: Any = None
    parts: list[Any] | None = None
    text: Any = None
    user_profile: Any = None
    user_instructions: Any = None


class _Author(msgspec.Struct):
    role: Any = None


class _Skimmed(msgspec.Struct):
    """A message without what was said in it."""

    id: Any = None
    author: _Author | None = None
    recipient: Any = None
    create_time: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Node(msgspec.Struct):
    message: _Skimmed | None = None


class _Conversation(msgspec.Struct):
    title: Any = None
    create_time: Any = None
    update_time: Any = None
    conversation_id: Any = None
    id: Any = None
    mapping: dict[str, _Node] | None = None


_conversation = msgspec.json.Decoder(_Conversation)
_content = msgspec.json.Decoder(_Content)


def read(files: Files) -> Iterator[Item]:
    """The conversations and what was saved out of them."""
    for name in files.names:
        try:
            if _MEMORIES.fullmatch(name) and not files.single:
                yield from _saved(name, read_json(files.read(name), name))
            elif files.single or _CONVERSATIONS.fullmatch(name):
                for number, raw in enumerate(read_items(files.read(name), name), 1):
                    yield from _read_one(f"conversation {number} in {name}", raw)
        except IpfsmemError as error:
            if files.single:
                raise
            yield Problem(name, str(error))


def _read_one(where: str, raw: bytes | LimitError) -> Iterator[Item]:
    try:
        if isinstance(raw, LimitError):
            raise raw
        found = read_typed(raw, _conversation, "it")
        if found.mapping is None:
            raise FormatError("it has no messages")
        messages = [node.message for node in found.mapping.values() if node.message is not None]
        spoken = [one for one in messages if _role(one) in ("user", "assistant") and one.recipient != _TOOL]
        ident = text_of(found.conversation_id or found.id, "its id")
        title = one_line(text_of(found.title, "its title"), 200)
        times = [when for one in messages if (when := date_of(one.create_time))]
        begin = date_of(found.create_time) or min(times, default="")
        if not begin:
            raise FormatError("it has no date")
    except FormatError as error:
        yield Problem(where, str(error))
        return
    said = {"conversation": one_line(ident, 100), "title": title, "messages": len(spoken)}
    yield Happened({"ts": begin, "type": "conversation", "source": "chatgpt", **said})
    for message in messages:
        try:
            yield from _remembered(where, message, ident)
        except FormatError as error:
            yield Problem(f"what was saved in {where}", str(error))


def _role(message: _Skimmed) -> object:
    return message.author.role if message.author is not None else None


def _remembered(where: str, message: _Skimmed, conversation: str) -> Iterator[Item]:
    saved = message.recipient == _TOOL and _role(message) == "assistant"
    if not saved and b"user_editable_context" not in bytes(message.content):
        return
    content = read_typed(bytes(message.content), _content, "it")
    if saved:
        parts = [one for one in content.parts or [content.text] if isinstance(one, str)]
        text = text_of("\n".join(parts), "it")
        if text.strip():
            yield _candidate(
                f"what was saved in {where}", text, f"chatgpt:{conversation}", date_of(message.create_time)
            )
    elif content.content_type == "user_editable_context":
        for value, what in (
            (content.user_profile, "about you"),
            (content.user_instructions, "how to answer"),
        ):
            text = text_of(value, "the custom instructions")
            if text.strip():
                yield _candidate(
                    f"custom instructions in {where}", text, f"chatgpt:custom instructions, {what}", ""
                )


def _candidate(where: str, text: str, source: str, created: str) -> Record:
    return Record(
        where=where,
        text=text,
        name=name_of(text),
        type="user",
        created=created,
        source=source,
        candidate=True,
    )


def _saved(file: str, found: Any) -> Iterator[Item]:
    """A list of what is remembered, as people and scripts save it beside an export: texts, or objects with one."""
    if isinstance(found, dict):
        found = found.get("memories", found.get("results"))

    def make(where: str, value: Any) -> Record | Skipped:
        one = {"content": value} if isinstance(value, str) else mapping_of(value, "it")
        text = text_of(one.get("content", one.get("memory", one.get("text"))), "its text")
        if not text.strip():
            return Skipped("an empty memory")
        return _candidate(
            where, text, "chatgpt:memories", date_of(one.get("created_at", one.get("updated_at")))
        )

    yield from records_of(list_of(found, "the memories"), f"memory in {file}, number", make)
