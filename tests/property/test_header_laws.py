"""An edit of a file's body or of one field loses and changes no other line of any header, or is refused."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.bundle.front_matter import front_matter
from ipfsmem.bundle.header_edit import edit_memory
from ipfsmem.bundle.memory_file import find_marks, parse_fields, parse_memory, read_lines
from ipfsmem.errors import FormatError
from tests.support.parsers import FRONTS, NAMES, VALUES, header_file, mutated

seeds = st.integers(0, 2**32)
STAMPS = {"created": "2026-11-28", "updated": "2026-11-28"}


def file_of(seed: int) -> bytes:
    r = Random(seed)
    text = header_file(r).decode() if r.random() < 0.8 else r.choice(FRONTS)
    return (mutated(r, text) if r.random() < 0.2 else text).encode("utf-8", "replace")


def has_header(data: bytes) -> bool:
    marks = find_marks(data)
    return marks is not None and read_lines(data, marks) is not None


def header_lines(data: bytes) -> list[str]:
    marks = find_marks(data)
    assert marks is not None
    return data[marks.lines : marks.closing].decode().split("\n")[:-1]


def without_field(lines: list[str], names: Iterable[str]) -> list[str]:
    """Return the lines that cannot be of these fields: none that begins one, and none that continues one."""
    kept, inside, indent = [], False, 0
    for line in lines:
        content = line.lstrip(" \t")
        depth = len(line) - len(content)
        begins = any(content.startswith((name, f'"{name}"', f"'{name}'")) for name in names)
        if begins:
            inside, indent = True, depth
        elif (
            inside
            and content.strip()
            and depth <= indent
            and not content.startswith(("- ", "-\r", "#"))
            and content != "-"
        ):
            inside = False
        if not inside:
            kept.append(line)
    return kept


def is_subsequence(lines: Iterable[str], of: Iterable[str]) -> bool:
    rest = iter(of)
    return all(line in rest for line in lines)


@given(seeds, st.sampled_from(["new", "", "two\nlines\n", "\n\nlate", "a\r\nb"]))
def test_body_edit_keeps_every_byte_of_the_header(seed, body):
    data = file_of(seed)
    try:
        old, made = parse_memory(data), edit_memory(data, {}, body)
    except FormatError:
        return
    if has_header(data):
        marks = find_marks(data)
        assert marks is not None
        if not header_lines(data):
            return  # two marks that nobody needs
        kept = data[: marks.rest]
        assert made[: len(kept)] == kept or (made.startswith(kept.rstrip(b"\n")) and kept.endswith(b"---"))
    else:
        front = front_matter(old.body)
        assert made.removeprefix(b"\xef\xbb\xbf").startswith(front.rstrip("\n").encode())
    assert parse_memory(made).fields == old.fields


@given(seeds, st.sampled_from(NAMES), st.sampled_from(VALUES), st.booleans())
def test_field_edit_keeps_every_other_line_of_the_header(seed, name, value, stamped):
    name = name.strip("\"'")
    data = file_of(seed)
    if name == "comment":
        return
    try:
        old = parse_memory(data)
        made = edit_memory(data, {name: value}, stamps=STAMPS if stamped else {})
    except FormatError:
        return
    again = parse_memory(made)
    others = {*again.fields, *old.fields} - {name, *(STAMPS if stamped else ())}
    assert {one: again.fields.get(one) for one in others} == {one: old.fields.get(one) for one in others}
    assert again.body == old.body
    if has_header(data) and again.fields:
        names = (name, *STAMPS) if stamped else (name,)
        assert is_subsequence(without_field(header_lines(data), names), header_lines(made))


@given(seeds)
def test_list_reads_the_same_header_as_other_readers(seed):
    data = file_of(seed)
    try:
        file = parse_memory(data)
    except FormatError:
        return
    assert parse_fields(data).fields == file.fields
