"""ChatGPT's data export: a zip or folder with `conversations.json`, or with `conversations-000.json` and so on.

A conversation is one event: its title, when, and the number of messages of the branch that ChatGPT shows; the messages stay in
the export. ChatGPT's memories are not in its export as such; the texts that it saved (messages to its tool `bio`) become
candidates, and so do the custom instructions, which the person wrote, but for ChatGPT.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from ipfsmem.bundle.timeline import normal_ts
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.exchange.json_input import read_conversations, read_json, read_typed
from ipfsmem.exchange.lenient import Fields, date_of, plain_text
from ipfsmem.exchange.places import Files
from ipfsmem.exchange.records import (
    ImportRecord,
    Item,
    Problem,
    Skipped,
    conversation,
    flat_records,
    name_of,
    one_line,
    records_of,
)

_CONVERSATIONS = re.compile(
    r"(?:.*/)?conversations?(?:[-_ (].*)?\.json|(?:.*/)?conversations/[^/]+\.json", re.IGNORECASE
)
_MEMORIES = re.compile(r"(?:.*/)?(?:memories|memory|saved_memories)\.json")
#: Messages to this tool are saved memories.
_TOOL = "bio"
#: The field of a message's metadata with the custom instructions.
_CUSTOM = "user_context_message_data"


class _Content(msgspec.Struct):
    content_type: Any = None
    parts: Any = None
    text: Any = None
    user_profile: Any = None
    user_instructions: Any = None
    model_set_context: Any = None


class _ChatGptMessage(msgspec.Struct):
    """A message whose content is decoded on demand."""

    author: Any = None
    recipient: Any = None
    create_time: Any = None
    update_time: Any = None
    weight: Any = None
    metadata: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Node(msgspec.Struct):
    message: msgspec.Raw = msgspec.Raw(b"null")
    parent: Any = None


class _ChatGptConversation(msgspec.Struct):
    title: Any = None
    create_time: Any = None
    update_time: Any = None
    conversation_id: Any = None
    id: Any = None
    current_node: Any = None
    mapping: msgspec.Raw = msgspec.Raw(b"null")


_conversation = msgspec.json.Decoder(_ChatGptConversation)
_mapping = msgspec.json.Decoder(dict[str, msgspec.Raw])
_node = msgspec.json.Decoder(_Node)
_message = msgspec.json.Decoder(_ChatGptMessage)
_content = msgspec.json.Decoder(_Content)
#: Content that ChatGPT does not show as a message.
_UNSHOWN = ("user_editable_context", "model_editable_context", "thoughts", "reasoning_recap")


def read(files: Files) -> Iterator[Item]:
    """Yield the conversations and the saved memories."""
    for name in files.names:
        try:
            if _MEMORIES.fullmatch(name) and not files.single:
                yield from _saved(name, read_json(files.read(name), name))
            elif files.single or _CONVERSATIONS.fullmatch(name):
                for number, raw in enumerate(read_conversations(files.read(name), name, "mapping"), 1):
                    yield from _read_one(f"conversation {number} in {name}", raw, files.written(name))
        except IpfsmemError as error:
            if files.single:
                raise
            yield Problem(name, str(error))


def _read_one(place: str, raw: bytes | FormatError, written: str) -> Iterator[Item]:
    try:
        if isinstance(raw, FormatError):
            raise raw
        fields = Fields(msgspec.structs.asdict(read_typed(raw, _conversation, "it")))
        nodes, messages = _nodes(fields.value["mapping"])
        path = _shown_path(nodes, messages, fields.text("current_node"))
        spoken = sum(_is_spoken(messages[ident]) for ident in path if ident in messages)
        ident = fields.text("conversation_id", "id")
        times = [when for one in messages.values() if (when := date_of(one.create_time))]
        begin = fields.date("create_time") or min(times, key=normal_ts, default="")
        begin = begin or fields.date("update_time")
        begin = begin or min(
            filter(None, (date_of(one.update_time) for one in messages.values())), default=""
        )
        if not begin and not messages:
            raise FormatError("it has no date and no messages")
    except FormatError as error:
        yield Problem(place, str(error))
        return
    title = one_line(fields.text("title"), 200)
    data = {"conversation": one_line(ident, 100), "title": title, "messages": spoken}
    yield conversation(place, begin, written, {"source": "chatgpt", **data}, raw)
    for message in messages.values():
        yield from _remembered(place, message, ident)


def _nodes(raw: bytes) -> tuple[dict[str, Any], dict[str, _ChatGptMessage]]:
    """Return the parent of each node, and the messages, by the ids of their nodes. Empty or odd nodes have no message."""
    try:
        mapping = read_typed(bytes(raw), _mapping, "it")
    except FormatError:
        raise FormatError("it has no messages") from None
    parents: dict[str, Any] = {}
    messages: dict[str, _ChatGptMessage] = {}
    for ident, one in mapping.items():
        parents[ident] = None
        try:
            node = read_typed(bytes(one), _node, "it")
            parents[ident] = node.parent
            messages[ident] = read_typed(bytes(node.message), _message, "it")
        except FormatError:
            continue
    return parents, messages


def _shown_path(
    parents: Mapping[str, Any], messages: Mapping[str, _ChatGptMessage], current: str
) -> Collection[str]:
    """Return the nodes of the branch that ChatGPT shows; all of them if nodes name no parents."""
    linked = {parent for parent in parents.values() if isinstance(parent, str) and parent in parents}
    if not linked:
        return parents
    if current not in parents:
        leaves = [ident for ident in messages if ident not in linked]
        current = leaves[-1] if leaves else ""
    path: dict[str, None] = {}
    while isinstance(current, str) and current in parents and current not in path:
        path[current] = None
        current = parents[current]
    return path


def _is_spoken(message: _ChatGptMessage) -> bool:
    """Return whether ChatGPT shows it as a message of the person or the assistant."""
    hidden = isinstance(message.metadata, dict) and message.metadata.get(
        "is_visually_hidden_from_conversation"
    )
    to = message.recipient
    if (
        _role(message) not in ("user", "assistant")
        or to not in (None, "", "all")
        or hidden is True
        or message.weight == 0
    ):
        return False
    content = _content_of(message)
    if content.content_type in _UNSHOWN:
        return False
    return content.parts is None or bool(plain_text(content.parts).strip())


def _content_of(message: _ChatGptMessage) -> _Content:
    try:
        return read_typed(bytes(message.content), _content, "it")
    except FormatError:
        return _Content(text=read_json(bytes(message.content), "it"))


def _role(message: _ChatGptMessage) -> object:
    author = message.author
    return author.get("role") if isinstance(author, dict) else author


def _remembered(place: str, message: _ChatGptMessage, conversation: str) -> Iterator[Item]:
    saved = message.recipient == _TOOL and _role(message) in ("assistant", "", None)
    about = message.metadata.get(_CUSTOM) if isinstance(message.metadata, dict) else None
    custom = about if isinstance(about, dict) else {}
    if not saved and not custom and b"editable_context" not in bytes(message.content):
        return
    content = _content_of(message)
    if saved:
        text = plain_text(content.parts)
        text = text if text.strip() else plain_text(content.text)
        if text.strip():
            when = date_of(message.create_time) or date_of(message.update_time)
            yield _candidate(f"what was saved in {place}", text, f"chatgpt:{conversation}"[:300], when)
        return
    if content.content_type == "model_editable_context":
        text = plain_text(content.model_set_context)
        if text.strip():
            yield _candidate(f"what was remembered in {place}", text, "chatgpt:memory", "")
        return
    # They are in the content of a message, and those of one conversation next to it too.
    for value, beside, kind in (
        (content.user_profile, custom.get("about_user_message"), "about you"),
        (content.user_instructions, custom.get("about_model_message"), "how to answer"),
    ):
        text = plain_text(value)
        text = text if text.strip() else plain_text(beside)
        if text.strip():
            yield _candidate(
                f"custom instructions in {place}", text, f"chatgpt:custom instructions, {kind}", ""
            )


def _candidate(place: str, text: str, source: str, created: str) -> ImportRecord:
    return ImportRecord(
        where=place,
        text=text,
        name=name_of(text),
        type="user",
        created=created,
        source=source,
        candidate=True,
    )


def _saved(file: str, value_read: Any) -> Iterator[Item]:
    """Yield a list of saved memories, as people and scripts store it next to an export: texts, or objects with one."""

    def make(place: str, value: Any) -> ImportRecord | Skipped:
        one = Fields(value, "content")
        text = one.body("text", "content", "memory", "text")
        if not text.strip():
            return Skipped("an empty memory")
        record = _candidate(place, text, "chatgpt:memories", one.date("created_at", "updated_at"))
        return msgspec.structs.replace(record, extra=one.rest())

    values = flat_records(value_read, ("memories", "results"), ("content", "memory", "text"))
    yield from records_of(values, f"memory in {file}, number", make)
