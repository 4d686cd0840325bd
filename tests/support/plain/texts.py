"""Sections 1, 5 (names, view, merge) and 5.1 (cards) of docs/FORMAT.md: files, lines and names, without
cryptography."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import yaml


class Refused(Exception):
    """The input is invalid and no part of it is used."""


class NotJudged(Exception):
    """This reader does not know that part of the format."""


# -- JSON ------------------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    """Write a number as ECMAScript does."""
    if isinstance(value, int):
        return str(value)
    if value == 0:
        return "0"
    digits = repr(value)
    sign = "-" if digits.startswith("-") else ""
    mantissa, _, exp = digits.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    all_digits = (whole + fraction).lstrip("0")
    point = (
        len(whole)
        + int(exp or 0)
        - (len(whole + fraction) - len(all_digits) if whole.strip("0") == "" else 0)
    )
    all_digits = all_digits.rstrip("0")
    count = len(all_digits)
    if count <= point <= 21:
        return sign + all_digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + all_digits[:point] + "." + all_digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + all_digits
    exponent = point - 1
    rest = "." + all_digits[1:] if count > 1 else ""
    return f"{sign}{all_digits[0]}{rest}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def rfc8785(value: Any) -> str:
    """Return the canonical text of a JSON value (RFC 8785)."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{rfc8785(name)}:{rfc8785(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(rfc8785, value)) + "]"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return _number(value)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refused("a name stands twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def canonical(data: bytes) -> Any:
    """Parse canonical JSON (section 6): ASCII names, whole numbers within 2^53-1, one spelling."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_pairs, parse_constant=_no_constant)
        _ours(value)
        again = rfc8785(value).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from error
    if again != data:
        raise Refused("another form than the canonical one")
    return value


def _ours(value: Any) -> None:
    if isinstance(value, float) or (type(value) is int and abs(value) > 2**53 - 1):
        raise Refused("a number")
    if isinstance(value, dict) and not all(name.isascii() for name in value):
        raise Refused("a name that is not ASCII")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _ours(one)


# -- 1.1 keys and names ----------------------------------------------------------------------------------------------------

_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RESERVED = {
    "memory",
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}


def is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None and text not in _RESERVED


def is_scope(text: str) -> bool:
    return (
        is_key(text)
        and text not in ("timeline", "scopes", "all", "global")
        and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text)
    )


def has_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(char) <= 0xDFFF for char in text)


def foreign_key(name: str) -> tuple[str, str | None]:
    """Return the key of a foreign file name, and the part of the name that `origin_name` stores."""
    if name.endswith(".md") and is_key(name[:-3]):
        return name[:-3], None
    if has_surrogate(name):
        raise Refused("no Unicode text")
    name = unicodedata.normalize("NFC", name)
    if name.endswith(".md") and is_key(name[:-3]):
        return name[:-3], None
    stem = unicodedata.normalize("NFKC", name[:-3] if name.endswith(".md") else name).lower()
    stem = re.sub(r"[^a-z0-9_-]+", "_", stem).lstrip("_-").rstrip("_")
    return f"{stem[:55] or 'x'}-{sha256(name.encode()).hexdigest()[:8]}", name


def conflict_name(name: str) -> tuple[str, str] | None:
    """Return the key and the digits in the name of a conflict copy."""
    found = re.fullmatch(r"(.*)\.conflict-([0-9a-f]{8})\.md", name, re.DOTALL)
    return (found[1], found[2]) if found and is_key(found[1]) else None


def value_key(free: str) -> str:
    """Return the key of the memory of a free key (1.7)."""
    if has_surrogate(free) or not 1 <= len(free.encode()) <= 256:
        raise Refused("a free key has 1 to 256 bytes of UTF-8")
    stem = re.sub(r"[^a-z0-9]+", "_", free.lower()).strip("_")[:20].rstrip("_")
    return f"kv-{stem or 'x'}-{sha256(free.encode()).hexdigest()[:40]}"


# -- 1.2 memory files ------------------------------------------------------------------------------------------------------

KNOWN = [
    "name",
    "description",
    "type",
    "created",
    "updated",
    "source",
    "decay",
    "category",
    "tags",
    "important",
    "confidence",
    "expires",
    "agent_name",
    "origin_name",
]
_SPECIAL = "-?:,[]{}#&*!|>'\"%@`"
_BLANK = " \t\r"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_YAML_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_TYPED = re.compile(
    r"(y|n|yes|no|on|off|true|false|null|~|<<|="
    r"|[-+]?(0[box][0-9a-f]+|[0-9]+(:[0-9]{1,2})*(\.[0-9]*)?(e[-+]?[0-9]+)?|\.[0-9]+(e[-+]?[0-9]+)?|\.inf|\.nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ \tt].*)?)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_OPENING = re.compile(rb"(\xef\xbb\xbf)?---[ \t]*(\r?\n)")
_CLOSING = re.compile(rb"^---[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_JSON_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SINGLE = re.compile(r"'(?:[^']|'')*'", re.DOTALL)
_DOUBLE = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)  # delimited by quotation marks, decodable or not


class File(NamedTuple):
    fields: dict[str, str]
    body: str


def _unquoted(text: str) -> str | None:
    """Return the content of a whole quoted string; None for any other text."""
    if _JSON_STRING.fullmatch(text):
        said: str = json.loads(text)
        return None if has_surrogate(said) else said
    return text[1:-1].replace("''", "'") if _SINGLE.fullmatch(text) else None


def read_file(data: bytes) -> File:
    """Return the fields and the body of a memory file."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Refused("not UTF-8") from error
    if len(data) > 960 << 10:
        raise Refused("longer than 960 KiB")
    text = text.removeprefix("\ufeff")
    opening = _OPENING.match(data)
    closing = opening and _CLOSING.search(data, opening.end())
    if not opening or not closing:
        return File({}, text.rstrip("\n"))
    header, body = data[opening.end() : closing.start()], data[closing.end() :].decode()
    inner = re.sub(rb"\r?\n\Z", b"", header)
    lines = inner.decode()
    if opening[2] == b"\r\n":
        lines, body = lines.replace("\r\n", "\n"), body.replace("\r\n", "\n")
    fields = _flat(lines)
    if fields is not None and len(inner) > 4096:
        raise Refused("a header over 4 KiB")
    if fields is None and len(inner) <= 4096:
        fields = _yaml(lines)
    if fields is None:
        return File({}, text.rstrip("\n"))
    return File(fields, body.removeprefix("\n").rstrip("\n"))


def _put(fields: dict[str, str], name: str, value: str) -> None:
    """Add a field; of a repeated one the first that is not empty is valid, in its place."""
    if not fields.get(name):
        fields.pop(name, None)
        fields[name] = value


def _with_comments(fields: dict[str, str], comments: list[str]) -> dict[str, str] | None:
    if comments and not fields:
        return None
    fields = {name: value for name, value in fields.items() if value}
    said = [text for line in comments if (text := line[1:].strip(_BLANK))]
    if said:
        fields["comment"] = "\n".join([*filter(None, [fields.get("comment", "")]), *said])
    return fields


def _flat(header: str) -> dict[str, str] | None:
    fields: dict[str, str] = {}
    comments: list[str] = []
    block: str | None = None  # the indentation of a block `metadata:`, empty before its first line
    for line in header.split("\n"):
        if not line.strip(_BLANK):
            continue
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        if indent and block is not None:
            block = block or indent
            if indent != block:
                return None
            line = line[len(indent) :]
        elif not line.startswith("#"):
            block = None
        if line.startswith("#"):
            comments.append(line)
            continue
        pair = _pair(line)
        if pair is None:
            return None
        name, value, raw = pair
        if name == "metadata" and not raw and not indent:
            block = ""
        _put(fields, name, value)
    return _with_comments(fields, comments)


def _pair(line: str) -> tuple[str, str, str] | None:
    """Return name, value and raw value of a flat line."""
    quoted = _DOUBLE.match(line)
    if quoted and line[quoted.end() :].lstrip(_BLANK).startswith(":"):
        said = _unquoted(quoted[0])
        name, rest = quoted[0] if said is None else said, line[quoted.end() :].lstrip(_BLANK)[1:]
    else:
        if line[0] in _SPECIAL.replace('"', "") or line[0] in " \t" or ":" not in line:
            return None
        name, rest = line.split(":", 1)
        name = name.strip(_BLANK)
    raw = rest.strip(_BLANK)
    said = _unquoted(raw)
    return name, raw if said is None else said, raw


_ODD = re.compile(
    r"^[ -]*\t"  # a tab in an indentation
    r"|(?:^[ ]*|[\[{,:-][ ]*)\?(?=\s|\Z)"  # complex keys
    r"|\\u[dD][89a-fA-F]|\\U"
    r"|:[,\]}]"
    r"|:[ ]*(?:[ ]#.*)?\n(?:[ ]*(?:#.*)?\n)*[ ]*[|>]"
    r"|\A(?:[ \t]*(?:#.*)?\n)*(?:[ ]+---|\.\.\.)(?=\s|\Z)",
    re.MULTILINE,
)


def _yaml(header: str) -> dict[str, str] | None:
    header = re.sub(r"^(?=[\]}][\]} \t,]*$)", " ", header.replace("\r\n", "\n"), flags=re.MULTILINE)
    if _YAML_CONTROL.search(header) or _ODD.search(header):
        return None
    if "\t" in header:
        raise NotJudged("PyYAML knows fewer tabs than the format")
    try:
        for event in yaml.parse(header, Loader=yaml.BaseLoader):
            if (
                isinstance(event, yaml.AliasEvent)
                or getattr(event, "anchor", None)
                or getattr(event, "tag", None)
            ):
                return None
            if isinstance(event, yaml.DocumentStartEvent) and (event.version or event.tags):
                return None
        _look_between(header)
        top = yaml.compose(header, Loader=yaml.BaseLoader)
    except Refused:
        return None
    except yaml.YAMLError as error:
        if "?" in header and ("[" in header or "{" in header):
            raise NotJudged("PyYAML ends a text in a flow collection at a question mark") from error
        return None
    if not isinstance(top, yaml.MappingNode):
        return None
    lines = header.split("\n")
    try:
        _look(top, 1, -1, lines)
        fields: dict[str, str] = {}
        for name, node in _first_that_says(_items(top)):
            if name == "metadata" and isinstance(node, yaml.MappingNode):
                for inner, value in _first_that_says(_items(node)):
                    _put(fields, inner, _field(inner, value))
            else:
                _put(fields, name, _field(name, node))
    except Refused:
        return None
    return _with_comments(fields, [line for line in lines if line.startswith("#")])


def _look_between(header: str) -> None:
    """Check for directives, comments and text directly behind strings of flow collections."""
    tokens = list(yaml.scan(header, Loader=yaml.BaseLoader))
    flows = 0
    for before, token in pairwise(tokens):
        start, end = token.start_mark.index, token.end_mark.index
        done = before.end_mark.index
        is_plain = isinstance(before, yaml.ScalarToken) and before.plain
        mark = " " if header[done - 1 : done] in ("", " ", "\n") else "x"
        if "#" in re.sub(r"(?<=[ \n])#.*", "", mark + header[done:start]):
            raise Refused("a comment without a space before it")
        if isinstance(token, yaml.DirectiveToken):
            raise Refused("a directive")
        if isinstance(token, yaml.KeyToken) and start < end:
            if is_plain:
                raise NotJudged("PyYAML ends a text in a flow collection at a question mark")
            raise Refused("a question mark before a text")
        if flows and is_plain:
            behind = header[done : done + 2]
            if header[done:].lstrip(" \t\n").startswith((":[", ":{", ":?")) or (
                before.value == "-" and behind[:1] in tuple(",[]{}")
            ):
                raise Refused("a text in a flow collection")
        flows += isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken))
        flows -= isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken))


def _items(node: yaml.MappingNode) -> list[tuple[str, yaml.Node]]:
    return [(_plain(name).rstrip("\n"), value) for name, value in node.value]


def _first_that_says(items: list[tuple[str, yaml.Node]]) -> list[tuple[str, yaml.Node]]:
    """Return, of a repeated name, the first value that is not empty."""
    found: dict[str, yaml.Node] = {}
    for name, node in items:
        if name not in found or not _plain(found[name]):
            found.pop(name, None)
            found[name] = node
    return list(found.items())


def _look(node: yaml.Node, depth: int, outer: int, lines: list[str]) -> None:
    """Check depth, names, and the indentation of values over several lines."""
    if depth > 4 and not isinstance(node, yaml.ScalarNode):
        raise Refused("too deep")
    flow = isinstance(node, yaml.CollectionNode) and node.flow_style
    if flow or (isinstance(node, yaml.ScalarNode) and node.style in ("'", '"')):
        for line in lines[node.start_mark.line + 1 : node.end_mark.line + 1]:
            if not line.strip(" ") or (flow and line.lstrip(" ").startswith("#")):
                continue
            if len(line) - len(line.lstrip(" ")) <= outer:
                raise Refused("indented too little")
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        column = node.start_mark.column
        if column <= outer and not lines[node.start_mark.line][:column].strip(" "):
            raise Refused("a block of text begins too far left")
        if not re.match("[|>][-+]?[1-9]", lines[node.start_mark.line][column:]):
            below = lines[node.start_mark.line + 1 :]
            blank = list(takewhile(lambda line: not line.strip(" "), below))
            depth = next((len(line) - len(line.lstrip(" ")) for line in below[len(blank) :]), 0)
            if outer < depth < max(map(len, blank), default=0):
                raise Refused("a blank line before a block of text is indented deeper")
    inner = outer if flow else node.start_mark.column
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode) or not name.value:
                raise Refused("a field without a name")
            _look(name, depth + 1, inner, lines)
            _look(value, depth + 1, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _look(value, depth + 1, inner, lines)


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {name: _plain(value) for name, value in _first_that_says(_items(node))}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value) for value in node.value]
    return str(node.value).rstrip("\n")


def _field(name: str, node: yaml.Node) -> str:
    value = _plain(node)
    if not value or isinstance(value, str):
        return value or ""
    if name == "tags" and isinstance(value, list):
        return write_tags([one if isinstance(one, str) else rfc8785(one) for one in value])
    return rfc8785(value)


def read_tags(text: str) -> list[str]:
    text = text.strip(_BLANK)
    if text.startswith("[") and text.endswith("]") and len(text) > 1:
        text = text[1:-1]
    found, at = [], 0
    while at <= len(text):
        start = at + len(text[at:]) - len(text[at:].lstrip(_BLANK))
        quoted = _DOUBLE.match(text, start) or _SINGLE.match(text, start)
        end = text.find(",", at)
        end = len(text) if end < 0 else end
        item = text[at:end].strip(_BLANK)
        if quoted:
            rest = text[quoted.end() :].lstrip(_BLANK)
            if not rest or rest.startswith(","):
                said = _unquoted(quoted[0])
                item, end = (quoted[0] if said is None else said).strip(_BLANK), len(text) - len(rest)
        found.append(item)
        at = end + 1
    return [item for item in found if item]


def _is_bare(value: str, field: str = "") -> bool:
    if not value or value[0] in _SPECIAL or value != value.strip(" "):
        return False
    if ": " in value or " #" in value or value.endswith(":") or _CONTROL.search(value):
        return False
    if not _TYPED.fullmatch(value.replace("_", "")):
        return True
    if field in ("created", "updated", "expires"):
        return instant(value) is not None
    if field == "important":
        return value in ("true", "false")
    return field == "confidence" and bool(
        re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]+)?(e[-+]?[0-9]+)?", value, re.ASCII)
    )


def _quoted(text: str) -> str:
    made = json.dumps(text, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", made)


def write_tags(tags: list[str]) -> str:
    items = [tag.strip(_BLANK) for tag in tags]
    written = [
        tag if _is_bare(tag) and not set(tag) & set(",[]{}\"'?") else _quoted(tag) for tag in items if tag
    ]
    return f"[{', '.join(written)}]" if written else ""


def render_file(file: File) -> str:
    """Return the normal form."""
    fields = {name: value for name, value in file.fields.items() if value}
    if "tags" in fields:
        fields["tags"] = write_tags(read_tags(fields["tags"]))
    order = [*(name for name in KNOWN if name in fields), *(name for name in fields if name not in KNOWN)]
    lines = []
    for name in order:
        if not fields[name]:
            continue
        said = name if _is_bare(name) and ":" not in name and not name.startswith("... ") else _quoted(name)
        value = fields[name]
        lines.append(f"{said}: {value if name == 'tags' or _is_bare(value, name) else _quoted(value)}")
    body = file.body.rstrip("\n")
    header = "\n".join(lines)
    text = ""
    if lines or body.startswith(("---", "\ufeff")):
        text = "---\n" + (header + "\n" if header else "") + "---\n" + ("\n" if body else "")
    text += body + "\n" if body else ""
    if has_surrogate(text):
        raise Refused("lone surrogates")
    if len(header.encode()) > 4096 or len(text.encode()) > 960 << 10:
        raise Refused("too long")
    return text


# -- 1.4 timeline ----------------------------------------------------------------------------------------------------------

_TS = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)


def instant(text: Any) -> int | None:
    """Return the milliseconds since 1970 UTC of a `ts`; None if invalid."""
    found = _TS.fullmatch(text) if isinstance(text, str) else None
    if not found:
        return None
    year, month, day, hour, minute, second = (int(found[n] or 0) for n in range(1, 7))
    zone = found[8] or "Z"
    offset = timedelta()
    if zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        if hours > 23 or minutes > 59:
            return None
        offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
    try:
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - offset
    except (ValueError, OverflowError):
        return None
    fraction = int((found[7] or "")[:3].ljust(3, "0"))
    return int((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)) + fraction


def normal_ts(text: str) -> str | None:
    """Return a `ts` in the form that programs write."""
    ms = instant(text)
    if ms is None:
        return None
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return f"{at.year:04}-{at:%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def own_id(text: str) -> tuple[str, int] | None:
    found = re.fullmatch(r"([0-9a-f]{16})-([1-9][0-9]*)", text, re.ASCII)
    return (found[1], int(found[2])) if found and int(found[2]) <= 2**53 - 1 else None


Event = dict[str, Any]


def event_line(event: Event) -> str:
    first = {name: event[name] for name in ("ts", "type", "id")}
    rest = {name: value for name, value in event.items() if name not in first}
    rest_text = rfc8785(rest)[1:-1]
    return rfc8785_in_order(first) + ("," + rest_text if rest_text else "") + "}"


def rfc8785_in_order(first: Event) -> str:
    return "{" + ",".join(f"{rfc8785(name)}:{rfc8785(value)}" for name, value in first.items())


def foreign_id(event: Event) -> str:
    """Return the id of an event without an id of its writer."""
    return sha256(rfc8785({name: v for name, v in event.items() if name != "id"}).encode()).hexdigest()[:16]


def _is_event(value: Any, depth: int = 1) -> bool:
    """Return whether a JSON value is allowed in an event."""
    if isinstance(value, (dict, list)):
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        return depth <= 32 and all(_is_event(one, depth + 1) for one in inner)
    if isinstance(value, str):
        return not has_surrogate(value)
    if isinstance(value, float):
        return (
            value == value
            and abs(value) != float("inf")
            and not (value.is_integer() and abs(value) > 2**53 - 1)
        )
    return type(value) is not int or abs(float(value)) <= 2**53 - 1


def read_line(line: bytes, day: str | None) -> Event:
    """Return the event of one line; `day` is that of its plain file, None in a segment."""
    midnight = f"{day or '1970-01-01'}T00:00:00.000Z"
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raw = base64.urlsafe_b64encode(line).rstrip(b"=").decode()
        return _with_id({"ts": midnight, "type": "raw", "raw": raw, "encoding": "base64url"})
    twice = False

    def pairs(found: list[tuple[str, Any]]) -> Event:
        nonlocal twice
        twice = twice or len({name for name, _ in found}) < len(found)
        return dict(found)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant, parse_int=_whole)
    except (ValueError, RecursionError):
        value = None
    ts = midnight
    if isinstance(value, dict):
        ts = value["ts"] if instant(value.get("ts")) is not None else midnight
        right = not twice and _is_event(value) and instant(value.get("ts")) is not None
        named = isinstance(value.get("type"), str) and (
            "id" not in value or (isinstance(value["id"], str) and value["id"])
        )
        if right and named:
            return value if "id" in value else _with_id(value)
    return _with_id({"ts": ts, "type": "raw", "raw": text})


def _whole(text: str) -> float:
    """Return a whole number by value as a double; numbers beyond the range of doubles exceed every bound."""
    return int(text) if len(text) < 400 else float("inf")


def _with_id(event: Event) -> Event:
    return {**event, "id": foreign_id(event)}


def read_lines(data: bytes, day: str | None) -> list[Event]:
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [read_line(line, day) for one in lines if (line := one.strip(b" \t\r"))]


# -- 5 names of entries, 5.1 cards -----------------------------------------------------------------------------------------


def is_day(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII)) and date.fromisoformat(text) is not None
    except ValueError:
        return False


class Name(NamedTuple):
    kind: str
    scope: str
    ctx: str
    dev: str = ""


def entry_name(text: str) -> Name:
    """Return the parts of an entry's name: its kind, scope, context of its objects and, for a segment, its
    device."""
    kind, *parts = text.split("/")
    if kind == "m" and len(parts) in (1, 2) and is_key(parts[-1]) and (len(parts) == 1 or is_scope(parts[0])):
        return Name("m", parts[0] if len(parts) == 2 else "", "/".join(parts))
    if kind == "c" and len(parts) == 1 and is_scope(parts[0]):
        return Name("c", parts[0], parts[0])
    if kind == "t" and len(parts) in (3, 4) and (len(parts) == 3 or is_scope(parts[0])):
        day, dev, i = parts[-3:]
        if (
            is_day(day)
            and re.fullmatch(r"[0-9a-f]{16}", dev)
            and re.fullmatch(r"0|[1-9][0-9]*", i)
            and int(i) <= 2**53 - 1
        ):
            return Name("t", parts[0] if len(parts) == 4 else "", "/".join(parts), dev)
    raise Refused("no name of an entry")


_UNSEEN = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def is_label(text: Any) -> bool:
    return (
        isinstance(text, str)
        and not has_surrogate(text)
        and 1 <= len(text.encode()) <= 128
        and not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", text)
        and not _UNSEEN.search(text)
    )


def read_card(data: bytes) -> dict[str, Any]:
    """Return the card of a scope."""
    if len(data) > 4096:
        raise Refused("a card over 4 KiB")
    card = canonical(data)
    if not isinstance(card, dict) or set(card) != {"ids", "into", "kind", "title", "v"}:
        raise Refused("not the fields of a card")
    ids = card["ids"]
    fits = (
        type(card["v"]) is int
        and card["v"] == 1
        and card["kind"] in ("user", "workspace", "agent")
        and is_label(card["title"])
        and (card["into"] is None or (isinstance(card["into"], str) and is_scope(card["into"])))
        and isinstance(ids, list)
        and len(ids) <= 64
        and all(_is_known_by(one) for one in ids)
    )
    if not fits or ids != sorted(ids) or len({tuple(one) for one in ids}) < len(ids):
        raise Refused("not a card")
    return card


def _is_known_by(one: Any) -> bool:
    if not isinstance(one, list) or not all(isinstance(part, str) for part in one):
        return False
    if len(one) == 2 and one[0] == "id":
        return re.fullmatch(r"[0-9a-f]{32}", one[1]) is not None
    if len(one) != 3 or one[0] != "remote":
        return False
    host, slash, path = one[1].partition("/")
    labels = host.split(".")
    return bool(
        slash
        and len(labels) > 1
        and all(re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", label) for label in labels)
        and one[1] == one[1].lower()
        and not one[1].endswith(".git")
        and all(part and not re.search(r"[\s?#@:\x00-\x1f\x7f-\x9f]", part) for part in path.split("/"))
        and all(part not in ("", ".", "..") for part in one[2].split("/") if one[2])
        and not re.search(r"[\x00-\x1f\x7f-\x9f]", one[2])
    )
