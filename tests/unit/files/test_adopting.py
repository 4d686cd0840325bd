"""A folder that an agent has used becomes a linked folder: no byte and no time of its files changes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ipfsmem.mode import ModeName
from tests.support.files_lab import Lab

TOPIC = """---
name: {0}
description: what was learned of {0}
metadata:
  type: {1}
---

{0}: the long form.

**Why:** it was asked for.
"""
INDEX = b"""# Memory

- [Role](user_role.md) \xe2\x80\x94 what was learned of the role
- [Feedback on tests](Feedback Testing.md) \xe2\x80\x94 always run them
- see also notes/old.md

| a table | of the agent's |
| --- | --- |
"""


def agents_folder(place: Path) -> None:
    """Create one file of each kind that such a folder may contain."""
    place.mkdir(parents=True)
    (place / "MEMORY.md").write_bytes(INDEX)
    for name, kind in (("user_role", "user"), ("feedback_style", "feedback"), ("project_gauges", "project")):
        (place / f"{name}.md").write_text(TOPIC.format(name, kind))
    (place / "Feedback Testing.md").write_bytes(
        b"---\r\nname: Tests\r\ndescription: windows\r\n---\r\nalways\r\n"
    )
    (place / "Über Größe (2).md").write_bytes(b"no header, no last line")
    (place / "empty.md").write_bytes(b"")
    (place / "bom.md").write_bytes(b"\xef\xbb\xbf---\nname: bom\n---\nbody\n")
    (place / "odd_header.md").write_bytes(b"---\nunknown: [1, 2]\nname: x\n---\n\n\n\nbody\n\n\n")
    (place / "two_megabytes.md").write_bytes(b"line of a log\n" * 150_000)
    (place / "latin.md").write_bytes("Überraschung".encode("latin-1"))
    (place / "picture.png").write_bytes(bytes(range(256)) * 40)
    (place / "binary.md").write_bytes(b"\0\1\2\xff" * 100)
    (place / ".hidden.md").write_bytes(b"of an editor\n")
    (place / "~$lock.md").write_bytes(b"of an office program\n")
    (place / "data.json").write_bytes(b"{}")
    (place / "notes").mkdir()
    (place / "notes" / "old.md").write_bytes(b"old\n")
    (place / "timeline").mkdir()
    (place / "timeline" / "2026-04-12.jsonl").write_bytes(
        b'{"ts":"2026-04-12T10:00:00Z","type":"x"}\nno json\n'
    )
    (place / "elsewhere.md").symlink_to(place.parent / "outside.md")
    (place / "linked").symlink_to(place.parent)
    (place.parent / "outside.md").write_bytes(b"not of this folder\n")
    (place / "private.md").write_bytes(b"mine\n")
    (place / "private.md").chmod(0o640)
    for path in place.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (1_700_000_000, 1_700_000_000))


def snapshot(place: Path) -> dict[str, object]:
    """Return bytes, kind, mode, inode and time of each file, except ours."""
    found: dict[str, object] = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if name.split("/")[0] == ".ipfsmem":
            continue
        known = path.lstat()
        what: object = (
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        )
        time = known.st_mtime_ns if stat.S_ISREG(known.st_mode) else 0
        found[name] = known.st_mode, known.st_ino, time, what
    return found


TAKEN = {
    "user_role",
    "feedback_style",
    "project_gauges",
    "bom",
    "odd_header",
    "private",
    "memory-fe1ee863",
    "empty",
}
LEFT = ("two_megabytes.md", "latin.md", "elsewhere.md", "notes")


def test_used_folder_is_linked_unchanged(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    agents_folder(lab.dir)
    before = snapshot(lab.dir)
    lab.start()
    for _ in range(3):
        lab.look()
        lab.clock.advance(120)
    lab.again()
    # Two memories that MEMORY.md does not name get a line in a separate block; nothing else changes.
    after = snapshot(lab.dir)
    assert {name: one for name, one in after.items() if name != "MEMORY.md"} == {
        name: one for name, one in before.items() if name != "MEMORY.md"
    }
    index = (lab.dir / "MEMORY.md").read_bytes()
    assert index.startswith(INDEX.rstrip(b"\n")) and b"(user_role.md)" not in index[len(INDEX) :]
    assert b"(feedback_style.md)" in index[len(INDEX) :]
    assert set(lab.memory.files()) >= TAKEN
    assert lab.memory.read("user_role").file.type == "user"  # type: ignore[union-attr]
    assert lab.memory.read("memory-fe1ee863").data.endswith(INDEX)  # type: ignore[union-attr]
    notices = "\n".join(lab.memory.status().notices)
    assert all(name in notices for name in LEFT)
    assert b"not of this folder" not in b"".join(lab.texts())
    # Detaching leaves the files unchanged, too.
    lab.memory.folders.detach(lab.dir)
    assert snapshot(lab.dir) == after and not (lab.dir / ".ipfsmem").exists()
    lab.memory.close()


def test_complete_index_is_unchanged(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.dir.mkdir(parents=True)
    (lab.dir / "MEMORY.md").write_bytes(b"# Mine\n- [r](role.md)\n- `tone.md` too: [t](./tone.md)\n")
    for name in ("role", "tone"):
        (lab.dir / f"{name}.md").write_bytes(b"%b\n" % name.encode())
    before = snapshot(lab.dir)
    lab.start()
    lab.look()
    assert snapshot(lab.dir) == before
    lab.memory.close()


def test_attach_with_other_texts_of_same_names_makes_conflict_copies(tmp_path: Path, mode: ModeName) -> None:
    lab = Lab(tmp_path, mode=mode)
    lab.start()
    lab.memory.write_text("role", b"what the memory had\n")
    lab.memory.write_text("same", b"the same\n")
    lab.memory.write_text("memory-fe1ee863", b"- a line that the memory had\n")
    place = tmp_path / "agent"
    place.mkdir()
    for name, data in (
        ("role.md", b"what stands there\n"),
        ("same.md", b"the same\n"),
        ("MEMORY.md", b"# Mine\n"),
    ):
        (place / name).write_bytes(data)
    before = snapshot(place)
    lab.clock.advance(60)
    lab.memory.folders.attach(place)
    for _ in range(3):
        lab.look()
        lab.clock.advance(120)
    after = snapshot(place)
    for name in ("role.md", "same.md"):
        assert after[name] == before[name]
    assert (place / "MEMORY.md").read_bytes().startswith(b"# Mine")
    found = b"".join(path.read_bytes() for path in place.rglob("*.md"))
    assert b"what the memory had" in found and b"a line that the memory had" in found
    assert lab.memory.read("role").data == b"what stands there\n"  # type: ignore[union-attr]
    assert {item.key for item in lab.memory.conflicts()} == {"role", "memory-fe1ee863"}
    lab.memory.close()
