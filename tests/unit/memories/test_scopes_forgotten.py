"""The life of a scope (format section 5.1): created, renamed, redirected, forgotten and restored."""

from __future__ import annotations

from pathlib import Path

import pytest

import ipfsmem.open_vault.scopes
from ipfsmem.causal import cards
from ipfsmem.content.cid import CID
from ipfsmem.device import scopes as replica_scopes
from ipfsmem.device.events import Timeline
from ipfsmem.device.replica import Replica
from ipfsmem.errors import KeyNameError, LimitError, MembershipError, NotFoundError, UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.scopes import Scopes
from ipfsmem.memory import Memory
from ipfsmem.published.history import PastState, find_root, open_past
from tests.support.device_lab import SHORT, TOO_LONG, Forger, Lab


def two(lab: Lab) -> tuple[Memory, Memory]:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    return a, b


def at(memory: Memory, scope: str) -> MemoryStore:
    return MemoryStore(memory.replica, scope)


def event_types(memory: Memory, scope: str) -> list[str]:
    return [event["type"] for event in Timeline(memory.replica, scope).events()]


def tokens(memory: Memory) -> list[str]:
    return [scope.token for scope in Scopes(memory.replica).listing()]


def past(memory: Memory, root: str) -> object:
    from ipfsmem.causal.value import decode_entry

    with memory.replica.transaction():
        tree = open_past(memory.replica, find_root(memory.replica, root)).tree
        return [(name, decode_entry(name, text)) for name, text in tree.items()]


def test_first_write_creates_a_scope_with_a_card(lab: Lab) -> None:
    a, b = two(lab)
    at(a, "work").write("tone", b"direct\n")
    Timeline(b.replica, "home").note("waved")
    lab.settle(a, b)
    for memory in (a, b):
        assert tokens(memory) == ["home", "work"]
        card = Scopes(memory.replica).get("work")
        assert card is not None and card.title == "work" and card.card is not None and card.card.ids == ()
    assert Scopes(a.replica).get("never") is None
    with pytest.raises(KeyNameError):
        Scopes(a.replica).get("2026-04-14")


def test_newest_version_of_a_scope_skips_an_unreadable_one(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, a version that a removed device published."""
    a, _ = two(lab)
    at(a, "work").write("tone", b"direct\n")
    lab.sync(a)
    with_text = a.status().root
    a.scopes.forget("work")
    lab.sync(a)
    a.scopes.restore("work")
    last = a.status().root
    assert last != with_text

    def opened(replica: Replica, cid: CID) -> PastState:
        if str(cid) == last:
            raise MembershipError("the commit is by a device that was removed")
        return open_past(replica, cid)

    monkeypatch.setattr(ipfsmem.open_vault.scopes, "open_past", opened)
    assert a.scopes.newest_version("work") == with_text


def test_title_of_a_scope_changes_and_its_token_does_not(lab: Lab) -> None:
    a, b = two(lab)
    mine, theirs = Scopes(a.replica), Scopes(b.replica)
    mine.make("work", title="Work", ids=[("id", "0" * 32)])
    lab.settle(a, b)
    mine.change("work", title="Werk", add=[("remote", "github.com/a/b", "")])
    theirs.change("work", add=[("id", "1" * 32)])
    lab.settle(a, b)
    for scopes in (mine, theirs):
        card = scopes.cards()["work"]
        assert card.ids == (("id", "0" * 32), ("id", "1" * 32), ("remote", "github.com/a/b", ""))
        assert scopes.find([("remote", "github.com/a/b", "")]) == ["work"]
    theirs.change("work", drop=[("id", "0" * 32)], kind="agent")
    lab.settle(a, b)
    assert mine.cards()["work"].ids == (("id", "1" * 32), ("remote", "github.com/a/b", ""))
    with pytest.raises(UsageError, match="already"):
        mine.make("work")
    with pytest.raises(NotFoundError):
        mine.change("never", title="x")


def test_redirected_scope_is_stacked_below_its_target_and_stays_unmoved(lab: Lab) -> None:
    a, _ = two(lab)
    scopes = Scopes(a.replica)
    for token in ("a", "b"):
        at(a, token).write("tone", token.encode() + b"\n")
    scopes.change("a", into="b")
    assert (scopes.stack("b"), scopes.target("a"), scopes.stack("")) == (["b", "a"], "b", [""])
    assert at(a, "a").read("tone").data == b"a\n" and at(a, "b").read("tone").data == b"b\n"
    scopes.change("a", stay=True)
    assert (scopes.stack("b"), scopes.target("a")) == (["b"], "a")
    for wrong in ("a", "never"):
        with pytest.raises((UsageError, NotFoundError)):
            scopes.change("a", into=wrong)
    scopes.change("a", into="b")
    scopes.forget("b")
    assert scopes.target("a") == "a"
    with pytest.raises(NotFoundError, match="no scope b"):
        scopes.change("a", into="b")


def test_forget_of_a_scope_keeps_concurrent_additions_as_conflicts(lab: Lab) -> None:
    a, b = two(lab)
    at(a, "work").write("tone", b"direct\n")
    at(a, "work").write("old", b"as it was\n")
    Timeline(a.replica, "work").note("started")
    lab.settle(a, b)
    at(b, "work").write("new", b"written offline\n")
    at(b, "work").write("old", b"edited offline\n")
    Timeline(b.replica, "work").note("offline")
    assert Scopes(a.replica).forget("work", reason="done") == 2
    lab.settle(a, b)
    for memory in (a, b):
        here = at(memory, "work")
        assert tokens(memory) == []
        assert [scope.token for scope in Scopes(memory.replica).listing(forgotten=True)] == ["work"]
        assert here.listing() == [] and here.counts() == (0, 0) and list(here.views()) == []
        assert here.read("new") is None and "new" not in here.index()
        left = {item.key: item for item in here.conflicts()}
        assert sorted(left) == ["new", "old"] and all(item.forgotten for item in left.values())
        (copy,) = left["new"].copies
        assert copy.reading is not None and copy.reading.data == b"written offline\n"
        assert here.read_conflict("new", copy.file).data == b"written offline\n"
        with memory.replica.reading():
            assert list(memory.replica.store.segments("work")) == []
        assert event_types(memory, "work") == []
        (event,) = [e for e in Timeline(memory.replica).events() if e["type"] == "forgot"]
        assert (event["scope"], event["reason"]) == ("work", "done")
        with pytest.raises(NotFoundError, match="forgotten") as caught:
            here.write("more", b"text\n")
        assert "scope restore work" in caught.value.hint
        with pytest.raises(NotFoundError, match="forgotten"):
            Timeline(memory.replica, "work").note("more")
    with pytest.raises(NotFoundError, match="forgotten"):
        Scopes(a.replica).forget("work")
    with pytest.raises(NotFoundError, match="forgotten"):
        Scopes(a.replica).make("work")


def test_forgotten_scope_is_restored_from_a_given_root(lab: Lab) -> None:
    """Without a root it is restored empty."""
    a, b = two(lab)
    Scopes(a.replica).make("work", title="The work", ids=[("id", "0" * 32)])
    at(a, "work").write("tone", b"direct\n")
    at(b, "work").write("other", b"of b\n")
    Timeline(a.replica, "work").note("started")
    Timeline(b.replica, "work").note("joined")
    lab.settle(a, b)
    root = a.status().root
    assert root is not None
    Scopes(b.replica).forget("work")
    scopes = Scopes(a.replica)
    lab.settle(a, b)
    restored = scopes.restore("work", past(a, root))
    assert (restored.texts, restored.events, restored.not_fetched) == (2, 2, 0)
    lab.settle(a, b)
    for memory in (a, b):
        scope = Scopes(memory.replica).get("work")
        assert scope is not None and scope.title == "The work" and tokens(memory) == ["work"]
        assert [item.key for item in at(memory, "work").listing()] == ["other", "tone"]
        assert not at(memory, "work").conflicts()
        assert sorted(event_types(memory, "work")) == ["joined", "started"]
        with memory.replica.reading():
            dots = [dot for _, entry in memory.replica.store.memories("work") for dot in entry]
        assert all(dot.startswith(a.device) for dot in dots)
    Scopes(a.replica).forget("work")
    empty = scopes.restore("work")
    assert (empty.texts, empty.events) == (0, 0)
    assert at(a, "work").listing() == [] and tokens(a) == ["work"]
    at(a, "work").write("tone", b"again\n")
    with pytest.raises(NotFoundError, match="not forgotten"):
        scopes.restore("work")


def test_device_creates_limited_scopes_and_a_merge_is_never_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write or restore over the limit is refused, never a merge. Forgotten scopes do not count."""
    assert cards.MAX_SCOPES == 4_096
    monkeypatch.setattr(replica_scopes, "MAX_SCOPES", 3)
    a, b = two(lab)
    for token in ("a1", "a2", "a3"):
        at(a, token).write("k", b"x\n")
    for token in ("b1", "b2"):
        at(b, token).write("k", b"x\n")
    with pytest.raises(LimitError, match="3 scopes"):
        at(a, "a4").write("k", b"x\n")
    with pytest.raises(LimitError, match="3 scopes"):
        Scopes(a.replica).make("a4")
    lab.settle(a, b)
    assert len(tokens(a)) == len(tokens(b)) == 5
    at(b, "b3").write("k", b"x\n")  # A's scopes do not prevent B from creating any
    with pytest.raises(LimitError, match="3 scopes"):
        at(b, "b4").write("k", b"x\n")
    at(b, "a1").write("more", b"x\n")
    for token in ("a1", "a2", "a3"):
        Scopes(a.replica).forget(token)
    for token in ("a4", "a5", "a6"):
        at(a, token).write("k", b"x\n")
    with pytest.raises(LimitError):
        Scopes(a.replica).restore("a1")


def test_session_is_listed_only_on_request(lab: Lab) -> None:
    """A session consists of memory files whose key and header mark a part."""
    a, part = lab.create("a"), "session-a-0123456789abcdef-0"
    at(a, "work").write(part, b"---\nname: Talk\ntype: session\nsession: a\n---\n\nhello\n")
    at(a, "work").write("tone", b"direct\n")
    here = at(a, "work")
    assert [item.key for item in here.listing()] == ["tone"]
    assert [item.key for item in here.listing(sessions=True)] == [part, "tone"]
    assert "Talk" not in here.index() and here.read(part) is not None
    assert here.forget(part)


def test_text_merged_into_a_forgotten_scope_can_be_forgotten(lab: Lab) -> None:
    a, b = two(lab)
    a.scope("work").write("tone", "one")
    lab.settle(a, b)
    a.scopes.forget("work")
    b.scope("work").write("role", "written meanwhile")
    lab.settle(a, b)
    assert [item.key for item in a.scope("work").conflicts()] == ["role"]
    assert a.scope("work").forget("role")
    assert not a.scope("work").conflicts()
    assert [(e["scope"], e.get("key")) for e in a.timeline.read() if e["type"] == "forgot"] == [
        ("work", None),
        ("work", "role"),
    ]


def _with_text_in_forgotten_scope(lab: Lab) -> Memory:
    a, b = two(lab)
    a.scope("work").write("tone", "one")
    lab.settle(a, b)
    a.scopes.forget("work")
    b.scope("work").write("role", "written meanwhile")
    b.scope("work").write("tone", "another")
    lab.settle(a, b)
    return a


@pytest.mark.parametrize("key", ["role", "tone"])
def test_conflict_in_forgotten_scope_is_resolved_by_keeping_it_forgotten(lab: Lab, key: str) -> None:
    work = _with_text_in_forgotten_scope(lab).scope("work")
    conflict = next(item for item in work.conflicts() if item.key == key)
    assert conflict.forgotten
    assert work.resolve(key, keep=True, seen=conflict).shown is None
    assert key not in [item.key for item in work.conflicts()]
    assert work.read(key) is None


@pytest.mark.parametrize("key", ["role", "tone"])
def test_resolve_in_a_forgotten_scope_suggests_restoring_the_scope(lab: Lab, key: str) -> None:
    memory = _with_text_in_forgotten_scope(lab)
    work = memory.scope("work")
    conflict = next(item for item in work.conflicts() if item.key == key)
    with pytest.raises(NotFoundError, match="the scope work is forgotten") as refused:
        work.resolve(key, b"chosen\n", seen=conflict)
    assert refused.value.hint == "Restore it with: ipfsmem scope restore work"
    memory.scopes.restore("work")
    work.write(key, "chosen")
    assert work.read(key).body.strip() == "chosen"


def test_undo_restores_nothing_into_a_forgotten_scope(lab: Lab) -> None:
    a, b = two(lab)
    a.scope("work").write("tone", "of a")
    b.scope("work").write("tone", "of b")
    lab.settle(a, b)
    assert a.scope("work").forget("tone")
    b.scopes.forget("work")
    lab.settle(a, b)
    with pytest.raises(NotFoundError):
        a.undo()


def test_overlong_line_does_not_block_the_restore_of_a_scope(lab: Lab) -> None:
    """The restore skips the line."""
    a, b, m = lab.three()
    m.scope("work").write("k", "text")
    forger = Forger(m)
    forger.put_segment("2026-01-01", f"{TOO_LONG}\n{SHORT}\n", "work")
    forger.publish()
    lab.settle(a, b)
    root = b.status().root
    b.scopes.forget("work")
    restored = b.scopes.restore("work", root)
    assert (restored.memories, restored.events) == (1, 1)
    assert [event["type"] for event in b.scope("work").timeline.read()] == ["s"]


def test_scope_forgotten_elsewhere_removes_its_index_and_day_files(lab: Lab, tmp_path: Path) -> None:
    a = lab.create("a")
    a.scope("work").write("tone", "CANARY one")
    a.scope("work").note("said", what="CANARY one")
    lab.sync(a)
    b = lab.restore("b")
    folder = tmp_path / "work"
    b.folders.attach(folder, scope="work", timeline=True)
    a.scope("work").write("plan", "CANARY two")
    a.scope("work").note("said", what="CANARY two")
    lab.settle(a, b)
    aside = folder / ".ipfsmem" / "aside"
    a.scopes.forget("work")
    lab.settle(a, b)
    assert [path for path in folder.rglob("*") if path.is_file() and b"CANARY" in path.read_bytes()] == []
    assert list(aside.iterdir()) == []
