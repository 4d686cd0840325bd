"""Memory files against the shared vectors and against what three.ws writes."""

import json
from pathlib import Path

import pytest

from ipfsmem.bundle import header
from ipfsmem.bundle.memory_file import (
    MAX_FILE,
    MemoryFile,
    parse_fields,
    parse_memory,
    render_memory,
)
from ipfsmem.errors import FormatError, LimitError

FIXTURES = Path(__file__).parents[3] / "fixtures"
VECTORS = json.loads((FIXTURES / "vectors/memory_file.json").read_text("utf-8"))
THREE_WS = FIXTURES / "three-ws"
ERRORS = {"format": FormatError, "limit": LimitError}


def by_about(case):
    return case["about"]


@pytest.mark.parametrize("case", VECTORS["read"], ids=by_about)
def test_memory_file_is_read_as_in_the_vectors(case):
    data = case["file"].encode()
    memory = parse_memory(data)
    assert [list(item) for item in memory.fields.items()] == case["fields"]
    assert memory.body == case["body"]
    assert render_memory(memory).decode() == case["rendered"]
    assert render_memory(parse_memory(render_memory(memory))) == render_memory(memory)
    assert parse_fields(data) == MemoryFile(memory.fields, "")


@pytest.mark.parametrize("case", VECTORS["render"], ids=by_about)
def test_memory_file_is_rendered_as_in_the_vectors(case):
    memory = MemoryFile(dict(case["fields"]), case["body"])
    data = render_memory(memory)
    assert data.decode() == case["file"]
    again = parse_memory(data)
    expected = {k: v for k, v in memory.fields.items() if v and k != "tags"}
    assert {k: v for k, v in again.fields.items() if k != "tags"} == expected
    assert again.tags == memory.tags
    assert again.body == memory.body.rstrip("\n")
    assert render_memory(again) == data


@pytest.mark.parametrize("case", VECTORS["bad"], ids=by_about)
def test_invalid_memory_file_is_refused(case):
    with pytest.raises(ERRORS[case["error"]]):
        parse_memory(bytes.fromhex(case["file_hex"]))


@pytest.mark.parametrize("case", VECTORS["sizes"], ids=by_about)
def test_size_limits_are_those_of_the_vectors(case):
    data = "".join(text * count for text, count in case["parts"]).encode()
    if case["error"] is None:
        assert parse_memory(data).fields == parse_fields(data).fields
    else:
        with pytest.raises(ERRORS[case["error"]]):
            parse_memory(data)


def test_rendering_respects_the_limits():
    assert len(render_memory(MemoryFile({}, "a" * (MAX_FILE - 1)))) == MAX_FILE
    with pytest.raises(LimitError):
        render_memory(MemoryFile({}, "a" * MAX_FILE))
    with pytest.raises(LimitError):
        render_memory(MemoryFile({"name": "a" * 4091}))
    with pytest.raises(LimitError):
        render_memory(MemoryFile({"name": "é" * 2046}))


def test_text_that_is_not_unicode_is_refused():
    for memory in (
        MemoryFile({}, "\ud800"),
        MemoryFile({"name": "\udfff"}),
        MemoryFile({"\ud800": "x" * 2000}),
    ):
        with pytest.raises(FormatError):
            render_memory(memory)
    with pytest.raises(FormatError):
        parse_fields(b"---\nname: \xff\n---\n")


def test_header_fields_are_read_with_their_types():
    memory = MemoryFile(
        {
            "name": "N",
            "description": "d",
            "type": "user",
            "created": "2026-01-01",
            "updated": "2026-01-02T00:00:00Z",
            "source": "s",
            "decay": "30d",
            "category": "c",
            "tags": "[a, b]",
            "important": "Yes",
            "confidence": "0.25",
            "expires": "2027-01-01",
            "agent_name": "g",
            "origin_name": "o",
        }
    )
    names = "name description type created updated source expires origin_name"
    for name in names.split():
        assert getattr(memory, name) == memory.fields[name]
        assert getattr(MemoryFile(), name) == ""
    assert (memory.tags, memory.important, memory.confidence) == (("a", "b"), True, 0.25)
    assert (MemoryFile().tags, MemoryFile().important, MemoryFile().confidence) == ((), False, None)
    for text in ("2", "-1", "nan", "inf", "high"):
        assert MemoryFile({"confidence": text}).confidence is None
    assert not MemoryFile({"important": "false"}).important


def test_with_fields_replaces_and_removes_fields():
    memory = MemoryFile({"name": "N", "type": "user"}, "b")
    assert memory.with_fields({"type": "", "x": "1"}) == MemoryFile({"name": "N", "x": "1"}, "b")
    assert memory.with_fields({}, body="c") == MemoryFile(memory.fields, "c")
    assert memory.fields == {"name": "N", "type": "user"}


def test_yaml_bombs_and_directives_are_refused():
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc:\n  - *b\n"
    for text in (
        bomb,
        "%TAG ! tag:x,2000:\n---\na:\n  - 1\n",
        "%YAML 1.1\n---\na:\n  - 1\n",
        "<<:\n  - *a\n",
    ):
        with pytest.raises(FormatError):
            header.read_yaml(text)
    with pytest.raises(FormatError):
        header.read_header("a:\n  - " + "[" * 2000 + "\n")
    with pytest.raises(FormatError):
        header.read_header("a:\n" + "  - x\n" * 1000)


def test_yaml_merge_keys_are_text():
    assert header.read_yaml("<<:\n  a: 1\n") == {"<<": '{"a":"1"}'}


@pytest.mark.parametrize("path", sorted((THREE_WS / "local/files").iterdir()), ids=lambda p: p.name)
def test_three_ws_files_are_read_without_loss(path):
    theirs = json.loads((THREE_WS / "local/read.json").read_text("utf-8"))[path.name]
    ours = parse_memory(path.read_bytes())
    assert ours.fields == theirs["meta"]
    assert "\n" + ours.body == theirs["body"]
    assert parse_memory(render_memory(ours)) == ours


def _serialised():
    return json.loads((THREE_WS / "edge/serialise.json").read_text("utf-8"))


@pytest.mark.parametrize("case", _serialised(), ids=lambda c: c["key"])
def test_unusual_three_ws_input_is_read(case):
    ours = parse_memory(case["raw"].encode())
    assert ours.fields == {k: v for k, v in case["parsed"]["meta"].items() if v}
    assert ours.body == case["parsed"]["body"].removeprefix("\n").rstrip("\n")
    assert parse_memory(render_memory(ours)).body == ours.body


def test_unusual_three_ws_files_lose_no_word():
    for name, case in json.loads((THREE_WS / "edge/parse.json").read_text("utf-8")).items():
        memory = parse_memory(case["raw"].encode())
        text = render_memory(memory).decode()
        lost = {
            "duplicate_key": {"B"},
            "nested_yaml": {"metadata", "user"},
            "metadata_only_type": {"metadata"},
        }
        words = set("".join(c if c.isalnum() or c in "_-" else " " for c in case["raw"]).split())
        assert {w for w in words if w.strip("-") and w not in text} <= lost.get(name, set()), name


def test_tags_are_parsed_and_rendered():
    assert header.parse_tags("[]") == () == header.parse_tags("") == header.parse_tags(" [ , ] ")
    assert header.parse_tags("x") == ("x",)
    assert header.parse_tags('["a\\"b", \'c,d\', "open, e]') == ('a"b', "c,d", '"open', "e")
    assert header.render_tags(["a", " b ", "", "c,d", "-"]) == '[a, b, "c,d", "-"]'
    assert header.render_tags([]) == ""


@pytest.mark.parametrize(
    "data",
    [
        b"---\nname: "
        + b"a" * 4149
        + b"\n---x\n---\nb",  # the look-ahead of `parse_fields` ends within a line
        b"---\nname: " + b"a" * 4149 + b"\n---",
        b"---\r\na: |\r\n  x\r\r\r\n  y\r\n---\r\n",
        b"\xef\xbb\xbf---\nname: X\n---\nb",
        b"---\nname: X",
    ],
)
def test_header_reader_agrees_with_the_whole_reader(data):
    try:
        expected = parse_memory(data).fields
    except LimitError:
        with pytest.raises(LimitError):
            parse_fields(data)
    else:
        assert parse_fields(data).fields == expected
