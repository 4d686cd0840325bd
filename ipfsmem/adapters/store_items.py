"""Items of a LangGraph store as memory files: JSON objects under a namespace (texts in order) and a key (any text).

An item is one memory. Its key is a slug of the item's key and 128 bits of the hash of namespace and key; both are JSON in the
header line `langgraph_item`, the value is one line of JSON in the body, so that two values are never merged into a third. Pure
functions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.canonical import check_depth
from ipfsmem.errors import FormatError, UsageError

Namespace = tuple[str, ...]

FIELD = "langgraph_item"
SOURCE = "langgraph"
#: Maximum characters of a name for people.
_NAME = 120
_SLUG = 24
#: Maximum levels of a value: deeper ones cause an error in Python.
_DEPTH = 200
#: Maximum bits of an integer: Python neither writes nor reads the digits of much longer ones.
_BITS = 10_000
_WORD = re.compile(r"\w+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class StoredItem(msgspec.Struct, frozen=True):
    """The place of an item, and when it was created and changed."""

    namespace: Namespace
    key: str
    created: datetime
    updated: datetime


def memory_key(namespace: Namespace, key: str) -> str:
    """Return the key of the memory of this item."""
    slug = (
        key_of_foreign_name(_CONTROLS.sub("_", key) + ".").key.rpartition("-")[0][:_SLUG].rstrip("_-") or "x"
    )
    return f"{slug}-{sha256(_place(namespace, key).encode()).hexdigest()[:32]}"


def _place(namespace: object, key: object) -> str:
    if not isinstance(namespace, tuple | list) or not all(
        isinstance(name, str) for name in (*namespace, key)
    ):
        raise UsageError("a namespace is a tuple of texts, and a key is a text")
    return json.dumps([list(namespace), key], separators=(",", ":"))


def render_item(
    namespace: Namespace, key: str, value: Mapping[str, Any], created: datetime, now: datetime
) -> bytes:
    """Return the memory file of an item. Raises UsageError for a value that is not a JSON object, LimitError for one that is too
    long."""
    if not isinstance(value, Mapping):
        raise UsageError(
            f"a value of the store is a dict, not {type(value).__name__}",
            hint='Store a text as {"text": "..."}.',
        )
    try:
        body = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
        body.encode()
    except UnicodeEncodeError:
        body = json.dumps(_plain(value), separators=(",", ":"))
    name = _CONTROLS.sub("\ufffd", " / ".join((*namespace, key)))
    fields = {
        "name": name if len(name) <= _NAME else name[: _NAME - 3] + "...",
        "created": created.isoformat(),
        "updated": now.isoformat(),
        "source": SOURCE,
        FIELD: _place(namespace, key),
    }
    return render_memory(MemoryFile(fields, body))


def item_of(memory: str, file: MemoryFile) -> StoredItem | None:
    """Return the item of a memory with this key and header, None if it is not one."""
    text = file.fields.get(FIELD)
    if not text:
        return None
    try:
        names, key = json.loads(text)
        namespace = tuple(names)
        if memory_key(namespace, key) != memory:
            return None
        created, updated = (_instant(one) for one in (file.created, file.updated))
    except (ValueError, TypeError, OverflowError, RecursionError, UsageError, FormatError):
        return None
    return StoredItem(namespace, key, created, updated)


def _instant(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def value_of(data: bytes) -> dict[str, Any] | None:
    """Return the value of an item's memory file, None if it is not a JSON object (any more)."""
    body = parse_memory(data).body
    try:
        check_depth(body.encode(), "an item")
        value = json.loads(body)
    except (FormatError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _plain(value: Any, depth: int = 0) -> Any:
    """Convert a value to JSON types."""
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise UsageError(f"a value of the store has no whole number of more than {_BITS:,} bits")
    if value is None or isinstance(value, str | bool | int):
        return value
    if depth > _DEPTH:
        raise UsageError(f"a value of the store nests deeper than {_DEPTH}")
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(one, depth + 1) for name, one in value.items()}
    raise UsageError(
        f"a value of the store is JSON: objects with texts as names, lists, texts, numbers; not {type(value).__name__}"
    )


# -- searching -----------------------------------------------------------------------------------------------------


def fits(value: Any, condition: Any) -> bool:
    """Return whether a value matches a filter: equal, or each of its operators (`$eq $ne $gt $gte $lt $lte`) true.

    Raises ValueError for another operator.
    """
    if isinstance(condition, Mapping):
        if any(str(name).startswith("$") for name in condition):
            return all(_compared(value, name, one) for name, one in condition.items())
        return isinstance(value, Mapping) and all(
            fits(value.get(name), one) for name, one in condition.items()
        )
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(fits(one, other) for one, other in zip(value, condition, strict=True))
        )
    return bool(value == condition)


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda one, other: bool(one > other),
    "$gte": lambda one, other: bool(one >= other),
    "$lt": lambda one, other: bool(one < other),
    "$lte": lambda one, other: bool(one <= other),
}


def _compared(value: Any, operator: str, expected: Any) -> bool:
    if operator == "$eq":
        return bool(value == expected)
    if operator == "$ne":
        return bool(value != expected)
    if operator not in _ORDER:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        return _ORDER[operator](float(value), float(expected))
    except OverflowError:  # an integer beyond the range of floats
        numbers = isinstance(value, int | float) and isinstance(expected, int | float)
        return numbers and _ORDER[operator](value, expected)
    except (TypeError, ValueError):
        both = isinstance(value, str) and isinstance(expected, str)
        return both and _ORDER[operator](value, expected)


def words(query: str | None) -> frozenset[str]:
    """Return the words of a query."""
    return frozenset(_WORD.findall((query or "").casefold()))


def share_found(query_words: frozenset[str], value: Any) -> float:
    """Return the share of the words that occur in a value."""
    value_words = words(json.dumps(value, ensure_ascii=False, default=str)) if query_words else frozenset()
    return len(query_words & value_words) / len(query_words) if query_words else 0.0


def matches(namespace: Namespace, path: Iterable[str], kind: str) -> bool:
    """Return whether a namespace begins (`prefix`) or ends (`suffix`) with a path, in which `*` is any one name.

    Raises ValueError for another kind.
    """
    pattern = tuple(path)
    if kind not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {kind}")
    if len(pattern) > len(namespace):
        return False
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(one in ("*", name) for one, name in zip(pattern, part, strict=True))
