"""Linked folders edited by people and programs: edits become writes, and other files are ignored."""

from __future__ import annotations

import errno
import os
import shutil
import unicodedata
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ipfsmem.device.tables.sealed_tracked_files import tracked_files_of
from ipfsmem.device.tables.tracked_files import Shows
from ipfsmem.device.writing import Writing
from ipfsmem.errors import ChangedError, FormatError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.vault.home import Home
from tests.support.costs import cost
from tests.support.files_lab import Lab


@pytest.fixture
def lab(tmp_path: Path, mode: ModeName) -> Lab:
    made = Lab(tmp_path, mode=mode)
    made.start()
    return made


def dots(lab: Lab, key: str) -> set[str]:
    with lab.memory.replica.reading():
        return set(lab.memory.replica.store.entry(f"m/{key}"))


def test_write_creates_the_file_at_once(lab: Lab) -> None:
    lab.memory.write("tone", "direct", name="Tone", description="likes it direct", type="feedback")
    assert lab.files()["tone.md"] == lab.memory.read("tone").data
    assert b"- [Tone](tone.md) \xe2\x80\x94 likes it direct\n" in lab.files()["MEMORY.md"]


def test_edit_becomes_a_write_with_the_exact_bytes_of_the_file(lab: Lab) -> None:
    lab.memory.write("tone", "direct")
    odd = b"\xef\xbb\xbf---\r\nname: 'Tone'\r\n---\r\nvery direct\r\n\r\n\r\nno end"
    (lab.dir / "tone.md").write_bytes(odd)
    lab.look()
    assert lab.memory.read("tone").data == odd
    assert lab.files()["tone.md"] == odd
    assert len(dots(lab, "tone")) == 1


def test_unchanged_file_with_a_new_date_is_not_an_edit(lab: Lab) -> None:
    lab.memory.write("tone", "direct")
    before = dots(lab, "tone")
    data = (lab.dir / "tone.md").read_bytes()
    (lab.dir / "tone.md").write_bytes(data)
    os.utime(lab.dir / "tone.md", (1, 1))
    lab.look()
    assert dots(lab, "tone") == before
    lab.again()
    assert dots(lab, "tone") == before


def test_edit_of_the_same_size_within_the_same_instant_is_seen(lab: Lab) -> None:
    lab.memory.write("tone", "aaaa")
    lab.look()
    path = lab.dir / "tone.md"
    stat = path.stat()
    path.write_bytes(path.read_bytes().replace(b"aaaa", b"bbbb"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    lab.look()
    assert b"bbbb" in lab.memory.read("tone").data


def test_new_file_becomes_a_memory_and_is_unchanged(lab: Lab) -> None:
    path = lab.dir / "role.md"
    path.write_bytes(b"engineer")
    inode = path.stat().st_ino
    lab.look()
    assert lab.memory.read("role").data == b"engineer"
    assert path.stat().st_ino == inode


def test_read_imports_pending_edits_of_its_file_first(lab: Lab) -> None:
    lab.memory.write("tone", "direct")
    (lab.dir / "tone.md").write_bytes(b"edited")
    assert lab.memory.read("tone").data == b"edited"
    (lab.dir / "new.md").write_bytes(b"new")
    assert lab.memory.read("new").data == b"new"


def test_list_imports_edits_older_than_a_second(lab: Lab) -> None:
    (lab.dir / "new.md").write_bytes(b"new")
    lab.memory._open.files._looked -= 5  # type: ignore[union-attr]
    assert [item.key for item in lab.memory.list()] == ["new"]


def test_write_without_reading_does_not_replace_an_unseen_file_edit(lab: Lab) -> None:
    lab.memory.write_text("tone", b"one\n")
    (lab.dir / "tone.md").write_bytes(b"by hand\n")
    lab.memory.write_text("tone", b"by program\n")
    assert lab.texts() == {b"by hand\n", b"by program\n"}
    assert lab.memory.conflicts()
    copies = [data for file, data in lab.files().items() if ".conflict-" in file]
    assert {*copies, lab.files()["tone.md"]} == {b"by hand\n", b"by program\n"}


def test_if_match_refuses_when_the_file_was_edited(lab: Lab) -> None:
    reading = lab.memory.write_text("tone", b"one\n")
    (lab.dir / "tone.md").write_bytes(b"by hand\n")
    with pytest.raises(ChangedError):
        lab.memory.write_text("tone", b"two\n", if_match=reading.sha256)


# -- conflict copies ---------------------------------------------------------------------------------------------------


def conflicted(lab: Lab) -> tuple[bytes, str]:
    """Create two texts of `tone` that do not merge: the shown one, and the file of the other."""
    lab.memory.write_text("tone", b"mine\n")
    lab.sibling("tone", b"theirs\n")
    copy = next(file for file in lab.files() if ".conflict-" in file)
    return lab.files()["tone.md"], copy


def test_trace_06_fixing_a_typo_keeps_the_alternative(lab: Lab) -> None:
    """In plain mode, fixing a typo in tone.md must not delete tone.conflict-*.md."""
    shown, copy = conflicted(lab)
    other = lab.files()[copy]
    (lab.dir / "tone.md").write_bytes(shown + b"fixed\n")
    lab.look()
    assert lab.files()["tone.md"] == shown + b"fixed\n"
    assert lab.files()[copy] == other
    assert lab.texts() == {shown + b"fixed\n", other}


def test_edited_conflict_copy_replaces_only_that_alternative(lab: Lab) -> None:
    shown, copy = conflicted(lab)
    (lab.dir / copy).write_bytes(b"copy edited\n")
    lab.look()
    assert lab.texts() == {shown, b"copy edited\n"}
    assert copy not in lab.files()
    assert set(lab.files().values()) >= {shown, b"copy edited\n"}


def test_deleted_conflict_copy_removes_that_alternative(lab: Lab) -> None:
    shown, copy = conflicted(lab)
    (lab.dir / copy).unlink()
    lab.look()
    assert len(lab.texts()) == 2
    lab.clock.advance(61)
    lab.look()
    assert lab.texts() == {shown}
    assert not lab.memory.conflicts()


def test_conflict_copy_written_over_the_memory_resolves_the_conflict(lab: Lab) -> None:
    _, copy = conflicted(lab)
    data = lab.files()[copy]
    lab.clock.advance(61)
    shutil.copyfile(lab.dir / copy, lab.dir / "tone.md")
    lab.look()
    assert lab.texts() == {data}
    assert set(lab.files()) == {"tone.md", "MEMORY.md"}


def test_conflict_copies_of_another_replica_become_alternatives(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.dir.mkdir(parents=True)
    (lab.dir / "tone.md").write_bytes(b"a\n")
    (lab.dir / "tone.conflict-00000000.md").write_bytes(b"b\n")
    lab.start()
    assert lab.texts() == {b"a\n", b"b\n"}
    assert lab.memory.read("tone").data == b"a\n"


# -- deletes -----------------------------------------------------------------------------------------------------------


def many(lab: Lab, count: int) -> None:
    for n in range(count):
        (lab.dir / f"m{n}.md").write_bytes(b"text %d\n" % n)
    lab.look()


def test_missing_file_is_deleted_after_two_scans_a_minute_apart(lab: Lab) -> None:
    many(lab, 4)
    (lab.dir / "m1.md").unlink()
    for _ in range(5):
        lab.look()
        lab.clock.advance(11)
    assert lab.memory.read("m1") is not None
    assert "m1.md" not in lab.files()
    lab.clock.advance(10)
    lab.look()
    assert lab.memory.read("m1") is None
    assert len(lab.texts()) == 3


def test_file_that_returns_within_a_minute_is_not_deleted(lab: Lab) -> None:
    many(lab, 4)
    (lab.dir / "m1.md").rename(lab.dir / ".m1.tmp")
    lab.look()
    (lab.dir / ".m1.tmp").rename(lab.dir / "m1.md")
    lab.look()
    lab.clock.advance(100)
    (lab.dir / "m1.md").unlink()
    lab.look()
    assert lab.memory.read("m1") is not None


def test_new_text_from_elsewhere_restores_a_missing_file(lab: Lab) -> None:
    many(lab, 4)
    (lab.dir / "m1.md").unlink()
    lab.look()
    lab.memory.write_text("m1", b"newer\n")
    assert lab.files()["m1.md"] == b"newer\n"
    lab.clock.advance(100)
    lab.look()
    assert lab.memory.read("m1").data == b"newer\n"


@pytest.mark.slow
def test_trace_17_slowly_removed_folder_deletes_no_memory(lab: Lab) -> None:
    """A folder is unmounted, or removed slowly under a watcher (a quarter of the rest in each scan)."""
    many(lab, 100)
    left = 100
    while left:
        for n in range(left - max(1, left // 4), left):
            (lab.dir / f"m{n}.md").unlink()
        left -= max(1, left // 4)
        for _ in range(2):
            lab.look()
            lab.clock.advance(61)
    lab.look()
    assert len(lab.texts()) == 75
    assert any("missing" in notice for notice in lab.memory.status().notices)
    assert lab.memory.folders.restore_files() == 75
    assert len([file for file in lab.files() if file.startswith("m")]) == 75
    assert not lab.memory.status().notices


def test_deletion_of_several_files_is_limited_per_day(lab: Lab) -> None:
    many(lab, 6)
    for n in range(3):
        (lab.dir / f"m{n}.md").unlink()
    lab.look()
    lab.clock.advance(61)
    lab.look()
    assert len(lab.texts()) == 3
    (lab.dir / "m3.md").unlink()
    lab.look()
    lab.clock.advance(61)
    lab.look()
    assert len(lab.texts()) == 3
    lab.clock.advance(86400)
    lab.look()
    assert len(lab.texts()) == 2


def test_removed_own_folder_is_written_again(lab: Lab) -> None:
    many(lab, 6)
    shutil.rmtree(lab.dir)
    lab.look()
    assert len(lab.texts()) == 6
    assert len(lab.files()) == 7


def test_unmounted_linked_folder_deletes_no_memory(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.start()
    many(lab, 6)
    away = tmp_path / "away"
    lab.dir.rename(away)
    lab.dir.mkdir()
    for _ in range(3):
        lab.look()
        lab.clock.advance(100)
    lab.memory.write_text("m1", b"while it was away\n")
    assert list(lab.dir.iterdir()) == []
    assert len(lab.texts()) == 6
    assert "mounted" in lab.memory.status().notices[0]
    lab.dir.rmdir()
    away.rename(lab.dir)
    lab.look()
    assert lab.files()["m1.md"] == b"while it was away\n"
    assert not lab.memory.status().notices
    assert len(lab.texts()) == 6


def test_lost_marker_is_restored_where_files_are_known(
    tmp_path: Path, mode: ModeName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipfsmem.files.folder.RACY", 0)
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.start()
    many(lab, 6)
    lab.look()
    shutil.rmtree(lab.dir / ".ipfsmem")
    (lab.dir / "m2.md").write_bytes(b"edited\n")
    lab.look()
    assert lab.memory.read("m2").data == b"edited\n"
    assert (lab.dir / ".ipfsmem" / "marker").exists()


def test_folder_of_another_vault_is_refused(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.start()
    many(lab, 2)
    before = lab.files()
    with pytest.raises(UsageError, match="another vault"):
        Memory.create(
            "y", "local", home=Home(folder=lab.home, environment=lab.environment), memory_dir=lab.dir
        )
    assert not (lab.home / "y").exists()
    other = Memory.create("y", "local", home=Home(folder=lab.home, environment=lab.environment))
    with pytest.raises(UsageError, match="another vault") as refused:
        other.folders.attach(lab.dir)
    assert "--take-over" in refused.value.hint
    other.write_text("z", b"z\n")
    assert lab.files() == before
    other.close()


def test_forget_removes_the_file_and_its_copies(lab: Lab) -> None:
    conflicted(lab)
    lab.memory.forget("tone")
    assert set(lab.files()) == {"MEMORY.md", "timeline/2026-04-12.jsonl"}
    lab.look()
    assert lab.memory.read("tone") is None
    (lab.dir / "tone.md").write_bytes(b"remembered anew\n")
    lab.look()
    assert lab.memory.read("tone").data == b"remembered anew\n"


# -- ignored files ----------------------------------------------------------------------------------------------------


def test_links_pipes_huge_files_and_other_encodings_are_named(lab: Lab, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_bytes(b"not ours\n")
    (lab.dir / "link.md").symlink_to(secret)
    os.mkfifo(lab.dir / "pipe.md")
    (lab.dir / "huge.md").write_bytes(b"x" * (960 * 1024 + 1))
    (lab.dir / "latin.md").write_bytes("Überraschung".encode("latin-1"))
    (lab.dir / "folder.md").mkdir()
    (lab.dir / "head.md").write_bytes(b"---\nname: " + b"x" * 5000 + b"\n---\n")
    (lab.dir / os.fsdecode(b"bad\xff.md")).write_bytes(b"name\n")
    (lab.dir / "fine.md").write_bytes(b"fine\n")
    lab.look()
    assert lab.texts() == {b"fine\n"}
    notices = "\n".join(lab.memory.status().notices)
    for name in ("link.md", "pipe.md", "huge.md", "latin.md", "folder.md", "head.md", "bad"):
        assert name in notices
    for name in ("link", "pipe", "huge", "latin", "folder", "head"):
        lab.memory.write_text(name, b"from the api\n")
    assert secret.read_bytes() == b"not ours\n"
    assert (lab.dir / "link.md").is_symlink()
    assert (lab.dir / "latin.md").read_bytes() == "Überraschung".encode("latin-1")
    assert (lab.dir / "huge.md").stat().st_size == 960 * 1024 + 1
    assert lab.memory.read("latin").data == b"from the api\n"
    (lab.dir / "link.md").unlink()
    lab.look()
    assert lab.files()["link.md"] == b"from the api\n"


def test_hidden_files_other_files_and_folders_are_ignored(lab: Lab) -> None:
    (lab.dir / ".secret.md").write_bytes(b"no\n")
    (lab.dir / ".tone.md.AbC9xZ").write_bytes(b"half of a file that rsync co")
    (lab.dir / "data.json").write_bytes(b"{}")
    (lab.dir / "sub").mkdir()
    (lab.dir / "sub" / "a.md").write_bytes(b"no\n")
    lab.look()
    assert lab.texts() == set()
    assert "sub" in "\n".join(lab.memory.status().notices)


@pytest.mark.parametrize("time", [1000, 4_000_000_000])
def test_emptied_file_is_imported_after_it_stays_empty(
    lab: Lab, time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one dated by a clock far ahead."""
    monkeypatch.setattr(
        "ipfsmem.files.scan.RACY", 3_600 * 10**9
    )  # the machine may pause for longer than two seconds
    lab.memory.write_text("tone", b"text\n")
    (lab.dir / "tone.md").write_bytes(b"")
    lab.look()
    assert lab.memory.read("tone").data == b"text\n"
    os.utime(lab.dir / "tone.md", (time, time))
    lab.look()
    assert lab.memory.read("tone").data == b""


# -- foreign names and adopted folders ---------------------------------------------------------------------------------


def test_file_with_a_foreign_name_keeps_its_name(lab: Lab) -> None:
    path = lab.dir / "Überraschung Nr 1.md"
    path.write_bytes("---\nname: Ü\n---\n\nText\n".encode())
    lab.look()
    key = "berraschung_nr_1-f95dc973"
    assert [item.key for item in lab.memory.list()] == [key]
    reading = lab.memory.read(key)
    assert reading.file.origin_name == "Überraschung Nr 1.md"
    assert reading.file.name == "Ü" and reading.file.body == "Text"
    assert path.read_bytes() == "---\nname: Ü\n---\n\nText\n".encode()
    assert f"{key}.md" not in lab.files()
    lab.again()
    lab.look()
    assert set(lab.files()) == {"Überraschung Nr 1.md", "MEMORY.md"}
    path.write_bytes("---\nname: Ü\n---\n\nMore\n".encode())
    lab.look()
    assert len(lab.texts()) == 1
    assert lab.memory.read(key).file.body == "More"
    lab.memory.write(key, "From elsewhere")
    assert b"From elsewhere" in path.read_bytes()
    assert f"{key}.md" not in lab.files()
    lab.memory.forget(key)
    assert not path.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no header\n",
        b"---\nnot closed\n",
        b"---\nname: A\n---\n",
        b"---\r\nname: A\r\n---\r\n\r\nText\r\n",
        b"\xef\xbb\xbf---\nname: A\nmetadata:\n  type: user\n---\n\nText",
        b"---\n---\n\n\n\nText\n\n\n",
    ],
)
def test_foreign_name_is_added_to_the_header_without_other_changes(data: bytes) -> None:
    from ipfsmem.bundle.memory_file import parse_memory
    from ipfsmem.bundle.origin_name import with_origin, without_origin

    made = parse_memory(with_origin(data, "A b: c.md"))
    assert made.body == parse_memory(data).body
    assert made.fields == {**parse_memory(data).fields, "origin_name": "A b: c.md"}
    assert with_origin(with_origin(data, "A b: c.md"), "A b: c.md") == with_origin(data, "A b: c.md")
    if not data.startswith(b"---\n---"):  # no header of a file shows a line of ours; an empty one is removed
        shown = without_origin(with_origin(data, "A b: c.md"), "A b: c.md")
        assert shown == data.removeprefix(b"\xef\xbb\xbf")


CLAUDE = b"""---
name: user-role
description: "What they do: embedded engineer"
metadata:
  node_type: memory
  type: user
  originSessionId: 0b3c
---

Works on firmware.
"""


def test_linking_an_agents_folder_changes_no_byte_of_it(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.dir.mkdir(parents=True)
    theirs = {
        "MEMORY.md": b"- [Role](user_role.md) -- mine, not yours\n- [Tests](<Feedback Testing.md>)",
        "user_role.md": CLAUDE,
        "Feedback Testing.md": b"always test\n",
    }
    for name, data in theirs.items():
        (lab.dir / name).write_bytes(data)
    lab.start()
    assert lab.files() == theirs
    assert lab.memory.read("user_role").file.type == "user"
    lab.memory.write_text("new", b"from us\n")
    after = lab.files()
    assert {**after, "MEMORY.md": b""} == {**theirs, "new.md": b"from us\n", "MEMORY.md": b""}
    assert after["MEMORY.md"].startswith(theirs["MEMORY.md"]) and b"](new.md)" in after["MEMORY.md"]
    lab.again()
    assert lab.files() == after
    lab.memory.forget("new")
    assert lab.files() == theirs


def test_new_memories_are_listed_in_the_index_of_an_agent(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.start()
    lab.memory.write_text("a", b"a\n")
    assert b"(a.md)" in lab.files()["MEMORY.md"]
    (lab.dir / "MEMORY.md").write_bytes(lab.files()["MEMORY.md"] + b"- my own line\n")
    lab.memory.write_text("b", b"b\n")
    lab.look()
    assert b"](b.md)" in lab.files()["MEMORY.md"]
    assert lab.files()["MEMORY.md"].endswith(b"- my own line\n")
    assert lab.memory.read("memory-fe1ee863").file.body == "- my own line"
    assert b"my own line" in lab.memory.read("memory-fe1ee863").data


def test_edited_index_of_our_own_folder_is_restored_and_the_edit_kept(lab: Lab) -> None:
    lab.memory.write_text("a", b"a\n")
    good = lab.files()["MEMORY.md"]
    (lab.dir / "MEMORY.md").write_bytes(b"my line\n")
    lab.look()
    assert lab.files()["MEMORY.md"] == good
    kept = next((lab.dir / ".ipfsmem").glob("MEMORY.edited-*.md"))
    assert kept.read_bytes() == b"my line\n"
    assert kept.name in lab.memory.status().notices[0]
    assert [kept.name in said for said in lab.memory.folders.troubles()] == [True]
    lab.again()
    assert not lab.memory.folders.troubles()
    assert [kept.name in said for said in lab.memory.status().notices] == [True]  # while it exists
    kept.unlink()
    assert not lab.memory.status().notices
    assert [item.key for item in lab.memory.list()] == ["a"]


# -- writers with an outdated text ------------------------------------------------------------------------------------


def test_whole_file_written_over_an_unread_text_is_merged(lab: Lab) -> None:
    lab.memory.write_text("log", b"one\n\ntwo\n\nthree\n")
    read_before = lab.files()["log.md"]
    lab.memory.write_text("log", b"one\n\ntwo\n\nthree from the phone\n", seen=lab.memory.read("log"))
    (lab.dir / "log.md").write_bytes(read_before.replace(b"one", b"one, said the agent"))
    lab.look()
    assert lab.files()["log.md"] == b"one, said the agent\n\ntwo\n\nthree from the phone\n"
    assert "had not read" in lab.memory.status().notices[0]


def test_correction_of_a_new_line_is_an_edit(lab: Lab) -> None:
    lab.memory.write_text("log", b"one\n\ntwo\n")
    lab.memory.write_text("log", b"one\n\ntwo\n\nlikes tea\n", seen=lab.memory.read("log"))
    (lab.dir / "log.md").write_bytes(b"one\n\ntwo\n\nlikes green tea\n")
    lab.look()
    assert lab.texts() == {b"one\n\ntwo\n\nlikes green tea\n"}
    (lab.dir / "log.md").write_bytes(b"one\n\ntwo\n\nlikes black tea\n")
    lab.look()
    assert lab.texts() == {b"one\n\ntwo\n\nlikes black tea\n"}


def test_edit_based_on_an_older_version_of_the_file_is_merged(lab: Lab) -> None:
    lab.memory.write_text("log", b"one\n\ntwo\n")
    for n, word in enumerate((b"apple", b"window", b"thunder")):
        lab.clock.advance(10)
        text = lab.files()["log.md"] + b"\n%b %d\n" % (word, n)
        lab.memory.write_text("log", text, seen=lab.memory.read("log"))
    (lab.dir / "log.md").write_bytes(b"ONE\n\ntwo\n")
    lab.look()
    assert lab.files()["log.md"] == b"ONE\n\ntwo\n\napple 0\n\nwindow 1\n\nthunder 2\n"


def test_blind_edit_that_cannot_be_merged_becomes_an_alternative(lab: Lab) -> None:
    lab.memory.write_text("log", b"one\n")
    lab.memory.write_text("log", b"phone\n", seen=lab.memory.read("log"))
    (lab.dir / "log.md").write_bytes(b"one\nagent\n")
    lab.look()
    assert all(line in b"".join(lab.texts()) for line in (b"phone", b"agent"))


def test_later_edit_is_an_ordinary_edit(lab: Lab) -> None:
    lab.memory.write_text("log", b"one\n\ntwo\n")
    lab.memory.write_text("log", b"one\n\ntwo\n\nthree\n", seen=lab.memory.read("log"))
    lab.clock.advance(61)
    (lab.dir / "log.md").write_bytes(b"one\n\ntwo!\n")
    lab.look()
    assert lab.files()["log.md"] == b"one\n\ntwo!\n"


def test_restored_old_text_is_accepted_after_a_minute(lab: Lab) -> None:
    """As by `git checkout` of one file."""
    lab.memory.write_text("log", b"one\n\ntwo\n")
    old = lab.files()["log.md"]
    lab.memory.write_text("log", b"one\n\ntwo\n\nthree\n", seen=lab.memory.read("log"))
    (lab.dir / "log.md").write_bytes(old)
    lab.look()
    assert lab.files()["log.md"] == old
    assert lab.texts() == {b"one\n\ntwo\n\nthree\n"}
    assert "earlier text" in lab.memory.status().notices[0]
    lab.clock.advance(59)
    lab.look()
    assert lab.texts() == {b"one\n\ntwo\n\nthree\n"}
    lab.clock.advance(1)
    lab.look()
    assert lab.files()["log.md"] == old and lab.texts() == {old}
    assert lab.memory.status().notices == []


def test_lines_written_through_an_open_handle_are_kept(lab: Lab) -> None:
    lab.memory.write_text("log", b"one\n\ntwo\n")
    with (lab.dir / "log.md").open("ab") as handle:
        lab.memory.write_text("log", b"ONE\n\ntwo\n", seen=lab.memory.read("log"))
        handle.write(b"\nlate\n")
    lab.look()
    assert lab.files()["log.md"] == b"ONE\n\ntwo\n\nlate\n"


def test_previous_text_before_late_change_is_stored_despite_older_text(
    lab: Lab,
) -> None:
    """Its writer may write the whole file from any of these texts."""
    lab.memory.write_text("log", b"one\n\ntwo\n")
    lab.look()
    replica, late = lab.memory.replica, b"one\n\ntwo\n\nlate\n"
    with replica.transaction():
        renders = tracked_files_of(replica.db.connection, lab.copy.copy.id, replica.codec.cover)
        row = renders.get("log.md")
        assert row is not None
        renders.put(replace(row, shows=Shows.OLD_TEXT, dots=()))
        lab.copy._scanner(Writing(replica))._take_late_edit("log.md", row.text, late)
        row = renders.get("log.md")
    assert row is not None and row.before is not None and row.before.texts[0] == sha256(late).digest()


def test_replaced_files_are_deleted_after_a_while(lab: Lab) -> None:
    for n in range(5):
        lab.memory.write_text("log", b"%d\n" % n)
    aside = lab.dir / ".ipfsmem" / "aside"
    assert list(aside.iterdir())
    lab.clock.advance(300)
    lab.look()
    assert not list(aside.iterdir())


def test_full_disk_delays_files_and_loses_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.device.directory_handle import Directory

    lab.memory.write_text("a", b"a\n")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(Directory, "link", full)
        patch.setattr(Directory, "exchange", full)
        patch.setattr(Directory, "rename_new", full)
        lab.memory.write_text("a", b"b\n")
        lab.memory.write_text("c", b"c\n")
        assert any("disk is full" in notice for notice in lab.copy.notices())
    assert lab.memory.read("a").data == b"b\n"
    lab.look()
    assert lab.files()["a.md"] == b"b\n" and lab.files()["c.md"] == b"c\n"


def test_folders_work_without_the_exchange_system_call(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.device import directory_handle

    monkeypatch.setattr(directory_handle, "_renamer", lambda: None)
    test_whole_file_written_over_an_unread_text_is_merged(lab)
    test_lines_written_through_an_open_handle_are_kept(lab)


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="no modes of files here")
def test_folders_work_on_disks_that_refuse_file_modes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a Windows folder within WSL does."""
    (lab.dir / "a.md").write_bytes(b"a\n")
    (lab.dir / "a.md").chmod(0o644)
    lab.look()

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refused)
    lab.memory.write_text("a", b"b\n")
    assert lab.files()["a.md"] == b"b\n" and lab.copy.notices() == []


def test_unwritable_folder_is_reported_and_the_vault_works(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.dir.parent.mkdir(exist_ok=True)
    lab.dir.write_bytes(b"a file stands where the folder should be")
    with pytest.raises(UsageError, match="not a folder"):
        lab.start()
    assert not (lab.home / "x").exists()
    lab = Lab(tmp_path, mode=mode)
    memory = lab.start()
    shutil.rmtree(lab.dir)
    lab.dir.write_bytes(b"a file stands where the folder should be")
    memory.write_text("a", b"a\n")
    assert memory.read("a").data == b"a\n"
    assert any("plain files could not be" in notice for notice in memory.status().notices)
    lab.dir.unlink()
    lab.look()
    assert lab.files()["a.md"] == b"a\n"
    assert memory.status().notices == []


def test_two_processes_share_one_linked_folder(lab: Lab) -> None:
    other = Memory.load("x", home=Home(folder=lab.home, environment=lab.environment))
    lab.memory.write_text("a", b"from one\n")
    other.write_text("b", b"from two\n")
    (lab.dir / "a.md").write_bytes(b"by hand\n")
    other.folders.scan()
    lab.memory.folders.scan()
    lab.look()
    assert lab.texts() == {b"by hand\n", b"from two\n"}
    assert len(lab.memory.list()) == 2 == len(other.list())
    assert set(lab.files()) == {"a.md", "b.md", "MEMORY.md"}
    other.close()


@pytest.mark.parametrize("exchanges", [True, False])
def test_files_added_while_many_are_written_are_imported(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    from ipfsmem.device import directory_handle

    if not exchanges:
        monkeypatch.setattr(directory_handle, "_renamer", lambda: None)
    folder: Any = lab.copy.folder
    real = folder.stage
    struck: list[str] = []

    def stage(file: str, data: bytes, **more: Any) -> str:
        if file.startswith("key_") and not struck:
            struck.append(file)
            (lab.dir / file).write_bytes(b"somebody else was first\n")
        staged: str = real(file, data, **more)
        return staged

    monkeypatch.setattr(folder, "stage", stage)
    with lab.memory.replica.transaction():
        for n in range(40):
            lab.memory._memories.write(f"key_{n}", b"text %d\n" % n)
    lab.memory.folders.render()
    assert struck
    texts = lab.texts()
    assert b"somebody else was first\n" in texts and {b"text %d\n" % n for n in range(40)} <= texts
    lab.look()
    assert len([name for name in lab.files() if name.startswith("key_")]) == 41  # one conflict copy
    assert not [name for name in lab.copy.folder.asides() if not name.startswith("old-")]


def test_rename_never_overwrites_a_file(tmp_path: Path) -> None:
    from ipfsmem.device.directory_handle import open_directory

    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"one")
    other.write_bytes(b"other")
    folder = open_directory(str(tmp_path))
    assert folder.rename_new("one", folder, "other") in (False, None)
    assert (one.read_bytes(), other.read_bytes()) == (b"one", b"other")
    other.unlink()
    if folder.rename_new("one", folder, "other") is not None:
        assert not one.exists() and other.read_bytes() == b"one"


def test_growing_file_is_read_to_its_end(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.files import folder

    (lab.dir / "grown.md").write_bytes(b"first half, " + b"second half\n")
    real = folder.os.read
    monkeypatch.setattr(folder.os, "read", lambda fd, most: real(fd, min(most, 5)))
    lab.look()
    assert lab.memory.read("grown").data == b"first half, second half\n"  # type: ignore[union-attr]
    with pytest.raises(folder.NotPlainError, match="longer than 10 bytes"):
        lab.copy.folder.read("grown.md", 10)  # type: ignore[union-attr]


@pytest.mark.slow
def test_comparing_long_lines_takes_linear_time(lab: Lab) -> None:
    import random

    from ipfsmem.files.stale_writes import read_before

    def took(size: int) -> float:
        rolls = random.Random(size)
        line = "".join(rolls.choice("ab ") for _ in range(size)).encode()
        other = "".join(rolls.choice("ab ") for _ in range(size)).encode()
        return cost(lambda: read_before(b"one\n%b\n" % other, b"one\n%b\n" % line, [b"one\n"]))

    assert took(160_000) < 100 * took(10_000) + 0.05
    assert took(20_000) < 1


@pytest.mark.parametrize(
    ("came", "new", "alike"),
    [
        (b"likes tea", b"likes green tea", True),
        (b"likes green tea", b"likes black tea", True),
        (b"met Anna in Berlin on Monday", b"on Monday met Anna in Berlin", True),
        (b"<0123456789ab>", b"<fedcba987654>", False),
        (b"a", b"", False),
        (b"likes tea", b"lives in Lisbon", False),
    ],
)
def test_similar_lines_are_recognised_as_edits(came: bytes, new: bytes, alike: bool) -> None:
    from ipfsmem.files.stale_writes import _alike

    assert _alike({came}, {new}) is alike


def test_twin_file_in_another_unicode_form_is_ignored_until_renamed(lab: Lab) -> None:
    nfc, nfd = (unicodedata.normalize(form, "caf\u00e9.md") for form in ("NFC", "NFD"))
    (lab.dir / nfc).write_text("composed\n")
    if (lab.dir / nfd).exists():
        pytest.skip("this disk does not tell the two names apart")
    lab.look()
    (lab.dir / nfd).write_text("decomposed\n")
    lab.look()
    assert lab.files()[nfc] == b"composed\n" and lab.files()[nfd] == b"decomposed\n"
    assert len(lab.memory.list()) == 1 and any(b"composed\n" in text for text in lab.texts())
    assert "another form of Unicode" in " ".join(lab.memory.status().notices)
    (lab.dir / nfd).rename(lab.dir / "cafe2.md")
    lab.look()
    assert len(lab.memory.list()) == 2 and b"decomposed\n" in b"".join(lab.texts())


@pytest.mark.parametrize(
    "text",
    ["---\nname: Tone\nA text.\n", "\ufeff---\r\nname: Tone\r\nA text.\r\n", '+++\nname = "Tone"\nA text.\n'],
)
def test_unclosed_header_is_not_replaced_by_a_body(lab: Lab, text: str) -> None:
    (lab.dir / "tone.md").write_bytes(text.encode())
    lab.look()
    with pytest.raises(FormatError, match="has no closing line"):
        lab.memory.write("tone", "A new text.")
    assert lab.memory.read("tone").data == text.encode()
    lab.memory.write("tone", text + "More.")
    assert "More." in lab.memory.read("tone").readable.body
    lab.memory.write_text("tone", b"---\nname: Tone\n---\n\nA new text.\n")
    lab.memory.write("tone", "Newer.")
    assert lab.memory.read("tone").readable.name == "Tone"
