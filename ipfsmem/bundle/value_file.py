"""Store key-value pairs as memory files, with the key in the header and the value in the body (format section 1.7).

The memory's key ends with 160 bits of the SHA-256 of the pair's key, so two pairs never share a memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from ipfsmem.bundle.header import render_tags
from ipfsmem.bundle.keys import is_key, key_of_foreign_name
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.canonical import check_depth, read_json
from ipfsmem.errors import FormatError, UsageError

#: The intended lifetime of a value.
Level = Literal["user", "session", "agent"]
#: Maximum bytes of a pair's key in UTF-8.
MAX_NAME: Final = 256
#: The tag of a value, and the header fields with its key, the form of its body, and its intended lifetime.
TAG: Final = "key-value"
NAME: Final = "value_key"
FORM: Final = "value_form"
LEVEL: Final = "level"
LEVELS: Final[tuple[Level, ...]] = ("user", "session", "agent")
#: Category of values that older versions imported as ordinary memories.
_IMPORTED: Final = "kv"
_JSON: Final = "json"
_STEM: Final = 20
_DIGITS: Final = 40
_other = re.compile(r"[^a-z0-9]+")
_made = re.compile(rf"kv-[a-z0-9_]{{1,{_STEM}}}-[0-9a-f]{{{_DIGITS}}}")


def check_name(name: str) -> str:
    """Return `name` if it can be a value's key: 1 to 256 bytes of UTF-8, any characters. Raises UsageError."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise UsageError("invalid key of a value: it holds half a character (a lone surrogate)") from None
    if not 1 <= size <= MAX_NAME:
        raise UsageError(f"invalid key of a value: 1 to {MAX_NAME} bytes of UTF-8 (got {size:,})")
    return name


def memory_key(name: str) -> str:
    """Return the key of the memory that stores the value of the key `name`. Raises UsageError."""
    check_name(name)
    stem = _other.sub("_", name.lower()).strip("_")[:_STEM].rstrip("_") or "x"
    return f"kv-{stem}-{sha256(name.encode()).hexdigest()[:_DIGITS]}"


def is_memory_key(key: str) -> bool:
    """Tell whether a memory's key has the form of `memory_key`."""
    return _made.fullmatch(key) is not None


def value_file(name: str, value: Any, fields: Mapping[str, str], old: MemoryFile | None = None) -> bytes:
    """Return the memory file of a value: a text as the body, anything else as JSON.

    `fields`: header fields to set, or to remove if empty. Other fields of `old` are kept. Raises UsageError for a
    value without a JSON form, LimitError if the file is too large.
    """
    before = old or MemoryFile()
    tags = before.tags if TAG in before.tags else (TAG, *before.tags)
    shown = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "value"
    changes = {
        "name": shown if len(shown) <= 100 else f"{shown[:99]}…",
        "type": before.type or "reference",
        "tags": render_tags(tags),
        **fields,
        NAME: name,
    }
    if isinstance(value, str):
        if not _is_unicode(value):
            raise UsageError("invalid value: it holds half a character (a lone surrogate)")
        data = render_memory(before.with_fields({**changes, FORM: ""}, value))
        file = parse_memory(data)
        if file.body == value and value:
            return data
    return render_memory(before.with_fields({**changes, FORM: _JSON}, _json(value)))


def name_of(file: MemoryFile, key: str) -> str | None:
    """Return the key of the value stored in memory `key`; None if the memory does not store a value."""
    if NAME in file.fields:
        name = file.fields[NAME]
        # The memory's key is derived from the name, so an edited field is ignored.
        if is_memory_key(key) and not _makes(name, key) and _makes(file.name, key):
            name = file.name
    elif TAG in file.tags:  # as older versions stored values
        name = file.name if _earlier_key(file.name) == key else key
    elif file.fields.get("category") == _IMPORTED and file.source.startswith("librefang:"):
        name = file.name or key
    else:
        return None
    try:
        return check_name(name)
    except UsageError:
        return None


def _makes(name: str, key: str) -> bool:
    try:
        return memory_key(name) == key
    except UsageError:
        return False


def _earlier_key(name: str) -> str | None:
    try:
        return name if is_key(name) else key_of_foreign_name(name).key
    except FormatError:
        return None


def value_of(file: MemoryFile) -> Any:
    """Return the value in a memory; the text if its JSON is invalid after a manual edit."""
    body = file.body
    if file.fields.get(FORM) != _JSON:
        if NAME in file.fields or not (body.startswith("```json\n") and body.endswith("\n```")):
            return body
        body = body.removeprefix("```json\n").removesuffix("\n```")  # as older versions imported values
    try:
        return read_json(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return file.body


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
        data = text.encode()
    except (TypeError, ValueError, RecursionError):
        raise UsageError("invalid value: it is neither text nor JSON") from None
    try:
        check_depth(data, "it")
    except FormatError as error:
        raise UsageError(f"invalid value: {error}") from None
    return text


def as_json(value: Any) -> str:
    """Return a value, texts included, as JSON. Raises UsageError."""
    return _json(value)


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def as_text(value: Any) -> str:
    """Return a value as text: a text unchanged, any other value as JSON. Raises FormatError."""
    try:
        return value if isinstance(value, str) else _json(value)
    except UsageError as error:
        raise FormatError(str(error)) from None
