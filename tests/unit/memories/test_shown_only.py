"""A write replaces only the text its caller was shown: write, resolve and forget with a token."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from tests.support.device_lab import ROOT, Lab, all_texts, body


def _two(lab: Lab) -> tuple[Memory, Memory]:
    a = lab.create("a")
    lab.sync(a)
    c = lab.restore("c")
    lab.settle(a, c)
    return a, c


def _came_between(lab: Lab) -> tuple[Memory, Memory, MemoryRecord]:
    """A read its own text; then C's concurrent, newer text is shown at A."""
    a, c = _two(lab)
    a.write("tone", "A's text", type="feedback", description="old line")
    reading = a.read("tone")
    assert reading is not None
    lab.clock.advance(5)
    c.write("tone", "C's text")
    lab.sync(c)
    lab.sync(a)
    assert body(a, "tone") == "C's text"
    return a, c, reading


def test_omitted_fields_are_taken_from_the_text_of_the_token(lab: Lab) -> None:
    a, c, reading = _came_between(lab)
    written = a.write("tone", description="how to talk", seen=reading)
    assert (written.file.body, written.file.description, written.file.type) == (
        "A's text",
        "how to talk",
        "feedback",
    )
    assert all_texts(a) == {"A's text", "C's text"}
    lab.settle(a, c)
    assert all_texts(c) == {"A's text", "C's text"}


def test_token_string_finds_its_text_in_the_state(lab: Lab) -> None:
    a, _, reading = _came_between(lab)
    written = a.write("tone", "A's second text", seen=reading.token)
    assert (written.file.body, written.file.description) == ("A's second text", "old line")
    assert all_texts(a) == {"A's second text", "C's text"}


def test_token_string_of_a_lost_text_is_refused(lab: Lab) -> None:
    """Omitted fields are unknown; with the reading itself the write succeeds."""
    a, c = _two(lab)
    a.write("tone", "first", description="kept")
    lab.settle(a, c)
    reading = c.read("tone")
    assert reading is not None
    a.write("tone", "second", description="changed")
    lab.settle(a, c)
    before = c.replica.store.entry("m/tone")
    with pytest.raises(ChangedError, match="tone"):
        c.write("tone", description="new", seen=reading.token)
    assert c.replica.store.entry("m/tone") == before
    written = c.write("tone", description="new", seen=reading)
    assert (written.file.body, written.file.description) == ("first", "new")
    assert all_texts(c) == {"first", "second"}


def test_token_of_a_merged_text_is_accepted(lab: Lab) -> None:
    """No block has the merged text."""
    a, c = _two(lab)
    a.write("tone", "\n".join("abcdefg"))
    lab.settle(a, c)
    a.write("tone", "\n".join("Abcdefg"))
    c.write("tone", "\n".join("abcdefG"))
    lab.sync(c)
    lab.sync(a)
    reading = a.read("tone")
    assert reading is not None and reading.merged
    written = a.write("tone", description="both", seen=reading.token)
    assert written.file.body == "\n".join("AbcdefG") and not written.merged
    assert all_texts(a) == {"\n".join("AbcdefG")}


def test_header_alone_is_not_written_over_an_unfetched_text(lab: Lab) -> None:
    a, _ = _two(lab)
    a.write("tone", "the text")
    (value,) = a.replica.store.entry("m/tone").values()
    assert value.loc is not None
    with a.replica.transaction():
        a.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),))
    with pytest.raises(NotFoundError, match="not fetched"):
        a.write("tone", description="new")
    assert list(a.replica.store.entry("m/tone").values()) == [value]


def test_token_hash_is_valid_while_the_text_is_unchanged(lab: Lab) -> None:
    """HTTP uses it as an ETag."""
    a, _, reading = _came_between(lab)
    with pytest.raises(ChangedError):
        a.write("tone", "blind", seen=reading.seen)
    now = a.read("tone")
    assert now is not None and now.seen != reading.seen
    a.write("tone", "seen", seen=now.seen)
    assert all_texts(a) == {"A's text", "seen"}
    with pytest.raises(UsageError):
        a.write("tone", "seen", seen="abc")


def test_reading_of_another_memory_is_refused_as_a_token(lab: Lab) -> None:
    a, _ = _two(lab)
    other = a.write("other", "text")
    with pytest.raises(UsageError, match="other"):
        a.write("tone", "text", seen=other)
    assert a.read("tone") is None


def test_text_synced_between_show_and_resolve_remains(lab: Lab) -> None:
    a, c = _two(lab)
    d = lab.restore("d")
    lab.settle(a, c, d)
    a.write("tone", "A text")
    lab.clock.advance(1)
    c.write("tone", "C text")
    lab.sync(c)
    lab.sync(a)
    (looked,) = a.conflicts()
    assert {looked.shown.file.body, *(copy.reading.file.body for copy in looked.copies)} == {
        "A text",
        "C text",
    }
    lab.clock.advance(1)
    d.write("tone", "D text, unseen at A")
    lab.sync(d)
    lab.sync(a)
    a.resolve("tone", b"---\nname: t\n---\n\nmerged A+C by hand\n", seen=looked)
    assert all_texts(a) == {"merged A+C by hand", "D text, unseen at A"}
    lab.settle(a, c, d)
    assert all_texts(d) == {"merged A+C by hand", "D text, unseen at A"}


def test_resolve_keep_keeps_the_shown_text(lab: Lab) -> None:
    a, c, _ = _came_between(lab)
    (looked,) = a.conflicts()
    lab.clock.advance(1)
    c.write("tone", "C's newer text")
    lab.sync(c)
    lab.sync(a)
    with pytest.raises(ChangedError):
        a.resolve("tone", keep=True, seen=looked.token)
    assert a.resolve("tone", keep=True, seen=looked).shown is not None
    # C's edit of the kept text is shown.
    assert all_texts(a) == {"C's text", "C's newer text"} and body(a, "tone") == "C's newer text"


def test_resolve_without_a_token_is_refused(lab: Lab) -> None:
    a, _, _ = _came_between(lab)
    with pytest.raises(TypeError):
        a.resolve("tone")  # type: ignore[call-arg]
    (looked,) = a.conflicts()
    with pytest.raises(ChangedError):
        a.resolve("tone", keep=True, seen="0" * 16)
    a.resolve("tone", keep=True, seen=looked.seen)
    assert not a.conflicts() and all_texts(a) == {"C's text"}


def test_unfetched_alternative_is_not_in_the_token(lab: Lab) -> None:
    a, _, _ = _came_between(lab)
    (looked,) = a.conflicts()
    (copy,) = looked.copies
    loc = a.replica.store.entry("m/tone")[copy.token[0]].loc
    assert loc is not None
    with a.replica.transaction():
        a.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (bytes.fromhex(loc.sha),))
    (again,) = a.conflicts()
    assert again.copies[0].reading is None and not set(copy.token) & set(again.token)
    a.resolve("tone", keep=True, seen=again)
    assert copy.token[0] in a.replica.store.entry("m/tone")


def _forgotten_meanwhile(lab: Lab) -> tuple[Memory, Memory, MemoryRecord]:
    a, c = _two(lab)
    a.write("tone", "v1")
    lab.settle(a, c)
    reading = a.read("tone")
    assert reading is not None
    c.forget("tone")
    lab.sync(c)
    lab.sync(a)
    return a, c, reading


def test_write_to_a_key_forgotten_meanwhile_is_refused(lab: Lab) -> None:
    a, _, reading = _forgotten_meanwhile(lab)
    before = a.replica.store.entry("m/tone")
    for _ in range(6):
        with pytest.raises(ChangedError, match="forgotten"):
            a.write("tone", "v2", seen=reading)
        with pytest.raises(ChangedError, match="forgotten"):
            a.write_text("tone", b"v2\n", seen=reading)
    assert a.replica.store.entry("m/tone") == before
    assert body(a, "tone") is None
    a.write("tone", "v3")
    assert body(a, "tone") == "v3" and not a.conflicts()


def test_text_hidden_by_a_forget_is_resolved_with_its_token(lab: Lab) -> None:
    a, c = _two(lab)
    a.write("tone", "v1")
    a.write("music", "m1")
    lab.settle(a, c)
    for key in ("tone", "music"):
        c.forget(key)
        a.write(key, f"{key} edited meanwhile")
    lab.sync(c)
    lab.sync(a)
    music, tone = a.conflicts()
    assert (music.key, tone.key, music.forgotten, music.shown) == ("music", "tone", True, None)
    assert a.resolve("music", keep=True, seen=music).shown is None
    assert tone.copies[0].reading is not None
    back = a.resolve("tone", tone.copies[0].reading.data, seen=tone).shown
    assert back is not None and back.file.body == "tone edited meanwhile"
    lab.settle(a, c)
    for memory in (a, c):
        assert not memory.conflicts() and body(memory, "tone") == "tone edited meanwhile"
        assert memory.read("music") is None and "music edited meanwhile" not in all_texts(memory)


def test_concurrent_forget_does_not_change_the_answer_of_a_write(lab: Lab, tmp_path: Path) -> None:
    with Memory.create(
        "m", "local", home=Home(folder=tmp_path / "m", environment=lab.environment("m"))
    ) as memory:
        with Memory.load("m", home=Home(folder=tmp_path / "m", environment=lab.environment("m2"))) as other:
            changed = memory._open.changed
            memory._open.changed = lambda: (changed(), other.forget("tone"))  # type: ignore[method-assign]
            assert memory.write("tone", "text").file.body == "text"
            assert memory.write_text("tone", b"more\n").data == b"more\n"
        assert memory.read("tone") is None


def test_members_of_a_local_vault_are_refused(lab: Lab) -> None:
    """Like an unlocked vault in mode `none`, which has no ring."""
    with Memory.load("m", "none") as memory:
        memory.unlock(ROOT)
        for call in (memory.members.revoke("x"), memory.members.rotate(), memory.members.new_words()):
            with pytest.raises(UsageError, match="no members"):
                asyncio.run(call)


def test_forget_with_a_token_keeps_unseen_texts(lab: Lab) -> None:
    a, _, reading = _came_between(lab)
    assert a.forget("tone", seen=reading)
    assert a.read("tone") is None and all_texts(a) == {"C's text"}
    (left,) = a.conflicts()
    assert left.forgotten
