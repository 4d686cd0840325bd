"""InitRunner: the database of an agent as versions up to 1.2 wrote it, or the JSON of its `memory export`.

Its own agents wrote episodes and consolidated facts, so they are the person's own like all of it. A session is imported as a
session: its messages in order, as PydanticAI writes them, with their times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ipfsmem.bundle.timeline import ms_of
from ipfsmem.errors import FormatError, LimitError, UsageError
from ipfsmem.exchange.lenient import Fields, date_of
from ipfsmem.exchange.places import Files, each_file
from ipfsmem.exchange.records import (
    Conversed,
    ImportRecord,
    Item,
    Problem,
    Skipped,
    name_of,
    one_line,
    read_records,
    records_of,
)
from ipfsmem.exchange.sqlite_input import Tables, is_sqlite, open_tables
from ipfsmem.memories.part_lines import item_text
from ipfsmem.memories.sessions import overlap
from ipfsmem.sessions.messages import without_system

_TYPES: Final = {"semantic": "reference", "procedural": "feedback", "episodic": "project"}
_COLUMNS: Final = ("content", "category", "created_at", "memory_type", "metadata_json")
_SESSIONS: Final = ("session_id", "agent_name", "timestamp", "messages_json")
_messages = msgspec.json.Decoder(list[dict[str, Any]]).decode


def read(files: Files) -> Iterator[Item]:
    """Yield the memories and sessions of every database and export in a place."""
    yield from each_file(files, files.ending(".db", ".json", ".db-wal"), _file)


def _file(name: str, data: bytes) -> Iterator[Item]:
    if name.lower().endswith("-wal"):
        if data:
            yield Problem(name, "it is not written into the database yet: end InitRunner first")
    elif is_sqlite(data):
        with open_tables(data, name) as tables:
            yield from _database(tables, name)
    elif name.lower().endswith(".db"):
        raise FormatError(f"{name} is not an SQLite file")
    else:
        yield from read_records(name, data, "memory", _memory, lists=("memories",), texts=("content",))


def _database(tables: Tables, file: str) -> Iterator[Item]:
    columns = tables.columns("memories")
    if "content" not in columns and "messages_json" not in tables.columns("sessions"):
        raise FormatError(f"{file} has no memories of InitRunner in it")
    if "content" in columns:
        chosen = [column for column in _COLUMNS if column in columns]
        rows = (dict(zip(chosen, row, strict=True)) for row in tables.rows("memories", chosen))
        yield from records_of(rows, f"row in {file}, number", _row)
    if set(_SESSIONS) <= set(tables.columns("sessions")):
        yield from _sessions(tables, file)


def _row(place: str, row: Mapping[str, Any]) -> ImportRecord | Skipped:
    texts = {name: _text(value) for name, value in row.items()}
    return _memory(place, {**texts, "metadata": texts.get("metadata_json")})


def _text(value: object) -> str:
    """Return a column as text; bytes that are not UTF-8 become U+FFFD."""
    return value.decode(errors="replace") if isinstance(value, bytes) else "" if value is None else str(value)


def _memory(place: str, value: Any) -> ImportRecord | Skipped:
    fields = Fields(value, "content")
    content = fields.body("content", "content")
    if not content.strip():
        return Skipped("an empty memory")
    kind = fields.text("memory_type") or "semantic"
    return ImportRecord(
        where=place,
        text=content,
        name=name_of(content),
        type=_TYPES.get(kind, "reference"),
        created=fields.date("created_at"),
        source=f"initrunner:{kind}",
        fields={"category": fields.text("category")},
        extra=fields.rest(fields.mapping("metadata")),
    )


def _sessions(tables: Tables, file: str) -> Iterator[Item]:
    """Yield one conversation per session. Each turn saves its last messages again, so overlapping saves are joined."""
    items_of: dict[tuple[str, str], list[tuple[int | None, Mapping[str, Any]]]] = {}
    for number, row in enumerate(tables.rows("sessions", _SESSIONS), 1):
        try:
            session, agent, when, messages = (_text(value) for value in row)
            saved = [
                (_time(one, when), item)
                for one in _messages(messages)
                if (item := without_system(one)) is not None
            ]
            texts = [item_text(one) for _, one in saved]
        except (FormatError, UsageError, LimitError, msgspec.MsgspecError, RecursionError) as error:
            yield Problem(f"session in {file}, number {number}", str(error))
            continue
        stored = items_of.setdefault((session, agent), [])
        stored_texts = [item_text(one) for _, one in stored]
        stored += saved[overlap(stored_texts, texts) :]
    names = Counter(session for session, _ in items_of)
    for (session, agent), items in items_of.items():
        name = session if names[session] == 1 else f"{session} {agent}"
        yield Conversed(one_line(name, 200) or "initrunner", items, agent)


def _time(message: Mapping[str, Any], saved: str) -> int | None:
    """Return when a message was written: from it or its first part, else when it was saved."""
    parts = message.get("parts")
    parts_read = [
        message,
        *(one for one in (parts if isinstance(parts, list) else ()) if isinstance(one, dict)),
    ]
    for stamp in (*(one.get("timestamp") for one in parts_read), saved):
        if date := date_of(stamp):
            return ms_of(date)
    return None
