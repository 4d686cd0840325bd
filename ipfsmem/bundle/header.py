"""Read and write the header of a memory file (format section 1.2).

Reading is lenient: first as flat `name: value` lines with one nested `metadata:` block, then as YAML whose scalars
are all text. Writing is strict and can represent every text. Values are always text; only `tags` is a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ipfsmem.errors import FormatError, LimitError
from ipfsmem.lazy_pattern import lazy_pattern

#: Known fields in the order of writing; unknown fields follow in the order read.
KNOWN = (
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
)
#: Maximum bytes of a header: the lines between the two `---`.
MAX_HEADER = 4096
MAX_DEPTH = 4

_KNOWN_SET = frozenset(KNOWN)
_SPECIAL = "-?:,[]{}#&*!|>'\"%@`"
_SPACE = " \t\r"
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
# Unquoted values that some YAML loader (1.1 or 1.2) does not parse as text but as boolean, null, number, date, time
# or merge: words in any case, and texts that do not begin with a letter.
_OTHER_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_OTHER_TYPE = lazy_pattern(
    r"~|<<|="
    r"|[-+]?(?:0[box][0-9a-f]+|[0-9]+(?::[0-9]{1,2})*(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|\.[0-9]+(?:e[-+]?[0-9]+)?|\.inf|\.nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[ \tt].*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_DATES = frozenset(("created", "updated", "expires"))
_NUMBER = lazy_pattern(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
_HAS_CONTROL = lazy_pattern(f"[{_CONTROL}]")
#: Layout characters, not counted as control characters in a header.
_LAYOUT = dict.fromkeys(map(ord, "\t\n"), " ")
_ESCAPE = lazy_pattern(f'[{_CONTROL}"\\\\]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SINGLE = lazy_pattern(r"'(?:[^']|'')*'")
_QUOTED_NAME = lazy_pattern(r'("(?:[^"\\]|\\.)*")[ \t]*:', re.DOTALL)
# A line that starts with one of these is not `name: value`. A quotation mark can open a quoted name.
_NOT_FLAT = frozenset(_SPECIAL + " \t") - {'"', "#"}
_ITEM = lazy_pattern(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*(?:,|\Z)|([^,]*)(?:,|\Z)""", re.DOTALL)
# Forms that YAML libraries parse differently: a tab in an indentation, a `?` that can be a key, escaped surrogates, a
# name without a space after its colon in a flow collection, a block scalar that begins on its own line, and a
# document marker at the start (`---` after spaces, or `...`).
_DISPUTED = lazy_pattern(
    r"(?:^|\n)[ -]*\t|(?:^|[\n\[{,:-])[ \t]*\?(?=[ \t\n]|\Z)|\\u[dD][89a-fA-F]|\\U|:[,\]}]"
    r"|:[ \t]*(?:[ \t]#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*[|>]"
    r"|\A(?:[ \t]*(?:#[^\n]*)?\n)*(?: +---|\.\.\.)(?=[ \t\n]|\Z)"
)
# Between two scalars: a comment after white space (nothing is captured), a `#` without any, or a `?`.
_BETWEEN = lazy_pattern(r"(?<![^ \t\n])#[^\n]*|([#?])")
# A line that only closes flow collections. Users write it without indentation, which not every library accepts.
_CLOSING = lazy_pattern(r"(?:^|(?<=\n))(?=[\]}][\]} \t,]*(?:\n|\Z))")
# A block scalar that states its own indentation.
_BLOCK_INDENT = lazy_pattern(r"[|>][-+]?[1-9]")
# After an unquoted scalar of a flow collection, also with white space between; libyaml refuses it.
_COLON_BEFORE_COLLECTION = lazy_pattern(r"[ \t\n]*:[?\[{]")
_json_str = msgspec.json.Decoder(str)


def quote(value: str) -> str:
    """Return `value` as a JSON string: non-ASCII unchanged, control characters and U+2028, U+2029, U+FEFF escaped."""
    return '"' + _ESCAPE.sub(_escaped, value) + '"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def is_bare(value: str) -> bool:
    """Tell whether every YAML parser reads `value` without quotes as this text."""
    return _is_plain(value) and not _has_other_type(value)


#: Days of each month, without the 29th of February.
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _is_day_of_century(value: str) -> bool:
    """Tell whether `value` is a day from 2000 to 2099, except a 29th of February."""
    if len(value) != 10 or not value.startswith("20") or not value[4] == value[7] == "-":
        return False
    digits = value[2:4] + value[5:7] + value[8:]
    if not (digits.isascii() and digits.isdecimal()):
        return False
    month, day = int(digits[2:4]), int(digits[4:])
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]


def is_bare_value(name: str, value: str) -> bool:
    """Tell whether a field's value is written without quotes; dates, `important` and `confidence` keep their YAML
    types."""
    if not _is_plain(value):
        return False
    if name in _DATES:
        return _is_day_of_century(value) or not _has_other_type(value) or _is_instant(value)
    if name == "important" and value in ("true", "false"):
        return True
    if name == "confidence" and _NUMBER.fullmatch(value):
        return True
    text = value.replace("_", "")  # as `_has_other_type`
    return text.lower() not in _OTHER_WORDS if text[:1].isalpha() else _OTHER_TYPE.fullmatch(text) is None


def _has_other_type(value: str) -> bool:
    text = value.replace("_", "")  # some loaders accept underscores anywhere in numbers
    if text[:1].isalpha():
        return text.lower() in _OTHER_WORDS
    return _OTHER_TYPE.fullmatch(text) is not None


def _is_instant(value: str) -> bool:
    # imported late: few headers have more than a day, and the import costs start-up time
    from ipfsmem.bundle.timeline import normal_ts

    try:
        return bool(normal_ts(value))
    except FormatError:
        return False


def _is_plain(value: str) -> bool:
    return (
        value != ""
        and value[0] not in _SPECIAL
        and value[0] != " "
        and value[-1] not in " :"
        and ": " not in value
        and " #" not in value
        and (value.isprintable() or _HAS_CONTROL.search(value) is None)
    )


def unquote(value: str) -> str:
    """Decode a stripped value if it is a JSON string or single-quoted YAML string; return any other unchanged."""
    if len(value) >= 2:
        if value[0] == '"' and value[-1] == '"':
            try:
                return _json_str.decode(value)
            except (msgspec.DecodeError, UnicodeError, ValueError):
                return value
        if value[0] == "'" and _SINGLE.fullmatch(value):
            return value[1:-1].replace("''", "'")
    return value


def parse_tags(text: str) -> tuple[str, ...]:
    """Parse a `tags` value, with or without brackets. Items may be quoted; empty items are dropped."""
    inner = text.strip(_SPACE)
    if inner[:1] == "[" and inner[-1:] == "]":
        inner = inner[1:-1]
    if '"' not in inner and "'" not in inner:
        items = inner.split(",")
    else:
        items = [unquote(m[1]) if m[1] else m[2] for m in _ITEM.finditer(inner)]
    return tuple(item for item in (i.strip(_SPACE) for i in items) if item)


def render_tags(items: Iterable[str]) -> str:
    """Return items as `[a, b]`, ambiguous ones quoted as JSON strings; "" if there are none."""
    trimmed = (item.strip(_SPACE) for item in items)
    parts = [i if is_bare(i) and not any(c in i for c in ",[]{}\"'?") else quote(i) for i in trimmed if i]
    return f"[{', '.join(parts)}]" if parts else ""


def written_name(name: str) -> str:
    """Return a field name as written in a header line: quoted, if YAML would read it differently."""
    return name if is_bare(name) and ":" not in name and name[:4] != "... " else quote(name)


def write_header(fields: Mapping[str, str]) -> str:
    """Return header lines, each with LF, without the two `---`: known fields in order, then the others.

    Raises LimitError beyond 4 KiB.
    """
    lines: list[str] = []
    for name in KNOWN:
        value = fields.get(name)
        if value:
            if name == "tags":
                value = render_tags(parse_tags(value))
                if value:
                    lines.append(f"tags: {value}\n")
            else:
                lines.append(f"{name}: {value if is_bare_value(name, value) else quote(value)}\n")
    if len(lines) < len(fields):
        for name, value in fields.items():
            if name not in _KNOWN_SET and value:
                shown = written_name(name)
                lines.append(f"{shown}: {value}\n" if is_bare(value) else f"{shown}: {quote(value)}\n")
    text = "".join(lines)
    if len(text) > MAX_HEADER // 4:
        check_size(text[:-1])
    return text


def check_size(text: str) -> None:
    """Raise LimitError if a header, without its last line end, exceeds 4 KiB."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_HEADER:
        raise LimitError(f"header has {size} bytes, at most {MAX_HEADER} are allowed")


def read_header(text: str) -> dict[str, str]:
    """Return the non-empty fields of a header in the order read. `text`: the lines between the two `---`.

    Raises LimitError for a flat header beyond 4 KiB, FormatError if `text` is not a header.
    """
    fields = read_flat(text)
    if len(text) > MAX_HEADER // 4 and len(text.encode()) > MAX_HEADER:
        if fields is None:
            raise FormatError(f"no header: not flat within {MAX_HEADER} bytes")
        check_size(text)
    return read_yaml(text) if fields is None else fields


def read_flat(text: str) -> dict[str, str] | None:
    """Return the fields of a header of `name: value` lines; None if it has any other line.

    Lines with equal indentation under an empty `metadata:` become top-level fields. The first of duplicate fields is
    used. Comment lines are collected in the field `comment`, so that a rewrite keeps them.
    """
    fields: dict[str, str] = {}
    comments: list[str] = []
    indent: str | None = None  # indentation of the open `metadata:` block; "" before its first line
    has_name = False
    for line in text.split("\n"):
        if line[:1] in _NOT_FLAT:
            stripped = line.strip(_SPACE)
            if not stripped:
                continue
            if indent is None or line[0] not in " \t":
                return None
            here = line[: len(line) - len(line.lstrip(" \t"))]
            if indent not in ("", here) or stripped[0] in _NOT_FLAT:
                return None
            indent, line = here, stripped
        elif line.strip(_SPACE):
            if line[0] != "#":
                indent = None
        else:
            continue
        if line[0] == "#":
            comments.append(line[1:].strip(_SPACE))
            continue
        name, colon, value = line.partition(":")
        if line[0] == '"' and (quoted := _QUOTED_NAME.match(line)):
            name, colon, value = unquote(quoted[1]), ":", line[quoted.end() :]
        elif colon:
            name = name.strip(_SPACE)
        else:
            return None
        has_name = True
        value = value.strip(_SPACE)
        if not value:
            if name == "metadata" and not indent:
                indent = ""
            continue
        if value[0] in "\"'":
            value = unquote(value)
        if value and name not in fields:
            fields[name] = value
    if comments:
        return _with_comments(fields, comments) if has_name else None
    return fields


def _with_comments(fields: dict[str, str], comments: list[str]) -> dict[str, str]:
    parts = [fields["comment"]] if "comment" in fields else []
    text = "\n".join(parts + [c for c in comments if c])
    if text:
        fields["comment"] = text
    return fields


def read_yaml(text: str) -> dict[str, str]:
    """Return the fields of a YAML header, every scalar as text.

    The names of a `metadata` mapping become top-level fields, a `tags` list is written with brackets, any other
    nested value as RFC 8785 text. Raises FormatError for anything but a mapping, and for aliases, anchors, tags,
    directives, a depth beyond 4 and control characters, on which YAML libraries disagree.
    """
    text = text.replace("\r\n", "\n")
    if _DISPUTED.search(text) is not None:
        raise FormatError("header has a form of YAML that libraries read differently")
    fields: dict[str, str] = {}
    for name, value in yaml_mapping(text, lambda event: event.value.rstrip("\n")).items():
        if name == "metadata" and isinstance(value, dict):
            for inner, deep in value.items():
                _put(fields, inner, deep)
        else:
            _put(fields, name, value)
    comments = [line[1:].strip(" \t") for line in text.split("\n") if line[:1] == "#"]
    return _with_comments(fields, comments) if comments else fields


def yaml_mapping(text: str, scalar: Callable[[Any], Any]) -> dict[str, Any]:
    """Parse a YAML mapping. `scalar` converts each scalar event to a value; names are text.

    Raises FormatError as `read_yaml` does.
    """
    import yaml  # imported late: most headers are flat, and the import costs start-up time

    text = _CLOSING.sub(" ", text)

    loader: Any = getattr(yaml, "CBaseLoader", None)
    if loader is None:
        from ipfsmem.bundle.plain_loader import PlainLoader

        loader = PlainLoader
    if _HAS_CONTROL.search(text.translate(_LAYOUT)) is not None:
        raise FormatError("header holds a control character")
    try:
        root = _tree(_refuse_disputed(yaml.parse(text, Loader=loader), text), scalar)
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(f"header is not YAML: {reason}") from None
    if not isinstance(root, dict):
        raise FormatError("header is not a list of fields")
    return root


def _put(fields: dict[str, str], name: str, value: Any) -> None:
    if isinstance(value, str):
        text = value
    elif not value:
        text = ""
    elif name == "tags" and isinstance(value, list):
        text = render_tags(v if isinstance(v, str) else _jcs(v) for v in value)
    else:
        text = _jcs(value)
    if text:
        fields.setdefault(name, text)


def _jcs(value: Any) -> str:
    import rfc8785

    try:
        return str(rfc8785.dumps(value), "utf-8")
    except (rfc8785.CanonicalizationError, UnicodeError):
        raise FormatError("header holds text that is not Unicode") from None


def _refuse_disputed(events: Iterable[Any], text: str) -> Iterator[Any]:
    """Yield `events` unchanged. Raises FormatError for forms that other libraries refuse or parse differently.

    These forms are: a comment without white space before its `#`; in a flow collection, a scalar that begins with `?`
    or is `-`, or a colon directly before `?`, `[` or `{`; a quoted text or flow collection that continues on a line
    that is not indented more than its parent; and a block scalar that begins on such a line, or with a blank line
    that is indented more than its text.
    """
    lines = text.split("\n")
    columns: list[int] = []  # columns of the open block collections
    flows: list[int] = []  # lines on which the open flow collections begin
    done = 0  # end of the part of the text that is checked
    for event in events:
        kind = type(event).__name__
        start, end = event.start_mark, event.end_mark
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if event.flow_style:
                flows.append(start.line)
            else:
                columns.append(start.column)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            if not flows:
                columns.pop()
            else:
                inside = lines[flows.pop() + 1 : end.line + 1]
                _check_indented((line for line in inside if not line.lstrip(" ").startswith("#")), columns)
        elif kind == "ScalarEvent":
            _check_between(text, done, start.index)
            done = max(done, end.index)
            if event.style in ("|", ">"):
                line = lines[start.line]
                _check_between(text, start.index, start.index + len(line) - start.column)
                if not line[: start.column].strip(" "):
                    _check_indented((line,), columns)
                if not _BLOCK_INDENT.match(line, start.column):
                    _check_leading_blanks(lines[start.line + 1 :], columns)
            elif event.style in ('"', "'"):
                _check_indented(lines[start.line + 1 : end.line + 1], columns)
            elif flows and (
                _is_disputed_in_flow(event.value, text[end.index : end.index + 2])
                or _COLON_BEFORE_COLLECTION.match(text, end.index)
            ):
                raise FormatError("header has a text in a flow collection that libraries read differently")
        yield event
    _check_between(text, done, len(text))


def _check_between(text: str, start: int, end: int) -> None:
    if any(match[1] for match in _BETWEEN.finditer(text, start, end)):
        raise FormatError("header has a comment without white space before it, or a `?` before a name")


def _is_disputed_in_flow(value: str, behind: str) -> bool:
    if value == "-":
        return behind[:1] in (",", "[", "]", "{", "}")
    return value[:1] in ("?", ":") or ":?" in value


def _check_indented(lines: Iterable[str], columns: list[int]) -> None:
    least = columns[-1] + 1 if columns else 0
    if any(line.strip(" ") and len(line) - len(line.lstrip(" ")) < least for line in lines):
        raise FormatError("header has a continued value without indentation")


def _check_leading_blanks(lines: Iterable[str], columns: list[int]) -> None:
    """Refuse a block scalar whose first line is indented less than a blank line before it. That is an error in YAML,
    but libyaml reads such a line as a comment if it begins with `#`."""
    most = 0
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        if depth < len(line):
            if columns and columns[-1] < depth < most:
                raise FormatError("header has a block of text that begins with a blank line indented deeper")
            return
        most = max(most, depth)


def _tree(events: Iterable[Any], scalar: Callable[[Any], Any]) -> Any:
    """Build scalars, lists and dicts from YAML events, iteratively. The first non-empty of duplicate names is used."""
    result: Any = None
    stack: list[
        tuple[Any, list[str]]
    ] = []  # open collections; for a mapping, with the name whose value follows
    for event in events:
        kind = type(event).__name__
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            stack.pop()
            continue
        if kind == "DocumentStartEvent" and (event.version or event.tags or result is not None):
            raise FormatError("header has a YAML directive, or a second document")
        if kind not in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent", "AliasEvent"):
            continue
        if kind == "AliasEvent" or event.anchor is not None:
            raise FormatError("header has a YAML anchor or alias")
        if event.tag is not None:
            raise FormatError(f"header has a YAML tag: {event.tag[:40]!r}")
        value: Any = {} if kind == "MappingStartEvent" else []
        if kind == "ScalarEvent":
            is_name = bool(stack) and isinstance(stack[-1][0], dict) and not stack[-1][1]
            value = event.value if is_name else scalar(event)
        if not stack:
            result = value
        elif isinstance(stack[-1][0], list):
            stack[-1][0].append(value)
        elif stack[-1][1]:
            mapping, name = stack[-1][0], stack[-1][1].pop()
            if not mapping.get(name):  # an empty value is ignored, as in a flat header
                mapping.pop(name, None)
                mapping[name] = value
        elif kind == "ScalarEvent" and value:
            stack[-1][1].append(value)
        else:
            raise FormatError("header has a field name that is empty or not text")
        if kind != "ScalarEvent":
            stack.append((value, []))
            if len(stack) > MAX_DEPTH:
                raise FormatError(f"header is nested deeper than {MAX_DEPTH}")
    return result
