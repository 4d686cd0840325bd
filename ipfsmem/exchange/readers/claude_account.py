"""The data export of a Claude account: zips or folders with `conversations.json`, `memories.json` or `memories/`, `projects.json` or
`projects/`, `users.json`.

A conversation is one event: its title, when, and how many messages. What Claude remembers of its person (`memories.json`) was distilled
out of conversations, so it becomes candidates: the account's, and of each project its own. A project's instructions and documents
are in the export too; they are counted and passed over, as they are no memories. Users are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
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
    is_one_of_a_kind,
    mapping_of,
    one_line,
    text_of,
)

_KIND = re.compile(r"(?:.*/)?(conversations|memories|projects)(?:-\d+)?(?:\.json|/[^/]+\.json)")


class _Conversation(msgspec.Struct):
    uuid: Any = None
    name: Any = None
    created_at: Any = None
    updated_at: Any = None
    chat_messages: list[msgspec.Raw] | None = None


_conversation = msgspec.json.Decoder(_Conversation)


def read(files: Files) -> Iterator[Item]:
    """The conversations and memories of an export."""
    kinds = {name: match[1] for name in files.names if (match := _KIND.fullmatch(name))}
    if files.single and not kinds:
        kinds = dict.fromkeys(files.names, "conversations")
    projects: dict[str, str] = {}
    for name in sorted(kinds, key=lambda one: (kinds[one] != "projects", one)):
        try:
            data = files.read(name)
            if kinds[name] == "conversations":
                for number, raw in enumerate(_values(data, name), 1):
                    yield _read_one(f"conversation {number} in {name}", raw)
            elif kinds[name] == "projects":
                for raw in _values(data, name):
                    yield _project(raw, projects)
            else:
                for number, raw in enumerate(_values(data, name), 1):
                    yield from _memories(f"memories {number} in {name}", raw, projects)
        except IpfsmemError as error:
            if files.single:
                raise
            yield Problem(name, str(error))


def _values(data: bytes, file: str) -> Iterator[bytes | LimitError]:
    """The items of a list; newer exports have one object a file."""
    if data.lstrip()[:1] == b"{":
        yield data
    else:
        yield from read_items(data, file)


def _read_one(where: str, raw: bytes | LimitError) -> Item:
    try:
        if isinstance(raw, LimitError):
            raise raw
        found = read_typed(raw, _conversation, "it")
        if found.chat_messages is None:
            raise FormatError("it has no messages")
        begin = date_of(found.created_at)
        if not begin:
            raise FormatError("it has no date")
        said = {
            "conversation": one_line(text_of(found.uuid, "its id"), 100),
            "title": one_line(text_of(found.name, "its title"), 200),
            "messages": len(found.chat_messages),
        }
    except FormatError as error:
        return Problem(where, str(error))
    return Happened({"ts": begin, "type": "conversation", "source": "claude", **said})


def _project(raw: bytes | LimitError, projects: dict[str, str]) -> Item:
    try:
        if isinstance(raw, LimitError):
            raise raw
        found = mapping_of(read_json(raw, "a project"), "a project")
        projects[text_of(found.get("uuid"), "its id")] = one_line(text_of(found.get("name"), "its name"), 200)
    except FormatError as error:
        return Problem("a project", str(error))
    return Skipped("a project's instructions and documents, which are no memory")


def _memories(where: str, raw: bytes | LimitError, projects: dict[str, str]) -> Iterator[Item]:
    try:
        if isinstance(raw, LimitError):
            raise raw
        found = mapping_of(read_json(raw, "it"), "it")
        account = text_of(found.get("account_uuid"), "the account")
        texts = [("conversations", "What Claude remembers", found.get("conversations_memory"))]
        for project, text in mapping_of(found.get("project_memories"), "the memories of projects").items():
            name = projects.get(project) or project
            texts.append((f"project {project}", f"What Claude remembers of {name}", text))
    except FormatError as error:
        yield Problem(where, str(error))
        return
    whose = sha256(account.encode()).hexdigest()  # of a fixed length: it stands in front of every text
    for ident, name, said in texts:
        try:
            text = text_of(said, "it")
            name = one_line(text_of(name, "its name"), 200)
        except FormatError as error:
            yield Problem(f"{ident} in {where}", str(error))
            continue
        if not text.strip():
            yield Skipped("an empty memory")
            continue
        yield Record(
            where=f"{ident} in {where}",
            text=text,
            ident=f"{whose}\n{ident}",
            unique=is_one_of_a_kind(account),
            name=name,
            type="user" if ident == "conversations" else "project",
            source=f"claude:{ident}"[:300],
            candidate=True,
        )
