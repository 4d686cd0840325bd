"""Export memories in the formats of other programs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from ipfsmem.causal.clock import hlc_ms
from ipfsmem.facts.categories import CLOSED, sanitised

if TYPE_CHECKING:
    from ipfsmem.bundle.memory_file import MemoryFile
    from ipfsmem.memories.memory_records import MemoryRecord

Form = Literal["initrunner", "initrunner-typed", "infraware"]
#: InitRunner's name as a source, and its memory types, each with our type of memory.
INITRUNNER: Final = "initrunner"
TYPES: Final = {"semantic": "reference", "episodic": "episode", "procedural": "procedure"}
_THEIRS: Final = {"episode": "episodic", "event": "episodic", "procedure": "procedural"}
#: The category by type of a memory that has none of Infraware's: its program cannot load an unknown one.
_CATEGORIES: Final = {"user": "personal_fact", "feedback": "preference", "procedure": "workflow"}
_OTHER: Final = "convention"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_other = re.compile(r"[^a-z0-9]+")


def in_form(records: Iterable[MemoryRecord], form: Form) -> bytes:
    """Return memories as JSON, oldest first."""
    ordered = sorted(records, key=age)
    if form == "infraware":
        facts = [_fact(one) for one in ordered]
        data = msgspec.json.encode([one for one in facts if one["fact"]])
    else:
        typed = form == "initrunner-typed"
        data = msgspec.json.encode([_entry(one, number, typed) for number, one in enumerate(ordered, 1)])
    return msgspec.json.format(data, indent=2) + b"\n"


def type_of(file: MemoryFile) -> str:
    """Return the memory type of an entry of InitRunner: as imported, else by the type of the memory."""
    program, _, came_as = file.source.partition(":")
    if program == INITRUNNER and came_as in TYPES:
        return came_as
    return _THEIRS.get(file.type, "semantic")


def category_of(record: MemoryRecord) -> str:
    """Return the category of an entry in InitRunner's form; of a memory without one its type."""
    file = record.readable
    return category(file.fields.get("category") or file.type)


def category(text: str) -> str:
    """Return a category in InitRunner's form: `User Prefs!` is `user_prefs`; `general` if no character of a-z, 0-9 is left."""
    return _other.sub("_", text.lower()).strip("_") or "general"


def time(at: datetime) -> str:
    """Return a time in InitRunner's form: UTC as `+00:00`; microseconds only if there are any."""
    return at.astimezone(UTC).isoformat()


def age(record: MemoryRecord) -> tuple[datetime, str, str]:
    """Return what orders memories by age: those of one millisecond by the clock of writes."""
    return created_at(record), record.hlc, record.key


def created_at(record: MemoryRecord) -> datetime:
    """Return when a memory was first written: the instant in its header; for a date alone the clock of its last write, if that is
    on this day."""
    written = datetime.fromtimestamp(hlc_ms(record.hlc) / 1000, UTC) if record.hlc else None
    stamp = record.readable.created
    try:
        created = datetime.fromisoformat(stamp)
    except ValueError:
        return written or _EPOCH
    if len(stamp) <= len("2026-01-01") and written is not None and written.date() == created.date():
        return written
    return created.replace(tzinfo=UTC) if created.tzinfo is None else created.astimezone(UTC)


def _entry(record: MemoryRecord, number: int, typed: bool) -> dict[str, Any]:
    file = record.readable
    entry: dict[str, Any] = {
        "id": number,
        "content": file.body,
        "category": file.fields.get("category") or category_of(record),
        "created_at": time(created_at(record)),
    }
    if typed:
        entry |= {"memory_type": type_of(file), "metadata": None}
    return entry


def _fact(record: MemoryRecord) -> dict[str, str]:
    file = record.readable
    chosen = file.fields.get("category", "")
    at = created_at(record).astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {
        "fact": sanitised(file.body),
        "category": chosen if chosen in CLOSED else _CATEGORIES.get(file.type, _OTHER),
        "created_at": at,
    }
