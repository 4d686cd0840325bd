"""Change fields or the body of a memory file without touching any other byte (format section 1.2).

A header in normal form keeps that form. In any other header, only the lines of changed fields are rewritten; if the
rest (comments, duplicate fields, lists, line ends) cannot stay unchanged, the change is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ipfsmem.bundle import header
from ipfsmem.bundle.front_matter import front_matter, is_unclosed
from ipfsmem.bundle.memory_file import (
    Marks,
    MemoryFile,
    find_marks,
    has_header,
    parse_marked,
    parse_memory,
    read_lines,
    render_memory,
)
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.lazy_pattern import lazy_pattern

_BOM = b"\xef\xbb\xbf"
_NONE: Mapping[str, str] = {}
_HINT = "Edit the file as a whole and write it with its header."
_QUOTED_NAME = lazy_pattern(r'("(?:[^"\\]|\\.)*")[ \t]*:')
_YAML_NAME = lazy_pattern(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^ \t\r"'].*?)[ \t]*:(?=[ \t\r\n]|\Z)""")
_YAML_QUOTED = lazy_pattern(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')""")
_COMMENT = lazy_pattern(r"[ \t]+#")
_CONTINUES = lazy_pattern(r"-(?:[ \t\r]|\Z)|[\]}]")
_SPACE = " \t\r"


def edit_memory(
    data: bytes,
    changes: Mapping[str, str],
    body: str | None = None,
    *,
    stamps: Mapping[str, str] = _NONE,
    parsed: tuple[MemoryFile, Marks | None] | None = None,
) -> bytes:
    """Return the file with some fields set (or removed, if the new value is empty) and optionally another body.

    `stamps`: further fields, which are set only if the header can be edited. If the new body has no header of another
    program (`front_matter`), that of the old body is kept. `parsed`: the result of `parse_marked`, if the caller has
    it. Raises FormatError if the change would lose another part of the file, LimitError beyond the limits of a file.
    """
    old, marks = parse_marked(data) if parsed is None else parsed
    if not stamps or (not changes and _is_foreign(old, body)):
        return _apply_edit(data, old, marks, changes, body)
    try:
        return _apply_edit(data, old, marks, {**stamps, **changes}, body)
    except FormatError:
        return _apply_edit(data, old, marks, changes, body)


def refuse_over_unclosed(data: bytes, body: str) -> None:
    """Raise FormatError if a new body would replace an unclosed header, unless the new body has an unclosed header
    too."""
    if is_unclosed(str(data, "utf-8", "replace")) and not is_unclosed(body):
        raise FormatError(
            "the header of this memory has no closing line, so a new body would replace the header too",
            hint=_HINT,
        )


def render_over(data: bytes | None, file: MemoryFile, *, stamps: Mapping[str, str] = _NONE) -> bytes:
    """Render `file` as an edit of the bytes `data` that it was parsed from; in normal form if `data` is None."""
    if data is None:
        return render_memory(file.with_fields(stamps))
    old, marks = parse_marked(data)
    names = dict.fromkeys((*old.fields, *file.fields))
    changes = {
        name: file.fields.get(name, "") for name in names if file.fields.get(name) != old.fields.get(name)
    }
    body = None if file.body == old.body else file.body
    return edit_memory(data, changes, body, stamps=stamps, parsed=(old, marks))


def _is_foreign(old: MemoryFile, body: str | None) -> bool:
    """Tell whether the file begins with another program's header. A header above it would hide it from that program."""
    text = old.body if body is None else body
    return (
        not old.fields.keys() - {"origin_name"} and bool(front_matter(text)) and not has_header(text.encode())
    )


def _apply_edit(
    data: bytes, old: MemoryFile, marks: Marks | None, changes: Mapping[str, str], body: str | None
) -> bytes:
    front = front_matter(old.body)
    if body is not None:
        body = (body.replace("\r\n", "\n") if marks is not None and marks.crlf else body).rstrip("\n")
        if front and not front_matter(body):
            body = _join_front_and_body(front, body)
    expected = MemoryFile(_merge_fields(old.fields, changes), old.body if body is None else body)
    if expected == old:
        return data
    # Above another program's header, only the field `origin_name` may be set.
    is_foreign = bool(front) and not old.fields.keys() - {"origin_name"}
    if is_foreign and expected.fields != old.fields and changes.keys() - {"origin_name"}:
        raise FormatError(
            "the header of this memory has a format whose fields cannot be changed one by one",
            hint=_HINT,
        )
    if marks is None:
        edited = _without_header(data, expected)
    else:
        edited = _with_header(data, marks, old, expected, body)
    again = parse_memory(edited)
    if again.fields != expected.fields or again.body != expected.body:
        raise FormatError(
            "this field cannot be changed without losing another part of the memory's header",
            hint=_HINT,
        )
    return edited


def _merge_fields(fields: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    merged = {**fields, **changes}
    if changes.get("tags"):
        merged["tags"] = header.render_tags(header.parse_tags(changes["tags"]))
    return {name: value for name, value in merged.items() if value}


def _join_front_and_body(front: str, body: str) -> str:
    """Return a new body below another program's header."""
    if not body:
        return front.rstrip("\n")
    return front + body if front.endswith(("\n", "\r")) else f"{front}\n{body}"


def _without_header(data: bytes, expected: MemoryFile) -> bytes:
    if expected.fields:
        return render_memory(expected)
    plain = (_BOM if data.startswith(_BOM) else b"") + expected.body.encode() + b"\n" * bool(expected.body)
    return plain if parse_memory(plain) == expected else render_memory(expected)


def _with_header(data: bytes, marks: Marks, old: MemoryFile, expected: MemoryFile, body: str | None) -> bytes:
    if _is_normal(data, marks, old.fields):
        return render_memory(expected)
    lines = str(data[marks.lines : marks.closing], "utf-8")
    if expected.fields != old.fields:
        lines = _splice_fields(lines, marks, old, expected)
    head = data[: marks.lines] + lines.encode()
    if body is None:
        return head + data[marks.closing :]
    return head + data[marks.closing : marks.rest] + _tail_after_header(data, marks, old, expected.body)


def has_normal_header(data: bytes) -> bool:
    """Tell whether a file's header is absent or in normal form. Raises FormatError as `parse_memory` does."""
    marks = find_marks(data)
    fields = read_lines(data, marks) if marks is not None else None
    return marks is None or fields is None or _is_normal(data, marks, fields)


def _is_normal(data: bytes, marks: Marks, fields: Mapping[str, str]) -> bool:
    if data[: marks.lines] != b"---\n" or data[marks.closing : marks.rest] not in (b"---\n", b"---"):
        return False
    try:
        return data[marks.lines : marks.closing] == header.write_header(fields).encode()
    except LimitError:
        return False


def _tail_after_header(data: bytes, marks: Marks, old: MemoryFile, body: str) -> bytes:
    """Return the bytes after the closing mark: the body, after a blank line unless the old file had a body without
    one."""
    end = "\r\n" if marks.crlf else "\n"
    if not body:
        return b""
    closed = data[: marks.rest].endswith(b"\n")
    blank = not old.body or body.startswith(("\n", "\r\n")) or data[marks.rest :].startswith(end.encode())
    text = f"{body}\n".replace("\n", end)
    return ("" if closed else end).encode() + (end if blank else "").encode() + text.encode()


class _FieldLines(msgspec.Struct, frozen=True, gc=False):
    """The lines of one field, from `start` up to `end`. `value`: offset of the value in the first line."""

    name: str
    start: int
    end: int
    value: int


def _splice_fields(text: str, marks: Marks, old: MemoryFile, expected: MemoryFile) -> str:
    """Replace the header lines of changed fields in place and append new fields."""
    is_flat = header.read_flat(text.replace("\r\n", "\n").removesuffix("\n")) is not None
    lines = text.split("\n")[:-1]
    end = "\r" if marks.crlf else ""
    for name in dict.fromkeys((*old.fields, *expected.fields)):
        value = expected.fields.get(name, "")
        if value == old.fields.get(name, ""):
            continue
        if name == "comment":
            lines = [line for line in lines if not line.lstrip(" \t").startswith("#")]
        entries = [one for one in _field_lines(lines, is_flat) if one.name == name]
        if not value:
            for one in reversed(entries):
                del lines[one.start : one.end]
            continue
        counts = [one for one in entries if _is_filled(lines, one)] or entries
        if counts:
            one = counts[0]
            lines[one.start : one.end] = [_line_with_value(lines, one, value, is_flat)]
        else:
            lines.append(f"{_indent(lines)}{header.written_name(name)}: {_scalar(name, value)}{end}")
    return "".join(f"{line}\n" for line in lines)


def _field_lines(
    lines: list[str], is_flat: bool, start: int = 0, stop: int | None = None
) -> Iterator[_FieldLines]:
    """Yield the fields of a header in document order, including those in a block `metadata:`."""
    stop = len(lines) if stop is None else stop
    base = _indent(lines[start:stop])
    open_entry: _FieldLines | None = None
    for at in range(start, stop):
        line = lines[at]
        content = line.lstrip(" \t")
        if not content.strip(_SPACE) or content.startswith("#"):
            continue
        indent = line[: len(line) - len(content)]
        if indent != base or _CONTINUES.match(content):
            if open_entry is not None:
                open_entry = msgspec.structs.replace(open_entry, end=at + 1)
            continue
        if open_entry is not None:
            yield from _with_inner(lines, is_flat, open_entry)
        name, value = _name_of_line(content, is_flat)
        open_entry = _FieldLines(name, at, at + 1, len(indent) + value)
    if open_entry is not None:
        yield from _with_inner(lines, is_flat, open_entry)


def _with_inner(lines: list[str], is_flat: bool, entry: _FieldLines) -> Iterator[_FieldLines]:
    if entry.name == "metadata" and entry.end > entry.start + 1:
        yield from _field_lines(lines, is_flat, entry.start + 1, entry.end)
    else:
        yield entry


def _name_of_line(content: str, is_flat: bool) -> tuple[str, int]:
    """Return the field name at the start of a line, and the offset of its value; "" if the line has no field name."""
    match = (_QUOTED_NAME if is_flat else _YAML_NAME).match(content)
    if match is not None:
        return header.unquote(match[1]), match.end()
    if is_flat and ":" in content:
        name = content.partition(":")[0]
        return name.strip(_SPACE), len(name) + 1
    return "", 0


def _indent(lines: list[str]) -> str:
    """Return the indentation of the first non-blank line."""
    first = next(
        (line for line in lines if line.strip(_SPACE) and not line.lstrip(" \t").startswith("#")), ""
    )
    return first[: len(first) - len(first.lstrip(" \t"))]


def _is_filled(lines: list[str], one: _FieldLines) -> bool:
    return one.end > one.start + 1 or lines[one.start][one.value :].strip(_SPACE) not in ("", '""', "''")


def _scalar(name: str, value: str) -> str:
    return value if name == "tags" or header.is_bare_value(name, value) else header.quote(value)


def _line_with_value(lines: list[str], one: _FieldLines, value: str, is_flat: bool) -> str:
    """Return a field's line with a new value and its old comment. Raises FormatError if a comment is inside the
    value."""
    line = lines[one.start]
    end = "\r" if line.endswith("\r") else ""
    rest = line[one.value :].rstrip("\r")
    comment = ""
    if not is_flat:
        quoted = _YAML_QUOTED.match(rest)
        comment_match = _COMMENT.search(rest, quoted.end() if quoted is not None else 0)
        if one.end > one.start + 1:
            is_block = rest.lstrip(" \t")[:1] in ("|", ">")
            texts = lines[one.start : one.start + 1 if is_block else one.end]
            if any(_COMMENT.search(f" {text}") for text in texts):
                raise FormatError(f"the field {one.name} holds comments, which would be lost", hint=_HINT)
        elif comment_match is not None:
            comment = rest[comment_match.start() :]
    return f"{line[: one.value]} {_scalar(one.name, value)}{comment}{end}"
