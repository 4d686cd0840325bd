"""MEMORY.md shared with a program: two-step updates, and lines added concurrently on two devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.bundle.index_block import INDEX_KEY
from ipfsmem.causal.merge_links import merge_index
from ipfsmem.files.working_copy import QUIET
from ipfsmem.mode import ModeName
from tests.support.device_lab import Lab as Devices
from tests.support.files_lab import Lab

FILE = "---\nname: {0}\ndescription: about {0}\n---\n\ntext of {0}\n"


def adopted(tmp_path: Path, mode: ModeName, index: str = "- [Build](build.md) — how it is built\n") -> Lab:
    """A linked folder of a program with one memory."""
    lab = Lab(tmp_path, adopt=True, mode=mode)
    lab.dir.mkdir(parents=True)
    if index:
        (lab.dir / "build.md").write_text(FILE.format("build"))
        (lab.dir / "MEMORY.md").write_text(index)
    lab.start()
    lab.look()
    return lab


def mark(path: Path) -> tuple[int, int] | None:
    """Return a value that changes when the file is written."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


@pytest.mark.parametrize("index", ["- [Build](build.md) — how it is built\n", ""])
def test_new_file_leaves_shared_index_untouched_until_quiet(
    tmp_path: Path, mode: ModeName, index: str
) -> None:
    lab = adopted(tmp_path, mode, index)
    path = lab.dir / "MEMORY.md"
    before = mark(path)
    (lab.dir / "lint.md").write_text(FILE.format("lint"))
    lab.look()
    lab.clock.advance(30)
    lab.again()
    lab.look()
    assert mark(path) == before

    assert lab.copy.is_in_step()
    lab.clock.advance(QUIET / 1000)
    assert not lab.copy.is_in_step()
    lab.look()
    assert "(lint.md)" in path.read_text()
    assert lab.copy.is_in_step()


def test_index_line_of_program_replaces_ours_without_second_write(tmp_path: Path, mode: ModeName) -> None:
    lab = adopted(tmp_path, mode)
    path = lab.dir / "MEMORY.md"
    (lab.dir / "lint.md").write_text(FILE.format("lint"))
    lab.look()
    path.write_text(path.read_text() + "- [Lint](lint.md) — its own line\n")
    written = mark(path)
    lab.look()
    lab.clock.advance(QUIET / 1000)
    lab.look()
    assert mark(path) == written
    assert path.read_text().count("lint.md") == 1


def test_memory_of_another_device_is_listed_at_once(tmp_path: Path, mode: ModeName) -> None:
    lab = adopted(tmp_path, mode)
    lab.remote("phone", FILE.format("phone").encode(), ())
    lab.look()
    assert "(phone.md)" in (lab.dir / "MEMORY.md").read_text()


def test_recall_finds_text_typed_into_the_shared_index_but_not_its_list(
    tmp_path: Path, mode: ModeName
) -> None:
    index = "# Index\n\n- [Build](build.md) — how it is built\n"
    lab = adopted(tmp_path, mode, index)

    def keys(query: str) -> list[str]:
        return [hit.key for hit in lab.memory.recall(query).hits]

    assert keys("how is it built, about build") == ["build"]
    assert INDEX_KEY not in lab.memory.context().text
    typed = "Never deploy on Fridays.\n- [Rota](rota.md) — who is on call: Maria\n"
    (lab.dir / "MEMORY.md").write_text(f"{index}\n{typed}")
    lab.look()
    assert keys("deploy on Fridays") == [INDEX_KEY]
    assert keys("Maria on call") == [INDEX_KEY]  # its file is not here, so only the index has the text
    assert keys("how is it built, about build") == ["build"]
    lab.memory.forget("build")
    lab.look()
    assert keys("how is it built") == [INDEX_KEY]


@pytest.mark.parametrize("edit", ["append", "begin"])
def test_lines_added_to_the_shared_index_on_two_devices_are_merged(
    tmp_path: Path, mode: ModeName, edit: str
) -> None:
    lab = adopted(tmp_path, mode)
    path, name = lab.dir / "MEMORY.md", f"m/{INDEX_KEY}"
    with lab.memory.replica.reading():
        entry = lab.memory.replica.store.entry(name)
        (dot,) = entry
        text = lab.memory.replica.store.body(name, entry[dot])
    assert text is not None
    ours, theirs = "- [Lint](lint.md) — with ruff\n", "- [Docs](docs.md) — with mkdocs\n"
    old = path.read_text()
    path.write_text(old + ours if edit == "append" else ours + old)
    added = text + b"\n" + theirs.encode() if not text.endswith(b"\n") else text + theirs.encode()
    if edit == "begin":
        added = text.replace(b"- [Build]", theirs.encode() + b"- [Build]")
    lab.remote(INDEX_KEY, added, (dot,))
    lab.look()
    lab.look()
    found = path.read_text()
    assert all(line in found for line in (old, ours, theirs)), found
    assert not list(lab.dir.glob("*.conflict-*"))
    assert not lab.memory.conflicts()


BASE = b"- [A](a.md) \xe2\x80\x94 a\n- [B](b.md) \xe2\x80\x94 b\n"


@pytest.mark.parametrize(
    ("mine", "theirs", "merged"),
    [
        (BASE + b"- [C](c.md)\n", BASE + b"- [D](d.md)\n", BASE + b"- [C](c.md)\n- [D](d.md)\n"),
        (BASE + b"- [C](c.md)\n", BASE + b"- [C](c.md)\n- [D](d.md)\n", BASE + b"- [C](c.md)\n- [D](d.md)\n"),
        (BASE.replace(b" b\n", b" new\n"), BASE + b"- [D](d.md)\n", BASE.replace(b" b\n", b" new\n") + b"- [D](d.md)\n"),
        (BASE.replace(b" b\n", b" x\n"), BASE.replace(b" b\n", b" y\n"), None),
        (BASE + b"A sentence.\n", BASE + b"Another sentence.\n", None),
        (b"- [A](a.md) \xe2\x80\x94 a\n", BASE.replace(b" b\n", b" y\n"), None),
        (BASE + b"\n## One\n- [C](c.md)\n", BASE + b"\n## Two\n- [D](d.md)\n", BASE + b"\n## One\n- [C](c.md)\n\n## Two\n- [D](d.md)\n"),
    ],
)  # fmt: skip
def test_index_edits_are_merged_as_union_of_links(mine: bytes, theirs: bytes, merged: bytes | None) -> None:
    assert merge_index(BASE, mine, theirs) == merged


def test_lines_appended_on_two_devices_sync_without_conflict(tmp_path: Path) -> None:
    lab = Devices(tmp_path)
    folders = {name: tmp_path / f"files-{name}" for name in "ab"}
    for folder in folders.values():
        folder.mkdir()
    (folders["a"] / "build.md").write_text(FILE.format("build"))
    (folders["a"] / "MEMORY.md").write_text("- [Build](build.md) — how it is built\n")
    a = lab.create("a")
    a.folders.attach(folders["a"])
    lab.sync(a)
    b = lab.restore("b")
    b.folders.attach(folders["b"])
    lab.settle(a, b)

    lines = {"a": "- [Lint](lint.md) — with ruff\n", "b": "- [Docs](docs.md) — with mkdocs\n"}
    for name, line in lines.items():
        with (folders[name] / "MEMORY.md").open("a", encoding="utf-8") as file:
            file.write(line)
    assert not lab.sync(a).conflicts
    assert not lab.sync(b).conflicts
    assert not lab.sync(a).conflicts
    lab.settle(a, b)
    texts = {(folder / "MEMORY.md").read_text("utf-8") for folder in folders.values()}
    assert len(texts) == 1 and all(line in texts.copy().pop() for line in lines.values())
    assert not a.conflicts() and not b.conflicts()
    assert not [path for folder in folders.values() for path in folder.glob("*.conflict-*")]
