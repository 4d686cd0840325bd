"""A parser of JSON with comments and trailing commas, as people write it, that keeps the position of each part.

Positions refer to the text that was read, so an edit can leave all other characters unchanged. Pure functions.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs
from typing import Any, Final, NamedTuple

from ipfsmem.errors import FormatError

#: Maximum nesting depth of settings.
_DEEPEST: Final = 200
#: First characters of space and comments.
_SPACES: Final = frozenset(" \t\r\n/")
_space = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_comment = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_plain = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class JsonNode(NamedTuple):
    """A value and its position. `parts`: the members of an object or the items of an array; `kind`: `{`, `[` or empty."""

    kind: str
    start: int
    end: int
    parts: list[Part]
    #: The value, if it is plain.
    plain: Any = None


class Part(NamedTuple):
    """A member or an item; it starts with its key, if any. `comma`: position of the comma after it, if any."""

    key: str
    start: int
    value: JsonNode
    comma: int | None


@functools.lru_cache(maxsize=4)  # an edit reads one text several times, and some have several megabytes
def read(text: str) -> JsonNode | None:
    """Return the value of a text, None for only space and comments. Raises FormatError with line and column."""
    at = _skip(text, 0)
    if at == len(text):
        return None
    node = _value(text, at, 0)
    at = _skip(text, node.end)
    if at != len(text):
        raise _wrong(text, at, "text after the end")
    return node


def value_of(node: JsonNode) -> Any:
    """Return the value without positions; of duplicate keys the last one wins."""
    if node.kind == "{":
        return {part.key: value_of(part.value) for part in node.parts}
    if node.kind == "[":
        return [value_of(part.value) for part in node.parts]
    return node.plain


def comments(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the comments in a range of only space, commas and comments."""
    return _comment.finditer(text, start, end)


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] not in _SPACES:
        return at
    match = _space.match(text, at)
    assert match is not None  # matches the empty text, too
    return match.end()


def _value(text: str, at: int, depth: int) -> JsonNode:
    sign = text[at : at + 1]
    if sign in ("{", "[") and sign:
        if depth >= _DEEPEST:
            raise _wrong(text, at, f"it is nested deeper than {_DEEPEST} levels")
        return _container(text, at, depth)
    if sign == '"':
        key, end = _text(text, at)
        return JsonNode("", at, end, [], key)
    match = _plain.match(text, at)
    if match is None:
        raise _wrong(text, at, "a value is missing" if sign in ",}]:" else f"{sign!r} does not begin a value")
    try:
        return JsonNode("", at, match.end(), [], json.loads(match[0]))
    except ValueError:  # more digits than Python converts to a number
        raise _wrong(text, at, "a number has too many digits") from None


def _container(text: str, start: int, depth: int) -> JsonNode:
    kind = text[start]
    closing = "}" if kind == "{" else "]"
    parts: list[Part] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        begin, key = at, ""
        if kind == "{":
            if text[at : at + 1] != '"':
                raise _wrong(text, at, "a name in double quotes is missing")
            key, at = _text(text, at)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise _wrong(text, at, f"the colon after {key!r} is missing")
            at = _skip(text, at + 1)
        value = _value(text, at, depth + 1)
        at = _skip(text, value.end)
        comma = at if text[at : at + 1] == "," else None
        parts.append(Part(key, begin, value, comma))
        if comma is not None:
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _wrong(text, at, f"a comma or {closing} is missing")
    return JsonNode(kind, start, at + 1, parts)


def _text(text: str, at: int) -> tuple[str, int]:
    try:
        text_read, end = scanstring(text, at + 1, True)
    except json.JSONDecodeError:
        raise _wrong(text, at, "a text in quotes does not end, or contains an invalid character") from None
    return str(text_read), int(end)


def _wrong(text: str, at: int, what: str) -> FormatError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    where = f"line {line}, column {column}"
    return FormatError(f"{where}: it ends too early" if at >= len(text) else f"{where}: {what}")
