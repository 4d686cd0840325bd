"""The messages of a client on a pipe, one per line, with a size limit: of a message over the limit only its id is kept.

No slow imports here, so that the server reads as soon as the program starts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec import json

from ipfsmem.canonical import read_json

Read = Callable[[int], bytes]

#: Maximum bytes of one message, and of one read.
MAX_LINE: Final = 8 * 1024 * 1024
_AT_ONCE: Final = 64 * 1024
#: Tool names in calls that replace a message over the limit, and messages that the SDK would not answer: with a lone surrogate,
#: and nested deeper than decoders allow.
TOO_LONG: Final = "(message too long)"
HALF_A_CHARACTER: Final = "(message with a lone surrogate)"
NOT_JSON: Final = "(message that is not JSON)"

#: The id of a request, where clients write it: first, or last.
_NUMBER: Final = rb'"id"\s*:\s*("[^"\\]{0,200}"|-?[0-9]{1,18})'
_first = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _NUMBER)
_last = re.compile(_NUMBER + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_LOOKED_AT: Final = 1024
#: Maximum brackets of a line that is certainly not nested too deep.
_BRACKETS: Final = 100
#: A surrogate, as JSON escapes it.
_half = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def lines(read: Read) -> Iterator[str]:
    """Yield the lines of the input, each with its line end. A call with its id replaces an unreadable line. A byte order mark
    before the first line is removed."""
    lines_read = _lines(read)
    for line in lines_read:
        yield line.removeprefix("\ufeff")
        break
    yield from lines_read


def _lines(read: Read) -> Iterator[str]:
    rest = b""
    while True:
        line, end, after = rest.partition(b"\n")
        if end:
            rest = after
            yield _answerable(line.decode("utf-8", "replace") + "\n")
            continue
        parts, size, is_long, rest = [rest], len(rest), False, b""
        while data := read(_AT_ONCE):
            line, end, after = data.partition(b"\n")
            size += len(line)
            is_long = is_long or size > MAX_LINE
            parts.append(line)
            if is_long:  # only the beginning and the end are kept
                whole = b"".join(parts)
                parts = [whole[:_LOOKED_AT], whole[_LOOKED_AT:][-_LOOKED_AT:]]
            if end:
                rest = after
                break
        if not data and not size:
            return
        yield _too_long(parts) if is_long else _answerable(b"".join(parts).decode("utf-8", "replace") + "\n")
        if not data:
            return


def _too_long(parts: list[bytes]) -> str:
    """Return a call with the id of a message over the limit; an empty line if the id is not where clients write it."""
    number = _number(parts[0], parts[-1])
    return "\n" if number is None else _in_place_of(number, TOO_LONG)


def _number(begin: bytes, end: bytes) -> str | int | None:
    """Return the id of a request, by its beginning and its end; None if it is not where clients write it."""
    match = _first.match(begin) or _last.search(end)
    if match is None:
        return None
    try:
        number: str | int = read_json(match[1])
    except msgspec.DecodeError:
        return None
    return number


class _RequestId(msgspec.Struct):
    id: str | int


def _answerable(line: str) -> str:
    """Return the line; or a call with its id, if a decoder refuses it for a lone surrogate, or perhaps for its depth."""
    half = _half.search(line) is not None
    if not half and line.count("[") + line.count("{") <= _BRACKETS:
        return line
    try:
        read_json(line)
        return line
    except msgspec.DecodeError:
        pass
    if half:
        with contextlib.suppress(msgspec.DecodeError):  # another error in it
            number = read_json(_half.sub(r"\\ufffd", line), type=_RequestId).id
            return _in_place_of(number, HALF_A_CHARACTER) + "\n"
    data = line.encode("utf-8", "replace")
    request_id = _number(data[:_LOOKED_AT], data[-_LOOKED_AT:])
    return line if request_id is None else _in_place_of(request_id, NOT_JSON) + "\n"


def _in_place_of(number: str | int, why: str) -> str:
    call = {"name": why, "arguments": {}}
    return json.encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}).decode()
