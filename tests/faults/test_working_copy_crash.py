"""Crashes between state and file, and a running agent's folder: no acknowledged or written text is lost."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import StorageError
from ipfsmem.files import folder
from ipfsmem.mode import ModeName
from tests.support import effort
from tests.support.files_lab import MODES, Lab

STEPS = ("stage", "create", "replace", "take_away", "append", "settle")


class Crash(BaseException):
    """The process is gone."""


def crash_at(lab: Lab, n: int, *, after: bool) -> None:
    """Let the n-th change of the folder be the last of this process."""
    folder: Any = lab.copy.folder
    count = [0]

    def dying(real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            count[0] += 1
            if count[0] == n and not after:
                raise Crash
            result = real(*args, **more)
            if count[0] == n:
                raise Crash
            return result

        return call

    for name in STEPS:
        setattr(folder, name, dying(getattr(folder, name)))


def work(lab: Lab) -> None:
    """Make one change of each kind."""
    memory = lab.memory
    memory.write_text("tone", b"new text\n", seen=memory.read("tone"))
    memory.note("second")
    lab.sibling("tone", b"from elsewhere\n")
    memory.write_text("fresh", b"fresh\n")
    memory.forget("old")
    memory.resolve("tone", b"settled\n", seen=memory.conflicts()[0])


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> ModeName:
    """A plain and a sealed vault."""
    found: ModeName = request.param
    return found


def prepared(base: Path, mode: ModeName) -> Lab:
    base.mkdir(exist_ok=True)
    lab = Lab(base, adopt=True, mode=mode)
    lab.start()
    lab.memory.write_text("tone", b"first\n")
    lab.memory.write_text("old", b"old\n")
    lab.memory.note("first")
    return lab


@pytest.mark.parametrize("after", [False, True])
def test_crash_at_every_folder_change_loses_nothing(tmp_path: Path, mode: ModeName, after: bool) -> None:
    step = effort.every(2)
    n = 1 - step
    while True:
        n += step
        lab = prepared(tmp_path / str(n), mode)
        crash_at(lab, n, after=after)
        try:
            work(lab)
        except Crash:
            pass
        else:
            break
        with lab.memory.replica.reading():
            store = lab.memory.replica.store
            state = {name: dict(entry) for name, entry in store.entries()}
        # The process is gone, with everything it held in memory.
        lab.memory.replica.close()
        lab.reopen()
        with lab.memory.replica.reading():
            store = lab.memory.replica.store
            assert {name: dict(entry) for name, entry in store.entries()} == state
        shown = lab.memory.files()
        files = lab.files()
        assert {f"{key}.md": data for key, data in shown.items()} == {
            name: data
            for name, data in files.items()
            if name.endswith(".md") and ".conflict" not in name and name != "MEMORY.md"
        }
        copies = {file for item in lab.memory.conflicts() for file in item.files if not item.forgotten}
        assert {name for name in files if ".conflict" in name} == copies
        shown_in_index = {
            line
            for line in lab.memory.index().split("\n")
            if line.startswith("- ") and "(memory-" not in line
        }
        assert shown_in_index <= set(files["MEMORY.md"].decode().split("\n"))
        lines = b"".join(data for name, data in files.items() if name.endswith(".jsonl"))
        assert lines.count(b"\n") == len(lab.memory.timeline.read())
        lab.look()
        assert lab.files() == files
        lab.memory.close()
    assert n > 20


def test_crash_between_state_and_file_is_not_an_edit(tmp_path: Path, mode: ModeName) -> None:
    lab = prepared(tmp_path, mode)
    crash_at(lab, 1, after=False)
    with pytest.raises(Crash):
        lab.memory.write_text("tone", b"new text\n")
    assert (lab.dir / "tone.md").read_bytes() == b"first\n"
    lab.memory.replica.close()
    lab.reopen()
    assert lab.memory.read("tone").data == b"new text\n"
    assert lab.texts() == {b"new text\n", b"old\n"}
    assert (lab.dir / "tone.md").read_bytes() == b"new text\n"


def test_edit_after_a_crash_is_an_edit(tmp_path: Path, mode: ModeName) -> None:
    lab = prepared(tmp_path, mode)
    crash_at(lab, 1, after=False)
    with pytest.raises(Crash):
        lab.memory.write_text("tone", b"new text\n")
    lab.memory.replica.close()
    (lab.dir / "tone.md").write_bytes(b"first, by hand\n")
    lab.reopen()
    assert lab.texts() == {b"new text\n", b"first, by hand\n", b"old\n"}


@pytest.mark.parametrize("end", [OSError(errno.ENOSPC, "No space left on device"), Crash()])
@pytest.mark.parametrize("file", ["tone.md", "MEMORY.md"])
def test_partly_staged_file_is_not_an_edit(
    tmp_path: Path, mode: ModeName, monkeypatch: pytest.MonkeyPatch, file: str, end: BaseException
) -> None:
    """After a full disk or a kill while the file is prepared."""
    lab = prepared(tmp_path, mode)
    (lab.dir / "MEMORY.md").write_bytes(b"# Notes of the agent\n" + b"- a line of its own\n" * 300)
    lab.look()
    lab.clock.advance(300)
    real = folder._write_all

    def half(fd: int, data: bytes) -> None:
        if len(data) > 1_000 and (data[:5] == b"first") == (file == "tone.md"):
            real(fd, data[: len(data) // 2])
            raise end
        real(fd, data)

    text = b"first\n" + b"and one more line\n" * 300
    monkeypatch.setattr(folder, "_write_all", half)
    with contextlib.suppress(Crash):
        lab.memory.write_text("tone", text, seen=lab.memory.read("tone"))
        lab.memory.write_text("another", b"---\ndescription: a line of MEMORY.md\n---\n\nhere\n")
    with contextlib.suppress(Crash):
        lab.look()
        assert any(file in notice for notice in lab.again().status().notices)
        with pytest.raises(StorageError, match=file):
            lab.memory.folders.resume(lab.dir, keep="vault")
        lab.look()
    monkeypatch.undo()
    lab.memory.replica.close()
    lab.reopen()
    lab.look()
    assert lab.memory.read("tone").data == text
    assert (lab.dir / "tone.md").read_bytes() == text
    assert (lab.dir / "MEMORY.md").read_bytes().count(b"- a line of its own\n") == 300
    assert not lab.memory.conflicts()
    for line in (b"and one more line", b"- a line of its own"):
        assert len([1 for data in lab.texts() if line in data]) == 1
    lab.clock.advance(300)
    lab.look()
    assert [path.name for path in (lab.dir / ".ipfsmem" / "aside").iterdir()] == []
    lab.memory.close()


def replaced_just_before_a_crash(lab: Lab, text: bytes) -> None:
    """The file has the text, but its row was lost with the process."""
    real: Any = lab.copy.folder.replace

    def replace(*args: Any) -> Any:
        real(*args)
        raise Crash

    lab.copy.folder.replace = replace  # type: ignore[method-assign]
    with pytest.raises(Crash):
        lab.memory.write_text("tone", text, seen=lab.memory.read("tone"))
    assert (lab.dir / "tone.md").read_bytes() == text
    lab.memory.replica.close()
    lab.reopen()


def test_program_that_read_before_a_crash_overwrites_nothing(tmp_path: Path, mode: ModeName) -> None:
    lab = prepared(tmp_path, mode)
    held = (lab.dir / "tone.md").read_bytes()
    lab.memory.write_text("tone", b"one\n\nfirst\n", seen=lab.memory.read("tone"))
    replaced_just_before_a_crash(lab, b"one\n\nfirst\n\ntwo\n")
    (lab.dir / "tone.md").write_bytes(b"by hand\n\n" + held)
    lab.look()
    found = b"".join(lab.texts())
    assert all(line in found for line in (b"one", b"two", b"by hand"))
    lab.memory.close()


def test_file_open_during_a_crash_is_still_read(tmp_path: Path, mode: ModeName) -> None:
    lab = prepared(tmp_path, mode)
    with (lab.dir / "tone.md").open("ab", buffering=0) as handle:
        replaced_just_before_a_crash(lab, b"one\n\nfirst\n")
        handle.write(b"late\n")
        lab.look()
        assert lab.memory.read("tone").data == b"one\n\nfirst\nlate\n"
        handle.write(b"later\n")
    lab.look()
    assert b"later" in b"".join(lab.texts())
    lab.clock.advance(300)
    lab.look()
    assert not list((lab.dir / ".ipfsmem" / "aside").iterdir())
    lab.memory.close()


def edited_in_the_moment(lab: Lab, file: str, data: bytes, end: BaseException | None) -> None:
    """Let another program write a file right before it is replaced; right after it, the process may crash."""
    folder: Any = lab.copy.folder
    real = folder.replace

    def replace(staged: str, name: str) -> Any:
        if name != file:
            return real(staged, name)
        (lab.dir / file).write_bytes(data)
        result = real(staged, name)
        if end is not None:
            raise end
        return result

    folder.replace = replace


def test_edit_just_before_a_crash_loses_no_line(tmp_path: Path, mode: ModeName) -> None:
    lab = prepared(tmp_path, mode)
    edited_in_the_moment(lab, "tone.md", b"first\n\nby hand\n", Crash())
    with pytest.raises(Crash):
        lab.memory.write_text("tone", b"new line\n\nfirst\n", seen=lab.memory.read("tone"))
    lab.memory.replica.close()
    lab.reopen()
    lab.look()
    found = b"".join(lab.texts())
    assert b"new line" in found and b"by hand" in found
    files = b"".join(lab.files().values())
    assert b"new line" in files and b"by hand" in files
    lab.memory.close()


@pytest.mark.parametrize("full", [False, True])
def test_edit_of_a_generated_index_survives_a_crash_and_full_disk(
    tmp_path: Path, mode: ModeName, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    lab = Lab(tmp_path, mode=mode)
    lab.start()
    lab.memory.write_text("tone", b"first\n")
    edited_in_the_moment(lab, "MEMORY.md", b"my own list\n", None if full else Crash())
    real = folder._write_all

    def written(fd: int, data: bytes) -> None:
        if data == b"my own list\n":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(fd, data)

    if full:
        monkeypatch.setattr(folder, "_write_all", written)
    said = []
    with contextlib.suppress(Crash):
        lab.memory.write_text("another", b"second\n")
        lab.look()
        said = lab.memory.status().notices
    lab.memory.replica.close()
    lab.reopen()
    kept = list((lab.dir / ".ipfsmem").glob("MEMORY.edited-*.md"))
    assert [path.read_bytes() for path in kept] == [b"my own list\n"]
    assert kept[0].name in "\n".join([*said, *lab.memory.status().notices])
    lab.look()
    assert b"another" in lab.files()["MEMORY.md"]
    lab.memory.close()


AGENT = """
import sys, time
from pathlib import Path
folder, n = Path(sys.argv[1]), -1
(folder / "timeline").mkdir(exist_ok=True)
while not (folder / ".stop").exists():
    n += 1
    with (folder / "agent_log.md").open("ab", buffering=0) as file:
        file.write(b"- agent line %d\\n" % n)
    with (folder / "timeline" / "2026-04-12.jsonl").open("ab", buffering=0) as file:
        file.write(b'{"ts":"2026-04-12T09:00:00Z","type":"agent","n":%d}\\n' % n)
    if n % 10 == 0:
        made = folder / ".new.tmp"
        made.write_bytes(b"---\\nname: note %d\\nmetadata:\\n  type: project\\n---\\n\\nagent note %d\\n" % (n, n))
        made.rename(folder / f"Note {n}.md")
    with (folder / "MEMORY.md").open("ab", buffering=0) as file:
        file.write(b"- [n](agent_log.md) %d\\n" % n)
    time.sleep(0.02)
print(n + 1)
"""


def test_folder_of_a_running_agent_is_linked_without_loss(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.dir.mkdir(parents=True)
    (lab.dir / "MEMORY.md").write_bytes(b"# Memory\n")
    (lab.dir / "user_role.md").write_bytes(b"---\nname: r\nmetadata:\n  type: user\n---\n\nengineer\n")
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(lab.dir)], stdout=subprocess.PIPE, text=True)
    lab.start()
    turn = 0
    stop = time.monotonic() + 240
    while turn < 12 and time.monotonic() < stop:
        reading = lab.memory.read("agent_log")
        if reading is not None:
            lab.memory.write_text("agent_log", b"* our line %d\n" % turn + reading.data, seen=reading)
            turn += 1
        lab.memory.note("ours", n=turn)
        if turn % 5 == 0:
            lab.look()
        lab.clock.advance(1)
        time.sleep(0.005)
    # On a loaded machine the agent may be behind: it gets the time to write more than we did.
    while (
        time.monotonic() < stop and b"- agent line %d\n" % turn not in (lab.dir / "agent_log.md").read_bytes()
    ):
        time.sleep(0.01)
    (lab.dir / ".stop").write_bytes(b"")
    count = int(agent.communicate(timeout=60)[0])
    for _ in range(3):
        lab.look()
    assert turn == 12
    assert count > turn
    texts = b"\n".join(lab.texts())
    if any("agent_log" in notice for notice in lab.memory.status().notices):
        # Too many alternatives: the file was left unchanged and reported.
        texts += lab.files()["agent_log.md"]
    missing = [n for n in range(count) if b"- agent line %d\n" % n not in texts]
    assert missing == []
    assert [n for n in range(turn) if b"* our line %d\n" % n not in texts] == []
    events = lab.memory.timeline.read()
    assert sorted(event["n"] for event in events if event["type"] == "agent") == list(range(count))
    assert len([event for event in events if event["type"] == "ours"]) > turn - 1
    # Its own lines of MEMORY.md are a memory: two concurrent ones may be in two texts of it, and none is
    # lost.
    lines = b"\n".join(text for text in lab.texts() if b"# Memory" in text).split(b"\n")
    assert [n for n in range(count) if b"- [n](agent_log.md) %d" % n not in lines] == []
    assert lab.memory.read("memory-fe1ee863") is not None
    assert b"(user_role.md)" in lab.files()["MEMORY.md"]
    assert len([key for key in lab.memory.files() if key.startswith("note_")]) == (count + 9) // 10
    assert not [event for event in events if event["type"] == "raw"]
    lab.memory.close()
