"""Each reader with an export of its program, in the forms that docs/reference/import.md names."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.errors import FormatError
from ipfsmem.exchange.programs import PROGRAMS, reader
from ipfsmem.exchange.records import ImportRecord
from ipfsmem.memory import Memory
from ipfsmem.sessions.messages import read_message
from tests.support.exchange_lab import (
    CHATGPT,
    CLAUDE,
    DOCUMENTS,
    LETTA,
    MARKDOWN,
    MEM0,
    PROJECT,
    REMEMBERED,
    ROWS,
    by_name,
    initrunner_db,
    records,
    records_at,
    tree,
    twice,
    zipped,
)

ROOT = Path(__file__).parents[3]
WRITTEN = ROOT / "fixtures" / "exchange"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "m") as made:
        yield made


def dumped(tmp_path: Path, value: Any, called: str = "export.json") -> Path:
    path = tmp_path / called
    path.write_text(json.dumps(value), "utf-8")
    return path


def fields(record: ImportRecord) -> dict[str, str]:
    return parse_memory(record.render()).fields


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_has_a_reader_an_export_and_a_section(program: str) -> None:
    """The tests of damaged and hostile exports read those of `DOCUMENTS` and `MARKDOWN`."""
    assert callable(reader(program))
    assert program in DOCUMENTS or program in MARKDOWN
    page = (ROOT / "docs" / "reference" / "import.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{program}` | ")]
    section = page.partition(f"\n### {program}\n")[2].partition("\n### ")[0]
    assert row.count(" | ") == 2 and "\nSource: " in section


# -- the four seed peers ---------------------------------------------------------------------------------------------


def test_infraware_facts_with_an_invalid_row_are_imported(memory: Memory, tmp_path: Path) -> None:
    facts = [
        {"fact": "Prefers short answers", "category": "preference", "created_at": "2026-03-20T10:00:00Z"},
        {"fact": "Never push to main", "category": "restriction", "created_at": "2026-03-21T10:00:00.123456789Z"},
        {"fact": "Odd", "category": "from the future", "created_at": "yesterday"},
        {"fact": " ", "category": "workflow", "created_at": "2026-03-20T10:00:00Z"},
        {"category": "workflow"}, 5,
    ]  # fmt: skip
    taken = twice(memory, "infraware", dumped(tmp_path, facts, "memory.json"))
    assert taken.own == 3 and taken.skipped == {"an empty fact": 1} and len(taken.problems) == 2
    found = by_name(records("infraware", json.dumps(facts).encode()))
    told = fields(found["Never push to main"])
    assert (
        told["type"] == "feedback"
        and told["category"] == "restriction"
        and told["created"].startswith("2026-03-21")
    )
    assert "created" not in fields(found["Odd"]) and found["Odd"].type == "reference"


@pytest.mark.parametrize("wal", [False, True])
def test_initrunner_database_is_imported(memory: Memory, tmp_path: Path, wal: bool) -> None:
    path = initrunner_db(tmp_path / "helper.db", wal=wal)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir() if one.is_file()}
    taken = twice(memory, "initrunner", path)
    assert taken.own == 3 and taken.events == 0 and not taken.problems
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir() if one.is_file()} == before
    found = by_name(records_at("initrunner", path))
    assert fields(found["Uses uv, not pip"])["extra"] == '{"source":"consolidation"}'
    assert found["Run the linter before a commit"].type == "feedback"
    assert len(memory.sessions.items("0123456789ab").items) == 3


def _said(role: str, text: str, at: str) -> dict[str, Any]:
    """Return a message as PydanticAI writes it."""
    if role == "user":
        part = {"content": text, "timestamp": at, "part_kind": "user-prompt"}
        return {"parts": [part], "instructions": None, "kind": "request"}
    part = {"content": text, "id": None, "part_kind": "text"}
    return {"parts": [part], "model_name": "m", "timestamp": at, "kind": "response"}


def test_initrunner_sessions_are_imported_as_sessions(memory: Memory, tmp_path: Path) -> None:
    """Each turn saves the whole history, at most its last 40 messages."""
    turns = [
        _said("user" if n % 2 == 0 else "assistant", f"message {n}", f"2026-08-01T10:{n:02}:00Z")
        for n in range(50)
    ]
    path = tmp_path / "helper.db"
    initrunner_db(path, seed=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM sessions")
        for end in range(2, 52, 2):
            row = (
                "aaaabbbbcccc",
                "helper",
                f"2026-08-01T11:{end:02}:00+00:00",
                json.dumps(turns[:end][-40:]),
            )
            db.execute(
                "INSERT INTO sessions (session_id, agent_name, timestamp, messages_json) VALUES (?, ?, ?, ?)",
                row,
            )
        db.commit()
    for _ in range(2):
        taken = memory.bundles.import_from("initrunner", path)
        told = memory.sessions.told("aaaabbbbcccc")
        messages = [read_message(one.item) for one in told.messages]
        assert [one.text for one in messages] == [f"message {n}" for n in range(50)]
        assert [one.role for one in messages] == ["user", "assistant"] * 25
        assert [one.place[0] // 60_000 % 60 for one in told.messages] == list(range(50))
    assert taken.messages == 0 and taken.events == 0 and told.title == "helper"
    assert [one.session for one in memory.sessions.list()] == ["aaaabbbbcccc"]


def test_session_continued_in_its_program_continues_here(memory: Memory, tmp_path: Path) -> None:
    path = initrunner_db(tmp_path / "helper.db", seed=True)
    turns = [_said("user", f"message {n}", f"2026-08-01T10:0{n}:00Z") for n in range(4)]
    with closing(sqlite3.connect(path)) as db:
        for end in (2, 4):
            db.execute("UPDATE sessions SET messages_json = ?", (json.dumps(turns[:end]),))
            db.commit()
            taken = memory.bundles.import_from("initrunner", path)
            assert taken.messages == 2
    assert [read_message(one).text for one in memory.sessions.items("0123456789ab").items] == [
        f"message {n}" for n in range(4)
    ]


def test_deeply_nested_session_blocks_no_other(memory: Memory, tmp_path: Path) -> None:
    path = initrunner_db(tmp_path / "helper.db", seed=True)
    saved = "INSERT INTO sessions (session_id, agent_name, timestamp, messages_json) VALUES (?, 'a', '2026-08-01', ?)"
    deep = json.dumps(_said("user", "deep", "2026-08-01T10:00:00Z"))[:-1] + f',"x":{"[" * 600}{"]" * 600}}}'
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM sessions")
        db.execute(saved, ("deep", f"[{deep}]"))
        db.execute(saved, ("flat", json.dumps([_said("user", "flat", "2026-08-01T10:00:00Z")])))
        db.commit()
    taken = memory.bundles.import_from("initrunner", path)
    assert len(taken.problems) == 1 and "nested deeper than 511 levels" in taken.problems[0]
    assert [one.session for one in memory.sessions.list()] == ["flat"]


def test_foreign_sessions_are_imported_as_events(memory: Memory, tmp_path: Path) -> None:
    path = initrunner_db(tmp_path / "helper.db")
    taken = memory.bundles.import_from("initrunner", path, foreign=True)
    assert taken.events == 1 and taken.messages == 0 and memory.sessions.known() == []


def test_initrunner_export_after_its_database_changes_nothing(memory: Memory, tmp_path: Path) -> None:
    db = initrunner_db(tmp_path / "seed.db", seed=True)
    assert twice(memory, "initrunner", db).own == 3
    exported = [
        {"id": n, "content": content, "category": category, "created_at": created}
        for n, content, category, created, _, _ in ROWS
    ]
    assert memory.bundles.import_from("initrunner", dumped(tmp_path, exported)).counts == {"unchanged": 3}


def test_initrunner_database_with_unwritten_log_is_reported(memory: Memory, tmp_path: Path) -> None:
    base = tmp_path / "stores"
    base.mkdir()
    path = initrunner_db(base / "helper.db", wal=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO memories (content, created_at) VALUES ('Late', '2026-08-04')")
        db.commit()
        for place in (path, base):
            taken = memory.bundles.import_from("initrunner", place, dry_run=True)
            assert len(taken.problems) == 1 and "helper.db-wal" in taken.problems[0]


def test_agh_tree_is_imported_with_unknown_header_fields(memory: Memory, tmp_path: Path) -> None:
    text = (
        "---\nname: Docs\ntype: reference\ndescription: where the docs live\nmine: yes\n---\n\nUnder docs/.\n"
    )
    base = tree(
        tmp_path / "memory",
        {"reference_docs.md": text, "MEMORY.md": "- [Docs](reference_docs.md) - x\n", "_system/dream.md": "no", "agents/a/user_role.md": "Engineer.\n", ".consolidate-lock": "1"},
    )  # fmt: skip
    assert twice(memory, "agh", base).own == 2
    assert memory.read("reference_docs").data == text.encode()  # type: ignore[union-attr]
    (other,) = (one for one in memory.list() if one.key != "reference_docs")
    assert other.file.origin_name == "agents/a/user_role.md"


def test_librefang_exports_are_imported(memory: Memory, tmp_path: Path) -> None:
    entry = {"content": "Likes terse output", "level": "user", "category": "communication_style", "confidence": 0.9,
             "created_at": "2026-08-01T10:00:00Z", "updated_at": None, "metadata": {"peer": "a"}}  # fmt: skip
    proactive = {
        "agent_id": "7b0e",
        "count": 2,
        "memories": [entry, {**entry, "content": ""}, {"level": "x"}],
    }
    taken = twice(memory, "librefang", dumped(tmp_path, proactive))
    assert taken.own == 1 and len(taken.problems) == 1
    (record,) = records("librefang", json.dumps(proactive).encode()).records
    assert (
        fields(record)["confidence"] == "0.9" and record.type == "feedback" and record.extra == {"peer": "a"}
    )
    kv = {
        "agent_id": "7b0e",
        "version": 1,
        "kv": {"user:preference:theme": "dark", "limits": {"a": [1, 2]}, "gone": None},
    }
    assert twice(memory, "librefang", dumped(tmp_path, kv, "kv.json")).own == 3
    assert {one.key: one.value for one in memory.values.list()} == kv["kv"]


# -- mem0, Letta, basic-memory, MIF ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dump", [[MEM0], {"results": [MEM0]}, {"results": [MEM0], "relations": []}, {"count": 1, "next": None, "memories": [MEM0]}, [{"results": [MEM0]}]]
)  # fmt: skip
def test_every_mem0_export_format_is_imported(memory: Memory, tmp_path: Path, dump: Any) -> None:
    assert twice(memory, "mem0", dumped(tmp_path, dump)).own == 1
    (one,) = memory.list()
    assert one.file.source == f"mem0:{MEM0['id']}" and one.file.type == "user"
    assert one.file.tags == ("personal_details", "name") and '"user_id":"ada"' in one.file.fields["extra"]


def test_changed_mem0_record_is_updated_from_any_export(memory: Memory, tmp_path: Path) -> None:
    memory.bundles.import_from("mem0", dumped(tmp_path, [MEM0]))
    later = {**MEM0, "memory": "User is named Ada Moreau", "updated_at": "2026-09-01T00:00:00Z"}
    assert memory.bundles.import_from("mem0", dumped(tmp_path, [later], "later.json")).counts == {
        "renewed": 1
    }
    (one,) = memory.list()
    assert one.file.name == "User is named Ada Moreau" and not memory.conflicts()
    memory.write(one.key, "Ada.")
    assert memory.bundles.import_from("mem0", dumped(tmp_path, [later], "x.json")).counts == {
        "changed_here": 1
    }


def test_mem0_lines_and_relations_are_imported(tmp_path: Path) -> None:
    found = records("mem0", json.dumps(MEM0).encode() + b"\n{nope\n", "dump.jsonl")
    assert len(found.records) == len(found.problems) == 1
    graph = {
        "results": [],
        "relations": [{"source": "ada", "relationship": "builds", "target": "bridges"}, {"source": "x"}],
    }
    found = records("mem0", json.dumps(graph).encode())
    assert [one.text for one in found.records] == ["ada builds bridges"] and len(found.problems) == 1


def test_letta_agent_file_is_imported(memory: Memory, tmp_path: Path) -> None:
    taken = twice(memory, "letta", dumped(tmp_path, LETTA, "helper.af"))
    assert (
        taken.own == 2
        and taken.events == 1
        and len(taken.problems) == 1
        and taken.skipped == {"an empty block": 1}
    )
    human = by_name(records("letta", json.dumps(LETTA).encode()))["human"]
    assert fields(human)["agent_name"] == "helper" and human.type == "user"
    assert all("sk-not" not in reading.text for one in memory.list() if (reading := memory.read(one.key)))
    (event,) = memory.timeline.read()
    assert event["messages"] == 2 and "hello" not in json.dumps(event)
    old = {
        "agent_type": "memgpt",
        "name": "old",
        "core_memory": [{"label": "human", "value": "Ada"}],
        "messages": [],
    }
    assert fields(records("letta", json.dumps(old).encode()).records[0])["agent_name"] == "old"


def test_basic_memory_notes_are_imported(memory: Memory, tmp_path: Path) -> None:
    note = "---\ntitle: Coffee Notes\ntype: note\npermalink: notes/coffee-notes\ntags:\n- coffee\n- brewing\n---\n\n# Coffee Notes\n\n- [method] Pour over #brewing\n- relates_to [[Tea]]\n"
    base = tree(
        tmp_path / "notes",
        {"notes/Coffee Notes.md": note, "plain.md": "No header.\n", ".obsidian/x.md": "no", "empty.md": ""},
    )
    assert twice(memory, "basic-memory", base).own == 2
    found = next(one for one in records_at("basic-memory", base).records if "Coffee" in one.where)
    told = parse_memory(found.render())
    assert (
        told.name == "Coffee Notes"
        and told.tags == ("coffee", "brewing")
        and told.source == "basic-memory:notes/coffee-notes"
    )
    assert told.body == note.partition("---\n\n")[2].rstrip("\n") and "title" not in told.fields


def test_mif_documents_are_imported(memory: Memory, tmp_path: Path) -> None:
    document = {"mif_version": "2.0", "memories": [
        {"id": "5f0c", "content": "Ada likes tea", "created_at": "2026-08-01T10:00:00Z", "memory_type": "learning", "tags": ["tea"], "custom": {"a": 1},
         "entities": [{"name": "Ada", "entity_type": "person", "confidence": 1.0}], "embeddings": {"model": "x", "dimensions": 1, "vector": [1.0]}}, {"id": "x"}],
        "knowledge_graph": {"entities": [{"id": "e", "name": "Ada"}], "relationships": []}}  # fmt: skip
    taken = twice(memory, "mif", dumped(tmp_path, document))
    assert (
        taken.own == 1
        and len(taken.problems) == 1
        and taken.skipped == {"an entity of the knowledge graph": 1}
    )
    (one,) = memory.list()
    assert '"custom":{"a":1}' in one.file.fields["extra"] and "vector" not in one.file.fields["extra"]
    with pytest.raises(FormatError):
        records("mif", b'{"mif_version":"9","memories":[]}')


# -- accounts --------------------------------------------------------------------------------------------------------


def test_chatgpt_export_becomes_events_and_pending_texts(memory: Memory, tmp_path: Path) -> None:
    """One event per conversation; saved memories are pending."""
    path = zipped(
        tmp_path / "export.zip",
        {"conversations.json": CHATGPT, "chat.html": "<html>I love tea", "user.json": {"email": "a@b"}},
    )
    taken = twice(memory, "chatgpt", path)
    assert (taken.own, taken.candidates, taken.events, len(taken.problems)) == (0, 3, 1, 3)
    (event,) = memory.timeline.read()
    assert (event["title"], event["messages"], event["source"]) == ("Tea and cake", 2, "chatgpt")
    assert "love" not in json.dumps(event)
    assert {one.name for one in memory.pending("chatgpt")} == {
        "User loves tea.",
        "An engineer.",
        "Be brief.",
    }
    assert "tea" not in json.loads(memory.bundles.export(partial=True))["index"]
    assert len(memory.approve(source="chatgpt")) == 3 and not memory.pending()
    assert not memory.bundles.import_from("chatgpt", path).candidates


def test_chatgpt_export_in_several_files_is_imported(memory: Memory, tmp_path: Path) -> None:
    other = {**CHATGPT[0], "conversation_id": "c-2"}  # type: ignore[dict-item]
    base = tree(tmp_path / "export", {"conversations-000.json": json.dumps(CHATGPT[:1]), "conversations-001.json": json.dumps([other]),
                                      "memories.json": json.dumps(["Has a cat.", {"content": "Has a dog."}, {}])})  # fmt: skip
    taken = twice(memory, "chatgpt", base)
    assert taken.events == 2 and taken.candidates == 5


@pytest.mark.parametrize("newer", [False, True])
def test_claude_export_becomes_events_and_pending_texts(memory: Memory, tmp_path: Path, newer: bool) -> None:
    """Until summer 2026 one zip with a list per file, since then files of one object each, in separate
    zips."""
    files: dict[str, Any] = {"conversations.json": CLAUDE, "users.json": [{"email_address": "a@b"}]}
    files |= {"memories/a.json": REMEMBERED, "projects/p-1.json": PROJECT} if newer else {"memories.json": [REMEMBERED], "projects.json": [PROJECT]}  # fmt: skip
    taken = twice(memory, "claude", zipped(tmp_path / "data.zip", files))
    assert (taken.own, taken.candidates, taken.events, len(taken.problems)) == (0, 2, 1, 2)
    assert {one.name for one in memory.pending("claude")} == {
        "What Claude remembers",
        "What Claude remembers of Footbridge",
    }
    (event,) = memory.timeline.read()
    assert (event["title"], event["messages"]) == ("Bridges", 2) and "secret" not in json.dumps(event)
    if newer:
        alone = zipped(tmp_path / "memories-000.zip", {"memories/a.json": REMEMBERED})
        assert memory.bundles.import_from("claude", alone).counts == {"unchanged": 1, "renewed": 1}


def test_claude_reimport_updates_only_pending_texts(memory: Memory, tmp_path: Path) -> None:
    def exported(text: str) -> Path:
        return zipped(
            tmp_path / "data.zip", {"memories.json": [{"conversations_memory": text, "account_uuid": "a"}]}
        )

    memory.bundles.import_from("claude", exported("First."))
    assert memory.bundles.import_from("claude", exported("Second.")).counts == {"renewed": 1}
    (one,) = memory.pending()
    memory.approve(one.key)
    assert memory.bundles.import_from("claude", exported("Third.")).counts == {"kept_beside": 1}
    reading = memory.read(one.key)
    assert reading is not None and reading.own and reading.text.endswith("Second.\n")


# -- written by the programs themselves ------------------------------------------------------------------------------


def test_store_written_by_initrunner_is_imported(memory: Memory) -> None:
    """`SqliteVecMemoryStore` of initrunner 1.0.0 with sqlite-vec: two `add_memory`, one `save_session`, `close`."""
    taken = twice(memory, "initrunner", WRITTEN / "initrunner-1.0.0.zip")
    assert taken.own == 2 and taken.events == 0 and not taken.problems
    assert len(memory.sessions.list()) == 1
    assert {one.file.fields["category"] for one in memory.list()} == {"tools", "policy"}


def test_document_written_by_mif_tools_is_imported(memory: Memory) -> None:
    """`Mem0Adapter().to_mif(...)` of mif-tools 0.2.2, `to_dict()` as JSON."""
    assert twice(memory, "mif", WRITTEN / "mif-tools-0.2.2.json").own == 1
    (one,) = memory.list()
    assert one.file.tags == ("x",) and '"source_type":"mem0"' in one.file.fields["extra"]
