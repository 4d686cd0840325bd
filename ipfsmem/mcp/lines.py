"""The messages of a client on a pipe, one a line and bounded: of one that is too long nothing is kept but its number.

Nothing heavy is imported here, so that a client is heard as soon as the program starts.
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

#: Bytes of one message, and of one read.
MAX_LINE: Final = 8 * 1024 * 1024
_AT_ONCE: Final = 64 * 1024
#: The tools that are called in place of a message that is too long, and of those that the SDK reads as nothing and does not answer:
#: with half a character in it, and nested deeper than decoders go.
TOO_LONG: Final = "(message too long)"
HALF_A_CHARACTER: Final = "(message with a lone surrogate)"
NOT_JSON: Final = "(message that is not JSON)"

#: The number of a request, where clients write it: first, or last.
_NUMBER: Final = rb'"id"\s*:\s*("[^"\\]{0,200}"|-?[0-9]{1,18})'
_first = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _NUMBER)
_last = re.compile(_NUMBER + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_LOOKED_AT: Final = 1024
#: Brackets of a line that no decoder takes for nested too deep.
_BRACKETS: Final = 100
#: One half of a character outside the first plane, as JSON escapes it.
_half = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def lines(read: Read) -> Iterator[str]:
    """The lines until the end of all, each with its end. In place of one that cannot be read stands a call with its number. A mark of
    the byte order before the first line is left out."""
    found = _lines(read)
    for line in found:
        yield line.removeprefix("\ufeff")
        break
    yield from found


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
            if is_long:  # the beginning and the end are kept
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
    """A call in place of one that is too long, with its number, if that stands where clients write it."""
    number = _number(parts[0], parts[-1])
    return "\n" if number is None else _in_place_of(number, TOO_LONG)


def _number(begin: bytes, end: bytes) -> str | int | None:
    """The number of a request of which the beginning and the end are known, where clients write it."""
    found = _first.match(begin) or _last.search(end)
    if found is None:
        return None
    try:
        number: str | int = read_json(found[1])
    except msgspec.DecodeError:
        return None
    return number


class _RequestId(msgspec.Struct):
    id: str | int


def _answerable(line: str) -> str:
    """The line; or a call with its number, in place of one that a decoder refuses for half a character, or perhaps for its depth."""
    half = _half.search(line) is not None
    if not half and line.count("[") + line.count("{") <= _BRACKETS:
        return line
    try:
        read_json(line)
        return line
    except msgspec.DecodeError:
        pass
    if half:
        with contextlib.suppress(msgspec.DecodeError):  # something else is wrong with it
            number = read_json(_half.sub(r"\\ufffd", line), type=_RequestId).id
            return _in_place_of(number, HALF_A_CHARACTER) + "\n"
    data = line.encode("utf-8", "replace")
    found = _number(data[:_LOOKED_AT], data[-_LOOKED_AT:])
    return line if found is None else _in_place_of(found, NOT_JSON) + "\n"


def _in_place_of(number: str | int, why: str) -> str:
    call = {"name": why, "arguments": {}}
    return json.encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}).decode()
