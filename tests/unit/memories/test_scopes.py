"""Scopes of one vault: separate texts and events, one counter, no automatic moves (format sections 1.4 and 5)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.causal.cards import Card, write_card
from ipfsmem.device.events import Timeline
from ipfsmem.device.writing import writing
from ipfsmem.errors import KeyNameError, NotFoundError, UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory


@pytest.fixture(params=["local", "encrypted-ipfs"])
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Memory]:
    options = {"passphrase": False} if request.param == "encrypted-ipfs" else {}
    with Memory.create("n", request.param, home=tmp_path, **options) as made:
        yield made


def scoped(memory: Memory, scope: str) -> MemoryStore:
    return MemoryStore(memory.replica).in_scope(scope)


def test_one_key_in_three_scopes_is_three_memories(memory: Memory) -> None:
    """Scopes `o` and `s` with keys and facts are apart, also from keys that look like them."""
    scopes = ("", "o", "s")
    for scope in scopes:
        for key in ("o", "s", "tone"):
            scoped(memory, scope).write(key, f"{key} of {scope or 'nameless'}\n".encode())
        Timeline(memory.replica, scope).note("said", {"where": scope})
    with memory.replica.transaction():
        memory.replica.store.checkpoint(folders=False)
    scoped(memory, "o").write("tone", b"changed\n")
    for scope in scopes:
        here = scoped(memory, scope)
        assert [item.key for item in here.listing()] == ["o", "s", "tone"]
        assert here.counts() == (3, 0)
        reading = here.read("tone")
        expected = "changed\n" if scope == "o" else f"tone of {scope or 'nameless'}\n"
        assert reading is not None and reading.data == expected.encode()
        assert here.index().count("\n- ") == 3
        assert [event["where"] for event in Timeline(memory.replica, scope).events()] == [scope]
    assert scoped(memory, "o").forget("tone")
    assert scoped(memory, "o").read("tone") is None and scoped(memory, "s").read("tone") is not None
    assert scoped(memory, "never").listing() == []


def test_device_has_one_event_counter_for_all_scopes(memory: Memory) -> None:
    """Also after the row of the counter was lost."""
    ids = [Timeline(memory.replica, scope).note("said")["id"] for scope in ("", "a", "b", "a")]
    with memory.replica.transaction():
        memory.replica.db.connection.execute("DELETE FROM meta WHERE name='events'")
    ids.append(Timeline(memory.replica, "b").note("said")["id"])
    assert [int(one.rpartition("-")[2]) for one in ids] == [1, 2, 3, 4, 5]


def test_foreign_event_is_added_once_in_each_scope(memory: Memory) -> None:
    event = {"ts": "2026-04-14T12:00:00.000Z", "type": "waved"}
    for scope, new in (("", 1), ("a", 1), ("a", 0), ("", 0)):
        with writing(memory.replica) as change:
            assert Timeline(memory.replica, scope).add_foreign(change, [event]) == new


@pytest.mark.parametrize(
    "scope", ["2026-04-14", "timeline", "scopes", "all", "global", "memory", "Work", "a/b"]
)
def test_reserved_or_invalid_scope_token_is_refused(memory: Memory, scope: str) -> None:
    """`2026-04-14` is the name of a day."""
    with pytest.raises(KeyNameError, match="scope"):
        scoped(memory, scope)


def test_put_creates_a_scope_once_and_changes_its_title_later(memory: Memory) -> None:
    made = memory.scopes.put("plans", kind="agent")
    assert made.created and made.card is not None and made.card.kind == "agent"
    with pytest.raises(UsageError, match="the scope plans exists already"):
        memory.scopes.put("plans", kind="user")
    changed = memory.scopes.put("plans", title="Our plans")
    assert changed.card is not None
    assert (changed.created, changed.card.title, changed.card.kind) == (False, "Our plans", "agent")
    memory.scopes.forget("plans")
    with pytest.raises(NotFoundError, match="plans is forgotten"):
        memory.scopes.put("plans", title="Again")


def test_two_memories_with_the_same_bytes_have_a_line_each(memory: Memory) -> None:
    for key in ("first", "second"):
        scoped(memory, "").write(key, b"the same words\n")
    index = scoped(memory, "").index()
    assert "](first.md)" in index and "](second.md)" in index


def test_status_check_and_diff_cover_all_scopes(memory: Memory) -> None:
    """Status, check and diff cover every scope; a forgotten one is not counted."""
    for scope in ("", "work", "gone"):
        scoped(memory, scope).write("tone", b"one\n")
        Timeline(memory.replica, scope).note("said")
    with writing(memory.replica) as change:
        change.write_alternative("m/work/tone", b"another\n")
    Scopes(memory.replica).forget("gone")
    status = memory.status()
    assert (status.memories, status.conflicts) == (2, 1)
    assert status.events == 3  # one in each remaining scope, and the forget
    (finding,) = [found for found in memory.check() if found.code == "conflicts"]
    assert "work/tone" in finding.text


def test_title_of_card_with_too_many_sibling_ids_changes_without_loss(
    memory: Memory,
) -> None:
    scopes = Scopes(memory.replica)
    of = [("id", f"{n:032x}") for n in range(100)]
    scopes.make("api", title="one", ids=of[:50])
    with writing(memory.replica) as change:
        # As left by a join with another device's card of the same scope.
        change.write_alternative("c/api", write_card(Card(title="two", ids=tuple(of[50:]))))
    scopes.change("api", title="three")
    for title, ids in (("three", of), ("four", of)):
        card = scopes.cards()["api"]
        assert (card.title, sorted(card.ids)) == (title, ids)
        scopes.change("api", title="four")
    scopes.change("api", add=[("id", "f" * 32)], drop=of[:1])
    assert sorted(scopes.cards()["api"].ids) == [*of[1:], ("id", "f" * 32)]
    scopes.change("api", drop=of[40:])
    assert sorted(scopes.cards()["api"].ids) == [*of[1:40], ("id", "f" * 32)]
    with memory.replica.reading():
        assert len(memory.replica.store.entry("c/api")) == 1


def test_forget_of_a_scope_with_new_files_in_a_linked_folder_forgets_them(tmp_path: Path) -> None:
    """Also of a scope that only an unscanned file has."""
    folder = tmp_path / "linked"
    folder.mkdir()
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        memory.folders.attach(folder, scope="work")
        file = folder / "tone.md"
        file.write_text("direct\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))  # written long ago
        assert memory.scopes.forget("work").forgotten == 1
        assert "tone" not in memory.scope("work")
