"""Moving a memory from one scope to another: atomic, of the shown text, and without replacing an unseen one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.errors import ChangedError, KeyNameError, NotFoundError, UsageError
from ipfsmem.memory import Memory
from tests.support.device_lab import Lab


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Lab(tmp_path).create("a")


def test_promoted_memory_moves_and_the_timeline_records_it(memory: Memory) -> None:
    shop = memory.scope("shop")
    shop.write("tabs", "indent with tabs", type="feedback")
    made = shop.promote("tabs", to="")
    assert (made.scope, made.own) == ("", True) and memory.read("tabs") == made
    assert shop.list().memories == () and memory.stack("shop").read("tabs") == made
    (event,) = memory.timeline.read()
    assert (event["type"], event["key"], event["from"], event["to"]) == ("promoted", "tabs", "shop", "")
    assert [hit.key for hit in memory.recall("tabs").hits] == ["tabs"]
    assert not shop.recall("tabs").hits or shop.recall("tabs").hits[0].scope == ""
    memory.promote("tabs", to="shop", keep=True)
    assert shop.read("tabs").file.body == memory.read("tabs").file.body == "indent with tabs"  # type: ignore[union-attr]
    shop.promote("tabs", to="")  # the target has the same text: nothing is replaced
    assert memory.read("tabs").data == made.data and shop.list().memories == ()  # type: ignore[union-attr]


def test_promote_replaces_no_unseen_text(memory: Memory) -> None:
    shop = memory.scope("shop")
    before = shop.write("tabs", "two blanks")
    mine = memory.write("tabs", "tabs")
    with pytest.raises(ChangedError, match="has a text already"):
        shop.promote("tabs", to="")
    shop.write("tabs", "four blanks")
    with pytest.raises(ChangedError, match="changed since it was read"):
        shop.promote("tabs", to="", seen=before, if_match=mine.sha256)
    memory.write("tabs", "tabs, always")
    with pytest.raises(ChangedError, match="changed since it was read"):
        shop.promote("tabs", to="", if_match=mine.sha256)
    now = memory.read("tabs")
    assert now is not None and now.file.body == "tabs, always"
    assert shop.promote("tabs", to="", seen=shop.read("tabs"), if_match=now.sha256).file.body == "four blanks"
    assert [item.key for item in memory.list()] == ["tabs"] and not memory.conflicts()


def test_promote_hides_no_unseen_text_of_a_redirected_scope(memory: Memory) -> None:
    below = memory.scope("sub").write("tabs", "tabs")
    memory.scopes.make("top")
    memory.scopes.redirect("sub", "top")
    shop = memory.scope("shop")
    shop.write("tabs", "two blanks")
    with pytest.raises(ChangedError, match="has a text already"):
        shop.promote("tabs", to="top")
    with pytest.raises(ChangedError, match="has a text already"):
        shop.promote("tabs", to="top", if_match="0" * 64)
    assert memory.scope("top").read("tabs").data == below.data  # type: ignore[union-attr]
    assert shop.promote("tabs", to="top", if_match=below.sha256).file.body == "two blanks"


def test_promote_of_pending_or_unknown_memory_is_refused(memory: Memory, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.md"
    theirs.write_text("not yours")
    shop = memory.scope("shop")
    shop.bundles.import_(theirs, foreign=True)
    with pytest.raises(UsageError, match="shop/theirs is pending"):
        shop.promote("theirs", to="")
    with pytest.raises(NotFoundError, match="there is no memory shop/nothing"):
        shop.promote("nothing", to="")
    with pytest.raises(UsageError, match="in that scope already"):
        shop.promote("theirs", to="shop")
    with pytest.raises(KeyNameError):
        shop.promote("theirs", to="Not A Scope")
    assert memory.list().memories == () and not memory.timeline.read()


def test_concurrent_promote_and_write_lose_no_text(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    a = lab.create("a")
    a.scope("shop").write("tabs", "tabs")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    a.scope("shop").promote("tabs", to="")
    b.scope("shop").write("tabs", "tabs, and no trailing blanks")
    lab.settle(a, b)
    for memory in (a, b):
        assert memory.read("tabs").file.body == "tabs"  # type: ignore[union-attr]
        (left,) = memory.scope("shop").conflicts()
        texts = [one.reading.file.body for one in left.copies if one.reading is not None]
        assert left.forgotten and texts == ["tabs, and no trailing blanks"]


def test_promoted_fact_keeps_its_history(memory: Memory) -> None:
    shop = memory.scope("shop")
    made = shop.facts.add("User likes tea", "preference")
    assert made is not None
    key = made.fact.key
    for text in ("User likes green tea", "User likes black tea"):
        shop.facts.edit(key, text)
    shop.promote(key, to="", keep=True)
    assert not memory.facts.history(key) and len(shop.facts.history(key)) == 2
    shop.promote(key, to="")
    assert [one.text for one in memory.facts.history(key)] == ["User likes green tea", "User likes tea"]
    assert not shop.facts.history()
    with pytest.raises(NotFoundError):
        shop.facts.history(key)
    assert memory.facts.restore(key, 2).text == "User likes tea"
    # Its history there comes first, and a fact without earlier revisions adds none.
    memory.promote(key, to="shop")
    assert [one.text for one in shop.facts.history(key)][-2:] == ["User likes green tea", "User likes tea"]
    shop.write("plain", "One text.")
    shop.promote("plain", to="")
    assert not memory.facts.history("plain") and not memory.facts.history()
