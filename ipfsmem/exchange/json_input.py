"""Read JSON leniently, as other programs and users write it: with a BOM, in UTF-16, with lone surrogates, as lines.

Invalid JSON and excessive nesting are refused.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from ipfsmem.canonical import check_depth, json_structure
from ipfsmem.errors import FormatError, LimitError

T = TypeVar("T")


def _number(text: str) -> int | float | str:
    """Return a number, or its text if it has no portable form: 5,000 digits, 1e999."""
    if len(text) > 300:
        return text
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return number if abs(number) < float("inf") else text


#: For texts that the strict decoder refuses: lone surrogates, as browsers write them, and numbers beyond its range.
_lenient = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=str)
#: Maximum values decoded at once, items of a list that is read one by one, and bytes of one of these: a value of three bytes
#: takes a hundred in memory.
MAX_VALUES = 4_000_000
MAX_ITEMS = 250_000
MAX_ITEM = 32 * 1024 * 1024
# An unclosed string is one token; otherwise each quotation mark in it would scan to the end of the line.
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\[^\n])*+"?|[\[\]{}\n]')
#: How often the bytes of a file are scanned, on average, for values over several lines.
_LOOKS = 8
_LINE = re.compile(rb"[^\n]+")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_decode = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


def as_utf8(data: bytes, what: str) -> bytes:
    """Return the bytes of a text in UTF-8, without a BOM; UTF-16 is recognised by its BOM. Raises FormatError."""
    try:
        if data.startswith(_UTF16):
            return data.decode("utf-16").encode()
        data = data.removeprefix(codecs.BOM_UTF8)
        str(data, "utf-8")
    except UnicodeError:
        raise FormatError(f"{what} is not UTF-8") from None
    return data


def read_json(data: bytes, what: str) -> Any:
    """Return the value of a JSON text. Raises FormatError, which names `what`."""
    data = as_utf8(data, what)
    check_depth(data, what)
    if _many(data, MAX_VALUES) and _count(json_structure(data)) > MAX_VALUES:
        raise LimitError(f"{what} has more than {MAX_VALUES:,} values")
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
        fault = str(error)
    try:
        return _lenient.decode(str(data, "utf-8"))
    except (ValueError, RecursionError):
        raise FormatError(f"{what} is not valid JSON: {fault[:200]}") from None


def read_typed(data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """Return a JSON text as the type of a decoder. Raises FormatError."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        value = read_json(data, what)
    try:
        # Encoded again, as values with lazily decoded parts cannot be converted directly.
        return decoder.decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, TypeError) as error:
        raise FormatError(f"{what} has the wrong form: {ascii(str(error))[1:200]}") from None


def read_items(data: bytes, what: str) -> Iterator[bytes | LimitError]:
    """Yield the items of a JSON list, each as its own bytes: the rest is not held decoded. LimitError for one that is too long.
    Raises FormatError for anything but a list."""
    data = as_utf8(data, what)
    check_depth(data, what)
    if _many(data, MAX_ITEMS) and _items(json_structure(data)) > MAX_ITEMS:
        raise LimitError(f"{what} has more than {MAX_ITEMS:,} items")
    try:
        items = _decode_list(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        values = read_json(data, what)
        if not isinstance(values, list):
            raise FormatError(f"{what} is not a list") from None
        yield from map(_encoded, values)
        return
    for raw in items:
        yield _bounded(memoryview(raw))


def read_conversations(data: bytes, what: str, messages: str) -> Iterator[bytes | FormatError]:
    """Yield the conversations of an export, each as its own bytes: of a list, of an object with a list `conversations`, of one
    conversation (an object with `messages`, or without a list of them), or of JSON lines. Raises FormatError."""
    data = as_utf8(data, what)
    if data.lstrip()[:1] == b"{":
        try:
            members = _decode_object(data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
            yield from (
                value if isinstance(value, FormatError) else _encoded(value)
                for _, value in read_values(data, what)
            )
            return
        inside = bytes(members.get("conversations", b""))
        if messages in members or inside[:1] != b"[":
            yield _bounded(data)
            return
        data = inside
    yield from read_items(data, what)


def read_values(data: bytes, what: str) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a file and their places: of one document (at `what`), else of JSON lines, several per line or one
    over several lines too. FormatError for an unreadable value. Raises FormatError for a text that is one broken value."""
    try:
        whole = read_json(data, what)
    except LimitError as error:
        if b"\n" not in data:
            raise
        fault: FormatError = error
    except FormatError as error:
        fault = error
    else:
        yield f"line 1 of {what}" if what.lower().endswith(".jsonl") else what, whole
        return
    bad: list[tuple[str, Any]] = []
    good = False
    for place, value in _sequence(data, what):
        if good:
            yield place, value
        elif isinstance(value, FormatError):
            bad.append((place, value))
            if len(bad) > MAX_ITEMS:
                break
        else:
            good = True
            yield from bad
            yield place, value
    if len(bad) == 1 and not good:
        raise fault
    if not good:
        yield from bad


def _sequence(data: bytes, what: str) -> Iterator[tuple[str, Any]]:
    data = as_utf8(data, what) if data.startswith(_UTF16) else data.removeprefix(codecs.BOM_UTF8)
    number, at, end = 1, 0, 0
    broken, room = False, _LOOKS * len(data)
    for match in _LINE.finditer(data):
        number += data.count(b"\n", at, match.start())
        at = match.start()
        line = match[0].strip(b" \t\r,")
        if not line or at < end or (broken and match[0][:1] in b" \t]}"):
            continue  # empty, or the rest of a value over several lines
        place = f"line {number} of {what}"
        try:
            yield place, read_json(line, place)
            broken = False
            continue
        except FormatError as error:
            fault = error
        spans, end, examined = _spans(data, at, len(data) if room > 0 else match.end())
        room -= examined
        broken = not spans or bool(data[spans[-1][1] : end].strip(b" \t\r\n,"))
        has_value = False
        for begin, stop in spans:
            try:
                yield place, read_json(data[begin:stop], place)
                has_value = True
            except FormatError as error:
                fault, broken = error, True
        if broken:
            yield place, FormatError(f"{place} has trailing text that is not JSON") if has_value else fault


def _spans(data: bytes, at: int, until: int) -> tuple[list[tuple[int, int]], int, int]:
    """Return begin and end of each object and list that begins on the line at an offset, the last perhaps over several lines up
    to `until`; the offset after their last line; and how many bytes were scanned."""
    spans: list[tuple[int, int]] = []
    depth = begin = 0
    for match in _TOKEN.finditer(data, at, until):
        sign = match[0][:1]
        if sign in b"{[":
            begin = begin if depth else match.start()
            depth += 1
        elif sign in b"]}":
            depth -= 1
            if depth < 0:
                return spans, _line_end(data, match.end()), match.end() - at
            if not depth:
                spans.append((begin, match.end()))
        elif sign == b"\n" and (not depth or spans or data[match.end() : match.end() + 1] in b"{["):
            break
    else:
        return spans, until if spans else _line_end(data, at), until - at
    return spans, match.start() if spans else _line_end(data, at), match.end() - at


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


def _encoded(value: Any) -> bytes | LimitError:
    return _bounded(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _bounded(item: bytes | memoryview) -> bytes | LimitError:
    return bytes(item) if len(item) <= MAX_ITEM else LimitError(f"it has more than {MAX_ITEM:,} bytes")


def _many(data: bytes, most: int) -> bool:
    """Return whether there may be more values than `most`: a quick no for usual texts."""
    return _count(data) > most


def _count(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _items(structure: bytes) -> int:
    """Return how many items the list has, by its commas."""
    depth, commas = 0, 0
    for sign in structure:
        if sign == 0x2C:
            commas += depth == 1
        else:
            depth += 1 if sign in b"[{" else -1
    return commas + 1
