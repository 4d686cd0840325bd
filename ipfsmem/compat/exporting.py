"""The own memories of a scope in the export forms of other programs, which their imports read."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from ipfsmem.compat import initrunner, initrunner_texts
from ipfsmem.compat.entries import created_at, own_in
from ipfsmem.facts.categories import CLOSED, sanitised

if TYPE_CHECKING:
    from ipfsmem.memories.memory_records import MemoryRecord
    from ipfsmem.memory import Memory

Form = Literal["initrunner", "initrunner-typed", "infraware"]
#: The category by type of a memory that has none of Infraware's: its program cannot load an unknown one.
_CATEGORIES: Final = {"user": "personal_fact", "feedback": "preference", "procedure": "workflow"}
_OTHER: Final = "convention"


def exported(memory: Memory, form: Form) -> bytes:
    """Return the own memories of the scope of `memory`, oldest first, as JSON."""
    readings = own_in(memory)[::-1]
    if form == "infraware":
        found = [_fact(one) for one in readings]
        data = msgspec.json.encode([one for one in found if one["fact"]])
    else:
        typed = form == "initrunner-typed"
        data = msgspec.json.encode([_entry(one, number, typed) for number, one in enumerate(readings, 1)])
    return msgspec.json.format(data, indent=2) + b"\n"


def _entry(reading: MemoryRecord, number: int, typed: bool) -> dict[str, Any]:
    file = reading.readable
    entry: dict[str, Any] = {
        "id": number,
        "content": file.body,
        "category": file.fields.get("category") or initrunner.category_of(reading),
        "created_at": initrunner_texts.time(created_at(reading)),
    }
    if typed:
        entry |= {"memory_type": initrunner.type_of(reading.readable), "metadata": None}
    return entry


def _fact(reading: MemoryRecord) -> dict[str, str]:
    file = reading.readable
    category = file.fields.get("category", "")
    at = created_at(reading).astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {
        "fact": sanitised(file.body),
        "category": category if category in CLOSED else _CATEGORIES.get(file.type, _OTHER),
        "created_at": at,
    }
