"""Encode and parse timeline events, and unite the events of several writers (format section 1.4).

An event is a dict with the texts `ts` and `type`; all other fields are kept as written. Timestamps and counters are
arguments. Events are never removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NoReturn

import msgspec

from ipfsmem.canonical import MAX_INT, b64, check_depth
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.lazy_pattern import lazy_pattern

Event = dict[str, Any]

#: Maximum bytes of an event line, without its LF.
MAX_LINE = 64 * 1024
#: Bytes of a line whose event always fits: its canonical form can be six times as long.
_SURELY_FITS = MAX_LINE // 8
#: Maximum nesting of an event; a deeper event is kept as a raw line.
MAX_NESTING = 32
#: Instant of a raw line without a known time.
NO_TIME = "1970-01-01T00:00:00.000Z"

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
_FIRST = ("ts", "type", "id")
_OWN_ID = lazy_pattern(r"([0-9a-f]{16})-([1-9][0-9]{0,15})")
_DAY = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SPACED = lazy_pattern(rb'"\s')
_NAME_END = lazy_pattern(rb'"\s*:')
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_NORMAL = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = lazy_pattern(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2}))?)?"
)


def normal_ts(ts: str) -> str:
    """Return `ts` as `YYYY-MM-DDTHH:MM:SS.mmmZ`: UTC, truncated to milliseconds.

    Accepts ISO 8601 dates and instants; without an offset, UTC is assumed. Raises FormatError.
    """
    if _NORMAL.fullmatch(ts) and _is_date(ts[:10]):
        return ts
    match = _INSTANT.fullmatch(ts)
    if match is None or not _is_date(match[1]):
        raise FormatError(f"not an ISO 8601 instant: {ts[:40]!a}")
    date, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups()
    try:
        moment = datetime.fromisoformat(date).replace(
            hour=int(hour or 0),
            minute=int(minute or 0),
            second=int(second or 0),
            microsecond=int(((fraction or "") + "000")[:3]) * 1000,
            tzinfo=UTC,
        )
        if sign:
            if int(off_minute) > 59 or int(off_hour) > 23:
                raise ValueError
            offset = timedelta(hours=int(off_hour), minutes=int(off_minute))
            moment = moment - offset if sign == "+" else moment + offset
    except (ValueError, OverflowError):
        raise FormatError(f"not an ISO 8601 instant: {ts[:40]!a}") from None
    return (
        f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{moment.hour:02d}:{moment.minute:02d}:"
        f"{moment.second:02d}.{moment.microsecond // 1000:03d}Z"
    )


def ms_of(ts: str) -> int:
    """Return an instant in milliseconds since 1970 UTC, truncated; negative before 1970. Raises FormatError."""
    return (datetime.fromisoformat(normal_ts(ts)) - _EPOCH) // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _is_date(date: str) -> bool:
    try:
        datetime.fromisoformat(date)  # `strptime` would load another module and the locale
    except ValueError:
        return False
    return True


def day_of(ts: str) -> str:
    """Return the UTC day `YYYY-MM-DD` of an instant, which determines its timeline file. Raises FormatError."""
    return normal_ts(ts)[:10]


def own_id(device_id: str, n: int) -> str:
    """Return the id of a device's n-th event (from 1); `device_id` has 16 hex digits. Raises FormatError."""
    event_id = f"{device_id}-{n}"
    if split_own_id(event_id) is None:
        raise FormatError(f"not an event id: {event_id[:60]!a}")
    return event_id


def split_own_id(id: str) -> tuple[str, int] | None:
    """Return (device id, counter) of an id made by `own_id`; None for any other text."""
    match = _OWN_ID.fullmatch(id)
    if match is None or int(match[2]) > MAX_INT:
        return None
    return match[1], int(match[2])


def conversation_of(event: Event) -> tuple[str, str, str] | None:
    """Return (program, id, agent) of an imported event's conversation; None without a conversation or its id."""
    ident = event.get("conversation") or event.get("session")
    if event.get("type") != "conversation" or not isinstance(ident, str):
        return None
    return str(event.get("source")), ident, str(event.get("agent", ""))


def foreign_id(event: Event) -> str:
    """Return the first 16 hex digits of the SHA-256 of the event's RFC 8785 form without `id`. Raises FormatError."""
    return hashlib.sha256(canonical({k: v for k, v in event.items() if k != "id"})).hexdigest()[:16]


def as_foreign(event: Event) -> Event:
    """Return the event with its foreign id, for an event whose id is missing or not by its writer. Raises
    FormatError."""
    return {"ts": event["ts"], "type": event["type"], **event, "id": foreign_id(event)}


def event_line(event: Event) -> bytes:
    """Return the line of an event, without LF: `ts`, `type`, `id`, then the other fields sorted, values as in RFC
    8785.

    Raises FormatError if it is not an event with an id, LimitError beyond 64 KiB.
    """
    fault = _event_fault(event)
    if fault is None and "id" not in event:
        fault = "it has no id"
    if fault is not None:
        raise FormatError(f"not a timeline event: {fault}")
    rest = {k: v for k, v in event.items() if k not in _FIRST}
    first = canonical(event["ts"]), canonical(event["type"]), canonical(event["id"])
    line = b'{"ts":%b,"type":%b,"id":%b' % first
    line += b"," + canonical(rest)[1:] if rest else b"}"
    if len(line) > MAX_LINE:
        raise LimitError(
            f"timeline event {event['id'][:60]} has {len(line)} bytes, at most {MAX_LINE} are allowed"
        )
    return line


def parse_line(line: bytes, day: str | None = None) -> Event:
    """Parse one line. An event without an id gets its foreign id; a line that is not an event becomes a `raw` event.

    `day`: the UTC day of the line's file, the instant of a raw line.
    """
    event = _decode_loosely(line)
    if _event_fault(event) is not None or has_repeated_name(line, event):
        ts = f"{day}T00:00:00.000Z" if day else NO_TIME
        if isinstance(event, dict) and _is_instant(event.get("ts")):
            ts = event["ts"]
        return _raw(ts, line)
    if "id" not in event:
        return as_foreign(event)
    return event  # type: ignore[no-any-return]


def parse_lines(data: bytes, day: str | None = None) -> list[Event]:
    """Parse all lines of a timeline file or segment, in order; blank lines are skipped.

    `day` as in `parse_line`. Accepts a BOM and CRLF.
    """
    return [parse_line(line, day) for line in lines_of(data)]


def lines_of(data: bytes) -> Iterator[bytes]:
    """Yield the non-blank lines of a timeline file or segment. Only LF ends a line."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end].strip(b" \t\r")
        start = end + 1
        if line:
            yield line


def day_of_file(name: str) -> str | None:
    """Return the day in the name or path of a timeline file; None for any other name."""
    day = name.rpartition("/")[2].removesuffix(".jsonl")
    return day if _DAY.fullmatch(day) and _is_date(day) else None


def segment_lines(text: bytes) -> list[bytes]:
    """Return the lines of a segment, in order, without oversized ones.

    Any writer can sign a segment with oversized lines; it must not make the timeline unreadable.
    """
    return [line for line in lines_of(text) if not is_too_long(line)]


def segment_events(text: bytes) -> list[Event]:
    """Return the events of the lines of `segment_lines`, in order."""
    return [parse_line(line) for line in segment_lines(text)]


def is_too_long(line: bytes) -> bool:
    """Tell whether a line's event exceeds the limit in canonical form, with its own or a foreign id."""
    return len(line) >= _SURELY_FITS and not _fits(parse_line(line))


def too_long_text(count: int) -> str:
    """Return the message that `count` oversized lines were omitted."""
    return f"what stood in {'a line' if count == 1 else f'{count:,} lines'} of more than {MAX_LINE:,} bytes"


def _fits(event: Event) -> bool:
    try:
        return bool(event_line(event)) and bool(event_line(as_foreign(event)))
    except LimitError:
        return False


def union(*sources: Iterable[Event]) -> list[Event]:
    """Return the set of all events, in the order (ts, id) with `ts` compared as instants.

    Of several events with one id, the event with the least line keeps the id, the others get foreign ids. No event is
    lost, and the order of the sources does not matter. Raises FormatError for a value that is not an event.
    """
    events: dict[str, Event] = {}
    clashes: list[Event] = []
    for source in sources:
        for event in source:
            if not isinstance(event, dict) or type(event.get("id")) is not str:
                event = _checked_foreign(event)
            first = events.setdefault(event["id"], event)
            if first is not event and (first != event or event_line(first) != event_line(event)):
                low, high = sorted((first, event), key=event_line)
                events[event["id"]] = low
                clashes.append(high)
    for event in clashes:
        foreign = _checked_foreign(event)
        events.setdefault(foreign["id"], foreign)
    try:
        return sorted(events.values(), key=_order)
    except (KeyError, TypeError, AttributeError):
        raise FormatError("not a timeline event: it has no ts") from None


def union_of_scopes(*sources: Iterable[Event]) -> list[Event]:
    """Return the events of several scopes as one list, in the order (ts, id), without duplicates of id and line.

    An id is unique only within its scope, so different events with one id all keep it (format section 5.1).
    """
    events = {(event["id"], event_line(event)): event for source in sources for event in source}
    return sorted(events.values(), key=_order)


def _order(event: Event) -> tuple[str, str]:
    return normal_ts(event["ts"]), event["id"]


def _checked_foreign(event: Event) -> Event:
    fault = _event_fault(event)
    if fault is not None:
        raise FormatError(f"not a timeline event: {fault}")
    return as_foreign(event)


def _decode_loosely(line: bytes) -> Any:
    """Decode a JSON text; None if invalid. `_value_fault` refuses what only the strict decoder would refuse."""
    try:
        check_depth(line, "a timeline line")
        return _decode(line)
    except FormatError:
        return None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    import json  # imported late: for input that the fast decoder refuses

    try:
        return json.loads(str(line, "utf-8"), parse_int=float, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def has_repeated_name(line: bytes, event: Any) -> bool:
    """Tell whether an object in this line, decoded as `event`, has a duplicate name, of which the decoder keeps the
    last."""
    if not isinstance(event, dict):
        return False
    # Every name ends with a quotation mark and a colon, perhaps with white space between. If there are as many of
    # these as decoded names, no name is duplicate. Values can contain them too; then all names are counted.
    ends = line.count(b'":')
    if ends == len(event) and _SPACED.search(line) is None:
        return False
    if len(_NAME_END.findall(line)) == _count_names(event):
        return False
    import json

    counted = 0

    def count(pairs: list[tuple[str, Any]]) -> None:
        nonlocal counted
        counted += len(pairs)

    json.loads(str(line, "utf-8"), object_pairs_hook=count, parse_int=float, parse_constant=str)
    return counted > _count_names(event)


def _count_names(event: dict[str, Any]) -> int:
    """Return the number of names in a value, nested objects included."""
    count = 0
    level: list[Any] = [event]
    while level:
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                count += len(item)
                below += item.values()
            elif isinstance(item, list):
                below += item
        level = below
    return count


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _raw(ts: str, line: bytes) -> Event:
    event: Event = {"ts": ts, "type": "raw"}
    try:
        event["raw"] = str(line, "utf-8")
    except UnicodeDecodeError:
        event.update(raw=b64(line), encoding="base64url")
    return as_foreign(event)


def _is_instant(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(normal_ts(value))
    except FormatError:
        return False


def _event_fault(event: Any) -> str | None:
    """Return the reason why a value is not an event; None if it is one (with or without an id)."""
    if not isinstance(event, dict):
        return "it is not an object"
    if not _is_instant(event.get("ts")):
        return "its ts is not an ISO 8601 instant"
    if not isinstance(event.get("type"), str):
        return "its type is not text"
    if "id" in event and not (isinstance(event["id"], str) and event["id"]):
        return "its id is not text"
    return _value_fault(event)


def _value_fault(event: Event) -> str | None:
    """Return the reason why a value has different forms in different languages; None if it does not.

    Languages with only doubles cannot represent an integer beyond 2^53-1.
    """
    level: list[Any] = [event]
    for _ in range(MAX_NESTING):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                for name in item:
                    if not isinstance(name, str):
                        return "a field name is not text"
                    if not name.isascii() and _SURROGATE.search(name):
                        return "a field name is not Unicode text"
                values: Iterable[Any] = item.values()
            else:
                values = item
            for value in values:
                kind = type(value)
                if kind is str:
                    if not value.isascii() and _SURROGATE.search(value):
                        return "it holds a lone surrogate"
                    continue
                if kind is bool or value is None:
                    continue
                if kind is dict or kind is list or kind is tuple:
                    below.append(value)
                elif kind is int:
                    if not -MAX_INT <= value <= MAX_INT:
                        return "a number is beyond 2^53-1"
                elif kind is float:
                    if not abs(value) < float("inf") or (value.is_integer() and abs(value) > MAX_INT):
                        return "a number is beyond 2^53-1"
                else:
                    return f"it holds a {kind.__name__}"
        if not below:
            return None
        level = below
    return f"it is nested deeper than {MAX_NESTING}"


def canonical(value: Any) -> bytes:
    """Return the RFC 8785 form of a JSON value. Raises FormatError if it has none."""
    try:
        if _fast_encoder_agrees(value):  # no floats, ASCII names
            return _encode(value)
        import rfc8785  # imported late: few events need it

        return rfc8785.dumps(value)
    except (ValueError, RecursionError, TypeError) as error:
        raise FormatError(f"timeline event has no canonical form: {error}") from None


def _fast_encoder_agrees(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is float:
            return False
        if kind is dict:
            for name in item:
                if not name.isascii():
                    return False
            stack.extend(v for v in item.values() if type(v) is not str)
        elif kind is list or kind is tuple:
            stack.extend(item)
    return True
