"""Normalise arguments of models and programs: a number as text, an empty text or `null` for an omitted argument, a list as one
text or as JSON.

Only forms are changed here, and only unambiguous ones; `schema.checked` then validates them. Pure functions on values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from ipfsmem.canonical import read_json

JSON = dict[str, Any]
#: Maximum characters of a memory's key.
MAX_KEY: Final = 64

#: Texts that mean an omitted argument, unless the argument is free text.
_NOTHING: Final = frozenset(["", "null", "none", "undefined"])
#: Arguments kept verbatim: free text, and those in which an empty text has a meaning.
_FREE: Final = frozenset(["body", "text", "value", "fact", "content", "query"])
_EMPTY_MEANS_SOMETHING: Final = frozenset(["scope", "after", "prefix"])
_YES: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def meant(schema: JSON, args: Mapping[str, Any], side: Collection[str] = ()) -> JSON:
    """Return the arguments of a call in the form of its schema (an object of named values), where their meaning is unambiguous.
    Arguments in `side` become a text, cut to the allowed length: they never cause a refusal."""
    properties: Mapping[str, JSON] = schema["properties"]
    required = schema["required"]
    corrected: JSON = {}
    for name, value in args.items():
        declared = properties.get(name)
        if name in side:
            value = _side_text(value)[: properties[name]["maxLength"]]
        if declared is None:
            if not _is_nothing(name, value):
                corrected[name] = value
        elif name in required or not _is_nothing(name, value):
            corrected[name] = _as(
                declared, value, is_key=name == "key" and declared.get("maxLength") == MAX_KEY
            )
    return corrected


def _side_text(value: Any) -> str:
    """Return a value as one text: items of a list with commas, an object as JSON."""
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(_side_text, value)))
    if value is None or isinstance(value, str):
        return "".join(char for char in value or "" if not "\ud800" <= char <= "\udfff")
    try:
        return str(msgspec.json.encode(value), "utf-8")
    except (TypeError, ValueError, RecursionError):  # not JSON
        return ""


def _is_nothing(name: str, value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, str) or name in _FREE:
        return False
    word = value.strip().lower()
    return word in _NOTHING and not (word == "" and name in _EMPTY_MEANS_SOMETHING)


def _as(schema: JSON, value: Any, *, is_key: bool = False) -> Any:
    match schema.get("type"):
        case "integer":
            return _whole(value)
        case "number":
            return _number(value)
        case "boolean":
            return _YES.get(value.strip().lower(), value) if isinstance(value, str) else value
        case "string":
            return _text(schema, value, is_key=is_key)
        case "array":
            return _list(schema, value)
        case "object":
            parsed = _json(value)
            return parsed if isinstance(parsed, dict) else value
        case _:
            return value


def _whole(value: Any) -> Any:
    value = _number(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > 40:
        return value
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return value


def _text(schema: JSON, value: Any, *, is_key: bool) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if abs(value) < 10**20 else value
    if not isinstance(value, str):
        return value
    if "enum" in schema:
        word = value.strip().lower()
        return word if word in schema["enum"] else value
    # Keys are accepted as links and file names show them; keys have only lower-case letters.
    return value.strip().removesuffix(".md").lower() if is_key else value


def _list(schema: JSON, value: Any) -> Any:
    parsed = _json(value)
    if isinstance(parsed, tuple):
        parsed = list(parsed)
    items = schema["items"]
    if not isinstance(parsed, list):
        if not isinstance(parsed, dict if items["type"] == "object" else str):
            return value
        parsed = [parsed]
    return [_as(items, one) for one in parsed]


def _json(value: Any) -> Any:
    """Return a list or an object that was given as JSON text; else the value itself."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    try:
        parsed = read_json(value)
    except msgspec.DecodeError:
        return value
    return parsed if isinstance(parsed, list | dict) else value
