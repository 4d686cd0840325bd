"""MEMORY.md shared with other programs: split and joined, and the owner of each line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.index import IndexItem
from ipfsmem.bundle.index_block import INDEX_KEY, block_lines, join_index_file, named_files, split_index_file
from tests.support.costs import cost

LINES = [b"- [A](a.md)", b"- [B](b.md) \xe2\x80\x94 about b"]
#: Text of other programs: with CR, without LF at the end, with lines that look like ours.
TEXT = st.lists(
    st.sampled_from([b"", b"# Memory", b"- [A](a.md)", b"- [x](x.md) -- mine", b"a\r", b"<!-- -->", b"\xff"]),
    max_size=6,
).map(b"\n".join)


def test_index_key_is_that_of_the_format() -> None:
    assert INDEX_KEY == "memory-fe1ee863"


@settings(deadline=None)
@given(
    TEXT, st.lists(st.sampled_from(LINES), unique=True), st.lists(st.sampled_from(LINES), unique=True), TEXT
)
def test_split_and_joined_index_file_is_unchanged(
    text: bytes, lines: list[bytes], others: list[bytes], changed: bytes
) -> None:
    made = join_index_file(text, lines)
    apart = split_index_file(made)
    assert apart.text == text
    assert (apart.at >= 0) is bool(lines)
    again = join_index_file(text, others, apart)
    assert split_index_file(again).text == text
    assert split_index_file(join_index_file(changed, others, apart)).text == changed
    if lines == others:
        assert again == made


@pytest.mark.parametrize("end", [b"\n", b""])
def test_index_block_keeps_its_position(end: bytes) -> None:
    block = join_index_file(b"", LINES)
    for file in (block + b"mine\n", b"above\n" + block + b"below" + end):
        apart = split_index_file(file)
        assert join_index_file(apart.text, LINES, apart) == file
        grown = join_index_file(apart.text + b"\nmore\n", LINES, apart)
        assert grown.index(b"<!--") == file.index(b"<!--") and grown.endswith(b"more\n")
        assert split_index_file(grown).text == apart.text + b"\nmore\n"


def test_foreign_lines_inside_the_block_remain_foreign() -> None:
    """An agent adds a line to a list wherever it finds one."""
    file = join_index_file(b"# Memory\n", LINES)
    added = file.replace(LINES[1], b"- [New](new.md) by the agent\n" + LINES[1])
    assert split_index_file(added, frozenset(LINES)).text == b"# Memory\n- [New](new.md) by the agent\n"
    edited = file.replace(b"about b", b"about b, corrected")
    assert (
        split_index_file(edited, frozenset(LINES)).text
        == b"# Memory\n- [B](b.md) \xe2\x80\x94 about b, corrected\n"
    )
    # A complete block of another device contains no foreign text. If it was changed and is unknown, nothing
    # is lost.
    assert split_index_file(file).text == b"# Memory\n"
    assert LINES[0] in split_index_file(edited).text


def test_block_without_its_end_mark_removes_no_foreign_lines() -> None:
    file = join_index_file(b"# Memory\n", LINES).replace(b"<!-- ipfsmem index end -->\n", b"- [x](x.md)\n")
    assert split_index_file(file, frozenset(LINES)).text == b"# Memory\n- [x](x.md)\n"
    crlf = join_index_file(b"# Memory\n", LINES).replace(b"\n", b"\r\n")
    assert split_index_file(crlf).text == b"# Memory\r\n"
    twice = join_index_file(b"a\n", LINES) + join_index_file(b"b\n", LINES[:1])
    assert split_index_file(twice).text == b"a\nb\n"


def test_file_already_named_in_the_index_is_not_named_again() -> None:
    text = b"""- [A](a.md), [B](./b.md "title"), [C](<c d.md>), [D](d%20e.md), [[f]], see `g.md`.
"""
    assert {"a.md", "b.md", "c d.md", "d e.md", "f.md", "g.md"} <= named_files(text)
    lines = [(key, "User", f"- [{key}]({key}.md)\n") for key in ("a", "z", "f", INDEX_KEY, "x-1")]
    made = block_lines(lines, [IndexItem("a", file="a.conflict-00000000.md")], {"x-1": "Über uns.md"}, text)
    assert made == [
        b"- [x-1](%C3%9Cber%20uns.md)",
        b"- [z](z.md)",
        b"Needs attention:",
        b"- [a](a.conflict-00000000.md)",
    ]


@pytest.mark.slow
def test_names_in_an_index_are_read_in_linear_time() -> None:
    def took(size: int, enough: float = 0.0) -> float:
        texts = [pattern * size for pattern in (b"a", b"](", b"](  ", b"[[", b".md")]
        return cost(lambda: [named_files(text) for text in texts], enough)

    most = 60 * took(10_000) + 0.2
    assert took(200_000, most) < most
