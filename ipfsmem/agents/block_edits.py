"""Edits of TOML: add a marked block of tables at the end of a text, and remove exactly that; other lines stay unchanged.

The first and the last line of a block name its owner and the command that removes it. Each edit is compared as values before
and after: an edit that changes anything but the tables of the block is refused. Pure functions.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from ipfsmem.agents.json_edits import newline
from ipfsmem.errors import FormatError

_table = re.compile(r"[ \t]*\[")
_bare = re.compile(r"[A-Za-z0-9_-]+")
#: Maximum number of closing braces tried as the end of an inline table.
_BRACES: Final = 200


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """An added block: enough to find it again in a text that has changed since."""

    #: Its lines, between the marks.
    body: str
    #: The text before it.
    lead: str
    program: str
    #: The table in it, and the keys that the program writes into it.
    table: tuple[str, ...] = ()
    program_keys: tuple[str, ...] = ()
    #: Text added to an inline table instead, as TOML allows no separate table then.
    inline: str = ""


def add(
    text: str, body: str, program: str, table: tuple[str, ...] = (), program_keys: tuple[str, ...] = ()
) -> tuple[str, Block]:
    """Return the text with a block at its end. Raises FormatError if the text is not TOML, with or without the block."""
    end = newline(text)
    lead = "" if not text else end if text.endswith("\n") else end * 2
    block = Block(body=body, lead=lead, program=program, table=table, program_keys=program_keys)
    edited = text + lead + whole(block).replace("\n", end)
    expected = _toml(text)
    _merge(expected, _toml(body), ())
    try:
        _compare(edited, expected, _toml(body))
    except FormatError:
        for one, written in _inline_additions(text, body, table):
            if _says(one, expected, body):
                return one, msgspec.structs.replace(block, lead="", inline=written)
        raise
    return edited, block


def remove(text: str, block: Block) -> str:
    """Return the text without that block, also if other lines changed; the same text if the block is gone. Raises FormatError
    if it cannot be told from others' text."""
    end = newline(text)
    lead, written = (one.replace("\r\n", "\n").replace("\n", end) for one in (block.lead, whole(block)))
    ended = text if text.endswith("\n") else text + end
    if ended.count(written) == 1:
        before, _, behind = ended.partition(written)
        before = before.removesuffix(lead)
        if behind.strip() and before and not before.endswith("\n"):
            before += end
        edited = before + (behind if ended is text else behind.removesuffix(end))
    else:
        edited = text
    if edited == text or _holds_more(edited, block):
        edited = _without_tables(edited, block)
    expected = _toml(text)
    _take(expected, _toml(block.body))
    try:
        _compare(edited, expected, _toml(block.body))
    except FormatError:
        for one in _inline_removals(text, block):
            if _says(one, expected, block.body):
                return one
        raise
    return edited


def _inline_additions(text: str, body: str, table: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield texts with a table added to an inline one, and the addition: one for each brace that may end it."""
    if len(table) != 2:
        return
    value = _value(table_in(body, table))
    opening = re.compile(rf"(?m)^[ \t]*{_any_key(table[0])}[ \t]*=[ \t]*\{{")
    for match in opening.finditer(text):
        for brace in _braces(text, match.end()):
            at = len(text[:brace].rstrip())
            is_empty = at == match.end()
            written = f"{' ' if is_empty else ', '}{_key(table[1])} = {value}"
            written += " " if is_empty and at == brace else ""
            yield text[:at] + written + text[at:], written


def _inline_removals(text: str, block: Block) -> Iterator[str]:
    """Yield texts without the addition to an inline table, or without its entry of that name and the comma before or after it."""
    if block.inline and text.count(block.inline) == 1:
        yield text.replace(block.inline, "")
    if len(block.table) != 2:
        return
    name = _any_key(block.table[1])
    for comma, behind in (("[ \t]*,[ \t]*", ""), ("[ \t]*", "[ \t]*,"), ("[ \t]*", "")):
        for match in re.finditer(rf"{comma}{name}[ \t]*=[ \t]*\{{", text):
            for brace in _braces(text, match.end()):
                end = re.compile(behind).match(text, brace + 1)
                if end is not None:
                    yield text[: match.start()] + text[end.end() :]


def _any_key(name: str) -> str:
    quoted = re.escape(name)
    return f"(?:{quoted}|\"{quoted}\"|'{quoted}')"


def _braces(text: str, start: int) -> Iterator[int]:
    """Yield possible ends of the inline table that begins before `start`: any closing brace, also one in a string."""
    return (match.start() for match in islice(re.compile("}").finditer(text, start), _BRACES))


def _says(edited: str, expected: dict[str, Any], body: str) -> bool:
    try:
        _compare(edited, expected, _toml(body))
    except FormatError:
        return False
    return True


def marks(program: str) -> tuple[str, str]:
    """Return the first and the last line of a block."""
    return (
        f"# >>> ipfsmem: by `ipfsmem connect {program}`; `ipfsmem disconnect {program}` takes it out >>>",
        "# <<< ipfsmem <<<",
    )


def table_in(text: str, table: tuple[str, ...]) -> Any:
    """Return a table of a TOML text, None if it is missing. Raises FormatError for invalid TOML."""
    value: Any = _toml(text)
    for step in table:
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value if table else None


def whole(block: Block) -> str:
    """Return a block with its marks, with LF line ends."""
    first, last = marks(block.program)
    return f"{first}\n{block.body}\n{last}\n"


def lines_of(table: tuple[str, ...], values: Mapping[str, Any]) -> str:
    """Return values of a table as TOML: its own lines, then its subtables."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in values.items() if not isinstance(value, dict)]
    for key, value in values.items():
        if isinstance(value, dict):
            path = (*table, key)
            lines += ["", f"[{'.'.join(map(_key, path))}]", lines_of(path, value)]
    return "\n".join(lines)


def text_value(value: str) -> str:
    """Return a TOML basic string: as in JSON, except for U+007F, which TOML requires escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if _bare.fullmatch(key) else text_value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return text_value(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())} }}"
    return str(value).lower()  # numbers, true and false, a date


def _holds_more(text: str, block: Block) -> bool:
    """Tell whether subtables of the block are left, which the program wrote after it."""
    return any(table_in(text, path) is not None for path in _tables_of(block))


def _tables_of(block: Block) -> tuple[tuple[str, ...], ...]:
    return tuple(path for line in block.body.splitlines() if (path := _header(line)))


def _header(line: str) -> tuple[str, ...]:
    """Return the names of the table whose header a line is; empty for another line."""
    try:
        value: Any = _toml(line) if _table.match(line) else {}
    except FormatError:
        return ()
    path: tuple[str, ...] = ()
    while isinstance(value, dict) and value:
        ((key, value),) = value.items()
        path += (key,)
    return path


def _without_tables(text: str, block: Block) -> str:
    """Return TOML without the tables of the block and their subtables, which the program moved or rewrote: each from its header
    to the next."""
    tables = _tables_of(block)
    first, last = marks(block.program)
    remaining: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _table.match(line):
            header = _header(line)
            inside = any(header[: len(path)] == path for path in tables)
        if line.strip() == first and block.lead and remaining and not remaining[-1].strip():
            remaining.pop()  # the empty line that we wrote before the mark
        if not (inside and line.strip() and not line.lstrip().startswith("#")) and line.strip() not in (
            first,
            last,
        ):
            remaining.append(line)
    return "".join(remaining)


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise FormatError("it is nested too deeply") from None
    except ValueError as error:  # not TOML, or a number with more digits than Python accepts
        is_toml = not isinstance(error, tomllib.TOMLDecodeError)
        raise FormatError("a number has too many digits" if is_toml else str(error)) from None


def _merge(target: dict[str, Any], more: Mapping[str, Any], so_far: tuple[str, ...]) -> None:
    """Add the tables of `more`. Raises FormatError for an existing one."""
    for key, value in more.items():
        there = target.setdefault(key, value)
        if there is value:
            continue
        if not isinstance(there, dict) or not isinstance(value, Mapping):
            where = ".".join((*so_far, key))
            what = "is not a table" if isinstance(value, Mapping) else "exists already"
            raise FormatError(f"{where} {what}")
        _merge(there, value, (*so_far, key))


def _take(target: dict[str, Any], less: Mapping[str, Any]) -> None:
    """Remove the tables of `less`, and parents that become empty: a table without a header of its own does not exist then."""
    for key, value in less.items():
        there = target.get(key)
        if (
            isinstance(there, dict)
            and isinstance(value, Mapping)
            and any(isinstance(v, dict) for v in value.values())
        ):
            _take(there, value)
            if not there:
                del target[key]
        else:
            target.pop(key, None)


def _compare(edited: str, expected: dict[str, Any], body: Mapping[str, Any]) -> None:
    """Raise FormatError unless a text has the expected values."""
    try:
        parsed = _toml(edited)
    except FormatError as error:
        raise FormatError(f"with the entry it could not be read any more: {error}") from None
    for one in (parsed, expected):
        _drop_empty(one, body)
    if repr(parsed) != repr(expected):  # as text: NaN is not equal to itself
        raise FormatError("the edit would change more than one entry")


def _drop_empty(target: dict[str, Any], body: Mapping[str, Any]) -> None:
    """Remove empty tables around ours: one without a header of its own does not exist any more."""
    for key, value in body.items():
        there = target.get(key)
        if isinstance(there, dict) and isinstance(value, Mapping):
            _drop_empty(there, value)
            if not there:
                del target[key]
