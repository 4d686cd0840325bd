"""Export files (format: blob) equal the shared vectors and include every export of three.ws."""

import json
from pathlib import Path

import pytest

from ipfsmem.bundle.blob import read_blob, write_blob
from ipfsmem.bundle.memory_file import MAX_FILE, parse_memory
from ipfsmem.errors import FormatError, KeyNameError, LimitError

FIXTURES = Path(__file__).parents[3] / "fixtures"
VECTORS = json.loads((FIXTURES / "vectors/blob.json").read_text("utf-8"))
THREE_WS = FIXTURES / "three-ws"
EXPORTS = [
    THREE_WS / "local/export.json",
    THREE_WS / "local/snapshot.json",
    THREE_WS / "local/localStorage.value.json",
    *sorted((THREE_WS / "import").glob("*.json")),
]


def rewrite(blob):
    return write_blob(blob.files, blob.events, blob.index, blob.others)


@pytest.mark.parametrize("case", VECTORS["read"], ids=lambda c: c["about"])
def test_export_file_is_read_as_in_the_vectors(case):
    blob = read_blob(case["blob"].encode())
    assert {key: text.decode() for key, text in blob.files.items()} == case["files"]
    assert [[key, text.decode()] for key, text in blob.more] == case["more"]
    assert [[key, text.decode()] for key, text in blob.others] == case.get("others", [])
    assert blob.index == case["index"]
    assert len(blob.problems) == case["problems"]
    assert sorted(blob.unread) == case.get("unread", [])
    assert rewrite(blob).decode() == case["written"]
    assert rewrite(read_blob(rewrite(blob))) == rewrite(blob)


@pytest.mark.parametrize("case", VECTORS["bad"], ids=lambda c: c["about"])
def test_invalid_export_file_is_refused(case):
    with pytest.raises(FormatError):
        read_blob(case["blob"].encode())


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[" * 100_000, b'{"files":' * 100_000, b'{"files":5}', b'"x"']
)
def test_random_input_raises_no_other_error(data):
    with pytest.raises(FormatError):
        read_blob(data)


def test_unknown_version_is_named():
    with pytest.raises(FormatError, match="memory/9"):
        read_blob(b'{"version":"memory/9"}')


@pytest.mark.parametrize("path", EXPORTS, ids=lambda p: p.name)
def test_three_ws_exports_are_read_without_loss(path):
    theirs = json.loads(path.read_text("utf-8"))
    blob = read_blob(path.read_bytes())
    assert {f"{key}.md": text.decode() for key, text in blob.files.items()} == theirs["files"]
    assert not blob.problems and not blob.more
    kept = [e for e in theirs["timeline"] if "ts" in e]
    ours = [{k: v for k, v in e.items() if k != "id"} for e in blob.events if e["type"] != "raw"]
    assert sorted(map(repr, ours)) == sorted(map(repr, kept))
    raws = [json.loads(e["raw"]) for e in blob.events if e["type"] == "raw"]
    assert raws == [e for e in theirs["timeline"] if "ts" not in e]
    assert rewrite(read_blob(rewrite(blob))) == rewrite(blob)


def test_export_file_has_a_fixed_order_and_form():
    data = write_blob(
        {"a": b"2", "a-b": b"1\n"}, [{"type": "t", "z": 1, "ts": "2026-04-14", "id": "i"}], "# é\n"
    )
    assert data.decode() == (
        '{"version":"memory/0.1","index":"# é\\n","files":{"a-b.md":"1\\n","a.md":"2"},'
        '"timeline":[{"ts":"2026-04-14","type":"t","id":"i","z":1}]}'
    )


def test_writing_an_invalid_export_file_is_refused():
    with pytest.raises(KeyNameError):
        write_blob({"MEMORY": b""}, [], "")
    with pytest.raises(FormatError, match=r"a\.md"):
        write_blob({"a": b"\xff"}, [], "")
    with pytest.raises(FormatError):
        write_blob({}, [{"type": "t"}], "")
    with pytest.raises(FormatError):
        write_blob({}, [], "\ud800")


def test_overlong_file_is_named_and_omitted():
    files = {
        "a.md": "x" * (MAX_FILE + 1),
        "b.md": f"---\nname: {'n' * 5000}\n---\n\nb\n",
        "B C.md": "x" * MAX_FILE,
        "d.md": "x" * MAX_FILE,
    }
    blob = read_blob(json.dumps({"files": files}).encode())
    assert list(blob.files) == ["d"]
    assert [p.split(" was")[0] for p in blob.problems] == ["'a.md'", "'b.md'", "'B C.md'"]


def test_overlong_or_invalid_file_name_is_reported():
    long = "n" * 5000 + ".md"
    blob = read_blob(json.dumps({"files": {long: "text", "\ud800.md": "x", "ok.md": "y"}}).encode())
    assert list(blob.files) == ["ok"]
    assert len(blob.problems) == 2
    with pytest.raises(LimitError):
        parse_memory(b"---\nname: " + b"n" * 5000 + b"\n---\n")


def test_index_of_an_export_file_is_ignored():
    blob = read_blob(b'{"index":"- [X](x.md)","files":{"MEMORY.md":"- [Y](y.md)"}}')
    assert blob.files == {}


TWICE = '{"ts":"2026-04-14T12:03:12.000Z", "type":"t","a":1,"a":2}'


@pytest.mark.parametrize(
    "other",
    ['{"ts":"2026-04-14","type":"u","x":"\\ud800"}', '"\\udc00"', '{"ts":"2026-04-14","type":"u","n":1}'],
)
def test_event_with_a_duplicate_name_is_kept_as_written(other: str) -> None:
    text = f'{{ "index": "", "files": {{"a.md": "x\\ud83d\\ude00"}} , "timeline": [ {TWICE} , {other}, {{"n": 1e5}} ] }}'
    events = read_blob(text.encode()).events
    assert TWICE in [event.get("raw") for event in events] and len(events) == 3


def test_number_of_5000_digits_affects_only_its_event() -> None:
    long = "9" * 5000
    text = f'{{"files":{{"a.md":"x"}},"timeline":[{{"ts":"2026-01-01","type":"good"}},{{"ts":"2026-01-01","type":"x","n":{long}}}]}}'
    found = read_blob(text.encode())
    assert found.files == {"a": b"x"} and not found.problems
    assert {event["type"] for event in found.events} == {"raw", "good"}
    assert any(long in event.get("raw", "") for event in found.events)
    with pytest.raises(FormatError, match=r"not valid JSON: ."):
        read_blob(b'{"files":{"a.md":"\\ud800"},"timeline":[nope]}')
