"""Reads, orders and writes the lines of session parts: items, pieces of long items, and removals (format section 5.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, NoReturn

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.bundle.session_parts import NUMBERED, SESSION, session_token
from ipfsmem.canonical import MAX_INT, check_depth
from ipfsmem.errors import FormatError, LimitError, UsageError
from ipfsmem.memories.parts_read import NO_ITEM, PartLine, SessionPart
from ipfsmem.sessions.compaction import MARK, Place, PlacedItem, is_mark

#: Maximum characters of an item in one line; a longer item is split. A character has up to four bytes.
_PIECE = 100_000
#: Maximum characters of an item as JSON.
MAX_ITEM = 32 * 1024 * 1024

#: Maximum nesting of a line, and of an item of pieces, so that no reader's call stack overflows.
_MAX_NESTED = 512
_DEVICE = re.compile(r"[0-9a-f]{16}")
#: An escape in JSON; the group matches a lone surrogate.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
#: The key of a part: its token, device and number.
PART = re.compile(f"session-.+-{NUMBERED}")


class _WrittenLine(msgspec.Struct, frozen=True):
    """The fields of a line as other programs may write them: `1.0` and `1e3` for integers, null for an absent field."""

    at: msgspec.Raw = NO_ITEM
    n: msgspec.Raw = NO_ITEM
    item: msgspec.Raw = NO_ITEM
    text: msgspec.Raw = NO_ITEM
    piece: msgspec.Raw = NO_ITEM
    gone: msgspec.Raw = NO_ITEM


_decode = msgspec.json.Decoder(PartLine).decode
_decode_written = msgspec.json.Decoder(_WrittenLine).decode


def items_of_files(session: str, parts: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the items of a session from memory files of one person, each `{"key", "file"}`. Raises UsageError."""
    return [entry.item for entry in entries_of_files(session, parts)]


def entries_of_files(session: str, parts: Iterable[Mapping[str, str]]) -> list[PlacedItem]:
    """Return the items of a session from memory files as in `items_of_files`, each with its place."""
    form = _parts_of(session)
    texts = [(one["key"], one["file"].encode()) for one in parts if form.fullmatch(one["key"])]
    return entries_of_texts(
        (key, data) for key, data in texts if parse_memory(data).fields.get(SESSION) == session
    )


def entries_of_texts(parts: Iterable[tuple[str, bytes]]) -> list[PlacedItem]:
    """Return the items of some parts of one session, each with its place. `parts`: (key, text) of each."""
    session_parts = []
    for key, data in parts:
        if (match := PART.fullmatch(key)) is not None:
            lines = [line for _, line in lines_of(data) if line is not None]
            session_parts.append(SessionPart(key, match[1], int(match[2]), lines, ()))
    return entries_of_parts(session_parts)


def entries_of_parts(parts: list[SessionPart]) -> list[PlacedItem]:
    """Return the items of all parts of a session in order, each with its place."""
    return [PlacedItem(place, decoded_item(text)) for place, text in items_of_parts(parts)]


def _parts_of(session: str) -> re.Pattern[str]:
    """Return the pattern of the keys of a session's parts."""
    return re.compile(f"session-{re.escape(session_token(session))}-{NUMBERED}")


def encoded_line(line: PartLine) -> bytes:
    """Return a line as JSON."""
    try:
        return msgspec.json.encode(line)
    except UnicodeEncodeError:  # another program may have split a surrogate pair
        return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode()


def is_import(line: PartLine) -> bool:
    """Return whether a line marks imported messages."""
    text = bytes(line.item)
    return b'"imported"' in text and is_mark(item := decoded_item(text)) and "imported" in item[MARK]


def size_of_lines(lines: list[PartLine]) -> int:
    """Return the bytes of these lines in a part."""
    return sum(len(encoded_line(line)) + 1 for line in lines)


def lines_of(data: bytes) -> Iterator[tuple[bytes, PartLine | None]]:
    """Yield each line of a part as (bytes, parsed line); None for a line of another form."""
    return lines_in(parse_memory(data))


def lines_in(file: MemoryFile) -> Iterator[tuple[bytes, PartLine | None]]:
    """Yield the lines of a parsed part as `lines_of` does."""
    for text in file.body.encode().split(b"\n"):
        if text:
            yield text, _line(text)


def _line(text: bytes) -> PartLine | None:
    """Parse a line of a part; None for a line that is ignored."""
    try:
        check_depth(text, "a line of a session", _MAX_NESTED)
    except FormatError:
        return None
    try:
        line = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _line_of_others(text)
    return _line_of_others(text) if bytes(line.item) == b"null" else _valid(line)


def _valid(line: PartLine) -> PartLine | None:
    """Return the line if it is a valid item, piece or removal; else None."""
    item, gone, piece = bytes(line.item), line.gone, line.piece
    if gone is None and piece is None and line.text is None:  # the common case
        return line if item.startswith(b"{") and 0 <= line.at <= MAX_INT and 0 <= line.n <= MAX_INT else None
    numbers = (line.at, line.n, *(gone[::2] if gone is not None else ()), *(piece or ()))
    sound = (
        not item or item.startswith(b"{"),
        gone is None or _DEVICE.fullmatch(gone[1]) is not None,
        (piece is None) == (line.text is None) and (piece is None or piece[0] < piece[1]),
        sum((bool(item), gone is not None, piece is not None)) == 1,
        all(0 <= number <= MAX_INT for number in numbers),
    )
    return line if all(sound) else None


def _line_of_others(text: bytes) -> PartLine | None:
    """Parse a line that only other programs write: with integers as floats, null fields, repeated names, or a lone surrogate as an
    escape (valid JSON that msgspec refuses)."""
    others = count()
    # Replace each lone surrogate by another escape of the same length, so that byte offsets of the item stay valid.
    filled = _ESCAPE.sub(
        lambda found: b"\\u%04x" % (0x100 + next(others) % 0xD700) if found[1] else found[0], text
    )
    try:
        written = _decode_written(filled)
        raw = {name: bytes(getattr(written, name)) for name in written.__struct_fields__}
        names = {name for name, value in raw.items() if value not in (b"", b"null")}
        fields = {name: _as_integer(decoded_item(raw[name])) for name in names - {"item", "text"}}
        if "text" in names:
            fields["text"] = decoded_item(text)["text"]
        line = msgspec.convert(fields, PartLine)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    if "item" in names:
        at = filled.rfind(raw["item"])
        line = msgspec.structs.replace(line, item=msgspec.Raw(text[at : at + len(raw["item"])]))
    return _valid(line)


def _as_integer(value: Any) -> Any:
    """Convert floats without a fraction to integers, also in a list."""
    if isinstance(value, list):
        return [_as_integer(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _joined(texts: Iterable[str]) -> str:
    """Join strings, and surrogate pairs that were split between them."""
    return "".join(texts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def items_of_parts(
    parts: list[SessionPart], places: Collection[Place] | None = None
) -> list[tuple[Place, str]]:
    """Return the items of all parts in order, without removed items. `places`: only the items at these places."""
    items: dict[Place, str] = {}
    pieces: dict[tuple[Place, int], dict[int, str]] = {}
    gone: set[Place] = set()
    for part in parts:
        for line in part.lines:
            place = (line.at, part.device, line.n)
            if line.gone is not None:
                gone.add(line.gone)
            elif line.piece is not None:
                pieces.setdefault((place, line.piece[1]), {})[line.piece[0]] = line.text or ""
            elif places is None or place in places:
                items[place] = bytes(line.item).decode()
    for (place, many), pieces_here in pieces.items():
        if (
            (places is None or place in places)
            and len(pieces_here) == many
            and _is_object(text := _joined(pieces_here[i] for i in range(many)))
        ):
            items[place] = text
    return sorted((place, text) for place, text in items.items() if place not in gone)


def decoded_item(text: str | bytes, **options: Any) -> Any:
    """Decode an item. An integer with more digits than Python converts becomes the nearest float, as in the browser."""
    try:
        return json.loads(text, **options)
    except ValueError:
        return json.loads(text, parse_int=float, **options)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_object(text: str) -> bool:
    try:
        check_depth(text.encode("utf-8", "surrogatepass"), "an item of a session", _MAX_NESTED)
        return isinstance(decoded_item(text, parse_constant=_no_number), dict)
    except (FormatError, ValueError, RecursionError):
        return False


def item_text(item: Mapping[str, Any]) -> str:
    """Return an item as one line of JSON."""
    if not isinstance(item, Mapping):
        raise UsageError(f"an item of a session is a JSON object, not {type(item).__name__}")
    try:
        text = json.dumps(dict(item), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(dict(item), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an item of a session must be a JSON object: {error}") from None
    try:
        check_depth(text.encode(), "an item of a session", _MAX_NESTED - 1)
    except FormatError as error:
        raise UsageError(str(error)) from None
    if len(text) > MAX_ITEM:
        raise LimitError(
            f"an item of a session has {len(text):,} characters, at most {MAX_ITEM:,} are allowed"
        )
    return text


def cut_item(at: int, n: int, text: str) -> list[PartLine]:
    """Return the lines of an item: one line, or one for each piece of a long item."""
    # JSON can contain a lone surrogate, but many readers refuse such a line.
    if len(text) <= _PIECE and "\\ud" not in text:
        return [PartLine(at, n, item=msgspec.Raw(text.encode()))]
    starts = range(0, len(text), _PIECE)
    return [
        PartLine(at, n, text=text[start : start + _PIECE], piece=(i, len(starts)))
        for i, start in enumerate(starts)
    ]
