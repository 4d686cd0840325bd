"""JSON as other programs and their users leave it behind: a BOM, UTF-16 from a Windows shell, lone surrogates, lines.

It refuses what is no JSON, and what is nested so deep that it was made to hurt; what it says is for others to judge.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

import msgspec

from ipfsmem.canonical import check_depth
from ipfsmem.errors import FormatError

T = TypeVar("T")
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
        made: T = msgspec.convert(found, decoder.type)
        return made
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, TypeError) as error:
        raise FormatError(f"{what} is not what it should be: {ascii(str(error))[1:200]}") from None


def read_items(data: bytes, what: str) -> Iterator[bytes]:
    """The items of a JSON list, each as its own bytes: the rest is not held decoded. Raises FormatError."""
    data = as_utf8(data, what)
    check_depth(data, what)
    try:
        items = _decode_list(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        found = read_json(data, what)
        if not isinstance(found, list):
            raise FormatError(f"{what} is no list") from None
        for item in found:
            yield json.dumps(item).encode()
        return
    for raw in items:
        yield bytes(raw)


def read_json_lines(data: bytes, what: str) -> Iterator[tuple[int, Any]]:
    """Number, from 1, and value of each line that is not blank; FormatError as the value of one that is no JSON."""
    for number, line in enumerate(as_utf8(data, what).split(b"\n"), 1):
        if line.strip():
            try:
                yield number, read_json(line, f"line {number} of {what}")
            except FormatError as error:
                yield number, error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
