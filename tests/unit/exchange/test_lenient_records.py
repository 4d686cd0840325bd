"""Records whose fields, files or messages differ from their program's documented form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.timeline import as_foreign
from ipfsmem.device.events import Timeline
from ipfsmem.device.writing import writing
from ipfsmem.errors import FormatError
from ipfsmem.exchange.json_input import read_values
from ipfsmem.exchange.lenient import date_of, utf8_text
from ipfsmem.exchange.places import MAX_PLACE
from ipfsmem.exchange.records import ImportRecord
from ipfsmem.memory import Memory
from tests.support.exchange_lab import ADA, WORKS, records, records_at, tree, zipped


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "m") as made:
        yield made


def extra(record: ImportRecord) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(parse_memory(record.render()).fields.get("extra", "{}"))
    return made


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        ({"id": 17}, {}),
        ({"id": [1]}, {"id": [1]}),
        ({"metadata": {"category": ["health", "food"]}}, {"category": ["health", "food"]}),
        ({"metadata": '{"k":1}'}, {"k": 1}),
        ({"metadata": "a text"}, {"metadata": "a text"}),
        ({"categories": {"a": 1}}, {"categories": {"a": 1}}),
        ({"created_at": "next week"}, {"created_at": "next week"}),
        ({"metadata": {"big": 12345678901234567890}}, {"big": "12345678901234567890"}),
    ],
)
def test_invalid_side_field_of_mem0_is_kept_in_extra(odd: dict[str, Any], kept: dict[str, Any]) -> None:
    found = records("mem0", json.dumps([{"memory": "Likes tea", **odd}]).encode())
    assert [one.text for one in found.records] == ["Likes tea"] and not found.problems
    assert extra(found.records[0]) == kept


@pytest.mark.parametrize(
    ("stored", "text"),
    [({"text": "Uses vim"}, "Uses vim"), (["a", {"content": "b"}], "a\nb"), (42, "42"), ("half \ud83d", "half \ufffd"), ({"k": [1]}, '"k"')],
)  # fmt: skip
def test_text_of_unusual_type_is_imported(stored: Any, text: str) -> None:
    (record,) = records("mem0", json.dumps([{"id": "1", "memory": stored}]).encode()).records
    assert text in parse_memory(record.render()).body


@pytest.mark.parametrize(
    "stored",
    [
        {"memory": {"text": "Uses vim", "summary": "An editor"}},
        {"memory": {"text": {"value": "Uses vim", "notes": ["An editor"]}}},
        {"memory": "Uses vim", "text": "An editor"},
    ],
)
def test_second_text_of_a_record_is_kept_in_extra(stored: dict[str, Any]) -> None:
    (record,) = records("mem0", json.dumps([stored]).encode()).records
    assert record.text == "Uses vim" and "An editor" in json.dumps(extra(record))


@pytest.mark.parametrize("program", ["mem0", "infraware", "initrunner", "mif", "librefang", "three-ws"])
def test_record_without_text_is_named(program: str) -> None:
    name = {"mem0": "memory", "infraware": "fact"}.get(program, "content")
    listed = [{name: "Likes tea"}, {"id": "x"}, {name: True}]
    document = {"mif_version": "2", "memories": listed} if program == "mif" else listed
    found = records(program, json.dumps(document).encode())
    assert [one.text for one in found.records] == ["Likes tea"] and len(found.problems) == 2


def test_fields_over_the_header_limit_are_moved_below_the_text(memory: Memory) -> None:
    long = {
        "memory": "Likes tea",
        "id": "i" * 3000,
        "metadata": {"category": "c" * 3000, "tags": ["t" * 3000]},
    }
    assert memory.bundles.import_from("mem0", json.dumps([long]).encode()).own == 1
    (listed,) = memory.list()
    reading = memory.read(listed.key)
    assert reading is not None and reading.text.count("t" * 3000) == reading.text.count("c" * 3000) == 1


def test_side_fields_over_the_memory_limit_are_dropped(memory: Memory) -> None:
    huge = [{"memory": "Likes tea", "metadata": {"log": "x" * 1_000_000}}]
    taken = memory.bundles.import_from("mem0", json.dumps(huge).encode())
    assert taken.own == 1 and len(taken.problems) == 1 and "only the text" in taken.problems[0]


def test_numbers_invalid_for_json_readers_lose_no_record() -> None:
    data = (
        b'[{"memory":"a","metadata":{"n":'
        + b"9" * 5000
        + b'}},{"memory":"b","score":1e999},{"memory":"c","score":NaN}]'
    )
    found = records("mem0", data)
    assert [one.text for one in found.records] == ["a", "b", "c"] and not found.problems
    assert "9" * 5000 in found.records[0].render().decode()


@pytest.mark.parametrize(
    ("data", "values", "bad"),
    [
        (b'{"a":1}\n{"a":2}\n', [1, 2], 0),
        (b'{"a":1}{"a":2}', [1, 2], 0),
        (b'{"a":1}\n{"a":2} {"a":3}\n{"a":4}"]}\n{"a":', [1, 2, 3, 4], 2),
        (b'{\n  "a": 1\n}\n{\n  "a": 2\n}\n', [1, 2], 0),
        (b'[\n{"a":1},\n{"a":2},\n{"a', [1, 2], 2),
        (b'{"a":1}\n{"a":"\xff"}\n{"a":2}', [1, 2], 1),
    ],
)
def test_values_of_lines_and_joined_objects_are_read(data: bytes, values: list[int], bad: int) -> None:
    found = [value for _, value in read_values(data, "x")]
    assert [one["a"] for one in found if not isinstance(one, FormatError)] == values
    assert sum(isinstance(one, FormatError) for one in found) == bad


def test_json_lines_are_imported_from_stdin_and_any_file(memory: Memory, tmp_path: Path) -> None:
    data = b'{"id":"1","memory":"one"}\n{"id":"2","memory":"two"}\n'
    assert memory.bundles.import_from("mem0", data).own == 2
    for name in ("x.JSONL", "x.json", "x.txt"):
        (tmp_path / name).write_bytes(data)
        assert memory.bundles.import_from("mem0", tmp_path / name, dry_run=True).counts == {"unchanged": 2}
    folder = tree(tmp_path / "dumps", {"DUMP.JSONL": data.decode()})
    assert memory.bundles.import_from("mem0", folder, dry_run=True).counts == {"unchanged": 2}


@pytest.mark.parametrize("shape", ["graph", "list", "tool"])
def test_graph_of_mcp_memory_in_one_value_is_read(shape: str) -> None:
    graph = {"entities": [ADA], "relations": [{"from": "Ada", "to": "ACME", "relationType": "works_at"}]}
    document: Any = {"graph": graph, "list": [ADA, WORKS], "tool": {"structuredContent": graph}}[shape]
    (record,) = records("mcp-memory", json.dumps(document, indent=1).encode()).records
    assert record.text == "- likes tea\n- builds bridges\n\nRelations:\n\n- works_at: ACME"


# -- conversations -----------------------------------------------------------------------------------------------------


def message(role: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]} if text is not None else {}
    return {
        "author": {"role": role},
        "content": content,
        "recipient": "all",
        "create_time": 1760000001.0,
        **more,
    }


def conversation(**more: Any) -> dict[str, Any]:
    """Return a conversation as ChatGPT exports it: the shown branch is u, a2; a1 was regenerated, the rest
    is hidden."""
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    about = {"content": {"content_type": "user_editable_context", "user_profile": "likes tea"}, **hidden}
    nodes: list[tuple[str, Any, str | None]] = [
        ("r", None, None),
        ("s", message("system", "", **hidden), "r"),
        ("ctx", message("user", **about), "s"),
        ("u", message("user", "q"), "ctx"),
        ("a1", message("assistant", "first try"), "u"),
        ("t", message("assistant", content={"content_type": "thoughts", "thoughts": []}), "u"),
        (
            "code",
            message("assistant", recipient="python", content={"content_type": "code", "text": "1+1"}),
            "t",
        ),
        ("tool", message("tool", content={"content_type": "execution_output", "text": "2"}), "code"),
        ("w", message("assistant", "not shown", weight=0), "tool"),
        ("a2", message("assistant", "ans"), "w"),
    ]
    mapping = {name: {"id": name, "message": said, "parent": parent} for name, said, parent in nodes}
    return {
        "id": "c-1",
        "title": "T",
        "create_time": 1760000000.0,
        "mapping": mapping,
        "current_node": "a2",
        **more,
    }


CUSTOM = {"about_user_message": "likes tea", "about_model_message": "be brief"}


@pytest.mark.parametrize(
    "content",
    [
        {"content_type": "user_editable_context", "user_profile": "likes tea", "user_instructions": "be brief"},
        {"content_type": "user_editable_context", "user_profile": "", "user_instructions": None},
        {"content_type": "text", "parts": [""]},
        None,
        7,
    ],
)  # fmt: skip
def test_custom_instructions_next_to_a_message_are_pending_once(content: Any) -> None:
    said = message("system", content=content, metadata={"user_context_message_data": CUSTOM})
    mapping = {"c": {"message": said}, "u": {"message": message("user", "q")}}
    found = records("chatgpt", json.dumps([conversation(mapping=mapping)]).encode(), "conversations.json")
    assert [(one.text, one.candidate) for one in found.records] == [("likes tea", True), ("be brief", True)]


@pytest.mark.parametrize("custom", [None, 7, [], {}, {"about_user_message": 7, "about_model_message": ""}])
def test_invalid_custom_instructions_lose_no_other_text(custom: Any) -> None:
    said = message("system", "", metadata={"user_context_message_data": custom})
    saved = message("assistant", "saved", recipient="bio")
    mapping = {"c": {"message": said}, "s": {"message": saved}}
    found = records("chatgpt", json.dumps([conversation(mapping=mapping)]).encode(), "conversations.json")
    assert [one.text for one in found.records if one.text != "7"] == ["saved"]


def test_chatgpt_memory_in_a_conversation_is_imported_as_pending() -> None:
    content = {"content_type": "model_editable_context", "model_set_context": "1. Likes tea"}
    mapping = {"m": {"message": message("assistant", content=content)}}
    found = records("chatgpt", json.dumps([conversation(mapping=mapping)]).encode(), "conversations.json")
    assert [(one.text, one.candidate) for one in found.records] == [("1. Likes tea", True)]


def events(program: str, document: Any) -> list[dict[str, Any]]:
    found = records(program, json.dumps(document).encode(), "conversations.json")
    assert not found.problems
    return found.events.get("", [])


def test_chatgpt_counts_messages_of_the_shown_branch() -> None:
    assert [one["messages"] for one in events("chatgpt", [conversation()])] == [2]
    assert [one["messages"] for one in events("chatgpt", [conversation(current_node=None)])] == [2]


@pytest.mark.parametrize(
    "odd", [None, 5, "text", [], {}, {"message": 5}, {"message": {"author": None, "content": None}}]
)
def test_invalid_node_of_chatgpt_keeps_the_conversation(odd: Any) -> None:
    made = conversation()
    made["mapping"]["odd"] = odd
    assert [one["messages"] for one in events("chatgpt", [made])] == [2]


@pytest.mark.parametrize(
    ("times", "day"),
    [
        ({"create_time": None, "update_time": 1760000100.0}, "2025-10-09T08:53:21"),
        ({"create_time": "soon", "mapping": {}, "update_time": 1760000100.0}, "2025-10-09T08:55:00"),
        ({"create_time": None, "mapping": {}, "update_time": "2025-10-09T08:55:00Z"}, "2025-10-09T08:55:00"),
        ({"create_time": "1760000000.5"}, "2025-10-09T08:53:20"),
    ],
)
def test_chatgpt_time_falls_back_to_messages_and_update(times: dict[str, Any], day: str) -> None:
    (event,) = events("chatgpt", [conversation(**times)])
    assert event["ts"].startswith(day)


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one], lambda one: {"conversations": [one]}])
def test_single_conversation_is_imported(wrap: Any) -> None:
    assert len(events("chatgpt", wrap(conversation()))) == 1
    claude = {
        "uuid": "c",
        "name": "N",
        "updated_at": "2026-01-01T00:00:00Z",
        "chat_messages": [{"uuid": "m"}, None],
    }
    assert [one["messages"] for one in events("claude", wrap(claude))] == [1]


def test_claude_counts_the_branch_of_the_current_leaf() -> None:
    said = [
        {"uuid": "a"},
        {"uuid": "b", "parent_message_uuid": "a"},
        {"uuid": "c", "parent_message_uuid": "a"},
    ]
    one = {"uuid": "x", "created_at": "2026-01-01", "chat_messages": said, "current_leaf_message_uuid": "c"}
    assert [event["messages"] for event in events("claude", [one])] == [2]


def test_chatgpt_files_are_found_by_all_their_names(memory: Memory, tmp_path: Path) -> None:
    names = (
        "conversations_1.json",
        "conversations (1).json",
        "Conversations-part-2.json",
        "X/conversations-003.json",
    )
    files: dict[str, Any] = {name: [conversation(id=name)] for name in names}
    archive = zipped(
        tmp_path / "e.zip", {**files, "shared_conversations.json": [{"id": "s"}], "user.json": {}}
    )
    taken = memory.bundles.import_from("chatgpt", archive)
    assert taken.events == len(names) and not taken.problems


# -- notes -------------------------------------------------------------------------------------------------------------


def test_stub_header_of_basic_memory_joins_the_real_one(memory: Memory, tmp_path: Path) -> None:
    stub = "---\npermalink: proj/bee-notes\n---\n\n"
    real = "---\ntitle: Keeping bees\ntype: note\ntags:\n- hobby\n---\n\n# Keeping bees\n"
    memory.bundles.import_from("basic-memory", tree(tmp_path / "n", {"bees.md": stub + real}))
    (one,) = memory.list()
    assert (one.file.name, one.file.type, one.file.tags) == ("Keeping bees", "note", ("hobby",))
    assert one.file.fields["permalink"] == "proj/bee-notes"
    reading = memory.read(one.key)
    assert reading is not None and reading.readable is not None and reading.readable.body == "# Keeping bees"


@pytest.mark.parametrize("program", ["agh", "basic-memory", "claude-code", "okf", "three-ws"])
def test_note_with_an_overlong_header_or_in_windows_1252_is_imported(
    program: str, memory: Memory, tmp_path: Path
) -> None:
    base = tmp_path / "notes"
    tree(
        base, {"long.md": f"---\nname: Long\nmore: {'x' * 5000}\n---\n\nThe text.\n", "UPPER.MD": "Upper.\n"}
    )
    (base / "old.md").write_bytes("Café in Zürich\r\n".encode("cp1252"))
    taken = memory.bundles.import_from(program, base)
    texts = "".join(reading.text for one in memory.list() if (reading := memory.read(one.key)))
    assert taken.own == 3 and not taken.problems
    assert all(text in texts for text in ("The text.", "x" * 5000, "Café in Zürich", "Upper."))


def test_dates_in_seconds_and_smaller_units_are_equal() -> None:
    assert {date_of(1760000000 * unit) for unit in (1, 10**3, 10**6, 10**9)} == {"2025-10-09T08:53:20.000Z"}
    assert date_of("soon") == date_of(True) == date_of(None) == date_of("12") == ""


def test_bytes_that_are_not_text_stay_bytes() -> None:
    assert utf8_text(bytes(range(256))) == bytes(range(256))
    assert utf8_text("wide".encode("utf-16")) == b"wide"


@pytest.mark.parametrize(
    ("dump", "texts"),
    [
        ({"results": [{"memory": "a"}], "data": "b"}, ["b", "a"]),
        ({"results": [{"memory": "a"}], "memory": "b"}, ["b", "a"]),
        ({"memories": [{"memory": "a"}], "data": {"memory": "b"}, "text": " "}, ["b", "a"]),
        ({"memory": "a", "items": ["b", ""], "relations": []}, ["a", "b"]),
        ({"results": [], "data": [{"memory": "a"}]}, ["a"]),
        ([{"memory": "a", "results": [{"text": "b"}]}], ["a", "b"]),
    ],
)
def test_texts_next_to_a_list_of_records_are_imported(dump: Any, texts: list[str]) -> None:
    found = records("mem0", json.dumps(dump).encode())
    assert [one.text for one in found.records] == texts


@pytest.mark.parametrize(
    "document",
    [
        {"data": {"results": [{"memory": "Likes tea"}, {"memory": "Likes coffee"}]}},
        {"data": {"data": {"memories": [{"memory": "Likes tea"}, "Likes coffee"]}}},
        {"results": {"items": [{"memory": "Likes tea"}]}, "data": {"memories": [{"memory": "Likes coffee"}]}},
    ],
)
def test_records_in_a_wrapped_answer_are_imported_separately(document: Any) -> None:
    found = records("mem0", json.dumps(document).encode())
    assert sorted(one.text for one in found.records) == ["Likes coffee", "Likes tea"] and not found.problems


@pytest.mark.parametrize("depth", [100, 900])
def test_list_within_many_nested_objects_is_imported_as_one_text(depth: int) -> None:
    deep = '{"data":' * depth + '[{"memory": "Likes coffee"}]' + "}" * depth
    found = records("mem0", f'[{{"memory": "Likes tea"}}, {deep}]'.encode())
    first, second = (one.text for one in found.records)
    assert first == "Likes tea" and "Likes coffee" in second and not found.problems


def test_object_without_a_list_stays_the_text_of_its_record() -> None:
    (record,) = records(
        "mem0", json.dumps([{"data": {"results": "three", "text": "Likes tea"}}]).encode()
    ).records
    assert record.text == "Likes tea" and "three" in json.dumps(extra(record))


@pytest.mark.parametrize(
    "stored",
    [
        [
            {"name": "Ada", "type": "person", "observations": ["x"]},
            {"from": "Ada", "to": "Bo", "type": "knows"},
        ],
        {
            "entities": [{"name": "Ada", "type": "person", "observations": ["x"]}],
            "relations": [{"from": "Ada", "to": "Bo", "type": "knows"}],
        },
        {
            "entities": [{"name": "Ada", "entityType": "person", "type": "entity", "observations": ["x"]}],
            "relations": [{"from": "Ada", "to": "Bo", "relationType": "knows", "type": "relation"}],
        },
    ],
)
def test_entity_type_of_a_graph_is_kept(stored: Any) -> None:
    (record,) = records("mcp-memory", json.dumps(stored).encode()).records
    assert record.description == "person" and "- knows: Bo" in record.text


UNDATED = {
    "chatgpt": {"title": "Tea", "conversation_id": "c1", "mapping": {
        "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["hi"]}}, "parent": None},
        "b": {"message": {"author": {"role": "assistant"}, "recipient": "bio", "content": {"parts": ["Likes tea"]}}, "parent": "a"},
    }},
    "claude": {"name": "Tea", "uuid": "c1", "chat_messages": [{"uuid": "m", "text": "hi", "sender": "human"}]},
}  # fmt: skip


@pytest.mark.parametrize("program", UNDATED)
@pytest.mark.parametrize("place", ["file", "folder", "zip", "bytes"])
def test_conversation_without_a_date_gets_that_of_its_file(
    program: str, place: str, memory: Memory, tmp_path: Path
) -> None:
    data = json.dumps([UNDATED[program]])
    folder = tree(tmp_path / "export", {"conversations.json": data})
    file = folder / "conversations.json"
    zip_file = zipped(tmp_path / "export.zip", {"conversations.json": data})
    for path in (file, zip_file):
        os.utime(path, (1_750_000_000, 1_750_000_000))
    source = {"file": file, "folder": folder, "zip": zip_file, "bytes": data.encode()}[place]
    taken = memory.bundles.import_from(program, source)
    (event,) = memory.timeline.read()
    wanted = "1970-01-01" if place == "bytes" else "2025-06-15"
    assert event["title"] == "Tea" and event["ts"][:10] == wanted and not taken.problems
    assert len(taken.notes) == 1 and "has no date" in taken.notes[0] and wanted in taken.notes[0]
    assert taken.candidates == (program == "chatgpt")
    assert memory.bundles.import_from(program, source).events == 0


def nameless(title: str, text: str) -> dict[str, dict[str, Any]]:
    message = {"message": {"author": {"role": "user"}, "content": {"parts": [text]}}, "parent": None}
    return {
        "chatgpt": {"title": title, "mapping": {"a": message}},
        "claude": {"name": title, "chat_messages": [{"text": text, "sender": "human"}]},
    }


@pytest.mark.parametrize("program", UNDATED)
def test_conversation_without_date_and_id_is_imported_once(
    program: str, memory: Memory, tmp_path: Path
) -> None:
    """Also one imported by an earlier version; two with equal title and length are two."""
    chats = [nameless("Tea", text)[program] for text in ("hi", "ho")]
    file = tree(tmp_path / "export", {"conversations.json": json.dumps(chats[:1])}) / "conversations.json"
    os.utime(file, (1_750_000_000, 1_750_000_000))
    earlier = {"ts": "2025-01-02T00:00:00Z", "type": "conversation", "source": program, "conversation": ""}
    event = as_foreign(earlier | {"title": "Tea", "messages": 1})
    with writing(memory.replica) as change:
        Timeline(memory.replica, "").add_foreign(change, [event])
    assert memory.bundles.import_from(program, file).events == 0
    file.write_text(json.dumps(chats))
    for day in range(3):
        os.utime(file, (1_750_000_000 + day * 86_400,) * 2)
        taken = memory.bundles.import_from(program, file)
        assert (taken.events, taken.problems) == (int(day == 0), ())
    assert [one["title"] for one in memory.timeline.read()] == ["Tea", "Tea"]


@pytest.mark.parametrize(
    ("field", "odd", "texts"),
    [
        *(
            ("timeline", odd, ["Likes tea", "Likes jam"])
            for odd in ({}, "2026", 17, 1e308, True, {"a": [{}]})
        ),
        *(("others", odd, ["Likes tea"]) for odd in (["b.md"], "b.md", 17, False)),
        *(("files", odd, ["Likes jam"]) for odd in (["a.md"], "a.md", 17, False)),
        *(("version", odd, ["Likes tea", "Likes jam"]) for odd in (None, 17, ["memory/0.1"], {}, True)),
    ],
)
def test_export_field_of_wrong_type_is_named_and_the_texts_imported(
    memory: Memory, field: str, odd: Any, texts: list[str]
) -> None:
    events = [{"ts": "2026-04-14T12:00:00.000Z", "type": "waved"}]
    export = {"files": {"a.md": "Likes tea"}, "others": {"b.md": "Likes jam"}, "timeline": events, field: odd}
    data = json.dumps(export).encode()
    found = records("three-ws", data)
    assert [one.file.decode() for one in found.records if one.file] == texts
    assert len(found.problems) == 1 and field in found.problems[0]
    taken = memory.bundles.import_(data)
    assert taken.added == len(texts) and len(taken.problems) == 1 and field in taken.problems[0]
    assert taken.events == (field != "timeline")


@pytest.mark.parametrize(
    "export", [{"timeline": {}}, {"files": 5}, {"others": []}, {"files": {}, "version": 1}, {"version": "9", "files": {"a.md": "x"}}]
)  # fmt: skip
def test_export_without_readable_content_is_refused(memory: Memory, export: dict[str, Any]) -> None:
    data = json.dumps(export).encode()
    with pytest.raises(FormatError):
        records("three-ws", data)
    with pytest.raises(FormatError):
        memory.bundles.import_(data)


@pytest.mark.parametrize(
    ("program", "record"),
    [
        ("librefang", {"key": "user:drink", "value": "Likes tea"}),
        ("librefang", {"key": "user:drink", "value": {"drink": "Likes tea"}}),
        ("librefang", {"key": 5, "value": ["Likes tea", 1], "content": None}),
        ("librefang", {"value": "Likes tea", "content": " "}),
        ("initrunner", {"id": 1, "text": "Likes tea"}),
        ("infraware", {"memory": "Likes tea", "category": "preference"}),
        ("mif", {"value": {"text": "Likes tea"}}),
        ("three-ws", {"id": "a", "summary": "Likes tea", "content": ""}),
    ],
)
def test_text_under_another_common_field_name_is_imported(program: str, record: dict[str, Any]) -> None:
    document = {"mif_version": "2", "memories": [record]} if program == "mif" else [record]
    document = {"agent_id": "a", "memories": [record]} if program == "librefang" else document
    found = records(program, json.dumps(document).encode())
    (one,) = found.records
    assert "Likes tea" in parse_memory(one.render()).body and not found.problems
    assert extra(one).get("key", "") == str(record.get("key", ""))


@pytest.mark.parametrize(
    "saved",
    [
        {"author": {"role": "assistant"}, "content": {"content_type": "code", "text": "Likes tea"}},
        {"author": None, "content": {"content_type": "code", "text": "Likes tea"}},
        {
            "author": {"role": "assistant"},
            "content": {"content_type": "code", "parts": [], "text": "Likes tea"},
        },
        {
            "author": {"role": "assistant"},
            "content": {"content_type": "text", "parts": ["Likes tea"], "text": ""},
        },
        {"content": "Likes tea"},
    ],
)
def test_text_saved_by_chatgpt_is_imported_with_any_content_type(saved: dict[str, Any]) -> None:
    node = {"parent": None, "message": {"recipient": "bio", **saved}}
    export = [{"title": "t", "create_time": 1764300000, "id": "c", "mapping": {"a": node}}]
    found = records("chatgpt", json.dumps(export).encode())
    assert [one.text for one in found.records] == ["Likes tea"] and found.records[0].candidate


def test_text_written_to_chatgpt_is_not_imported_as_a_memory() -> None:
    said = {
        "author": {"role": "user"},
        "recipient": "bio",
        "content": {"content_type": "text", "parts": ["x"]},
    }
    export = [{"create_time": 1764300000, "id": "c", "mapping": {"a": {"message": said}}}]
    assert not records("chatgpt", json.dumps(export).encode()).records


def test_saved_memories_of_chatgpt_with_a_value_are_imported(tmp_path: Path) -> None:
    saved = [{"id": 5, "value": "Likes tea", "content": None}, {"value": {"text": "Likes jam"}}, "Likes ham"]
    base = tree(tmp_path / "export", {"memories.json": json.dumps({"memories": saved})})
    found = records_at("chatgpt", base)
    assert [one.text for one in found.records] == [
        "Likes tea",
        "Likes jam",
        "Likes ham",
    ] and not found.problems


NOTES = ("a.markdown", "b.MDX", "deep/c.txt", "d.mkd", "e.org", "f.rst", "g.adoc", "h.pdf")


@pytest.mark.parametrize("program", ["agh", "basic-memory", "claude-code", "okf", "three-ws"])
@pytest.mark.parametrize("packed", [False, True])
def test_note_of_another_file_type_in_a_folder_is_named(tmp_path: Path, program: str, packed: bool) -> None:
    files = dict.fromkeys((*NOTES, "tea.md"), "Likes tea") | {"photo.png": "no text", ".hidden.txt": "no"}
    place = zipped(tmp_path / "f.zip", files) if packed else tree(tmp_path / "f", files)
    found = records_at(program, place)
    assert len(found.records) == 1
    assert sorted(one.partition(" was left out")[0] for one in found.problems) == sorted(NOTES[:-1])
    assert found.skipped == {"attachment (.pdf)": 1}


TEXTS = ("a.md", "a.txt", "a.TEXT", "b/c.markdown", "d.mdx", "e.org", "f.rst", "g.adoc", "e/e.org")


@pytest.mark.parametrize("packed", [False, True])
def test_plain_text_notes_are_imported_and_other_documents_named(
    memory: Memory, tmp_path: Path, packed: bool
) -> None:
    """The key has the whole file name, so equal stems stay apart."""
    files = {name: f"Likes {name}" for name in TEXTS}
    files |= {"h.html": "x", "deep/i.tex": "x", ".hidden.txt": "x", "photo.png": "x"}
    place = zipped(tmp_path / "f.zip", files) if packed else tree(tmp_path / "f", files)
    taken = memory.bundles.import_(place)
    assert taken.added == len(TEXTS) and len(taken.problems) == 1
    assert "h.html" in taken.problems[0] and "i.tex" in taken.problems[0]
    shown = {one.key: memory.read(one.key) for one in memory.list()}
    assert {one.body for one in shown.values() if one} == {f"Likes {name}" for name in TEXTS}
    found = shown["a"], shown[key_of_foreign_name("a.txt").key]
    assert all(found) and found[1].fields["origin_name"] == "a.txt"  # type: ignore[union-attr]
    assert memory.bundles.import_(place).unchanged == len(TEXTS)


def test_folder_of_plain_texts_without_markdown_is_imported(memory: Memory, tmp_path: Path) -> None:
    assert memory.bundles.import_(tree(tmp_path / "f", {"a.txt": "Likes jam"})).added == 1


@pytest.mark.parametrize("packed", [False, True])
def test_note_of_another_file_type_in_an_export_is_named(
    memory: Memory, tmp_path: Path, packed: bool
) -> None:
    files = {"memory/a.mdx": "Likes jam", "memory/tea.md": "Likes tea"}
    place = zipped(tmp_path / "f.zip", files) if packed else tree(tmp_path / "f", files)
    taken = memory.bundles.import_(place)
    assert taken.added == 1 and len(taken.problems) == 1 and "a.mdx" in taken.problems[0]


def test_note_outside_the_memory_folders_of_claude_code_is_not_named(tmp_path: Path) -> None:
    files = {"p/memory/tea.md": "Likes tea", "p/memory/a.txt": "x", "p/session.txt": "x", "q/notes.mdx": "x"}
    found = records_at("claude-code", tree(tmp_path / "projects", files))
    assert len(found.records) == 1 and len(found.problems) == 1 and "p/memory/a.txt" in found.problems[0]


def test_long_file_of_another_type_is_not_counted(tmp_path: Path) -> None:
    base = tree(tmp_path / "f", {"tea.md": "Likes tea"})
    with (base / "log.txt").open("wb") as file:
        file.truncate(MAX_PLACE + 1)
    found = records_at("basic-memory", base)
    assert len(found.records) == 1 and len(found.problems) == 1


def test_markdown_file_with_another_ending_is_imported_by_its_path(tmp_path: Path) -> None:
    base = tree(tmp_path / "f", {"tea.markdown": "Likes tea"})
    found = records_at("basic-memory", base / "tea.markdown")
    assert len(found.records) == 1 and not found.problems
