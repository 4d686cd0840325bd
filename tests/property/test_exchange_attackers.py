"""Any content of another program's files gives records, named problems or one of our errors, never another
exception."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.keys import is_key, key_of_foreign_name
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.errors import IpfsmemError
from ipfsmem.exchange.importing import ReaderResult, gather
from ipfsmem.exchange.places import Files, one_file
from ipfsmem.exchange.programs import PROGRAMS, reader
from ipfsmem.memory import Memory
from tests.support.effort import THOROUGH, cases
from tests.support.exchange_lab import DOCUMENTS, MARKDOWN, REMEMBERED, TEXTS, initrunner_db

quick = settings(max_examples=cases(40, 2000), deadline=None)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from(["\ud800", "\x00", "9999-99-99", "0001-01-01T00:00:00+23:59", "-" * 300, 10**400, -1e300, 1e18, float("nan"), "2026-08-01", "🙂" * 200]),
)  # fmt: skip
values = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)), max_leaves=8
)  # fmt: skip


def attempt(program: str, files: Files) -> ReaderResult | None:
    """Return the rendered records of a reader; None if it refuses."""
    try:
        found = gather(reader(program)(files), program)
    except IpfsmemError as error:
        assert str(error)
        return None
    for record in found.records:
        try:
            record.render()
            if record.file_name:
                assert is_key(key_of_foreign_name(record.file_name).key)
        except IpfsmemError:
            pass
    assert all(isinstance(problem, str) and problem for problem in found.problems)
    return found


def nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        found += nodes(one, (*path, name))
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return the document with another value in one place."""
    if not path:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[path[0]] = changed(value[path[0]], path[1:], new)
    return made


@pytest.mark.parametrize("program", sorted(DOCUMENTS))
def test_any_value_in_a_document_is_imported_or_refused(program: str) -> None:
    called, document = DOCUMENTS[program]
    places = nodes(document)

    @quick
    @given(st.sampled_from(places), values)
    def run(place: tuple[Any, ...], value: Any) -> None:
        attempt(program, one_file(called, json.dumps(changed(document, place, value)).encode()))

    run()


#: Fields that mark a message as remembered, or a record as deleted, are not side fields.
MEANING = {"chatgpt": {"recipient", "role", "author"}, "mcp-memory": {"type"}}


def said(found: ReaderResult) -> bytes:
    return b"\n".join(record.render() for record in found.records)


@pytest.mark.parametrize("program", sorted(DOCUMENTS))
def test_texts_are_imported_with_any_side_field(program: str) -> None:
    called, document = ("memories.json", REMEMBERED) if program == "claude" else DOCUMENTS[program]
    texts = [place for place in nodes(document) if TEXTS[program] & set(place)]
    sides = [
        place
        for place in nodes(document)
        if not (TEXTS[program] | MEANING.get(program, set())) & set(place)
        and not any(text[: len(place)] == place for text in texts)
    ]
    assert len(sides) > 1
    whole = gather(reader(program)(one_file(called, json.dumps(document).encode())), program)
    wanted = [
        (record.text.splitlines()[0] if record.text else parse_memory(record.render()).body).encode()
        for record in whole.records
    ]
    assert all(wanted) and wanted

    @quick
    @given(st.sampled_from(sides), values)
    def run(place: tuple[Any, ...], value: Any) -> None:
        data = json.dumps(changed(document, place, value)).encode()
        found = gather(reader(program)(one_file(called, data)), program)
        rendered = said(found)
        assert all(text in rendered for text in wanted)
        assert all(len(parse_memory(record.render()).body) for record in found.records)

    for odd in (
        17,
        True,
        None,
        ["a", 5],
        {"a": {"b": 1}},
        "x" * 5000,
        "no date",
        10**400,
        "\ud800",
        [[]],
        0.5,
    ):
        for place in sides:
            run.hypothesis.inner_test(place, odd)
    run()


@pytest.mark.parametrize("program", sorted(DOCUMENTS))
def test_truncated_or_flipped_bytes_are_imported_or_refused(program: str) -> None:
    called, document = DOCUMENTS[program]
    whole = json.dumps(document).encode()

    @quick
    @given(st.integers(0, len(whole)), st.integers(0, len(whole) - 1), st.binary(max_size=3))
    def run(end: int, at: int, put: bytes) -> None:
        attempt(program, one_file(called, whole[:end]))
        attempt(program, one_file(called, whole[:at] + put + whole[at + len(put) :]))

    run()


fronts = st.lists(
    st.sampled_from(["---", "type: x", "title: [a", "a: &a [1]", "b: *a", "<<: *a", "tags: {a: 1}", "{", "? x", "metadata:", "  type: y", "\x00", "name: \ud800", "#", "x" * 5000, "a: 1e999", "a: .nan", "!!python/object:os.system x"]),
    max_size=8,
)  # fmt: skip


@pytest.mark.parametrize("program", MARKDOWN)
def test_random_markdown_is_imported_or_refused(program: str) -> None:
    @quick
    @given(st.lists(st.tuples(st.text(max_size=20), fronts, st.binary(max_size=20)), min_size=1, max_size=3))
    def run(made: list[tuple[str, list[str], bytes]]) -> None:
        files = {
            f"{name}.md": b"---\n" + "\n".join(lines).encode(errors="surrogatepass") + b"\n---\n" + body
            for name, lines, body in made
        }
        attempt(program, Files("folder", False, tuple(files), files.__getitem__))

    run()


@quick
@given(data=st.data())
def test_changed_database_bytes_are_imported_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = _database(tmp_path_factory)
    flips = data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=12))
    end = data.draw(st.integers(0, len(whole)))
    made = bytearray(whole)
    for at, byte in flips:
        made[at] = byte
    attempt("initrunner", one_file("a.db", bytes(made)))
    attempt("initrunner", one_file("a.db", whole[:end]))


_made: list[bytes] = []


def _database(factory: pytest.TempPathFactory) -> bytes:
    if not _made:
        _made.append(initrunner_db(factory.mktemp("db") / "a.db").read_bytes())
    return _made[0]


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_random_bytes_are_imported_or_refused(program: str) -> None:
    deep = b"[" * 10_000
    for called in (
        "a.json",
        "a.jsonl",
        "a.md",
        "a.db",
        "a.af",
        "conversations.json",
        "memories.json",
        "log.md",
    ):
        for data in (b"", deep, deep + b"]" * 10_000, b'{"a":' * 10_000, b"\xff\xfe{", "{}".encode("utf-16"), b"\xef\xbb\xbf[]", b"\x00" * 100,
                     b"SQLite format 3\0" + b"\xff" * 200, b'["\\ud800"]', b"[1e999]", b"[NaN]", b'{"memories":null,"blocks":null,"results":null,"kv":null}',
                     b"[" + b"9" * 5000 + b"]", b"- " * 1000, b"---\n" + b"a: {" * 5000, b"null", b"[[]]", b"[{}]", b"5", "é".encode("latin-1")):  # fmt: skip
            attempt(program, one_file(called, data))


@pytest.mark.parametrize("program", sorted(DOCUMENTS))
def test_corrupted_export_is_planned_and_written_or_named(program: str, tmp_path: Path) -> None:
    """The dry run reports what the import does, and a second import adds nothing."""
    called, document = DOCUMENTS[program]
    odd = ["\ud800", None, 5, "x" * 990_000, [], {"a": [{}]}, "2026-13-45", "\x00\u2028", -(10**30)]
    with Memory.create("m", "local", home=tmp_path / "m") as memory:
        every = nodes(document)
        for number, place in enumerate(every if THOROUGH else every[:: 1 + len(every) // 15]):
            for value in odd if THOROUGH else odd[number % len(odd) :][:1]:
                path = tmp_path / called
                path.write_text(json.dumps(changed(document, place, value)))
                try:
                    planned = memory.bundles.import_from(program, path, dry_run=True)
                    taken = memory.bundles.import_from(program, path)
                except IpfsmemError:
                    continue
                assert (taken.counts, taken.events, taken.problems) == (
                    planned.counts,
                    planned.events,
                    planned.problems,
                )
                again = memory.bundles.import_from(program, path)
                assert again.own == again.candidates == again.events == 0


def test_hostile_database_schema_is_bounded(tmp_path: Path) -> None:
    """Views, virtual tables, computed columns, triggers, values of other types, a text of 20 MB."""
    schemas = [
        "CREATE VIEW memories AS WITH RECURSIVE n(content) AS (SELECT 1 UNION ALL SELECT content + 1 FROM n) SELECT content FROM n",
        "CREATE VIRTUAL TABLE memories USING fts4(content)",
        "CREATE TABLE memories (content TEXT, category TEXT GENERATED ALWAYS AS (hex(zeroblob(100000000))) VIRTUAL)",
        "CREATE TABLE memories (content BLOB); INSERT INTO memories VALUES (5), (x'ff'), (NULL), (1e999), ('fine')",
        "CREATE TABLE memories (content TEXT); INSERT INTO memories VALUES (hex(zeroblob(10000000)))",
        "CREATE TABLE memories (\"a\"\"b\" TEXT)",
        "CREATE TABLE memories (content TEXT); PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql='CREATE TABLE memories (content TEXT, content2 TEXT AS (load_extension(''x'')))'",
    ]  # fmt: skip
    for number, schema in enumerate(schemas):
        path = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(path)) as db:
            db.executescript(schema)
        found = attempt("initrunner", one_file("a.db", path.read_bytes()))
        assert found is None or len(found.records) <= 3
    assert not [one for one in tmp_path.iterdir() if one.suffix != ".db"]
