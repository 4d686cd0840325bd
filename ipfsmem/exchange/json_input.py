"""JSON as other programs and their users leave it behind: a BOM, UTF-16 from a Windows shell, lone surrogates, lines.

It refuses what is no JSON, and what is nested so deep that it was made to hurt; what it says is for others to judge.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

import msgspec

from ipfsmem.canonical import check_depth, json_structure
from ipfsmem.errors import FormatError, LimitError

T = TypeVar("T")
#: Values that are decoded at once, items of a list that is read one by one, and bytes of one of these: a value of three bytes
#: takes a hundred in memory.
MAX_VALUES = 4_000_000
MAX_ITEMS = 250_000
MAX_ITEM = 32 * 1024 * 1024
_LINE = re.compile(rb"[^\n]+")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_decode = msgspec.json.Decoder().decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


def as_utf8(data: bytes, what: str) -> bytes:
    """The bytes of a text in UTF-8, without a BOM; UTF-16 is told by its BOM. Raises FormatError."""
    try:
        if data.startswith(_UTF16):
            return data.decode("utf-16").encode()
        data = data.removeprefix(codecs.BOM_UTF8)
        str(data, "utf-8")
    except UnicodeError:
        raise FormatError(f"{what} is not UTF-8") from None
    return data


def read_json(data: bytes, what: str) -> Any:
    """The value of a JSON text. Raises FormatError, which names `what`."""
    data = as_utf8(data, what)
    check_depth(data, what)
    if _many(data, MAX_VALUES) and _count(json_structure(data)) > MAX_VALUES:
        raise LimitError(f"{what} has more than {MAX_VALUES:,} values")
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
        fault = str(error)
    try:
        # Browsers write lone surrogates, which the strict decoder refuses for the whole text because of one.
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise FormatError(f"{what} is not valid JSON: {fault[:200]}") from None


def read_typed(data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """A JSON text as the type of a decoder. Raises FormatError."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        found = read_json(data, what)
    try:
        # Encoded anew, as a value cannot be made into one that keeps the bytes of a part of it.
        return decoder.decode(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, TypeError) as error:
        raise FormatError(f"{what} is not what it should be: {ascii(str(error))[1:200]}") from None


def read_items(data: bytes, what: str) -> Iterator[bytes | LimitError]:
    """The items of a JSON list, each as its own bytes: the rest is not held decoded. LimitError as one that is too long. Raises
    FormatError for what is no list."""
    data = as_utf8(data, what)
    check_depth(data, what)
    if _many(data, MAX_ITEMS) and _items(json_structure(data)) > MAX_ITEMS:
        raise LimitError(f"{what} has more than {MAX_ITEMS:,} items")
    try:
        items = _decode_list(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        found = read_json(data, what)
        if not isinstance(found, list):
            raise FormatError(f"{what} is no list") from None
        yield from (
            _bounded(json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")) for item in found
        )
        return
    for raw in items:
        yield _bounded(memoryview(raw))


def read_json_lines(data: bytes, what: str) -> Iterator[tuple[int, Any]]:
    """Number, from 1, and value of each line that is not blank; FormatError as the value of one that is no JSON or not UTF-8."""
    data = as_utf8(data, what) if data.startswith(_UTF16) else data.removeprefix(codecs.BOM_UTF8)
    number, at = 1, 0
    for match in _LINE.finditer(data):
        number += data.count(b"\n", at, match.start())
        at = match.start()
        if match[0].strip():
            try:
                yield number, read_json(match[0], f"line {number} of {what}")
            except FormatError as error:
                yield number, error


def _bounded(item: bytes | memoryview) -> bytes | LimitError:
    return bytes(item) if len(item) <= MAX_ITEM else LimitError(f"it has more than {MAX_ITEM:,} bytes")


def _many(data: bytes, most: int) -> bool:
    """Whether there may be more values than that: a quick no for the usual text."""
    return _count(data) > most


def _count(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _items(structure: bytes) -> int:
    """How many items the list has, as its commas count them."""
    depth, commas = 0, 0
    for sign in structure:
        if sign == 0x2C:
            commas += depth == 1
        else:
            depth += 1 if sign in b"[{" else -1
    return commas + 1


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
