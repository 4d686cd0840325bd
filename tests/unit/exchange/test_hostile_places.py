"""Hostile folders, zips and files: limited, no link followed, nothing written outside, the rest imported."""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ipfsmem.errors import FormatError, IncompleteError, IpfsmemError, LimitError, UsageError
from ipfsmem.exchange import json_input, places
from ipfsmem.memories import importing
from ipfsmem.memory import Memory
from tests.support.exchange_lab import (
    ADA,
    CHATGPT,
    CLAUDE,
    DOCUMENTS,
    LETTA,
    initrunner_db,
    records_at,
    tree,
    twice,
    zipped,
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "m") as made:
        yield made


def test_folder_with_links_pipes_binaries_and_long_texts_is_imported(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("not for the memory\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "in.md").write_text("not either\n")
    base = tree(tmp_path / "notes", {"good.md": "Good.\n", ".hidden.md": "no\n", ".git/x.md": "no\n"})
    (base / "link.md").symlink_to(tmp_path / "secret.md")
    (base / "folder").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(base / "pipe.md")
    (base / "binary.md").write_bytes(bytes(range(256)))
    (base / "long.md").write_text("x" * 2_000_000)
    (base / "huge.md").write_text("x" * 5_000_000)
    (base / "utf16.md").write_text("Wide.\n", "utf-16")
    for program in ("claude-code", "agh", "basic-memory", "okf"):
        scope = memory.scope(program)
        taken = scope.bundles.import_from(program, base)
        assert taken.own == 2, program  # UTF-16 is text too
        named = "\n".join(taken.problems)
        for bad in ("link.md", "pipe.md", "binary.md", "long.md", "huge.md"):
            assert bad in named, (program, bad, named)
        assert "not for the memory" not in str(scope.list())


def test_names_differing_in_case_stay_apart_and_unicode_forms_are_one(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "notes.zip"
    names = ("Role.md", "role.md", "ROLE.md", "caf\u00e9.md", "cafe\u0301.md", "a b.md", "a_b.md", "con.md", "memory.md", "../../up.md", "/abs.md", "c:\\x.md", "x/../y.md", "\u202emd.md")  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"{name!a}\n")
    taken = twice(memory, "okf", path)
    keys = {one.key for one in memory.list()}
    assert taken.own == len(names) - 2 == len(keys) + 1
    # The second text of the name in both forms is kept.
    (conflict,) = memory.conflicts()
    assert conflict.key.startswith("caf") and len(conflict.copies) == 1
    assert len(taken.problems) == 2 and all("leads out of the zip" in problem for problem in taken.problems)
    assert not (tmp_path.parent / "up.md").exists() and not (tmp_path / "up.md").exists()


@pytest.mark.parametrize("program", ["", "claude-code"])
def test_zip_of_finder_or_windows_has_the_keys_of_the_folder(
    program: str, memory: Memory, tmp_path: Path
) -> None:
    plain = {"vault/a.md": "a\n", "vault/b.md": "b\n"}
    places = {
        "plain.zip": plain,
        "finder.zip": {"vault/": "", **plain, "__MACOSX/vault/._a.md": "\0\5", "__MACOSX/._vault": "\0\5"},
        "dots.zip": {f"./{name}": text for name, text in plain.items()},
        "windows.zip": {name.replace("/", "\\"): text for name, text in plain.items()},
    }
    tree(tmp_path, plain)
    made = [tmp_path / "vault", *(zipped(tmp_path / name, files) for name, files in places.items())]
    for number, place in enumerate(made):
        taken = memory.bundles.import_from(program, place) if program else memory.bundles.import_(place)
        assert not taken.problems and [one.key for one in memory.list()] == ["a", "b"]
        assert number == 0 or not memory.conflicts()


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("program", ["", "basic-memory"])
def test_file_with_capital_ending_is_imported(
    program: str, kind: str, memory: Memory, tmp_path: Path
) -> None:
    files = {"a.md": "a\n", "NOTES.MD": "kept in capitals\n"}
    tree(tmp_path / "vault", files)
    place = tmp_path / "vault" if kind == "folder" else zipped(tmp_path / "x.zip", files)
    taken = memory.bundles.import_from(program, place) if program else memory.bundles.import_(place)
    assert not taken.problems
    assert "kept in capitals" in {memory.read(one.key).file.body for one in memory.list()}


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_attachments_are_skipped_by_name_and_unreadable_notes_omitted(
    kind: str, memory: Memory, tmp_path: Path
) -> None:
    files = {"a.md": "a\n", "b.pdf": "b\n", "sub/c.Docx": "c\n", ".d.pdf": "d\n", "e.png": "e"}
    tree(tmp_path / "vault", files)
    place = tmp_path / "vault" if kind == "folder" else zipped(tmp_path / "x.zip", files)
    taken = memory.bundles.import_(place)
    assert [one.key for one in memory.list()] == ["a"] and not taken.problems
    assert [one.replace("sub/", "") for one in taken.skipped] == ["2 attachments: b.pdf, c.Docx"]
    taken.raise_if_incomplete()
    for name, data in {"f.html": "<p>a note", "g.md": "---\nname: [\n---\n", "h.pdf": "h"}.items():
        files[name] = data
    (tmp_path / "more").mkdir()
    tree(tmp_path / "more", files)
    place = tmp_path / "more" if kind == "folder" else zipped(tmp_path / "y.zip", files)
    taken = memory.bundles.import_(place)
    assert taken.skipped[0].startswith("3 attachments: b.pdf, ")
    assert any("f.html" in one for one in taken.problems)
    with pytest.raises(IncompleteError):
        taken.raise_if_incomplete()


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_file_next_to_an_exported_tree_is_not_named(kind: str, memory: Memory, tmp_path: Path) -> None:
    files = {"memory/a.md": "a\n", "README.txt": "about this backup\n"}
    tree(tmp_path / "vault", files)
    place = tmp_path / "vault" if kind == "folder" else zipped(tmp_path / "x.zip", files)
    assert not memory.bundles.import_(place).problems


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_import_of_other_file_types_alone_prunes_nothing(kind: str, memory: Memory, tmp_path: Path) -> None:
    memory.write("mine", "kept")
    files = {"b.txt": "b\n"}
    tree(tmp_path / "vault", files)
    place = tmp_path / "vault" if kind == "folder" else zipped(tmp_path / "x.zip", files)
    with pytest.raises(UsageError, match="has no memories"):
        memory.bundles.import_(place, strategy="replace", prune=True)
    assert [one.key for one in memory.list()] == ["mine"]


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_import_with_an_attachment_prunes_nothing(kind: str, memory: Memory, tmp_path: Path) -> None:
    """A memory may have become that document."""
    memory.write("report", "kept")
    files = {"a.md": "a\n", "report.docx": "PK"}
    tree(tmp_path / "vault", files)
    place = tmp_path / "vault" if kind == "folder" else zipped(tmp_path / "x.zip", files)
    with pytest.raises(FormatError, match=r"would be forgotten: 1 attachment: report\.docx"):
        memory.bundles.import_(place, strategy="replace", prune=True)
    assert [one.key for one in memory.list()] == ["report"]


@pytest.mark.parametrize("name", ["../../x.md", "memory/..\\..\\x.md", "../../x"])
@pytest.mark.parametrize("program", ["", "agh"])
def test_zip_entry_outside_of_the_zip_is_named(
    program: str, name: str, memory: Memory, tmp_path: Path
) -> None:
    place = zipped(tmp_path / "x.zip", {"good.md": "Good.\n", name: "evil"})
    taken = memory.bundles.import_from(program, place) if program else memory.bundles.import_(place)
    assert [one.key for one in memory.list()] == ["good"]
    assert len(taken.problems) == 1 and "leads out of the zip" in taken.problems[0]


def test_hostile_zip_is_limited_and_not_followed(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bomb, a link, a duplicate name, an encrypted file, a file that cannot be unpacked, a truncated
    zip."""
    monkeypatch.setattr(places, "MAX_PLACE", 1_000_000)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations-000.json", b"[" + b" " * 3_000_000 + b"]")
        archive.writestr("conversations-001.json", json.dumps(CHATGPT[:1]))
    taken = memory.bundles.import_from("chatgpt", bomb)
    assert taken.events == 1 and len(taken.problems) == 1 and "conversations-000" in taken.problems[0]
    many = tmp_path / "many.zip"
    with zipfile.ZipFile(many, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(f"conversations-{number:03}.json", b"[" + b" " * 400_000 + b"]")
    assert len(records_at("chatgpt", many).problems) == 2

    link = zipfile.ZipInfo("link.md")
    link.external_attr = 0o120777 << 16
    odd = tmp_path / "odd.zip"
    with zipfile.ZipFile(odd, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("good.md", "Good.\n")
        archive.writestr("broken.md", "Broken. " * 500)
    data = bytearray(odd.read_bytes())
    at = data.index(b"broken.md") + len("broken.md")
    data[at + 4 : at + 12] = b"\xff" * 8
    odd.write_bytes(data)
    taken = memory.bundles.import_from("claude-code", odd)
    assert taken.own == 1 and sorted(p.split()[0] for p in taken.problems) == ["broken.md", "link.md"]
    for end in (10, 40, len(data) // 2, len(data) - 5):
        (tmp_path / "cut.zip").write_bytes(data[:end])
        with pytest.raises(IpfsmemError):
            memory.bundles.import_from("claude-code", tmp_path / "cut.zip")
    twin = tmp_path / "twin.zip"
    with pytest.warns(UserWarning), zipfile.ZipFile(twin, "w") as archive:
        archive.writestr("a.md", "1")
        archive.writestr("a.md", "2")
    with pytest.raises(FormatError):
        memory.bundles.import_from("claude-code", twin)


def test_oversized_file_is_refused_before_it_is_read(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    monkeypatch.setattr(places, "MAX_PLACE", 1_000_000)
    with pytest.raises(IpfsmemError):
        memory.bundles.import_from("mem0", big)


def test_given_bytes_have_the_limit_of_a_file(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_PLACE", 1000)
    monkeypatch.setattr(importing, "MAX_BLOB", 1000)
    with pytest.raises(LimitError, match="at most 1,000 are allowed"):
        memory.bundles.import_from("mem0", b" " * 1001)
    blob = json.dumps({"version": "memory/0.1", "files": {"tone": "é" * 600}}, ensure_ascii=False)
    for source in (blob, blob.encode()):
        with pytest.raises(LimitError, match="at most 1,000 are allowed"):
            memory.bundles.import_(source)
    with pytest.raises(FormatError):
        memory.bundles.import_('{"version": "\ud800"}')
    assert not len(memory)


@pytest.mark.parametrize("list_of", ['[{"t": "%s"}]', '[{"t": "%s\\ud800"}]'])
def test_list_items_are_limited_with_every_parser(monkeypatch: pytest.MonkeyPatch, list_of: str) -> None:
    """The fallback parser expands each letter to six bytes."""
    monkeypatch.setattr(json_input, "MAX_ITEM", 1000)
    assert len(list(json_input.read_items((list_of % ("x" * 900)).encode(), "it"))) == 1
    for text in ("x" * 1001, "é" * 501):
        found = list(json_input.read_items((list_of % text).encode(), "it"))
        assert len(found) == 1 and isinstance(found[0], LimitError)


def test_expanding_yaml_header_is_imported_as_body(memory: Memory, tmp_path: Path) -> None:
    bomb = "---\na: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\ntype: [*c, *c]\n---\n\nText.\n"
    base = tree(
        tmp_path / "bundle", {"bomb.md": bomb, "deep.md": "---\ntype: " + "[" * 1000 + "]" * 1000 + "\n---\n"}
    )
    taken = twice(memory, "okf", base)
    reading = memory.read("bomb")
    assert taken.own == 2 and reading is not None and reading.data == b"---\n---\n\n" + bomb.encode()


def test_times_out_of_range_are_imported_or_reported(memory: Memory) -> None:
    export = [
        {"title": "t", "create_time": when, "conversation_id": str(n), "mapping": {"a": {"message": None}}}
        for n, when in enumerate(
            [1e300, -1e18, "9999-12-31T23:59:59-23:59", float("1e18"), 253402300800, 1755000000]
        )
    ]
    taken = memory.bundles.import_from("chatgpt", json.dumps(export).encode())
    assert taken.events >= 1 and taken.events + len(taken.problems) == len(export)


def test_overlong_record_is_named(memory: Memory) -> None:
    facts = [{"fact": "x" * 2_000_000, "category": "workflow"}, {"fact": "Short.", "category": "workflow"}]
    taken = memory.bundles.import_from("infraware", json.dumps(facts).encode())
    assert taken.own == 1 and len(taken.problems) == 1 and "allowed" in taken.problems[0]


def test_events_over_the_limit_are_refused(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipfsmem.exchange.importing.MAX_EVENTS", 0)
    with pytest.raises(LimitError):
        memory.bundles.import_from("chatgpt", json.dumps(CHATGPT).encode())
    assert not memory.timeline.read()


@pytest.mark.parametrize("item", ["0", "[]", "{}", '""', '{"a":[]}'])
def test_millions_of_small_values_are_counted_before_decoding(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, item: str
) -> None:
    """A small zip may contain a list that takes gigabytes when decoded."""
    monkeypatch.setattr("ipfsmem.exchange.json_input.MAX_VALUES", 1000)
    monkeypatch.setattr("ipfsmem.exchange.json_input.MAX_ITEMS", 1000)
    for program, called in (
        ("mem0", "dump.json"),
        ("chatgpt", "conversations.json"),
        ("claude", "conversations.json"),
    ):
        path = tmp_path / f"{program}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(called, f"[{','.join([item] * 1200)}]")
        try:
            taken = memory.bundles.import_from(program, path)
        except LimitError as error:
            assert "1,000" in str(error)
        else:
            assert len(taken.problems) == 1 and "1,000" in taken.problems[0]
    monkeypatch.setattr("ipfsmem.exchange.json_input.MAX_ITEM", 1000)
    for program, said in (("chatgpt", CHATGPT[0]), ("claude", CLAUDE[0])):
        few = {name: value for name, value in said.items() if name not in ("mapping", "chat_messages")}
        short = {**few, "mapping": {}, "chat_messages": []}
        for long in ({**few, "x": "x" * 2000}, {**few, "x": "\ud800" * 2000}):
            taken = memory.scope(program).bundles.import_from(program, json.dumps([long, short]).encode())
            assert len(taken.problems) == 1 and "1,000 bytes" in taken.problems[0], program
        assert len(memory.scope(program).timeline.read()) == 1
    said = [{"memory": 'a, b, [c], {d} \\"' * 400, "id": str(n)} for n in range(3)]
    assert memory.bundles.import_from("mem0", json.dumps(said).encode()).own == 3


def test_file_of_empty_lines_is_refused(memory: Memory) -> None:
    with pytest.raises(FormatError):
        memory.bundles.import_from("mcp-memory", b"\n" * 5_000_000)
    taken = memory.bundles.import_from("mcp-memory", b"\n\n{nope\n \n\nnope\n")
    assert [problem.split()[1] for problem in taken.problems] == ["3", "6"]


@pytest.mark.parametrize("program", sorted(DOCUMENTS))
def test_invalid_file_of_a_folder_blocks_no_other(memory: Memory, tmp_path: Path, program: str) -> None:
    called, document = DOCUMENTS[program]
    stem, dot, ending = called.partition(".")
    base = tree(tmp_path / "exports", {called: json.dumps(document)})
    numbered = f"{stem}-001{dot}{ending}" if program in ("chatgpt", "claude") else f"a{dot}{ending}"
    (base / numbered).write_text("{nope")
    taken = memory.bundles.import_from(program, base)
    assert taken.own + taken.candidates + taken.events and any(
        numbered in problem for problem in taken.problems
    )


def test_invalid_line_blocks_no_other(memory: Memory) -> None:
    good = json.dumps(ADA).encode()
    taken = memory.bundles.import_from(
        "mcp-memory", b"\xef\xbb\xbf" + good + b'\n{"type":"entity","name":"\xff"}\n'
    )
    assert taken.own == 1 and len(taken.problems) == 1 and "line 2 of" in taken.problems[0]
    wide = json.dumps({**ADA, "name": "Bob"}).encode("utf-16")
    assert memory.bundles.import_from("mcp-memory", wide).own == 1


def test_overlong_row_blocks_no_other(memory: Memory, tmp_path: Path) -> None:
    path = initrunner_db(tmp_path / "agent.db")
    with closing(sqlite3.connect(path)) as db, db:
        put = "INSERT INTO memories (content, created_at) VALUES (?, '2026-08-01')"
        db.executemany(put, (("x" * 17_000_000,), ("Behind it.",)))
    taken = memory.bundles.import_from("initrunner", path)
    assert "Behind it." in {memory.read(one.key).readable.body for one in memory.list()}  # type: ignore[union-attr]
    assert [problem for problem in taken.problems if "allowed" in problem]


def test_invalid_agent_of_letta_blocks_no_other(memory: Memory) -> None:
    good = LETTA["agents"][0]
    bad = [7, {**good, "name": 7}, {**good, "block_ids": {}}, {**good, "memory_blocks": "x"}]
    taken = memory.bundles.import_from("letta", json.dumps({**LETTA, "agents": [*bad, good]}).encode())
    assert (taken.own, taken.events) == (
        3,
        2,
    )  # including the block that is bare text, and the agent named 7
    assert sum("agent in" in problem for problem in taken.problems) == 1
    silent = json.dumps({**LETTA, "agents": [{**good, "messages": 5}]}).encode()
    taken = memory.scope("silent").bundles.import_from("letta", silent)
    assert taken.own == 2 and taken.events == 0


@pytest.mark.parametrize("graph", [7, [], {"entities": 7}, "x"])
def test_graph_of_mif_is_ignored_whatever_its_type(memory: Memory, graph: object) -> None:
    document = {**DOCUMENTS["mif"][1], "knowledge_graph": graph}
    taken = memory.bundles.import_from("mif", json.dumps(document).encode())
    assert (taken.own, taken.problems) == (1, ())
