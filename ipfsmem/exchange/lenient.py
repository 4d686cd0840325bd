"""Read records whose fields deviate from their program's documentation, so that the text is always imported.

Exports are written by many versions of a program and edited by scripts. Other fields with unexpected values (an
integer id, a list as category, an invalid date) are stored in `extra`.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import rfc8785

from ipfsmem.bundle.timeline import normal_ts
from ipfsmem.canonical import check_depth
from ipfsmem.errors import FormatError

#: Numbers above this count a smaller unit than seconds since 1970: as seconds it is the year 5138.
_MILLISECONDS: Final = 100_000_000_000
#: Fields in which nested objects keep their text.
_TEXTS: Final = ("text", "content", "memory", "value", "fact", "data", "summary")
_NUMBER: Final = re.compile(r"-?\d{1,17}(?:\.\d{1,9})?")
#: Replaces invalid Unicode.
_LOST: Final = "\ufffd"
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_DEPTH: Final = 8
_MAX_INT: Final = 2**53 - 1


class Fields:
    """The fields of one record, each with its expected type. `odd` collects the values of other types."""

    def __init__(self, value: object, text_name: str = "") -> None:
        """`value`: the decoded record; a bare text is a record that has only `text_name`. Raises FormatError for other types."""
        if isinstance(value, str) and text_name and value.strip():
            value = {text_name: value}
        if not isinstance(value, dict):
            raise FormatError("it is not a JSON object")
        self.value: dict[str, Any] = value
        self.odd: dict[str, Any] = {}

    def body(self, what: str, *names: str) -> str:
        """Return the text of the record, under the first of these names that has one, else under another common name; "" if it is
        empty. Raises FormatError."""
        present = [name for name in names if name in self.value]
        others = [name for name in _TEXTS if name in self.value and name not in names]
        for name in (*present, *others):
            text = plain_text(self.value[name])
            if text.strip().strip(_LOST):
                for other in present:
                    if not all(leaf in text for leaf in _leaves(self.value[other])):
                        self._note(other, self.value[other])
                return text
        if not present:
            raise FormatError(f"it has no {what}")
        if not all(_is_blank(self.value[name]) for name in present):
            raise FormatError(f"its {what} is not text")
        return ""

    def text(self, *names: str) -> str:
        """Return a short text, under the first of these names that has one. Numbers become text."""
        for name in names:
            value = self.value.get(name)
            if isinstance(value, str):
                if value.strip():
                    return unicode_text(value)
            elif _is_number(value):
                return _number_text(value)
            else:
                self._note(name, value)
        return ""

    def date(self, *names: str) -> str:
        """Return a date or an instant in ISO 8601, under the first of these names that has one."""
        for name in names:
            value = self.value.get(name)
            if chosen := date_of(value):
                return chosen
            self._note(name, value)
        return ""

    def number(self, name: str, least: float, most: float) -> float | None:
        """Return a number in a range; None for others."""
        value = self.value.get(name)
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
            return value
        self._note(name, value)
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list, or of a comma-separated text."""
        value = self.value.get(name)
        items = value if isinstance(value, list) else [value]
        if not all(_is_blank(one) or texts_of([one]) for one in items):
            self._note(name, value)
        return texts_of(value)

    def mapping(self, *names: str) -> dict[str, Any]:
        """Return an object, or that in a JSON text, under the first of these names that has one."""
        for name in names:
            value = self.value.get(name)
            if isinstance(value, str) and value.lstrip()[:1] == "{":
                with contextlib.suppress(FormatError, ValueError, RecursionError):
                    check_depth(value.encode("utf-8", "surrogatepass"), name)
                    value = json.loads(value)
            if isinstance(value, dict):
                if value:
                    return value
            else:
                self._note(name, value)
        return {}

    def rest(self, *more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other data of the record, including fields of unexpected types, in a portable form."""
        fields: dict[str, Any] = {}
        for some in (*more, self.odd):
            for name, value in some.items():
                name = unicode_text(name)
                while name in fields:
                    name += "_"
                fields[name] = value
        return portable(fields) if fields else {}

    def _note(self, name: str, value: object) -> None:
        if not _is_blank(value):
            self.odd[name] = value


def _leaves(value: object) -> Iterator[str]:
    """Yield the texts and numbers in a decoded JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, str) and one.strip():
            yield unicode_text(one).strip()
        elif _is_number(one):
            yield _number_text(one)


def plain_text(value: object, depth: int = 0) -> str:
    """Return the text in a decoded JSON value: of a list its items' texts, of an object the member with text; "" for none."""
    if isinstance(value, str):
        return unicode_text(value)
    if _is_number(value):
        return _number_text(value)
    if depth < _DEPTH and isinstance(value, list):
        return "\n".join(filter(str.strip, (plain_text(one, depth + 1) for one in value)))
    if depth < _DEPTH and isinstance(value, dict):
        texts = (plain_text(value[name], depth + 1) for name in _TEXTS if name in value)
        text = next(filter(str.strip, texts), "")
        return text or (json_block(value) if value else "")
    return json_block(value) if isinstance(value, list | dict) and value else ""


def json_block(value: object) -> str:
    """Return a decoded JSON value as an indented block in Markdown."""
    return f"```json\n{json.dumps(portable(value), indent=2, ensure_ascii=False)}\n```"


def unicode_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def utf8_text(data: bytes) -> bytes:
    """Return the bytes of a text file in UTF-8: UTF-16 by its BOM, else cp1252 unless control characters show that it is not
    text. Other bytes stay unchanged."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return unicode_text(
            data.decode("utf-16", "surrogatepass" if len(data) % 2 == 0 else "replace")
        ).encode()
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        if not _BINARY.search(data):
            return data.decode("cp1252", "replace").encode()
    return data


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts in a list, or of a comma-separated text, numbers as text: for tags."""
    values = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    shown = (_number_text(one) if _is_number(one) else one for one in values)
    return tuple(unicode_text(one) for one in shown if isinstance(one, str) and one.strip())


def date_of(value: object) -> str:
    """Return an instant as ISO 8601: a text in that form unchanged, a number as seconds since 1970 (or ms, us, ns); "" for
    others."""
    if isinstance(value, str):
        text = value.strip()
        try:
            normal_ts(text)
        except FormatError:
            return date_of(float(text)) if _NUMBER.fullmatch(text) and len(text) > 4 else ""
        return text
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            seconds: float = value
            while abs(seconds) > _MILLISECONDS:
                seconds /= 1000
            moment = datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, OSError, ValueError):
            return ""
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return ""


def items_of(value: object) -> list[Any]:
    """Return the records of a list; of an object its values, each with its name as `id` and `label` if it has none; of another
    non-empty value the value itself."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        pairs = ((name, one if isinstance(one, dict) else {"value": one}) for name, one in value.items())
        return [{"id": name, "label": name, **one} for name, one in pairs]
    return [] if _is_blank(value) else [value]


def portable(value: Any) -> Any:
    """Return `value` as RFC 8785 can write it: numbers without such a form and lone surrogates become text."""
    try:
        rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError, ValueError, TypeError):
        return _portable(value, 0)
    return value


def _portable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return unicode_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_INT else _number_text(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if depth > 4 * _DEPTH:
        return "..."
    if isinstance(value, Mapping):
        return {unicode_text(str(name)): _portable(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(one, depth + 1) for one in value]
    return str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # more digits than Python writes in decimal
        return hex(value)


def _is_blank(value: object) -> bool:
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip())
