"""Read and write the portable blob `memory/0.1`: one scope of a vault as one JSON object (format section 1.5).

The reader accepts exports of three.ws and of this program; invalid records are omitted and reported. The writer
writes one canonical form, so that export, import and a second export result in the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, NoReturn

import msgspec

from ipfsmem.bundle import timeline
from ipfsmem.bundle.header import MAX_HEADER
from ipfsmem.bundle.header_edit import edit_memory
from ipfsmem.bundle.keys import (
    INDEX_FILE,
    conflict_file_name,
    file_name,
    key_of_foreign_name,
    split_conflict_name,
)
from ipfsmem.bundle.memory_file import MAX_FILE, parse_memory
from ipfsmem.bundle.timeline import Event
from ipfsmem.canonical import check_depth
from ipfsmem.errors import FormatError

VERSION = "memory/0.1"
#: Integers with more digits are not parsed (Python's limit is 4300).
_MAX_DIGITS = 4_000


class Blob(msgspec.Struct, frozen=True):
    """A parsed export: file texts by key, the set of events, the index as written (imports ignore it).

    `more`: further texts of a key, including conflict copies; an importer keeps them as alternatives. `others`: texts by
    key that the exporter's person did not write (format section 5.2); they are imported as pending. `forgotten`:
    forgotten keys, whose texts in `more` and `others` stay hidden. `problems`: the omitted records with the reason,
    in order. `unread`: keys of unreadable files.
    """

    files: dict[str, bytes]
    events: list[Event]
    index: str = ""
    more: tuple[tuple[str, bytes], ...] = ()
    problems: tuple[str, ...] = ()
    forgotten: frozenset[str] = frozenset()
    others: tuple[tuple[str, bytes], ...] = ()
    unread: frozenset[str] = frozenset()


class _Wire(msgspec.Struct):
    version: Any = VERSION
    index: Any = ""
    files: Any = None
    others: Any = None
    timeline: list[msgspec.Raw] | None = None


_wire = msgspec.json.Decoder(_Wire)
_encode = msgspec.json.encode


def read_blob(data: bytes, *, lenient: bool = False) -> Blob:
    """Parse an export, or the value that three.ws stores in a browser, which has no version.

    `lenient`: report a field of a wrong type in `problems` if other fields are readable. Raises FormatError if `data`
    is not JSON of this shape, or has another version.
    """
    wire, wrong = _decoded(data.removeprefix(b"\xef\xbb\xbf"))
    if wire.version != VERSION:
        fault = f"not an export of this kind: its version is {ascii(wire.version)[:60]}, not {VERSION!a}"
        if isinstance(wire.version, str):
            raise FormatError(fault)
        wrong.append(fault)
    index = wire.index.get("text", "") if isinstance(wire.index, dict) else wire.index
    files: dict[str, bytes] = {}
    renamed: list[tuple[str, bytes]] = []
    problems: list[str] = []
    copies: list[tuple[str, bytes]] = []
    unread: set[str] = set()
    for key, body, origin, copy in _texts(wire.files, "files", problems, wrong, unread):
        if copy:
            copies.append((key, body))
        elif origin is None:
            files[key] = body
        else:
            renamed.append((key, body))
    more = []
    for key, body in (*renamed, *copies):
        if files.setdefault(key, body) != body:
            more.append((key, body))
    texts = _texts(wire.others, "texts of others", problems, wrong, set())
    others = tuple((key, body) for key, body, _, _ in texts)
    lines = [raw for raw in wire.timeline or () if not timeline.is_too_long(bytes(raw))]
    if long := len(wire.timeline or ()) - len(lines):
        problems.append(f"{timeline.too_long_text(long)} of the timeline was left out")
    events = timeline.union(_event(raw) for raw in lines)
    index = index if isinstance(index, str) else ""
    if wrong and not (lenient and (files or others or events)):
        raise FormatError(wrong[0])
    problems += wrong
    return Blob(files, events, index, tuple(more), tuple(problems), others=others, unread=frozenset(unread))


def is_blob(data: bytes) -> bool:
    """Tell whether a JSON object has a field of a blob. `read_blob` reads other objects as empty blobs; they usually
    belong to another program."""
    return bool(json.loads(str(data, "utf-8-sig"), parse_int=str).keys() & set(_Wire.__struct_fields__))


def write_blob(
    files: Mapping[str, bytes],
    events: Iterable[Event],
    index: str,
    others: Iterable[tuple[str, bytes]] = (),
) -> bytes:
    """Write the canonical form: `files` by key as `<key>.md`, sorted by name, and the set of events.

    Texts of `others` get names of conflict copies. Raises KeyNameError for an invalid key, FormatError for an invalid
    event or a file that is not UTF-8.
    """
    names = dict(sorted((file_name(key), _text(file_name(key), body)) for key, body in files.items()))
    copies = dict(sorted((file, _text(file, body)) for file, body in name_copies(others).items()))
    lines = b",".join(timeline.event_line(event) for event in timeline.union(events))
    try:
        head = b'{"version":"%b","index":%b,"files":%b' % (VERSION.encode(), _encode(index), _encode(names))
    except UnicodeEncodeError:
        raise FormatError("the index is not Unicode text") from None
    if copies:
        head += b',"others":' + _encode(copies)
    return head + b',"timeline":[' + lines + b"]}"


def name_copies(texts: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Map the export file name, in conflict-copy form (format section 1.1), of each hidden text to the text.

    If two names collide, which only an attacker can cause, the second uses the next eight digits of its hash.
    """
    files: dict[str, bytes] = {}
    for key, body in texts:
        digest = sha256(body).hexdigest()
        for start in range(0, len(digest), 8):
            file = conflict_file_name(key, digest[start : start + 8])
            if files.setdefault(file, body) == body:
                break
    return files


def _text(name: str, body: bytes) -> str:
    try:
        return str(body, "utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{name} is not UTF-8") from None


def _texts(
    values: Any, kind: str, problems: list[str], wrong: list[str], unread: set[str]
) -> Iterator[tuple[str, bytes, str | None, bool]]:
    """Yield (key, bytes, the original file name if it is not `<key>.md`, else None, whether the name is that of a
    conflict copy) of each readable text.

    Adds unreadable keys to `problems` and `unread`, and `kind` to `wrong` if `values` is not an object.
    """
    if values is not None and not isinstance(values, dict):
        wrong.append(f"the {kind} of an export are not an object of names and texts")
        return
    for name, text in (values or {}).items():
        if name == INDEX_FILE:
            continue
        copy = split_conflict_name(name)
        try:
            key, origin, body = _file(name if copy is None else file_name(copy[0]), text)
        except FormatError as error:
            problems.append(f"{ascii(name)[:120]} was left out: {error}")
            unread.add(name.removesuffix(".md") if copy is None else copy[0])
            continue
        yield key, body, origin, copy is not None


def _file(name: str, text: Any) -> tuple[str, str | None, bytes]:
    """Return (key, the original file name if it is not `<key>.md`, else None, bytes) of one file."""
    if not isinstance(text, str):
        raise FormatError("it is not text")
    key, origin = key_of_foreign_name(name)
    try:
        body = text.encode()
    except UnicodeEncodeError:
        raise FormatError("it is not Unicode text (a lone surrogate)") from None
    if origin is not None:
        body = edit_memory(body, {"origin_name": origin})
    elif len(body) > MAX_FILE or (len(body) > MAX_HEADER and body.startswith((b"---", b"\xef\xbb\xbf---"))):
        parse_memory(body)  # for its LimitError
    return key, origin, body


def _event(raw: msgspec.Raw) -> Event:
    event = timeline.parse_line(bytes(raw))
    if event["type"] != "raw":
        return event
    # A line that is not an event is kept in RFC 8785 form, so that white space does not change its id.
    try:
        value = msgspec.json.decode(raw)
        return (
            event
            if timeline.has_repeated_name(bytes(raw), value)
            else timeline.parse_line(timeline.canonical(value))
        )
    except (FormatError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return event


def _decoded(data: bytes) -> tuple[_Wire, list[str]]:
    """Decode an export. Also return an error message if `timeline` is malformed; it is then treated as missing."""
    check_depth(data, "blob")
    fault = ""
    wire: _Wire | None = None
    try:
        wire = _wire.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        fault = str(error)
    try:
        text = str(data, "utf-8")
        value = _loose.decode(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the export is not valid JSON: {fault or error}") from None
    if not isinstance(value, _Object):
        raise FormatError("the export is not a JSON object")
    for part in (value, value.get("files"), value.get("others")):
        if isinstance(part, _Object) and part.twice is not None:
            raise FormatError(f"the name {ascii(part.twice)[:120]} stands twice in the export")
    if wire is not None:
        return wire, []
    # Browsers write lone surrogates, and the strict decoder would refuse the whole text.
    events = value.get("timeline")
    wrong: list[str] = []
    if events is not None and not isinstance(events, list):
        events, wrong = None, ["the timeline of an export is not a list"]
    raws = [_raw_event(*both) for both in zip(events or (), _written_events(text), strict=False)]
    version, index = value.get("version", VERSION), value.get("index", "")
    return _Wire(version, index, value.get("files"), value.get("others"), raws), wrong


def _raw_event(event: Any, written: bytes) -> msgspec.Raw:
    """Return an event without white space; unchanged if it has a duplicate name or a number that Python cannot parse."""
    if not timeline.has_repeated_name(written, event):
        with suppress(ValueError):
            written = json.dumps(event, separators=(",", ":"), allow_nan=False).encode()
    return msgspec.Raw(written)


def _written_events(text: str) -> Iterator[bytes]:
    """Yield each event of an export as written."""
    at = _skip(text, 0) + 1  # after the opening brace
    while text[at := _skip(text, at)] == '"':
        name, at = _loose.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # after the colon
        if name == "timeline" and text[at] == "[":
            at += 1
            while text[at := _skip(text, at)] != "]":
                _, end = _loose.raw_decode(text, at)
                yield text[at:end].encode()
                at = end
            return
        _, at = _loose.raw_decode(text, at)


def _skip(text: str, at: int) -> int:
    """Return the offset after white space and commas."""
    while text[at] in " \t\r\n,":
        at += 1
    return at


class _Object(dict[str, Any]):
    """A JSON object that records whether it had a duplicate name."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice = (
            next((name for name, n in Counter(name for name, _ in pairs).items() if n > 1), None)
            if (len(self) < len(pairs))
            else None
        )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _integer(text: str) -> int | float:
    """Parse an integer. With more than `_MAX_DIGITS` digits, return a value that is invalid in an event."""
    return int(text) if len(text) <= _MAX_DIGITS else float("inf")


#: Accepts lone surrogates and detects duplicate names, unlike the strict decoder.
_loose = json.JSONDecoder(parse_constant=_refuse, parse_int=_integer, object_pairs_hook=_Object)
