"""File names in linked folders: original names, and copies that sync programs make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.bundle.sync_conflicts import base_of_conflict
from ipfsmem.errors import StorageError
from ipfsmem.files.folder import PlainFolder
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from tests.support.files_lab import Lab


@pytest.fixture
def lab(tmp_path: Path, mode: ModeName) -> Iterator[Lab]:
    """A vault with an existing folder, as on a user's first device."""
    made = Lab(tmp_path, mode=mode, adopt=True)
    made.dir.mkdir()
    made.start()
    yield made
    made.memory.close()


def put(lab: Lab, **files: str) -> None:
    for name, text in files.items():
        (lab.dir / name).write_bytes(text.encode())
    lab.look()


def second(memory: Memory, path: Path) -> set[str]:
    """Return the files of a second folder of the same vault, as on a second device."""
    memory.folders.attach(path)
    return {one.name for one in path.iterdir() if not one.name.startswith(".")} - {"MEMORY.md", "timeline"}


def test_foreign_name_is_kept_in_another_folder(lab: Lab, tmp_path: Path) -> None:
    files = {"Meeting Notes.md": "see [[Project Plan]]\n", "Project Plan.md": "---\nname: P\n---\n\nthe plan\n", "plain.md": "x\n", "Überblick.md": "ü\n", "日本.md": "j\n"}  # fmt: skip
    put(lab, **files)
    there = tmp_path / "second"
    assert second(lab.memory, there) == set(files)
    assert {name: (there / name).read_bytes().decode() for name in files} == files
    assert (
        "(<Meeting Notes.md>)" in (text := (there / "MEMORY.md").read_text("utf-8"))
        or "Meeting%20Notes.md" in text
    )
    # An edit there is an edit of the same memory, under the same name.
    (there / "Meeting Notes.md").write_bytes(b"see nothing\n")
    lab.look()
    assert (lab.dir / "Meeting Notes.md").read_bytes() == b"see nothing\n"
    assert len(lab.memory.list()) == len(files) and not lab.memory.conflicts()


def test_file_named_by_its_key_keeps_that_name(lab: Lab, tmp_path: Path) -> None:
    put(lab, **{"Meeting Notes.md": "a\n"})
    there = tmp_path / "second"
    there.mkdir()
    key = key_of_foreign_name("Meeting Notes.md").key
    (there / f"{key}.md").write_bytes((lab.memory.read(key) or pytest.fail()).data)  # type: ignore[union-attr]
    assert second(lab.memory, there) == {f"{key}.md"}
    lab.memory.write(key, "b", seen=lab.memory.read(key))
    assert (there / f"{key}.md").exists() and not (there / "Meeting Notes.md").exists()


@pytest.mark.parametrize(
    "name",
    ["../up.md", "a/b.md", "a\\b.md", ".hidden.md", "~$lock.md", "memory.md", "MEMORY.md", "x" * 250 + ".md", "no ending", "a\u202eb.md", "a\nb.md",
     "x.conflict-0123abcd.md", "x.sync-conflict-20260112-003022-FUKIKK4.md"],
)  # fmt: skip
def test_invalid_original_name_falls_back_to_the_key(lab: Lab, tmp_path: Path, name: str) -> None:
    key = key_of_foreign_name(name).key
    lab.memory.write_text(key, b"---\norigin_name: %b\n---\n\ntext\n" % repr(name).encode())
    if (lab.memory.read(key) or pytest.fail()).file.origin_name != name:  # type: ignore[union-attr]
        lab.memory.write(key, "text", fields={"origin_name": name})
    assert second(lab.memory, tmp_path / "second") <= {f"{key}.md", "_index.md"}
    assert sorted(one.name for one in tmp_path.iterdir() if one.suffix == ".md") == []


def test_original_name_of_another_key_is_ignored(lab: Lab, tmp_path: Path) -> None:
    lab.memory.write_text("tone-0123abcd", b"---\norigin_name: CLAUDE.md\n---\n\ntext\n")
    assert second(lab.memory, tmp_path / "second") == {"tone-0123abcd.md"}


def test_names_equal_on_a_case_folding_disk_fall_back_to_keys(lab: Lab, tmp_path: Path) -> None:
    put(lab, **{"Note.md": "1\n", "note.md": "2\n"})
    lab.memory.write_text(key_of_foreign_name("NOTE.md").key, b"---\norigin_name: NOTE.md\n---\n\n3\n")
    there = second(lab.memory, tmp_path / "second")
    assert len(there) == len({name.casefold() for name in there}) == 3 and "note.md" in there
    assert not [text for text in lab.memory.status().notices if "not written" in text]


@pytest.mark.parametrize("fault", ["refuses", "renames"])
def test_name_impossible_on_a_disk_falls_back_to_the_key(
    lab: Lab, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(lab, **{"Café: why?.md": "a\n"})
    create = PlainFolder.create

    def refused(self: PlainFolder, staged: str, file: str) -> bool:
        if "?" in file:
            raise StorageError(f"{file} cannot be written: Invalid argument")
        return create(self, staged, file)

    if fault == "refuses":
        monkeypatch.setattr(PlainFolder, "create", refused)
    else:
        monkeypatch.setattr(PlainFolder, "_keeps_name", lambda self, letter: letter != "\u00e9")
    key = key_of_foreign_name("Café: why?.md").key
    there = tmp_path / "second"
    assert second(lab.memory, there) == {f"{key}.md"}
    assert not os.listdir(there / ".ipfsmem" / "aside") and not lab.memory.status().notices
    lab.look()
    assert second(lab.memory, tmp_path / "third") == {f"{key}.md"} and len(lab.memory.list()) == 1


# -- conflict files of sync programs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("plan.sync-conflict-20260112-003022-FUKIKK4.md", "plan.md"),
        ("Meeting Notes.sync-conflict-20260112-003022-FUKIKK4.md", "Meeting Notes.md"),
        ("plan (conflicted copy 2026-01-12).md", "plan.md"),
        ("plan (Anna's conflicted copy 2026-01-12).md", "plan.md"),
        ("plan (conflicted copy 2026-01-12 003022).md", "plan.md"),
        ("plan (Conflicted copy laptop 202601120030).md", "plan.md"),
        ("plan (SFConflict a@b.c 2026-01-12-00-30-22).md", "plan.md"),
        ("plan_conflict-20260112-003022.md", "plan.md"),
        ("notes/plan [conflicted].md", "notes/plan.md"),
        ("plan (1).md", None),
        ("plan 2.md", None),
        ("conflicted copy.md", None),
        ("plan (about the conflict).md", None),
        ("sync-conflict-20260112-003022-FUKIKK4.md", None),
    ],
)
def test_conflict_copies_of_sync_programs_are_recognised_by_name(name: str, base: str | None) -> None:
    assert base_of_conflict(name) == base


COPIES = {
    "plan.sync-conflict-20260112-003022-FUKIKK4.md": "of the phone\n",
    "plan (conflicted copy 2026-01-12).md": "of dropbox\n",
}


@pytest.mark.parametrize("base", ["plan.md", "Big Plan.md"])
def test_copies_of_sync_programs_are_alternatives_of_their_memory(lab: Lab, base: str) -> None:
    copies = {name.replace("plan", base[:-3]): text for name, text in COPIES.items()}
    put(lab, **copies, **{base: "mine\n"})
    (one,) = lab.memory.list()
    assert (lab.memory.read(one.key) or pytest.fail()).readable.body == "mine"  # type: ignore[union-attr]
    (conflict,) = lab.memory.conflicts()
    texts = {(copy.reading or pytest.fail()).readable.body for copy in conflict.copies}  # type: ignore[union-attr]
    assert texts == {"of the phone", "of dropbox"}
    assert (lab.dir / base).read_bytes() == b"mine\n" and all((lab.dir / name).exists() for name in copies)
    # Deleting such a file in an editor resolves that conflict.
    (lab.dir / next(iter(copies))).unlink()
    lab.look()
    lab.clock.advance(61)
    lab.look()
    lab.clock.advance(61)
    lab.look()
    assert [len(one.copies) for one in lab.memory.conflicts()] == [1]


def test_conflict_copy_without_its_file_is_the_memory(lab: Lab) -> None:
    put(lab, **{"plan.sync-conflict-20260112-003022-FUKIKK4.md": "of the phone\n"})
    assert [one.key for one in lab.memory.list()] == ["plan"]
    lab.look()
    assert (lab.dir / "plan.md").read_bytes() == b"of the phone\n" and not lab.memory.conflicts()


def test_copies_of_sync_programs_are_alternatives_in_an_import(tmp_path: Path) -> None:
    base = tmp_path / "notes"
    base.mkdir()
    for name, text in {**COPIES, "plan.md": "mine\n"}.items():
        (base / name).write_bytes(text.encode())
    with Memory.create("m", "local", home=tmp_path / "m") as memory:
        for scope in (memory.scope("a"), memory.scope("b")):
            taken = (
                scope.bundles.import_(base) if scope.scope == "a" else scope.bundles.import_from("agh", base)
            )
            assert not taken.problems
            assert [one.key for one in scope.list()] == ["plan"]
            assert (scope.read("plan") or pytest.fail()).readable.body == "mine"  # type: ignore[union-attr]
            assert [len(one.copies) for one in scope.conflicts()] == [2]
