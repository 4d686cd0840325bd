"""Export, import and fork: transferred data, omitted data, and the report of omissions."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.causal.value import Loc, sign_value
from ipfsmem.errors import FormatError, IncompleteError, UsageError
from ipfsmem.files import exporting
from ipfsmem.memory import Memory
from tests.support.device_lab import (
    SHORT,
    TOO_LONG,
    Forger,
    Lab,
    all_texts,
    body,
    events,
    of_another,
    replaced,
    texts,
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "m") as made:
        yield made


def blob(files: Mapping[str, str], timeline: Sequence[Mapping[str, Any]] = ()) -> bytes:
    return json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": timeline}).encode()


def _contested(lab: Lab) -> Memory:
    """A device with a conflict in `tone`, and a text behind the forget of `music`."""
    a = lab.create("a")
    a.write("music", "m1")
    lab.sync(a)
    c = lab.restore("c")
    lab.settle(a, c)
    a.write("tone", "A's version")
    lab.clock.advance(1)
    c.write("tone", "C's version")
    a.forget("music")
    c.write("music", "m2, written meanwhile")
    lab.settle(a, c)
    return a


def _lose(memory: Memory, key: str) -> None:
    """Mark the texts of a key as not downloaded."""
    for value in memory.replica.store.entry(f"m/{key}").values():
        assert value.loc is not None
        with memory.replica.transaction():
            memory.replica.db.connection.execute(
                "DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),)
            )


# -- export -----------------------------------------------------------------------------------------------------------


def test_export_file_names_omitted_alternatives(lab: Lab) -> None:
    a = _contested(lab)
    files = [file for item in a.conflicts() for file in item.files]
    assert len(files) == 2
    with pytest.raises(IncompleteError) as refused:
        a.bundles.export()
    assert all(file in str(refused.value) for file in files) and "2 conflict copies" in str(refused.value)
    assert json.loads(a.bundles.export(partial=True))["files"].keys() == {"tone.md"}


def test_folder_export_includes_alternatives_and_import_restores_them(lab: Lab, tmp_path: Path) -> None:
    """Alternatives behind a forget are included and stay forgotten."""
    a = _contested(lab)
    a.bundles.export_folder(tmp_path / "out")
    with Memory.create("z", "local", home=tmp_path / "z") as z:
        done = z.bundles.import_(tmp_path / "out")
        assert (done.added, done.kept_beside, done.still_forgotten, done.problems) == (1, 1, 1, ())
        assert z.files() == a.files()
        assert texts(z) == texts(a)
        again = z.bundles.import_(tmp_path / "out")
        assert (again.added, again.kept_beside, again.unchanged + again.still_forgotten) == (0, 0, 3)
        assert [(item.files, item.forgotten) for item in z.conflicts()] == [
            (item.files, item.forgotten) for item in a.conflicts()
        ]


def test_alternative_file_without_its_memory_is_imported_as_a_memory(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "tone.conflict-00000000.md").write_text("only this\n")
    assert memory.bundles.import_(tmp_path / "in").added == 1
    assert memory.files() == {"tone": b"only this\n"}
    assert (
        memory.bundles.import_(blob({"tone.md": "main\n", "tone.conflict-11111111.md": "copy\n"})).kept_beside
        == 2
    )


def test_export_counts_missing_texts(lab: Lab, tmp_path: Path) -> None:
    a = lab.create("a")
    a.write("tone", "t")
    a.write("music", "m")
    a.note("waved")
    _lose(a, "music")
    with pytest.raises(IncompleteError, match=r"1 memory that is not fetched \(music\)"):
        a.bundles.export()
    with pytest.raises(IncompleteError, match="music"):
        a.bundles.export_folder(tmp_path / "out")
    with pytest.raises(IncompleteError, match="music"):
        a.fork("copy", home=tmp_path / "f")
    assert not (tmp_path / "f").exists()
    ((_, entry),) = a.replica.store.segments()
    (value,) = entry.values()
    assert value.loc is not None
    with a.replica.transaction():
        a.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),))
    left = a.bundles.left_out()
    assert (left.not_fetched, left.segments) == (("music",), 1)
    with a.fork("copy", home=tmp_path / "f", partial=True) as copy:
        assert copy.files() == {"tone": a.files()["tone"]}


def test_fork_preserves_conflicts_and_forgotten_texts(lab: Lab, tmp_path: Path) -> None:
    a = _contested(lab)
    with a.fork("copy", home=tmp_path / "f") as copy:
        assert texts(copy) == texts(a) and copy.files() == a.files()
        assert [(i.key, i.files, i.forgotten) for i in copy.conflicts()] == [
            (i.key, i.files, i.forgotten) for i in a.conflicts()
        ]
        assert events(copy) == sorted([*events(a), "forked"])


@pytest.mark.parametrize("bytes_", [b"\xff\xfe no text", b"---\n" + b"name: x\n" * 1000 + b"---\n"])
@pytest.mark.parametrize("another", [False, True])
def test_invalid_stored_text_does_not_block_an_export(
    lab: Lab, tmp_path: Path, another: bool, bytes_: bytes
) -> None:
    a = lab.create("a")
    a.write("tone", "t")
    lab.sync(a)
    b = lab.restore("b")
    if another:
        of_another(a, b)
    lab.settle(a, b)
    forger = Forger(b)
    under = forger.next_dot()
    digest, stored = sha256(bytes_).hexdigest(), b.replica.codec.seal_body("m/odd", bytes_)
    made = replaced(
        forger.value("m/odd", under, "x")[0],
        body=digest,
        loc=Loc(stored[0], sha256(stored[1]).hexdigest(), len(stored[1])),
    )
    signed = sign_value(b.replica.device.signer, "m/odd", under, replaced(made, s=""), forger.vault)
    block = (sha256(stored[1]).digest(), stored[1])
    forger.put({"m/odd": {under: signed}}, ctx={b.device: int(under[17:])}, blocks=[block])
    forger.publish()
    assert lab.sync(a).entries_changed == 1
    with pytest.raises(IncompleteError, match=r"bytes are no text \(odd\)"):
        a.bundles.export()
    blob = json.loads(a.bundles.export(partial=True))
    assert "tone.md" in blob["files"] and "odd.md" not in blob["files"] and "others" not in blob
    assert a.bundles.export_okf(tmp_path / "okf", partial=True).left_out.no_text == ("odd",)
    assert (tmp_path / "okf" / "tone.md").is_file() and not (tmp_path / "okf" / "odd.md").exists()
    a.bundles.export_folder(tmp_path / "out")
    assert bytes_ in [file.read_bytes() for file in (tmp_path / "out").rglob("*odd*")]


# -- import -----------------------------------------------------------------------------------------------------------


def test_fifth_concurrent_text_is_reported_and_the_rest_imported(memory: Memory) -> None:
    for i in range(4):
        assert memory.bundles.import_(blob({"tone.md": f"v{i}"})).problems == ()
    done = memory.bundles.import_(blob({"a.md": "a", "tone.md": "v4", "z.md": "z"}))
    assert (done.added, len(done.problems)) == (2, 1) and "tone" in done.problems[0]
    assert memory.files().keys() == {"a", "tone", "z"} and len(texts(memory)["tone"]) <= 4
    (item,) = memory.conflicts()
    memory.resolve("tone", keep=True, seen=item)
    assert memory.bundles.import_(blob({"tone.md": "v4"})).kept_beside == 1


def test_event_with_a_reused_id_is_imported(lab: Lab) -> None:
    """As after a restored machine snapshot."""
    a = lab.create("a")
    a.note("e1")
    lab.save("a", "yesterday")
    a.note("lost_with_the_rollback", text="important")
    exported = a.bundles.export()
    a = lab.put_back("a", "yesterday")
    a.note("after_the_rollback")
    assert a.bundles.import_(exported).events == 1
    assert events(a) == ["after_the_rollback", "e1", "lost_with_the_rollback"]
    assert a.bundles.import_(exported).events == 0 and a.bundles.import_(a.bundles.export()).events == 0


def test_event_returning_under_another_id_is_not_duplicated(memory: Memory, tmp_path: Path) -> None:
    memory.note("waved", style="enthusiastic")
    with Memory.create("z", "local", home=tmp_path / "z") as z:
        z.bundles.import_(memory.bundles.export())
        assert z.timeline.read() != memory.timeline.read()
        assert memory.bundles.import_(z.bundles.export()).events == 0
    assert events(memory) == ["waved"]


def test_replacing_import_shows_forgotten_and_alternative_texts(memory: Memory) -> None:
    memory.write("s", "the text")
    backup = memory.bundles.export()
    memory.forget("s")
    merged = memory.bundles.import_(backup)
    assert memory.read("s") is None and merged.still_forgotten == 1
    assert memory.bundles.import_(backup, strategy="replace").replaced == 1
    assert body(memory, "s") == "the text" and not memory.conflicts()
    memory.bundles.import_(blob({"k.md": "one"}))
    memory.bundles.import_(blob({"k.md": "two"}))
    assert memory.bundles.import_(blob({"k.md": "two"}), strategy="replace").replaced == 1
    assert memory.files()["k"] == b"two" and not memory.conflicts()
    assert memory.bundles.import_(blob({"k.md": "two"}), strategy="replace").unchanged == 1


def test_import_replace_of_two_texts_for_one_key_keeps_both(memory: Memory) -> None:
    memory.write_text("foo-9091a707", b"mine\n")
    done = memory.bundles.import_(blob({"foo-9091a707.md": "two\n", "Foo.md": "one\n"}), strategy="replace")
    assert (done.replaced, done.kept_beside) == (1, 1)
    assert memory.files()["foo-9091a707"] == b"two\n" and len(all_texts(memory)) == 2


def test_prune_forgets_nothing_while_a_record_is_unreadable(memory: Memory) -> None:
    memory.write("tone", "mine")
    with pytest.raises(FormatError, match="tone"):
        memory.bundles.import_(
            blob({"tone.md": "x" * 1_000_000, "a.md": "a"}), strategy="replace", prune=True
        )
    assert body(memory, "tone") == "mine" and memory.read("a") is None


@pytest.mark.parametrize(
    "text",
    [
        '{"files":{"a.md":"one","b.md":"x","a.md":"two"}}',
        '{"files":{"a.md":"one"},"files":{"b.md":"two"}}',
        '{"files":{"a.md":"one","a\\u002emd":"two"}}',
        '{"timeline":[],"files":{"a.md":"\\ud800","b.md":"1","b.md":"2"}}',
    ],
)
def test_duplicate_name_in_an_export_file_is_an_error(memory: Memory, text: str) -> None:
    with pytest.raises(FormatError, match="twice"):
        memory.bundles.import_(text)
    assert memory.files() == {}


def test_event_with_a_duplicate_field_is_kept_as_raw_text(memory: Memory) -> None:
    line = '{"ts":"2026-04-14T12:00:00.000Z","type":"t","note":"first","note":"second"}'
    nested = '{"ts":"2026-04-14T12:00:00.000Z","type":"t","in":{"a":1,"a":2},"text":"with \\":"}'
    fine = '{"ts":"2026-04-14T12:00:00.000Z","type":"t","in":{"a":{"a":2}},"text":"with \\": in it"}'
    memory.bundles.import_(f'{{"timeline":[{line},{nested},{fine}]}}')
    assert {event.get("raw") for event in memory.timeline.read()} == {line, nested, None}


@pytest.mark.parametrize("form", ["folder", "blob"])
def test_overlong_line_is_reported_and_the_rest_imported(memory: Memory, tmp_path: Path, form: str) -> None:
    twins = [json.loads(TOO_LONG) | {"id": "q", "x": letter * 70_000} for letter in "yz"]
    events = [json.loads(TOO_LONG), *twins, json.loads(SHORT)]
    if form == "blob":
        done = memory.bundles.import_(blob({"a.md": "text\n"}, events))
    else:
        base = tmp_path / "b" / "memory"
        (base / "timeline").mkdir(parents=True)
        (base / "a.md").write_text("text\n")
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (base / "timeline" / "2026-01-01.jsonl").write_text(lines)
        done = memory.bundles.import_(tmp_path / "b")
    assert (done.added, done.events) == (1, 1)
    assert [event["type"] for event in memory.timeline.read()] == ["s"]
    (problem,) = done.problems
    assert "3 lines of more than 65,536 bytes" in problem


def test_line_that_is_not_an_event_has_the_day_of_its_file(memory: Memory, tmp_path: Path) -> None:
    """Format 1.4: equal lines in the files of two days are two events."""
    place = tmp_path / "theirs"
    base = place / "timeline"
    base.mkdir(parents=True)
    for name in ("2026-01-01", "2026-01-02", "2026-01-40"):
        (base / f"{name}.jsonl").write_text("no event\nno event\n")
    memory.bundles.import_(place)
    said = [(event["ts"][:10], event["raw"]) for event in memory.timeline.read()]
    assert said == [(day, "no event") for day in ("1970-01-01", "2026-01-01", "2026-01-02")]
    assert memory.bundles.import_(place).events == 0


@pytest.mark.skipif(not hasattr(os, "fwalk") or not hasattr(os, "geteuid"), reason="no such folders here")
def test_unreadable_folder_is_reported(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b" / "memory").mkdir(parents=True)
    (tmp_path / "b" / "memory" / "a.md").write_text("text\n")
    closed = tmp_path / "b" / "scopes" / "work"
    (closed / "memory").mkdir(parents=True)
    (closed / "memory" / "c.md").write_text("text of a scope\n")
    if os.geteuid() == 0:  # root may read every folder
        real, inode = os.open, (closed / "memory").stat().st_ino

        def refused(path: Any, *args: Any, **more: Any) -> int:
            fd = real(path, *args, **more)
            if os.fstat(fd).st_ino == inode:
                os.close(fd)
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return fd

        monkeypatch.setattr(os, "open", refused)
    else:
        (closed / "memory").chmod(0)
    try:
        done = memory.bundles.import_(tmp_path / "b")
    finally:
        (closed / "memory").chmod(0o700)
    assert done.added == 1
    (problem,) = done.problems
    assert problem == "a folder called memory was left out with all that is in it: permission denied"


def test_link_in_place_of_scope_json_is_reported(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "b" / "memory").mkdir(parents=True)
    (tmp_path / "b" / "memory" / "a.md").write_text("text\n")
    (tmp_path / "b" / "scope.json").symlink_to(tmp_path / "elsewhere")
    done = memory.bundles.import_(tmp_path / "b")
    assert done.added == 1
    assert done.problems == ("scope.json was not read: cannot read scope.json: it is a symbolic link",)


@pytest.mark.parametrize("above", ["m/m", "m", "."])
@pytest.mark.parametrize("program", [None, "claude-code"])
def test_vault_folder_cannot_be_imported(
    memory: Memory, tmp_path: Path, above: str, program: str | None
) -> None:
    memory.write("tone", "Short sentences.")
    (tmp_path / "m" / "m" / "left.md").write_text("Left behind by somebody.\n")
    place = tmp_path / above
    with pytest.raises(UsageError, match=r"holds (a memory itself|the vaults of this device)"):
        memory.bundles.import_from(program, place) if program else memory.bundles.import_(place)
    assert texts(memory) == {"tone": {"Short sentences."}}


def test_state_db_marks_a_vault_only_next_to_a_device_key(memory: Memory, tmp_path: Path) -> None:
    """Other programs use the same file name."""
    place = tmp_path / "theirs"
    place.mkdir()
    (place / "tone.md").write_text("Short sentences.\n")
    (place / "state.db").write_bytes(b"SQLite format 3\0")
    assert memory.bundles.import_(place).added == 1
    memory.folders.attach(place)
    (place / "device.key").write_bytes(b"x")
    with pytest.raises(UsageError, match="holds a memory itself"):
        memory.bundles.import_(place)


def test_home_of_other_vaults_cannot_be_imported(memory: Memory, tmp_path: Path) -> None:
    with Memory.create("theirs", "local", home=tmp_path / "other") as other:
        other.write("music", "Cello.")
    for place in (tmp_path / "other", tmp_path / "other" / "theirs"):
        with pytest.raises(UsageError, match="holds"):
            memory.bundles.import_(place)
    assert memory.bundles.import_(tmp_path / "other" / "theirs" / "memory").added == 1


def test_invalid_arguments_of_export_and_import_are_named(memory: Memory) -> None:
    for export in (memory.bundles.export_zip, memory.bundles.export_car, memory.bundles.export_published):
        with pytest.raises(UsageError, match=r"out is a file opened for bytes \(mode wb\), not StringIO"):
            export(io.StringIO())  # type: ignore[operator]
    with pytest.raises(UsageError, match=r"maps is a mapping of texts or None, not dict\[str, int\]"):
        memory.bundles.import_("{}", maps={"": 5})  # type: ignore[dict-item]


def test_export_to_an_empty_path_is_refused(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    for export in (memory.bundles.export_folder, memory.bundles.export_okf):
        with pytest.raises(UsageError, match="folder is empty"):
            export("")
    assert not any(empty.iterdir())


def test_export_into_a_folder_filled_meanwhile_leaves_it_unchanged(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write("tone", "Be brief.", description="How to answer")
    folder = tmp_path / "folder"
    folder.mkdir()
    flush = exporting.flush_to_disk

    def fill(fd: int) -> None:
        flush(fd)
        (folder / "memory").mkdir(exist_ok=True)
        (folder / "memory" / "mine.md").write_text("mine")

    monkeypatch.setattr(exporting, "flush_to_disk", fill)
    monkeypatch.setattr(exporting, "is_flushed_together", lambda files: False)
    with pytest.raises(UsageError, match="not an empty folder"):
        memory.bundles.export_folder(folder)
    assert [one.name for one in folder.rglob("*") if one.is_file()] == ["mine.md"]
