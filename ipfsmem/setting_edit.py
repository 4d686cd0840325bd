"""Set or remove one value of a TOML text without touching any other byte. Pure functions.

Each candidate edit is parsed again, and used only if the result differs by exactly that value. So a matching line inside a
multi-line string is never changed.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ipfsmem.errors import FormatError

_TABLE: Final = re.compile(r"[ \t]*\[([^\[\]#]+)\][ \t]*(?:#.*)?")


def with_value(text: str, path: Sequence[str], value: str | float | bool) -> str:
    """Return the text with a value at a path of names. Raises FormatError if it is not TOML, or if no edit of one line is possible."""
    table = _toml(text)
    return _first(
        path, _with(table, path, value), _put(text, path, literal(value), _at(table, path[:-1]), value)
    )


def without_value(text: str, path: Sequence[str]) -> str:
    """Return the text without the value at a path, and without tables that this leaves empty; unchanged if it has no such value.

    Raises FormatError as `with_value` does.
    """
    table_now = _toml(text)
    table = _at(table_now, path[:-1])
    if not isinstance(table, dict) or path[-1] not in table:
        return text
    expected = _pruned(table_now, path)
    edited = _first(path, expected, _taken(text, path, table))
    for deep in range(len(path) - 1, 0, -1):
        if _at(_toml(edited), path[:deep]) == {}:
            with contextlib.suppress(FormatError):  # a table without a line of its own
                edited = _first(path, expected, _without_line(edited, path[:deep]))
    return edited


def _pruned(values: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return the parsed text without the value at a path, and without tables that this leaves empty."""
    pruned = copy.deepcopy(values)
    for deep in range(len(path), 0, -1):
        table, name = _at(pruned, path[: deep - 1]), path[deep - 1]
        if isinstance(table, dict) and (deep == len(path) or table.get(name) == {}):
            table.pop(name, None)
    return pruned


def literal(value: str | float | bool) -> str:
    """Return a value in TOML syntax."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(text: str) -> list[str]:
    """Return the lines with their ends. A TOML line ends with LF only; `str.splitlines` also splits at characters inside values."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _put(text: str, path: Sequence[str], new: str, table: Any, value: Any) -> Iterator[str]:
    lines = _lines(text)
    for number, line in enumerate(lines):
        for name in _names(path):
            for replaced in _replaced(line, name, new):
                yield "".join((*lines[:number], replaced, *lines[number + 1 :]))
    if len(path) > 2 and isinstance(table, dict):
        yield from _put(text, path[:-1], _inline({**table, path[-1]: value}), None, None)
    yield from _added(lines, path[:-1], f"{path[-1]} = {new}")
    if len(path) > 2 and table is None:  # write a small nested table inline
        yield from _added(lines, path[:-2], f"{path[-2]} = {_inline({path[-1]: value})}")


def _taken(text: str, path: Sequence[str], table: dict[str, Any]) -> Iterator[str]:
    lines = _lines(text)
    for number, line in enumerate(lines):
        if any(re.match(rf"[ \t]*{re.escape(name)}[ \t]*=", line) for name in _names(path)):
            yield "".join((*lines[:number], *lines[number + 1 :]))
    if len(path) > 2:
        inline = _inline({name: each for name, each in table.items() if name != path[-1]})
        for number, line in enumerate(lines):
            for replaced in _replaced(line, path[-2], inline):
                yield "".join((*lines[:number], replaced, *lines[number + 1 :]))


def _without_line(text: str, table: Sequence[str]) -> Iterator[str]:
    lines = _lines(text)
    for number, line in enumerate(lines):
        if _is_table(line, table) or re.match(rf"[ \t]*{re.escape(table[-1])}[ \t]*=", line):
            rest = lines[number + 1 :]
            before = lines[:number]
            if before and not before[-1].strip() and (not rest or not rest[0].strip()):
                before = before[:-1]
            yield "".join((*before, *rest))


def _replaced(line: str, name: str, new: str) -> Iterator[str]:
    """Yield the line with a new value after its name, keeping a trailing comment."""
    match = re.match(rf"([ \t]*{re.escape(name)}[ \t]*=[ \t]*)(.*?)([ \t]*\r?\n?)\Z", line, re.S)
    if match is None:
        return
    before, rest, end = match.groups()
    for at in (*(mark.start() for mark in re.finditer("#", rest)), len(rest)):
        value = rest[:at].rstrip(" \t")
        try:
            tomllib.loads(f"x = {value}")
        except ValueError:
            continue
        yield before + new + rest[len(value) :] + end
        return


def _added(lines: list[str], table: Sequence[str], line: str) -> Iterator[str]:
    """Yield texts with a new line at the end of a table, or with a new table at the end of the text."""
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    headers = [number for number, each in enumerate(lines) if each.lstrip().startswith("[")]
    for begins in [n for n in headers if _is_table(lines[n], table)] if table else [-1]:
        stop = next((n for n in headers if n > begins), len(lines))
        others = [
            n for n in range(begins + 1, stop) if lines[n].strip() and not lines[n].lstrip().startswith("#")
        ]
        at = (others[-1] if others else begins if table else _behind_first_comments(lines, stop)) + 1
        before = "".join(lines[:at])
        yield before + ("" if not before or before.endswith("\n") else end) + line + end + "".join(lines[at:])
    if table:
        text = "".join(lines)
        separator = "" if not text else end if text.endswith("\n") else end * 2
        yield f"{text}{separator}[{'.'.join(table)}]{end}{line}{end}"


def _behind_first_comments(lines: list[str], stop: int) -> int:
    """Return the number of the last line of a leading comment that an empty line follows; -1 without one."""
    last = -1
    for number in range(stop):
        if not lines[number].lstrip().startswith("#"):
            return last if not lines[number].strip() else -1
        last = number
    return last if stop == len(lines) else -1


def _is_table(line: str, table: Sequence[str]) -> bool:
    match = _TABLE.fullmatch(line.rstrip("\r\n"))
    return match is not None and [name.strip() for name in match[1].split(".")] == list(table)


def _names(path: Sequence[str]) -> Iterator[str]:
    """Yield the names that a value may have on its line: bare, and qualified by its tables."""
    for first in range(len(path) - 1, -1, -1):
        yield ".".join(path[first:])


def _inline(table: dict[str, Any]) -> str:
    return (
        "{ " + ", ".join(f"{name} = {literal(each)}" for name, each in table.items()) + " }"
        if table
        else "{}"
    )


def _first(path: Sequence[str], expected: dict[str, Any], tries: Iterator[str]) -> str:
    """Return the first candidate that parses to `expected`, ignoring empty tables. Raises FormatError if none does."""
    empty = _at(expected, path) is None
    for edited in tries:
        try:
            values = tomllib.loads(edited)
        except ValueError:
            continue
        if (_pruned(values, path) if empty and _at(values, path) is None else values) == expected:
            return edited
    raise FormatError(f"{'.'.join(path)} cannot be edited automatically in this form")


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"it is not TOML: {error}") from None


def _at(table: dict[str, Any], path: Sequence[str]) -> Any:
    value: Any = table
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _with(values: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    expected = copy.deepcopy(values)
    table: Any = expected
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise FormatError(f"{name} is not a table there")
    table[path[-1]] = value
    return expected
