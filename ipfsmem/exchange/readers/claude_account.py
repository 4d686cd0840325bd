"""The data export of a Claude account: zips or folders with `conversations.json`, `memories.json` or `memories/`, `projects.json`
or `projects/`, `users.json`.

A conversation is one event: its title, when, and the number of messages. Claude's memories (`memories.json`) were distilled from
conversations, so they become candidates: the account's, and of each project its own. A project's instructions and documents are
counted and skipped, as they are not memories. Users are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec

from ipfsmem.bundle.timeline import normal_ts
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.exchange.json_input import read_conversations, read_json, read_typed
from ipfsmem.exchange.lenient import Fields, date_of, plain_text, unicode_text
from ipfsmem.exchange.places import Files
from ipfsmem.exchange.records import (
    ImportRecord,
    Item,
    Problem,
    Skipped,
    conversation,
    is_one_of_a_kind,
    one_line,
)

_KIND = re.compile(r"(?:.*/)?(conversations|memories|projects)(?:-\d+)?(?:\.json|/[^/]+\.json)")


class _ClaudeConversation(msgspec.Struct):
    uuid: Any = None
    name: Any = None
    created_at: Any = None
    updated_at: Any = None
    current_leaf_message_uuid: Any = None
    chat_messages: msgspec.Raw = msgspec.Raw(b"null")


class _ClaudeMessage(msgspec.Struct):
    """A message without its content."""

    uuid: Any = None
    parent_message_uuid: Any = None
    created_at: Any = None


_conversation = msgspec.json.Decoder(_ClaudeConversation)
_messages = msgspec.json.Decoder(list[msgspec.Raw])
_message = msgspec.json.Decoder(_ClaudeMessage)


def read(files: Files) -> Iterator[Item]:
    """Yield the conversations and memories of an export."""
    kinds = {name: match[1] for name in files.names if (match := _KIND.fullmatch(name))}
    if files.single and not kinds:
        kinds = dict.fromkeys(files.names, "conversations")
    projects: dict[str, str] = {}
    for name in sorted(kinds, key=lambda one: (kinds[one] != "projects", one)):
        try:
            data = files.read(name)
            if kinds[name] == "conversations":
                for number, raw in enumerate(read_conversations(data, name, "chat_messages"), 1):
                    yield _read_one(f"conversation {number} in {name}", raw, files.written(name))
            elif kinds[name] == "projects":
                for raw in read_conversations(data, name, ""):
                    yield _project(raw, projects)
            else:
                for number, raw in enumerate(read_conversations(data, name, ""), 1):
                    yield from _memories(f"memories {number} in {name}", raw, projects)
        except IpfsmemError as error:
            if files.single:
                raise
            yield Problem(name, str(error))


def _read_one(place: str, raw: bytes | FormatError, written: str) -> Item:
    try:
        if isinstance(raw, FormatError):
            raise raw
        fields = Fields(msgspec.structs.asdict(read_typed(raw, _conversation, "it")))
        messages = _messages_of(fields.value["chat_messages"])
        times = (when for one in messages if one is not None and (when := date_of(one.created_at)))
        begin = (
            fields.date("created_at") or min(times, key=normal_ts, default="") or fields.date("updated_at")
        )
        if not begin and not messages:
            raise FormatError("it has no date and no messages")
    except FormatError as error:
        return Problem(place, str(error))
    data = {
        "conversation": one_line(fields.text("uuid"), 100),
        "title": one_line(fields.text("name"), 200),
        "messages": _count(messages, fields.text("current_leaf_message_uuid")),
    }
    return conversation(place, begin, written, {"source": "claude", **data}, raw)


def _messages_of(raw: bytes) -> list[_ClaudeMessage | None]:
    """Return the messages of a conversation, None for an unreadable one. Raises FormatError if it has no list of them."""
    try:
        rows = read_typed(bytes(raw), _messages, "it")
    except FormatError:
        raise FormatError("it has no messages") from None
    messages: list[_ClaudeMessage | None] = []
    for one in rows:
        try:
            messages.append(read_typed(bytes(one), _message, "it"))
        except FormatError:
            messages.append(None)
    return messages


def _count(messages: list[_ClaudeMessage | None], leaf: str) -> int:
    """Return how many messages the branch with this leaf has; all of them if the export names none."""
    parents = {
        one.uuid: one.parent_message_uuid for one in messages if one is not None and isinstance(one.uuid, str)
    }
    if leaf not in parents:
        return sum(one is not None for one in messages)
    path: set[str] = set()
    while isinstance(leaf, str) and leaf in parents and leaf not in path:
        path.add(leaf)
        leaf = parents[leaf]
    return len(path)


def _project(raw: bytes | FormatError, projects: dict[str, str]) -> Item:
    try:
        if isinstance(raw, FormatError):
            raise raw
        fields = Fields(read_json(raw, "a project"))
        projects[fields.text("uuid")] = one_line(fields.text("name"), 200)
    except FormatError as error:
        return Problem("a project", str(error))
    return Skipped("a project's instructions and documents, which are no memory")


def _memories(place: str, raw: bytes | FormatError, projects: dict[str, str]) -> Iterator[Item]:
    try:
        if isinstance(raw, FormatError):
            raise raw
        fields = Fields(read_json(raw, "it"), "conversations_memory")
    except FormatError as error:
        yield Problem(place, str(error))
        return
    account = fields.text("account_uuid")
    texts = [("conversations", "What Claude remembers", fields.value.get("conversations_memory"))]
    by_project = fields.value.get("project_memories")
    if isinstance(by_project, dict):
        for project, text in by_project.items():
            name = projects.get(project) or unicode_text(project)
            texts.append((f"project {unicode_text(project)}", f"What Claude remembers of {name}", text))
    else:
        for number, text in enumerate(by_project if isinstance(by_project, list) else [by_project], 1):
            if text:
                texts.append((f"project {number}", f"What Claude remembers of project {number}", text))
    whose = sha256(account.encode()).hexdigest()  # of a fixed length: it precedes every text
    for ident, name, value in texts:
        text, name = plain_text(value), one_line(name, 200)
        if not text.strip():
            yield Skipped("an empty memory")
            continue
        yield ImportRecord(
            where=f"{ident} in {place}",
            text=text,
            ident=f"{whose}\n{ident}",
            unique=is_one_of_a_kind(account),
            name=name,
            type="user" if ident == "conversations" else "project",
            source=f"claude:{ident}"[:300],
            extra=fields.rest() if ident == "conversations" else {},
            candidate=True,
        )
