"""Timeline files of a linked folder: foreign lines become events, no line is removed, files only grow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.files import folder
from ipfsmem.mode import ModeName
from tests.support.damage_lab import flip
from tests.support.files_lab import Lab

DAY = "2026-04-12"
FILE = f"timeline/{DAY}.jsonl"


@pytest.fixture
def lab(tmp_path: Path, mode: ModeName) -> Lab:
    made = Lab(tmp_path, mode=mode)
    made.start()
    return made


def add(lab: Lab, data: bytes) -> None:
    (lab.dir / "timeline").mkdir(exist_ok=True)
    with (lab.dir / FILE).open("ab") as file:
        file.write(data)


def test_event_is_a_line_of_the_file_at_once(lab: Lab) -> None:
    event = lab.memory.note("waved", hand="left")
    device = lab.memory.device
    assert lab.files()[FILE] == (
        f'{{"ts":"2026-04-12T13:20:00.000Z","type":"waved","id":"{device}-1","hand":"left"}}\n'.encode()
    )
    assert event["id"] == f"{device}-1"


def test_foreign_lines_become_events_and_stay_unchanged(lab: Lab) -> None:
    lab.memory.note("waved")
    inode = (lab.dir / FILE).stat().st_ino
    theirs = b'{"type": "seen", "ts": "2026-04-12T10:00:00Z"}\nnot json at all\n'
    add(lab, theirs)
    lab.look()
    assert [event["type"] for event in lab.memory.timeline.read()] == ["raw", "seen", "waved"]
    lab.memory.note("again")
    data = lab.files()[FILE]
    assert theirs in data and data.count(b"\n") == 4
    assert (lab.dir / FILE).stat().st_ino == inode
    for _ in range(3):
        lab.again()
        lab.look()
    assert lab.files()[FILE] == data
    assert len(lab.memory.timeline.read()) == 4


def test_foreign_line_written_before_a_note_is_kept(lab: Lab) -> None:
    lab.memory.note("one")
    add(lab, b'{"ts":"2026-04-12T10:00:00Z","type":"theirs"}\n')
    lab.memory.note("two")
    assert sorted(event["type"] for event in lab.memory.timeline.read()) == ["one", "theirs", "two"]
    assert lab.files()[FILE].count(b"\n") == 3


def test_edited_line_becomes_another_event(lab: Lab) -> None:
    lab.memory.note("said", text="yes")
    path = lab.dir / FILE
    path.write_bytes(path.read_bytes().replace(b"yes", b"no!"))
    lab.look()
    assert sorted(event["text"] for event in lab.memory.timeline.read()) == ["no!", "yes"]
    lab.look()
    assert len(lab.memory.timeline.read()) == 2
    assert all(word in lab.files()[FILE] for word in (b"yes", b"no!"))


def test_removed_line_or_file_deletes_no_event(lab: Lab) -> None:
    lab.memory.note("one")
    lab.memory.note("two")
    path = lab.dir / FILE
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])
    lab.look()
    assert len(lab.memory.timeline.read()) == 2
    assert lab.files()[FILE].count(b"\n") == 2
    path.unlink()
    lab.look()
    lab.clock.advance(100)
    lab.look()
    assert len(lab.memory.timeline.read()) == 2
    assert lab.files()[FILE].count(b"\n") == 2


def test_incomplete_line_is_awaited(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ipfsmem.files.scan.RACY", 3_600 * 10**9
    )  # the machine may pause for longer than two seconds
    lab.memory.note("one")
    add(lab, b'{"ts":"2026-04-12T10:00:00Z",')
    lab.look()
    lab.memory.note("two")
    assert [event["type"] for event in lab.memory.timeline.read()] == ["one", "two"]
    add(lab, b'"type":"slow"}\n')
    lab.look()
    assert sorted(event["type"] for event in lab.memory.timeline.read()) == ["one", "slow", "two"]
    assert lab.files()[FILE].count(b"\n") == 3
    add(lab, b"a torn end that nobody completes")
    monkeypatch.setattr("ipfsmem.files.scan.RACY", 0)
    lab.look()
    assert "raw" in [event["type"] for event in lab.memory.timeline.read()]


def test_own_line_cut_off_by_a_crash_is_completed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.memory.note("one")
    lab.memory.note("two")
    path = lab.dir / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    monkeypatch.setattr("ipfsmem.files.scan.RACY", 0)
    monkeypatch.setattr("ipfsmem.files.folder.RACY", 0)
    lab.look()
    lab.look()
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
    assert len(lab.memory.timeline.read()) == 2


def test_line_in_the_file_of_another_day_moves_to_its_own(lab: Lab) -> None:
    add(lab, b'{"ts":"2026-04-11T10:00:00Z","type":"late"}\n')
    lab.memory.note("today")
    lab.look()
    assert b"late" in lab.files()["timeline/2026-04-11.jsonl"]
    assert len(lab.memory.timeline.read()) == 2


def test_trimmed_events_are_not_reimported_from_their_file(lab: Lab) -> None:
    from ipfsmem.device.writing import writing

    lab.memory.note("one")
    lab.clock.advance(86400)
    lab.memory.note("two")
    with writing(lab.memory.replica) as change:
        name = f"t/{DAY}/{lab.memory.device}/0"
        change.remove(name, tuple(change.entry(name)))
    lab.look()
    lab.again()
    lab.look()
    assert [event["type"] for event in lab.memory.timeline.read()] == ["two"]
    assert FILE not in lab.files()


def test_link_in_place_of_the_timeline_folder_is_not_followed(lab: Lab, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (lab.dir / "timeline").symlink_to(elsewhere)
    lab.memory.note("one")
    lab.look()
    assert list(elsewhere.iterdir()) == []
    assert len(lab.memory.timeline.read()) == 1
    assert any("timeline" in notice for notice in lab.memory.status().notices)


def test_interrupted_append_is_completed_as_one_write(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = folder.os.write
    monkeypatch.setattr(folder.os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    lab.memory.note("one")
    lab.memory.note("two")
    assert lab.files()[FILE].count(b"\n") == 2


@pytest.mark.parametrize("size", [400, 1400])
def test_line_added_at_the_moment_of_replacement_is_kept(lab: Lab, size: int) -> None:
    pad = "x" * 8000
    events = [{"ts": "2026-03-02T10:00:00Z", "type": "old", "pad": pad, "n": n} for n in range(size // 8)]
    lab.memory.bundles.import_(json.dumps({"timeline": events}))
    file = lab.dir / "timeline" / "2026-03-02.jsonl"
    assert file.stat().st_size > size * 1000
    folder: Any = lab.copy.folder
    real, struck = folder.replace, []

    def replace(staged: Path, name: str) -> Path | None:
        if name.startswith("timeline/") and not struck:
            struck.append(name)
            with file.open("ab") as other:
                other.write(b'{"ts":"2026-03-02T12:00:00Z","type":"came_in_this_moment"}\n')
        kept: Path | None = real(staged, name)
        return kept

    folder.replace = replace
    with file.open("ab") as other:
        other.write(b'{"ts":"2026-03-02T00:30:00+02:00","type":"of_another_utc_day"}\n')
    os.utime(file, (1000, 1000))
    for _ in range(4):
        lab.look()
        lab.clock.advance(70)
    assert struck
    assert "came_in_this_moment" in {event["type"] for event in lab.memory.timeline.read()}
    assert b"came_in_this_moment" in file.read_bytes()


def test_unreadable_replaced_file_is_kept(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.memory.write_text("tone", b"one\n")
    handle = (lab.dir / "tone.md").open("ab")
    lab.memory.write_text("tone", b"two\n")
    handle.write("spät\n".encode("latin-1"))
    handle.close()
    for _ in range(4):
        lab.look()
        lab.clock.advance(100)
    kept = [path.read_bytes() for path in (lab.dir / ".ipfsmem" / "aside").iterdir()]
    assert any("spät".encode("latin-1") in data for data in kept)
    assert any("tone.md" in notice and "aside" in notice for notice in lab.memory.status().notices)


def test_lines_of_a_damaged_segment_remain_in_the_file(lab: Lab) -> None:
    """The file may be their only copy."""
    lab.memory.note("waved", hand="left")
    flip(lab.home / "x", "data FROM blocks WHERE rowid=(SELECT max(rowid) FROM blocks)")
    lab.again()
    lab.memory.note("waved", hand="right")
    lab.look()
    assert lab.memory.timeline.read().missing == 1
    assert b"left" in lab.files()[FILE] and b"right" in lab.files()[FILE]
