"""Earlier revisions of a memory: read at a root, restored; and undo of this device's last change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memory import Memory
from tests.support.device_lab import Lab, all_texts, body, texts


def _root(memory: Memory) -> str:
    root = memory.status().root
    assert root is not None
    return root


def _published(lab: Lab, *bodies: str) -> tuple[Memory, list[str]]:
    """A vault whose `tone` was published with each of these texts; returns it and the roots."""
    a = lab.create("a")
    roots = []
    for one in bodies:
        a.write("tone", one)
        lab.sync(a)
        roots.append(_root(a))
        lab.clock.advance(60)
    return a, roots


def test_history_lists_every_text_once_with_its_root(lab: Lab) -> None:
    a, roots = _published(lab, "first", "second", "third")
    a.write("other", "text")
    lab.sync(a)
    a.write("tone", "not published")
    found = a.history("tone")
    assert found.roots_not_kept == 0 and [v.now for v in found.versions] == ["shown", "", "", ""]
    assert [v.root for v in found.versions] == [None, _root(a), roots[1], roots[0]]
    assert [v.written for v in found.versions] == sorted([v.written for v in found.versions], reverse=True)  # type: ignore[type-var]
    for version, text in zip(found.versions[1:], ("third", "second", "first"), strict=True):
        assert version.root is not None and version.device == a.device and version.own
        then = a.read("tone", root=version.root)
        assert then is not None and then.sha256 == version.sha256 and then.file.body == text
        assert version.size == len(then.data)
    with pytest.raises(NotFoundError):
        a.history("nothing")
    with pytest.raises(NotFoundError, match="is not in version"):
        a.read("other", root=roots[0])


def test_restored_revision_is_a_write(lab: Lab) -> None:
    a, roots = _published(lab, "first", "second")
    c = lab.restore("c")
    lab.settle(a, c)
    old = a.read("tone", root=roots[0])
    back = a.restore("tone", root=roots[0][:20])
    assert old is not None and back.data == old.data and body(a, "tone") == "first"
    lab.settle(a, c)
    assert body(c, "tone") == "first" and texts(c) == {"tone": {"first"}}
    a.forget("tone")
    lab.settle(a, c)
    with pytest.raises(NotFoundError, match="forgotten"):
        a.read("tone", root=_root(a))
    assert a.history("tone").versions[0].sha256 is None
    c.restore("tone", root=roots[1])
    lab.settle(a, c)
    assert body(a, "tone") == "second" and not a.conflicts()


def test_text_of_a_resolved_alternative_is_restored_by_its_hash(lab: Lab) -> None:
    a, _ = _published(lab, "old")
    c = lab.restore("c")
    lab.settle(a, c)
    a.write("tone", "from a")
    c.write("tone", "from c")
    lab.settle(a, c)
    (item,) = a.conflicts()
    (copy,) = item.copies
    assert copy.reading is not None
    a.resolve("tone", keep=True, seen=item)
    lab.settle(a, c)
    assert copy.reading.sha256 in [v.sha256 for v in a.history("tone").versions]
    assert a.restore("tone", sha256=copy.reading.sha256[:8]).data == copy.reading.data
    with pytest.raises(NotFoundError):
        a.restore("tone", sha256="0" * 64)
    with pytest.raises(UsageError):
        a.restore("tone")
    with pytest.raises(UsageError):
        a.restore("tone", sha256="abc")


def test_restore_replaces_only_what_its_caller_saw(lab: Lab) -> None:
    a, roots = _published(lab, "first", "second")
    c = lab.restore("c")
    lab.settle(a, c)
    seen = a.read("tone")
    c.write("tone", "third, from c")
    lab.settle(a, c)
    a.restore("tone", root=roots[0], seen=seen)
    assert all_texts(a) == {"first", "third, from c"}
    with pytest.raises(ChangedError):
        a.restore("tone", root=roots[0], seen="0" * 16)


def test_missing_roots_are_counted(lab: Lab) -> None:
    a, roots = _published(lab, "first", "second", "third")
    with a.replica.transaction():
        from ipfsmem.content.cid import parse_cid

        a.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (parse_cid(roots[0]).digest,))
    found = a.history("tone")
    assert found.roots_not_kept == 1 and len(found.versions) == 2
    with pytest.raises(NotFoundError, match="not kept"):
        a.restore("tone", root=roots[0])


def test_write_is_undone_and_redone(lab: Lab) -> None:
    a, _ = _published(lab, "first")
    before = a.files()
    a.write("tone", "slip of the hand")
    done = a.undo()
    assert (done.undone, done.key) == ("write", "tone") and done.sha256 is not None and not done.merged
    assert a.files() == before
    assert a.undo().undone == "undo"
    assert body(a, "tone") == "slip of the hand"
    a.undo()
    c = lab.restore("c")
    lab.settle(a, c)
    assert body(c, "tone") == "first" and texts(c) == {"tone": {"first"}}


def test_new_memory_is_undone(lab: Lab) -> None:
    a, _ = _published(lab, "first")
    c = lab.restore("c")
    a.write("oops", "text")
    lab.settle(a, c)
    assert a.undo().sha256 is None
    lab.settle(a, c)
    assert c.read("oops") is None and "oops" not in texts(c)
    a.undo()
    assert body(a, "oops") == "text"


def test_undo_of_a_forget_restores_alternatives_and_merges(lab: Lab) -> None:
    a, _ = _published(lab, "\n".join("abcdefg"))
    c = lab.restore("c")
    lab.settle(a, c)
    a.write("tone", "\n".join("Abcdefg"))
    c.write("tone", "\n".join("abcdefG"))
    lab.settle(a, c)
    merged = a.read("tone")
    assert merged is not None and merged.merged
    a.forget("tone")
    lab.settle(a, c)
    assert c.read("tone") is None
    done = a.undo()
    assert done.undone == "forget" and done.sha256 is not None and done.merged
    lab.settle(a, c)
    for memory in (a, c):
        again = memory.read("tone")
        assert again is not None and again.merged and again.data == merged.data
        assert not memory.conflicts()


def test_undo_of_a_resolve_restores_the_alternatives(lab: Lab) -> None:
    a, _ = _published(lab, "old")
    c = lab.restore("c")
    lab.settle(a, c)
    a.write("tone", "from a")
    lab.clock.advance(1)
    c.write("tone", "from c")
    lab.settle(a, c)
    (item,) = a.conflicts()
    a.resolve("tone", b"settled\n", seen=item)
    assert a.undo().undone == "resolve"
    lab.settle(a, c)
    (again,) = c.conflicts()
    assert again.files == item.files and again.shown is not None and item.shown is not None
    assert again.shown.data == item.shown.data


def test_change_edited_since_is_not_undone(lab: Lab) -> None:
    a, _ = _published(lab, "first")
    c = lab.restore("c")
    lab.settle(a, c)
    a.write("tone", "second")
    lab.settle(a, c)
    c.write("tone", "third, from c")
    lab.settle(a, c)
    with pytest.raises(ChangedError, match="tone"):
        a.undo()
    assert body(a, "tone") == "third, from c"


def test_undo_text_survives_a_collection(lab: Lab) -> None:
    a, _ = _published(lab, "first")
    a.write("tone", "never published, then written over")
    a.write("tone", "second")
    asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
    a.undo()
    assert body(a, "tone") == "never published, then written over"


def test_undo_without_a_change_is_refused(lab: Lab, tmp_path: Path) -> None:
    """In mode local a forgotten text is deleted, so it cannot be restored."""
    with Memory.create("m", "local", home=tmp_path / "m") as memory:
        with pytest.raises(NotFoundError):
            memory.undo()
        memory.write("tone", "first")
        memory.write("tone", "second")
        memory.note("waved")
        memory.undo()
        assert body(memory, "tone") == "first"
        assert (memory.replica.folder / "memory" / "tone.md").read_bytes() == memory.files()["tone"]  # type: ignore[operator]
        memory.forget("tone")
        with pytest.raises(NotFoundError):
            memory.undo()
        assert [v.sha256 for v in memory.history("tone").versions] == [None]
