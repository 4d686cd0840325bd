"""One value of a TOML text set, or taken out, and every other byte as it was: comments, order, space. Pure functions.

Each way to do it is tried on lines, and the outcome read again as TOML: it says what the text said before with that one value, or it is not
taken. So a line that only looks like the one that is meant, in a text of several lines, is never changed.
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
    """The text with a value at a path of names. Raises FormatError where it is no TOML, or written in a way that only its writer can
    change."""
    said = _toml(text)
    return _first(
        path, _with(said, path, value), _put(text, path, literal(value), _at(said, path[:-1]), value)
    )


def without_value(text: str, path: Sequence[str]) -> str:
    """The text without the value at a path, and without its table where it was the last in it; the same text where there is none. Raises
    FormatError as `with_value` does."""
    said = _toml(text)
    table = _at(said, path[:-1])
    if not isinstance(table, dict) or path[-1] not in table:
        return text
    wanted = _pruned(said, path)
    left = _first(path, wanted, _taken(text, path, table))
    for deep in range(len(path) - 1, 0, -1):
        if _at(_toml(left), path[:deep]) == {}:
            with contextlib.suppress(FormatError):  # a table without a line of its own
                left = _first(path, wanted, _without_line(left, path[:deep]))
    return left


def _pruned(said: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """What a text says, without the value at a path and the tables on the way that have nothing else."""
    wanted = copy.deepcopy(said)
    for deep in range(len(path), 0, -1):
        table, name = _at(wanted, path[: deep - 1]), path[deep - 1]
        if isinstance(table, dict) and (deep == len(path) or table.get(name) == {}):
            table.pop(name, None)
    return wanted


def literal(value: str | float | bool) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(text: str) -> list[str]:
    """The lines with their ends. In TOML a line ends with LF; a value may have what `str.splitlines` takes for an end too."""
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
    if len(path) > 2 and table is None:  # a small table of a table stands on one line
        yield from _added(lines, path[:-2], f"{path[-2]} = {_inline({path[-1]: value})}")


def _taken(text: str, path: Sequence[str], table: dict[str, Any]) -> Iterator[str]:
    lines = _lines(text)
    for number, line in enumerate(lines):
        if any(re.match(rf"[ \t]*{re.escape(name)}[ \t]*=", line) for name in _names(path)):
            yield "".join((*lines[:number], *lines[number + 1 :]))
    if len(path) > 2:
        left = _inline({name: each for name, each in table.items() if name != path[-1]})
        for number, line in enumerate(lines):
            for replaced in _replaced(line, path[-2], left):
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
    """A line with another value behind its name, and what stands behind the value as it was."""
    found = re.match(rf"([ \t]*{re.escape(name)}[ \t]*=[ \t]*)(.*?)([ \t]*\r?\n?)\Z", line, re.S)
    if found is None:
        return
    before, rest, end = found.groups()
    for at in (*(mark.start() for mark in re.finditer("#", rest)), len(rest)):
        value = rest[:at].rstrip(" \t")
        try:
            tomllib.loads(f"x = {value}")
        except ValueError:
            continue
        yield before + new + rest[len(value) :] + end
        return


def _added(lines: list[str], table: Sequence[str], line: str) -> Iterator[str]:
    """A new line at the end of a table, or with that table at the end of the text."""
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    headers = [number for number, each in enumerate(lines) if each.lstrip().startswith("[")]
    for begins in [n for n in headers if _is_table(lines[n], table)] if table else [-1]:
        stop = next((n for n in headers if n > begins), len(lines))
        said = [
            n for n in range(begins + 1, stop) if lines[n].strip() and not lines[n].lstrip().startswith("#")
        ]
        at = (said[-1] if said else begins if table else _behind_first_comments(lines, stop)) + 1
        before = "".join(lines[:at])
        yield before + ("" if not before or before.endswith("\n") else end) + line + end + "".join(lines[at:])
    if table:
        text = "".join(lines)
        lead = "" if not text else end if text.endswith("\n") else end * 2
        yield f"{text}{lead}[{'.'.join(table)}]{end}{line}{end}"


def _behind_first_comments(lines: list[str], stop: int) -> int:
    """The last line of what a file says of itself at its beginning, before an empty line; -1: there is nothing."""
    last = -1
    for number in range(stop):
        if not lines[number].lstrip().startswith("#"):
            return last if not lines[number].strip() else -1
        last = number
    return last if stop == len(lines) else -1


def _is_table(line: str, table: Sequence[str]) -> bool:
    found = _TABLE.fullmatch(line.rstrip("\r\n"))
    return found is not None and [name.strip() for name in found[1].split(".")] == list(table)


def _names(path: Sequence[str]) -> Iterator[str]:
    """What a value may be called on its line: its name in its table, or with the tables before it."""
    for first in range(len(path) - 1, -1, -1):
        yield ".".join(path[first:])


def _inline(table: dict[str, Any]) -> str:
    return (
        "{ " + ", ".join(f"{name} = {literal(each)}" for name, each in table.items()) + " }"
        if table
        else "{}"
    )


def _first(path: Sequence[str], wanted: dict[str, Any], tries: Iterator[str]) -> str:
    """The first of some texts that says what is wanted; what is empty on the way counts as not there."""
    empty = _at(wanted, path) is None
    for edited in tries:
        try:
            found = tomllib.loads(edited)
        except ValueError:
            continue
        if (_pruned(found, path) if empty and _at(found, path) is None else found) == wanted:
            return edited
    raise FormatError(f"{'.'.join(path)} is written there in a way that only a person can change")


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"it is not TOML: {error}") from None


def _at(said: dict[str, Any], path: Sequence[str]) -> Any:
    found: Any = said
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _with(said: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    wanted = copy.deepcopy(said)
    table: Any = wanted
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise FormatError(f"{name} is not a table there")
    table[path[-1]] = value
    return wanted
