"""Records of other programs become memories: none twice, none overwritten, and one bad record does not
block the rest."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.errors import FormatError, IncompleteError, LimitError, NotFoundError, UsageError
from ipfsmem.exchange import importing
from ipfsmem.exchange.places import one_file
from ipfsmem.exchange.readers.letta import _owners as owners_of_letta
from ipfsmem.exchange.readers.mcp_memory import read as read_mcp
from ipfsmem.exchange.readers.three_ws import read as read_three_ws
from ipfsmem.exchange.records import ImportRecord
from ipfsmem.memory import Memory
from tests.support.costs import cost
from tests.support.device_lab import Lab
from tests.support.exchange_lab import (
    ADA,
    TONE,
    WORKS,
    counted,
    everything,
    initrunner_db,
    lines,
    records,
    tree,
    twice,
    written,
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "m") as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tree(tmp_path / "claude", {"feedback_tone.md": TONE, "MEMORY.md": "- [Tone](feedback_tone.md)\n"})


def test_claude_code_folder_is_imported_byte_for_byte(memory: Memory, folder: Path) -> None:
    taken = twice(memory, "claude-code", folder)
    assert taken.own == 2 and not taken.candidates
    reading = memory.read("feedback_tone")
    assert reading is not None and reading.data == TONE.encode() and reading.own


def test_memory_edited_or_forgotten_here_is_not_imported_again(memory: Memory, folder: Path) -> None:
    memory.bundles.import_from("claude-code", folder)
    memory.write("feedback_tone", "My own words.")
    memory.forget("memory-fe1ee863")
    before = everything(memory)
    again = memory.bundles.import_from("claude-code", folder)
    assert again.counts == {"changed_here": 1, "still_forgotten": 1} and everything(memory) == before
    (folder / "new.md").write_text("New.\n")
    assert memory.bundles.import_from("claude-code", folder, dry_run=True).counts == {
        "added": 1, "changed_here": 1, "still_forgotten": 1,
    }  # fmt: skip
    back = memory.bundles.import_from("claude-code", folder, strategy="replace")
    assert counted(back, "replaced") == 2 and counted(back, "added") == 1
    shown = everything(memory)[0]
    assert shown["feedback_tone"] == TONE.encode() and "memory-fe1ee863" in shown


def test_resolved_conflict_is_not_imported_again(memory: Memory, folder: Path) -> None:
    memory.write("feedback_tone", "Mine, from before.")
    assert memory.bundles.import_from("claude-code", folder).counts == {"added": 1, "kept_beside": 1}
    assert memory.read("feedback_tone").text.endswith("Mine, from before.\n")  # type: ignore[union-attr]
    (clash,) = memory.conflicts()
    memory.resolve("feedback_tone", b"Both.", seen=clash)
    memory.bundles.import_from("claude-code", folder)
    assert not memory.conflicts()


def test_record_changed_by_its_program_replaces_an_unedited_import(memory: Memory, folder: Path) -> None:
    memory.bundles.import_from("claude-code", folder)
    (folder / "feedback_tone.md").write_text(TONE + "\nThen the fix.\n")
    assert memory.bundles.import_from("claude-code", folder).counts == {"renewed": 1, "unchanged": 1}
    assert "Then the fix." in memory.read("feedback_tone").text and not memory.conflicts()  # type: ignore[union-attr]
    memory.write("feedback_tone", "Mine.")
    (folder / "feedback_tone.md").write_text(TONE + "\nAnother.\n")
    assert memory.bundles.import_from("claude-code", folder).counts == {"kept_beside": 1, "unchanged": 1}
    assert memory.read("feedback_tone").text.endswith("Mine.\n")  # type: ignore[union-attr]


def test_equally_named_file_of_another_folder_becomes_an_alternative(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    memory.bundles.import_from("claude-code", folder)
    other = tree(tmp_path / "other", {"feedback_tone.md": "Another project's tone.\n"})
    assert memory.bundles.import_from("claude-code", other).counts == {"kept_beside": 1}
    assert memory.read("feedback_tone").data == TONE.encode()  # type: ignore[union-attr]


def test_each_project_of_a_tree_becomes_a_scope(memory: Memory, tmp_path: Path) -> None:
    base = tree(
        tmp_path / "projects",
        {
            "-home-ada-work-api/memory/role.md": "Works on the API.\n",
            "-home-ada-play-api/memory/role.md": "Plays.\n",
            "-home-ada-play-api/0b5f.jsonl": "{}\n",
            "-home-ada-play-api/notes/role.md": "No memory.\n",
        },
    )
    taken = twice(memory, "claude-code", base)
    assert taken.own == 2 and sorted(taken.scopes.values()) == [1, 1] and all(taken.scopes)
    scopes = memory.scopes.names()
    assert len(scopes) == 2 and sorted(taken.scopes) == scopes
    assert {memory.scope(one).read("role").text for one in scopes} == {"Works on the API.\n", "Plays.\n"}  # type: ignore[union-attr]
    with pytest.raises(UsageError):
        memory.scope("work").bundles.import_from("claude-code", base)
    one = memory.bundles.import_from("claude-code", base, maps={scopes[0]: "play"})
    assert one.scopes == {"play": 1}


def test_records_are_imported_into_a_chosen_scope(memory: Memory, folder: Path) -> None:
    memory.scope("work").bundles.import_from("claude-code", folder)
    assert memory.scope("work").read("feedback_tone") is not None and memory.read("feedback_tone") is None


def test_bad_record_is_named_and_the_rest_is_imported(memory: Memory) -> None:
    data = lines(ADA, WORKS, {"type": "entity", "name": {}}, {"type": "no"}) + b"{nope\n" + b'"\xff"\n'[:0]
    taken = memory.bundles.import_from("mcp-memory", data)
    assert taken.counts == {"added": 1} and len(taken.problems) == 3
    assert all("line " in problem for problem in taken.problems)
    with pytest.raises(IncompleteError):
        taken.raise_if_incomplete()
    (listed,) = memory.list()
    reading = memory.read(listed.key)
    assert reading is not None
    assert reading.text.endswith("- likes tea\n- builds bridges\n\nRelations:\n\n- works_at: ACME\n")
    file = parse_memory(reading.data)
    assert file.name == "Ada" and file.source == "mcp-memory:Ada" and file.fields["category"] == "person"


def test_extended_entity_is_updated_under_its_key(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_bytes(lines(ADA))
    twice(memory, "mcp-memory", path)
    path.write_bytes(lines({**ADA, "observations": [*ADA["observations"], "has a cat"]}))  # type: ignore[misc]
    assert memory.bundles.import_from("mcp-memory", path).counts == {"renewed": 1}
    assert len(memory.list()) == 1 and not memory.conflicts()


def test_imported_foreign_texts_are_pending_until_approved(memory: Memory, folder: Path) -> None:
    taken = memory.bundles.import_from("claude-code", folder, foreign=True)
    assert (taken.own, taken.candidates) == (0, 2)
    assert not memory.read("feedback_tone").own  # type: ignore[union-attr]
    memory.approve("feedback_tone")
    assert memory.read("feedback_tone").own  # type: ignore[union-attr]
    assert counted(memory.bundles.import_from("claude-code", folder, foreign=True), "unchanged") == 2


def test_pending_text_never_replaces_an_own_one(memory: Memory, folder: Path) -> None:
    memory.write("feedback_tone", "Mine.")
    taken = memory.bundles.import_from("claude-code", folder, foreign=True, strategy="replace")
    assert counted(taken, "kept_beside") == 1
    assert memory.read("feedback_tone").text.endswith("Mine.\n")  # type: ignore[union-attr]


def test_import_of_a_secret_is_reported_and_skipped_in_a_public_vault(
    memory: Memory, lab: Lab, folder: Path
) -> None:
    (folder / "key.md").write_text("AKIAIOSFODNN7EXAMPLF is the key.\n")
    taken = memory.bundles.import_from("claude-code", folder)
    assert len(taken.secrets) == 1 and "AWS access key" in taken.secrets[0] and not taken.problems
    lab.mode = "ipfs"
    public = lab.create("a")
    taken = public.bundles.import_from("claude-code", folder)
    assert taken.own == 2 and len(taken.problems) == 1 and "AWS access key" in taken.problems[0]
    assert "AKIA" not in str(taken.problems) and public.read("key") is None


def test_too_many_records_are_refused(memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_NAMES", 1)
    with pytest.raises(LimitError):
        memory.bundles.import_from("claude-code", folder)
    assert not memory.list()


def test_import_from_missing_or_wrong_folder_is_refused(memory: Memory, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FormatError):
        memory.bundles.import_from("claude-code", empty)
    with pytest.raises(NotFoundError):
        memory.bundles.import_from("okf", tmp_path / "nothing")
    with pytest.raises(UsageError):
        memory.bundles.import_from("nobody", empty)
    (tmp_path / "link").symlink_to(empty)
    with pytest.raises(UsageError):
        memory.bundles.import_from("okf", tmp_path / "link")


def test_three_ws_exports_of_all_forms_are_imported(memory: Memory, tmp_path: Path) -> None:
    blob = {"version": "memory/0.1", "mode": "local", "vault_name": "x", "index": "# Memory\n",
            "files": {"tone.md": TONE, "../../up.md": "x", "a b.md": "y"}, "timeline": [{"ts": "2026-04-14T12:00:00.000Z", "type": "waved"}]}  # fmt: skip
    path = tmp_path / "export.json"
    path.write_text(json.dumps(blob))
    taken = twice(memory, "three-ws", path)
    assert taken.own == 3 and taken.events == 1
    stored = [
        {"id": "0-1", "type": "feedback", "content": "Quote in euros.", "tags": ["money", "style"], "context": {}, "salience": 0.9, "createdAt": 1775044800000, "updatedAt": 1775044800000, "expiresAt": None},
        {"id": "0-2", "type": "user", "content": "", "tags": []},
        {"id": "0-3", "cipher": "wallet-aes-gcm-v1", "cid": "bafy"},
    ]  # fmt: skip
    runtime = tmp_path / "value.json"
    runtime.write_text(json.dumps(stored))
    taken = twice(memory, "three-ws", runtime)
    assert taken.own == 1 and len(taken.problems) == 2 and "encrypted" in taken.problems[1]
    found = next(one for one in memory.list() if one.file.source == "three.ws:0-1")
    assert found.file.tags == ("money", "style") and found.file.created == "2026-04-01T12:00:00.000Z"
    bundle = tree(tmp_path / "bundle", {"memory/MEMORY.md": "# Memory\n", "memory/role.md": "Engineer.\n",
                                        "memory/timeline/2026-04-14.jsonl": '{"ts":"2026-04-14T13:00:00.000Z","type":"sat"}\n', "manifest.json": "{}"})  # fmt: skip
    taken = twice(memory, "three-ws", bundle)
    assert (written(taken), taken.events) == (1, 1)


@pytest.mark.parametrize(
    ("salience", "important"),
    [(1, True), (1.0, True), (0.95, False), (True, False), ("1", False), (None, False)],
)
def test_three_ws_entry_of_full_salience_is_important(
    memory: Memory, salience: object, important: bool
) -> None:
    memory.bundles.import_from(
        "three-ws", json.dumps([{"id": "1", "content": "pinned", "salience": salience}]).encode()
    )
    (found,) = memory.list()
    assert found.file.important is important


def test_equal_records_are_imported_once(memory: Memory) -> None:
    entry = {"content": "The same."}
    taken = memory.bundles.import_from("three-ws", json.dumps([entry, entry]).encode())
    assert taken.counts == {"added": 1, "twice": 1}


def test_one_id_with_two_texts_is_two_memories(memory: Memory) -> None:
    data = json.dumps([{"id": "1", "content": "One."}, {"id": "1", "content": "Two."}]).encode()
    assert memory.bundles.import_from("three-ws", data).counts == {"added": 2}
    assert written(memory.bundles.import_from("three-ws", data)) == 0 and len(memory.list()) == 2


def test_repeated_entity_is_merged_in_linear_time() -> None:
    known = [f"observation {n}" for n in range(30_000)]
    data = lines(
        {**ADA, "observations": known}, {**ADA, "observations": [*known[:5], *(f"{one}!" for one in known)]}
    )
    (record,) = read_mcp(one_file("graph.jsonl", data))
    assert isinstance(record, ImportRecord) and record.text.count("\n") == 59_999
    assert cost(lambda: list(read_mcp(one_file("graph.jsonl", data))), 0.5) < 2.0


@pytest.mark.parametrize(
    "text",
    ['{"brain_hash":"x","memories":5}', '[{"content":"x","createdAt":' + "9" * 400 + "}]"],
    ids=["no list", "a number that no clock has"],
)
def test_malformed_export_is_reported(text: str) -> None:
    try:
        found = list(read_three_ws(one_file("x.json", text.encode())))
    except FormatError:
        return
    assert [one.created for one in found if isinstance(one, ImportRecord)] == [""] or "memory 1 of" in str(
        found[0]
    )


def test_imported_folder_can_be_linked(memory: Memory, folder: Path) -> None:
    """Its files are already the memory's texts, headers for foreign names included: neither side changes."""
    (folder / "My Notes.md").write_text("No key of ours.\n")
    assert twice(memory, "claude-code", folder).own == 3
    before = {one.name: one.read_bytes() for one in folder.glob("*.md") if one.name != "MEMORY.md"}
    memory.folders.attach(folder)
    assert len(memory.list()) == 3 and not memory.conflicts()
    assert {one.name: one.read_bytes() for one in folder.glob("*.md") if one.name != "MEMORY.md"} == before


def test_two_texts_from_stdin_are_independent(memory: Memory) -> None:
    for text in (b"Ada likes tea.\n", b"Ada builds bridges.\n"):
        assert memory.bundles.import_from("claude-code", text).counts == {"added": 1}
    assert len(memory.list()) == 2 and not memory.conflicts()
    assert all("standard" not in one.key for one in memory.list())
    memory.bundles.import_from("mem0", b'[{"id": "1", "memory": "Mine."}]')
    assert memory.bundles.import_from("mem0", b'[{"id": "1", "memory": "Not mine."}]').counts == {
        "kept_beside": 1
    }


@pytest.mark.parametrize("ident", ["1", "note", "00000000-0000-0000-0000-000000000001"])
@pytest.mark.parametrize(
    ("program", "form"),
    [
        ("mem0", '[{"id": "%s", "memory": "%s"}]'),
        ("mif", '{"mif_version": "2.0", "memories": [{"id": "%s", "content": "%s"}]}'),
        ("librefang", '[{"id": "%s", "content": "%s"}]'),
        ("three-ws", '[{"id": "%s", "content": "%s"}]'),
        ("claude", '[{"account_uuid": "%s", "conversations_memory": "%s"}]'),
    ],
)
def test_equal_record_ids_of_another_store_replace_nothing(
    memory: Memory, tmp_path: Path, program: str, form: str, ident: str
) -> None:
    for name, text, what in (
        ("a", "Mine.", "added"),
        ("b", "Another store's.", "kept_beside"),
        ("b", "Theirs, changed.", "kept_beside"),
    ):
        path = tmp_path / name / "memories.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(form % (ident, text))
        assert memory.bundles.import_from(program, path).counts == {what: 1}


def test_concurrent_imports_both_record_their_sources(memory: Memory, tmp_path: Path) -> None:
    def importer(text: bytes) -> tuple[importing.Importer, importing.ReaderResult]:
        found = importing.gather(read_mcp(one_file("x", text)), "mcp-memory")
        return importing.Importer(memory._open.memories, "mcp-memory", into={"": ""}), found

    first, ada = importer(lines(ADA))
    second, other = importer(lines({**ADA, "name": "Bob"}))
    first.import_all(ada)
    second.import_all(other)
    for one in memory.list():
        memory.write(one.key, "Mine.")
    for one, found in (importer(lines(ADA)), importer(lines({**ADA, "name": "Bob"}))):
        assert one.import_all(found).counts == {"changed_here": 1}


def chats(messages: int, title: str = "Bridges") -> bytes:
    said = [{"sender": "human"}] * messages
    return json.dumps(
        [{"uuid": "c-1", "name": title, "created_at": "2026-08-01T10:00:00Z", "chat_messages": said}]
    ).encode()


def test_extended_conversation_is_one_event(memory: Memory) -> None:
    assert memory.bundles.import_from("claude", chats(2)).events == 1
    assert memory.bundles.import_from("claude", chats(9), dry_run=True).events == 0
    assert memory.bundles.import_from("claude", chats(9)).events == 0
    assert len(memory.timeline.read()) == 1


def test_secret_in_a_title_is_reported_and_omitted_in_a_public_vault(memory: Memory, tmp_path: Path) -> None:
    data = chats(1, "Why is AKIAQYLPMN5HFIQR7XYZ refused")
    taken = memory.bundles.import_from("claude", data)
    assert taken.events == 1 and "2026-08-01" in taken.secrets[0]
    with Memory.create("p", "ipfs", home=tmp_path / "p") as public:
        taken = public.bundles.import_from("claude", data)
        assert taken.events == 0 and "secret" in taken.problems[0] and not public.timeline.read()


def test_record_ids_of_a_hostile_file_are_bounded() -> None:
    long, many = "x" * 50_000, 200
    agents = [{"name": f"{n} {'x' * 190}", "block_ids": [f"b{m}" for m in range(many)]} for n in range(many)]
    blocks = [{"id": f"b{m}", "label": "l", "value": str(m)} for m in range(many)]
    twice_over = {"name": "Ada", "block_ids": ["b0"] * 1000}
    assert owners_of_letta([twice_over]) == {"b0": "Ada"}
    found = [
        records("letta", json.dumps({"agents": agents, "blocks": blocks}).encode()),
        records(
            "librefang", json.dumps({"agent_id": long, "kv": {f"k{n}": "v" for n in range(many)}}).encode()
        ),
        records(
            "claude",
            json.dumps(
                [{"account_uuid": long, "project_memories": {f"p{n}": "v" for n in range(many)}}]
            ).encode(),
            "memories.json",
        ),
    ]
    for one in found:
        assert len(one.records) == many
        assert max(len(record.ident) for record in one.records) < 1_000


def test_files_in_subfolders_of_a_memory_folder_are_counted(memory: Memory, tmp_path: Path) -> None:
    base = tree(
        tmp_path / "projects",
        {"-a/memory/role.md": "Role.\n", "-a/memory/old/role.md": "Old.\n", "-a/notes.md": "No.\n"},
    )
    for place in (base, base / "-a" / "memory"):
        taken = memory.bundles.import_from("claude-code", place, dry_run=True)
        assert taken.counts == {"added": 1} and sum(taken.skipped.values()) == 1


def test_relations_of_paged_answers_are_imported(memory: Memory) -> None:
    pages = [
        {"results": [], "relations": [{"source": "ada", "relationship": "builds", "target": name}]}
        for name in ("a", "b")
    ]
    assert memory.bundles.import_from("mem0", json.dumps(pages).encode()).counts == {"added": 2}


def test_project_paths_are_not_published(tmp_path: Path) -> None:
    base = tree(tmp_path / "projects", {"-home-ada-secret-client/memory/role.md": "Role.\n"})
    with Memory.create("p", "ipfs", home=tmp_path / "p") as public:
        (scope,) = {
            one.scope for one in public.bundles.import_from("claude-code", base, dry_run=True).records
        }
        with pytest.raises(UsageError, match="made of the paths") as raised:
            public.bundles.import_from("claude-code", base)
        assert f"--map {scope}=NAME" in str(raised.value.hint)
        assert not public.list() and not public.scopes.list()
        assert public.bundles.import_from("claude-code", base, maps={scope: "work"}).own == 1
        assert public.scopes.names() == ["work"]


def test_lone_surrogate_loses_no_conversation(memory: Memory) -> None:
    said = {"message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["\ud83d"]}}}
    saved = {
        "message": {
            "author": {"role": "assistant"},
            "recipient": "bio",
            "content": {"content_type": "text", "parts": ["Ada likes tea."]},
        }
    }
    data = [{"title": "Cut \ud83d", "create_time": 1.7e9, "id": "c", "mapping": {"a": said, "b": saved}}]
    taken = memory.bundles.import_from("chatgpt", json.dumps(data).encode())
    assert (taken.events, taken.candidates, taken.problems) == (1, 1, ())
    claude = [
        {
            "uuid": "c",
            "name": "Cut \ud83d",
            "created_at": "2026-08-01T10:00:00Z",
            "chat_messages": [{"text": "\ud83d"}],
        }
    ]
    taken = memory.bundles.import_from("claude", json.dumps(claude).encode())
    assert (taken.events, taken.problems) == (1, ())


def test_computed_columns_of_a_database_are_not_read(tmp_path: Path) -> None:
    """A generated column runs functions of the file's own schema for each row: a few bytes produce
    megabytes."""
    path = tmp_path / "agent.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TABLE memories (id INTEGER, n INTEGER, content TEXT AS (hex(zeroblob(4000000))) VIRTUAL)"
        )
        db.execute("INSERT INTO memories (id, n) VALUES (1, 1)")
    with pytest.raises(FormatError, match="computed"):
        records("initrunner", path.read_bytes(), "agent.db")


def test_rows_of_a_database_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = initrunner_db(tmp_path / "agent.db")
    monkeypatch.setattr("ipfsmem.exchange.sqlite_input._ROWS", 50)
    with pytest.raises(LimitError, match="in its rows"):
        records("initrunner", path.read_bytes(), "agent.db")


def test_dry_run_reports_a_full_key_like_the_run(memory: Memory, folder: Path) -> None:
    memory.write("tone", "mine")
    for number in range(6):
        (folder / "tone.md").write_text(f"Text {number}.\n")
        said = memory.bundles.import_from("claude-code", folder, foreign=True, dry_run=True)
        done = memory.bundles.import_from("claude-code", folder, foreign=True)
        assert (said.counts, said.candidates, said.problems) == (done.counts, done.candidates, done.problems)
    assert done.problems
    with pytest.raises(IncompleteError, match="nothing was written"):
        said.raise_if_incomplete()


def test_letta_messages_are_sorted_by_time_and_not_by_text(memory: Memory) -> None:
    times = ["2026-08-01T10:00:00+00:00", "2026-08-01T11:30:00+02:00"]
    agent = {"name": "h", "messages": [{"created_at": when} for when in times]}
    memory.bundles.import_from("letta", json.dumps({"agents": [agent]}).encode())
    (event,) = memory.timeline.read()
    assert (event["ts"], event["until"]) == (times[1], times[0])


def test_entities_without_relations_are_in_the_graph(tmp_path: Path) -> None:
    """Also those imported without the tag by an earlier version."""
    from ipfsmem.memory import Memory
    from tests.support.tools_lab import Model

    (file := tmp_path / "memory.jsonl").write_text(
        '{"type":"entity","name":"Solo","entityType":"p","observations":["alone"]}\n'
        '{"type":"entity","name":"Two","entityType":"p","observations":[]}\n'
    )
    memory = Memory.load("alex", "none")
    memory.bundles.import_from("mcp-memory", file)
    memory.write("old", "- was there", name="Old", fields={"source": "mcp-memory:Old", "category": "p"})
    assert sorted(node.name for node in memory.graph.list()) == ["Old", "Solo", "Two"]
    model = Model(memory)
    assert "1 existed" in model("create_entities", entities=[{"name": "Solo", "entityType": "p"}]).text
    names = [one["name"] for one in model("read_graph").structured["entities"]]
    assert sorted(names) == ["Old", "Solo", "Two"]
