"""Memory limits while a tree of memory files is read (format sections 1.6, 8)."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from ipfsmem.bundle.timeline import parse_lines, union
from ipfsmem.errors import LimitError
from ipfsmem.memories import bundle_tree
from ipfsmem.memories.bundle_tree import read_tree
from ipfsmem.memories.containers import read_zip


def test_equal_lines_use_constant_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("timeline/2026-01-01.jsonl", b"0\n" * (1 << 16))
    tracemalloc.start()
    try:
        events = read_zip(path)[""].blob.events
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [event["raw"] for event in events] == ["0"]
    assert peak < 8 << 20


def test_events_read_line_by_line_equal_a_union_of_all_lines() -> None:
    """A BOM, CRLF, blank lines, no last LF, equal lines: the same events as from a union of all lines."""
    text = b'\xef\xbb\xbf0\r\n\n \n{"ts":"2026-01-01","type":"a"}\n0\n0'
    (part,) = read_tree(["timeline/x.jsonl"], lambda name, most: text).values()
    assert part.blob.events == union(parse_lines(text)) and len(part.blob.events) == 2
    assert [event["type"] for event in parse_lines(text)] == ["raw", "a", "raw", "raw"]


def test_different_lines_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is for all files and scopes of the tree together."""
    monkeypatch.setattr(bundle_tree.Room.__init__, "__defaults__", (5,))
    tree = {
        "memory/timeline/a.jsonl": b"0\n1\n2\n2\n2\n",
        "scopes/s/memory/timeline/a.jsonl": b"0\n1\n",
    }
    assert len(read_tree(tree, lambda name, most: tree[name])) == 2
    tree["scopes/s/memory/timeline/b.jsonl"] = b"3\n"
    with pytest.raises(LimitError, match="more than 5 different lines"):
        read_tree(tree, lambda name, most: tree[name])


def test_card_linked_by_many_scopes_is_counted_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {f"scopes/s{n}/scope.json": b'{"forgotten":["a","b","c"],"v":1}' for n in range(3)}
    tree["memory/a.md"] = b"a"
    assert len(read_tree(tree, lambda name, most: tree[name])) == 4
    with monkeypatch.context() as patch:
        patch.setattr(bundle_tree, "MAX_BYTES", 90)
        with pytest.raises(LimitError, match="more than 90 bytes"):
            read_tree(tree, lambda name, most: tree[name])
    with monkeypatch.context() as patch:
        patch.setattr(bundle_tree, "MAX_FORGOTTEN", 8)
        with pytest.raises(LimitError, match="called forgotten"):
            read_tree(tree, lambda name, most: tree[name])


def test_zip_entry_without_a_name_is_ignored(tmp_path: Path) -> None:
    class Nameless(ZipInfo):
        def is_dir(self) -> bool:
            return False

    path = tmp_path / "x.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr(Nameless(""), b"nameless")
        archive.writestr("a.md", b"a")
        archive.writestr("folder/", b"")
    with ZipFile(path) as archive:
        assert archive.namelist() == ["", "a.md", "folder/"]
    assert read_zip(path)[""].blob.files == {"a": b"a"}
