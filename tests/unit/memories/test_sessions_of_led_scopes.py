"""Sessions of a redirected scope are reached through both scopes, like its memories."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import ChangedError
from ipfsmem.memory import Memory
from tests.cli.test_cli_promote import conversation_database
from tests.support.device_lab import Lab


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def contents(memory: Memory, session: str) -> list[str]:
    return [one["content"] for one in memory.sessions.items(session).items]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        for scope in ("sub", "top"):
            memory.scopes.make(scope)
        memory.scope("sub").sessions.add("old", said("a canary in sub"))
        memory.scope("sub").sessions.add("both", said("first in sub"))
        time.sleep(0.002)  # messages of two scopes in one millisecond have no order
        memory.scope("top").sessions.add("both", said("second in top"))
        memory.scopes.redirect("sub", "top")
        yield memory


@pytest.mark.parametrize("scope", ["sub", "top"])
def test_sessions_of_redirected_scope_are_read_and_forgotten(
    memory: Memory, scope: str, tmp_path: Path
) -> None:
    part = memory.scope(scope)
    assert {one.session: one.scope for one in part.sessions.list().sessions} == {"old": "sub", "both": "top"}
    info = part.sessions.info("old")
    assert info is not None and info.messages == 1
    read = part.sessions.messages("old")
    assert read is not None and read.messages[0].text == "a canary in sub"
    assert contents(part, "old") == ["a canary in sub"]
    assert contents(part, "both") == ["first in sub", "second in top"]
    assert [one.session for one in part.sessions.search("canary").hits] == ["old"]
    assert part.sessions.resume("old").items == said("a canary in sub")
    exported = part.sessions.export("old")
    assert exported is not None and "a canary in sub" in exported.text
    with pytest.raises(ChangedError):
        part.sessions.forget("old", seen="0" * 16)
    assert part.sessions.forget("old", seen=read.seen)
    assert part.sessions.forget("both").messages == 2
    memory.scopes.redirect("sub", None)
    assert not any(memory.scope(one).sessions.known() for one in ("sub", "top"))
    memory.close()
    assert not any(b"a canary in sub" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_messages_added_through_a_redirected_scope_keep_their_order(memory: Memory) -> None:
    sub = memory.scope("sub")
    before = sub.sessions.seen("old")
    sub.sessions.add("old", said("later"))
    assert sub.sessions.seen("old") not in (before, memory.scope("nowhere").sessions.seen("old"))
    assert contents(memory.scope("top"), "old") == ["a canary in sub", "later"]
    for text in ("later", "a canary in sub"):
        sub.sessions.pop("old")
        assert text not in contents(sub, "old")


def test_message_is_added_after_those_of_a_clock_ahead(lab: Lab) -> None:
    a = lab.create("a")
    for scope in ("sub", "top"):
        a.scopes.make(scope)
    lab.clock.advance(3_600_000)
    a.scope("sub").sessions.add("talk", said("ahead"))
    lab.clock.advance(-3_600_000)
    a.scopes.redirect("sub", "top")
    a.scope("top").sessions.add("talk", said("after"))
    assert contents(a.scope("sub"), "talk") == ["ahead", "after"]


def test_local_session_of_a_redirected_scope_stays_local(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    file.write_text("[sessions]\nhere_only = true\n")
    a = lab.create("a")
    for scope in ("sub", "top"):
        a.scopes.make(scope)
    a.scope("sub").sessions.add("private", said("one"))
    a.scopes.redirect("sub", "top")
    file.write_text("")
    a.scope("sub").sessions.add("private", said("two"))
    lab.sync(a)
    b = lab.restore("b")
    assert b.scope("top").sessions.known() == []
    assert contents(a.scope("top"), "private") == ["one", "two"]
    a.scope("top").sessions.pop("private")
    assert contents(a.scope("sub"), "private") == ["one"]
    assert a.scope("sub").sessions.forget("private") and a.scope("top").sessions.known() == []


def test_pending_messages_of_redirected_scope_are_approved_through_both(
    memory: Memory, tmp_path: Path
) -> None:
    memory.scopes.redirect("sub", None)
    sub, top = memory.scope("sub"), memory.scope("top")
    sub.bundles.import_from("initrunner", conversation_database(tmp_path / "agent.db", "Otters like rain."))
    memory.scopes.redirect("sub", "top")
    found = sub.sessions.info("talk")
    assert found is not None and not found.own
    assert sub.sessions.approve("talk", seen=found.seen).messages == 1
    approved = top.sessions.info("talk")
    assert approved is not None and approved.own
