"""Validation of a tool's arguments by its JSON Schema, with errors that a model can act on.

It supports only the part of JSON Schema that our tools use: an object of named values of one type each. A tool with other
keywords is refused when it is made, so that no argument goes unchecked.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from ipfsmem.errors import UsageError

JSON = dict[str, Any]
_KNOWN: Final = frozenset(
    (
        "type",
        "description",
        "enum",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "items",
        "maxItems",
        "default",
    )
)
_CALLED: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def text(description: str, *, most: int, least: int = 0) -> JSON:
    """Return the schema of a text."""
    schema: JSON = {"type": "string", "description": description, "maxLength": most}
    return {**schema, "minLength": least} if least else schema


def anything(description: str) -> JSON:
    """Return the schema of any JSON value."""
    return {"description": description}


def choice(description: str, words: tuple[str, ...]) -> JSON:
    """Return the schema of an enum of words."""
    return {"type": "string", "description": description, "enum": list(words)}


def number(description: str, least: int, most: int, default: int | None = None) -> JSON:
    """Return the schema of an integer."""
    schema: JSON = {"type": "integer", "description": description, "minimum": least, "maximum": most}
    return schema if default is None else {**schema, "default": default}


def yes(description: str) -> JSON:
    """Return the schema of a boolean, false by default."""
    return {"type": "boolean", "description": description, "default": False}


def arguments(*required: str, **properties: JSON) -> JSON:
    """Return the schema of an object with these values and no others."""
    unknown = {name for one in properties.values() for name in one} - _KNOWN
    assert not unknown and set(required) <= properties.keys(), unknown
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def answer(**properties: JSON) -> JSON:
    """Return the schema of a structured answer: all of these values, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def unknown(schema: JSON, args: Mapping[str, Any]) -> list[str]:
    """Return the names of unknown arguments, except those that resemble an omitted one."""
    missing = [name for name in schema["properties"] if name not in args]
    return [
        name
        for name in args
        if name not in schema["properties"] and not get_close_matches(name, missing, n=1)
    ]


def checked(tool: str, schema: JSON, args: Mapping[str, Any]) -> JSON:
    """Return the arguments without nulls. Raises UsageError that names all problems and the allowed arguments."""
    properties: Mapping[str, JSON] = schema["properties"]
    present = {name: value for name, value in args.items() if value is not None or name in schema["required"]}
    problems = []
    for name, value in present.items():
        if name not in properties:
            near = get_close_matches(name, properties, n=1)
            shown = name if len(name) <= 60 else name[:57] + "..."
            problems.append(f"unknown argument {shown!r}" + (f" (perhaps {near[0]})" if near else ""))
        elif problem := _wrong(value, properties[name]):
            problems.append(f"{name} {problem}")
    problems += [f"{name} is missing" for name in schema["required"] if name not in present]
    if problems:
        raise UsageError(f"{tool}: {'; '.join(problems[:5])}", hint=f"Arguments: {_takes(schema)}.")
    return present


def _wrong(value: Any, schema: JSON) -> str:
    """Return the problem of a value, empty if it is valid."""
    kind = schema.get("type")
    if kind is None:
        return ""
    if not _is(value, kind):
        return f"is {_CALLED[kind]}, not {_called(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"is one of {', '.join(schema['enum'])}"
    if kind == "string":
        if len(value) > schema.get("maxLength", len(value)):
            return f"has {len(value):,} characters, at most {schema['maxLength']:,} are allowed"
        if len(value) < schema.get("minLength", 0):
            return "is empty" if not value else f"has at least {schema['minLength']} characters"
        if any("\ud800" <= c <= "\udfff" for c in value if c > "\ud7ff"):
            return "contains a lone surrogate (half a character)"
    if kind in ("integer", "number") and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        shown = (
            f", not {value}" if abs(value) < 10**20 else ""
        )  # Python does not print integers of thousands of digits
        return f"is {schema['minimum']} to {schema['maximum']:,}{shown}"
    if kind == "object" and not all(isinstance(name, str) for name in value):
        return "has a name that is not text"
    if kind == "array":
        if len(value) > schema.get("maxItems", len(value)):
            return f"has {len(value):,} items, at most {schema['maxItems']} are allowed"
        problem = next((p for item in value if (p := _wrong(item, schema["items"]))), "")
        return f"has an item that {problem}" if problem else ""
    return ""


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list | tuple)
        case _:
            return isinstance(value, Mapping)


def _called(value: Any) -> str:
    if value is None:
        return "null"
    return next((words for kind, words in _CALLED.items() if _is(value, kind)), type(value).__name__)


def _takes(schema: JSON) -> str:
    parts = []
    for name, one in schema["properties"].items():
        words = (
            " or ".join(one["enum"])
            if "enum" in one
            else _CALLED[one["type"]]
            if "type" in one
            else "anything"
        )
        parts.append(f"{name} ({words}{'' if name in schema['required'] else ', optional'})")
    return ", ".join(parts) or "no arguments"


#: Keywords hidden from models: limits of texts and lists, which an error names. Each word of a tool costs tokens in every
#: conversation.
_UNTOLD: Final = frozenset(("minLength", "maxLength", "maxItems"))


def published(schema: JSON) -> JSON:
    """Return the schema of arguments as models get it."""
    properties = {
        name: {
            word: {inner: each for inner, each in value.items() if inner not in _UNTOLD}
            if word == "items"
            else value
            for word, value in one.items()
            if word not in _UNTOLD
        }
        for name, one in schema["properties"].items()
    }
    return {**schema, "properties": properties}
