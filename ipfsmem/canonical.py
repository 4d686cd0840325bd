"""Canonical JSON, base64url and hex for every signed or hashed structure of the format.

The form is RFC 8785 restricted to ASCII keys, integers within 2^53-1 and no floats (format section 6). Decoding is strict: bytes
that do not re-encode to themselves are refused, such as duplicate keys, other spellings of a number or a string, and white space.
Foreign JSON (timeline events) is not decoded here.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, TypeVar, overload

import msgspec

from ipfsmem.errors import FormatError
from ipfsmem.lazy_pattern import lazy_pattern

T = TypeVar("T")
_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder()
#: The greatest whole number that every language reads exactly.
MAX_INT = 2**53 - 1
#: Deepest nesting of brackets in JSON that is decoded.
MAX_DEPTH = 2_000
#: Strings, and the rest of the text after an unclosed quotation mark, which would otherwise take quadratic time.
_STRINGS = lazy_pattern(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NO_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))


def encode(value: Any) -> bytes:
    """Return the canonical JSON bytes of `value` (dict, list, str, int, bool, None, msgspec structs)."""
    return _encoder.encode(value)


def decode(data: bytes, what: str) -> Any:
    """Parse canonical JSON; `what` names the thing in the error.

    Raises FormatError when `data` is not the one canonical form of its value.
    """
    check_depth(data, what)
    try:
        value = _decoder.decode(data)
        same = _encoder.encode(value) == data
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise FormatError(f"{what} is not valid JSON: {error}") from None
    if not same or not _plain(value):
        raise FormatError(f"{what} is not canonical JSON")
    return value


def check_depth(data: bytes, what: str, most: int | None = None) -> None:
    """Refuse JSON that is nested so deep that a decoder could overflow the C stack.

    Decoders stop at Python's recursion limit, which other packages raise for the whole process (py_ecc sets 100,000).
    Exact, and nearly free for the usual text. `most` None: MAX_DEPTH. Raises FormatError.
    """
    most = MAX_DEPTH if most is None else most
    if data.count(b"[") + data.count(b"{") <= most:
        return
    depth = 0
    for bracket in _STRINGS.sub(b"", data).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > most:
            raise FormatError(f"{what} is nested deeper than {most} levels")


def json_structure(data: bytes) -> bytes:
    """Return the brackets and commas of a JSON text outside its strings, from which the number of values follows without
    decoding."""
    return _STRINGS.sub(b"", data).translate(None, _NO_STRUCTURE)


@overload
def read_json(data: bytes | str) -> Any: ...
@overload
def read_json(data: bytes | str, type: type[T]) -> T: ...
def read_json(data: bytes | str, type: Any = Any) -> Any:
    """Decode untrusted JSON with msgspec. Text that is nested too deep or is not Unicode raises DecodeError like any other fault,
    whatever Python's recursion limit is."""
    try:
        check_depth(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data), "JSON")
        return msgspec.json.decode(data, type=type)
    except (FormatError, UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None


def write_json(value: Any) -> bytes:
    """Encode a value that may contain file names with msgspec: bytes that are not Unicode text are written as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_as_text(msgspec.to_builtins(value)))


def _as_text(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_as_text(key): _as_text(each) for key, each in value.items()}
    return [_as_text(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float):
            return False
        if isinstance(item, int):
            if not -MAX_INT <= item <= MAX_INT:
                return False
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            for key in item:
                if not key.isascii():
                    return False
            stack.extend(item.values())
    return True


def check_canonical(data: bytes, value: Any, what: str) -> None:
    """Refuse `data` if the typed `value` read from it does not re-encode to the same bytes."""
    if _encoder.encode(value) != data:
        raise FormatError(f"{what} is not canonical JSON")


def b64(data: bytes) -> str:
    """Return the base64url text of bytes, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def unb64(text: str, what: str, size: int | None = None) -> bytes:
    """Decode base64url text without padding. `what` names the thing in the error; `size`: the required number of bytes. Raises
    FormatError, also for another spelling of the same bytes."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise FormatError(f"{what} is not base64url") from None
    if b64(data) != text:
        raise FormatError(f"{what} is not canonical base64url without padding")
    if size is not None and len(data) != size:
        raise FormatError(f"{what} has {len(data)} bytes, {size} expected")
    return data


def unhex(text: str, what: str, size: int | None = None) -> bytes:
    """Decode lower-case hex text."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise FormatError(f"{what} is not hex") from None
    if data.hex() != text:
        raise FormatError(f"{what} is not lower-case hex")
    if size is not None and len(data) != size:
        raise FormatError(f"{what} has {len(data)} bytes, {size} expected")
    return data
