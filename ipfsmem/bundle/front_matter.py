"""Find another program's header (TOML, JSON or YAML) at the start of a body (format section 1.2).

The header is part of the body and is not parsed. If a write replaces the body with one that has no header, it is
kept.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ipfsmem.lazy_pattern import lazy_pattern

_END = r"(?:\r\n|\n|\r)"
_OPEN = lazy_pattern(rf"(---|\+\+\+|;;;)[ \t]*(?:([A-Za-z]+)[ \t]*)?(?:#[^\r\n]*)?{_END}")
_MARKS = ("---", "+++", ";;;")
_CLOSE = {
    mark: lazy_pattern(rf"{_END}(?:{lines})[ \t]*(?:{_END}|\Z)")
    for mark, lines in (("---", r"---|\.\.\."), ("+++", r"\+\+\+"), (";;;", ";;;"))
}
# The required form of the first line between the marks, so that prose between two rules is not taken for a header.
_FIRST = {
    "---": lazy_pattern(r"(?!-[ \t])[^ \t#:][^:]*:(?:[ \t]|\Z)|[%!&{<]"),
    "+++": lazy_pattern(r"\[|[^ \t=#]+[ \t]*="),
    ";;;": lazy_pattern(r"[{\"]"),
}
_LINE = lazy_pattern(rf"[ \t]*([^\r\n]*){_END}")
_REST = lazy_pattern(rf"[ \t]*{_END}")
_BLANK = lazy_pattern(rf"(?:[ \t]*{_END})*")
#: Maximum nesting of a JSON header that every reader can parse.
_MAX_NESTED = 512
# An unclosed string is one token; otherwise each quotation mark in it would scan to the end of the text.
_JSON_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.?)*+"?|[{}\[\]]', re.DOTALL)


def front_matter(body: str) -> str:
    """Return another program's header at the start of a body, with the blank lines after it; "" if there is none."""
    end = _json_end(body) if body.startswith("{") else _marked_end(body)
    if end is None:
        return ""
    blank = _BLANK.match(body, end)
    return body[: blank.end() if blank is not None else end]


def is_unclosed(text: str) -> bool:
    """Tell whether a text opens a header that no line closes. Header and body cannot be told apart then."""
    text = text.removeprefix("\ufeff")
    if not text.startswith(_MARKS) or (text.startswith("---\n") and "\n---\n" in text):
        return False  # as memories are stored, without two patterns
    opening = _OPEN.match(text)
    if opening is None or _CLOSE[opening[1]].search(text, opening.end() - 1) is not None:
        return False
    firsts = (line[1].rstrip(" \t") for line in _LINE.finditer(text + "\n", opening.end()))
    first = next((line for line in firsts if line and not line.startswith("#")), "")
    return bool(opening[2]) or _FIRST[opening[1]].match(first) is not None


def _marked_end(body: str) -> int | None:
    opening = _OPEN.match(body) if body.startswith(_MARKS) else None
    if opening is None:
        return None
    mark, language = opening[1], opening[2]
    start = opening.end()
    closing = _CLOSE[mark].search(body, start - 1)
    if closing is None:
        return None
    # The line break that ends the opening line may also be the one before the closing mark.
    inside = body[start : max(closing.start(), start)] + "\n"
    firsts = (line[1].rstrip(" \t") for line in _LINE.finditer(inside))
    first = next((line for line in firsts if line and not line.startswith("#")), "")
    return closing.end() if language or _FIRST[mark].match(first) else None


def _json_end(body: str) -> int | None:
    depth = 0
    for token in _JSON_TOKEN.finditer(body):
        depth += 1 if token[0] in "{[" else -1 if token[0] in "}]" else 0
        if depth == 0:
            break
        if depth > _MAX_NESTED:
            return None
    else:
        return None
    line = _REST.match(body, token.end())
    # A body that consists of JSON or JSON lines has no header.
    if line is None or body[line.end() :].lstrip(" \t\r\n")[:1] in ("", "{", "["):
        return None
    import json  # imported late: 2 ms that most writes do not need

    try:
        value = json.loads(body[: token.end()], parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return line.end() if value else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
