"""Local-only sessions: the same operations, sealed on the disk, and never published."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.session_parts import session_token
from ipfsmem.device.state import StateStore
from ipfsmem.errors import ChangedError, IncompleteError, StorageError, UsageError
from ipfsmem.memories.sessions_here import scopes_with_sessions_here
from ipfsmem.memory import Memory
from ipfsmem.tools import toolset
from tests.support.api_lab import Client, good, opener
from tests.support.api_lab import Lab as ApiLab
from tests.support.device_lab import Lab, same
from tests.support.effort import cases


@pytest.fixture(autouse=True)
def here_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    file = tmp_path / "settings.toml"
    file.write_text("[sessions]\nhere_only = true\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    yield file


def said(number: int) -> dict[str, Any]:
    return {"role": "user" if number % 2 == 0 else "assistant", "content": f"canary {number}"}


def test_local_session_is_not_published(lab: Lab, here_only: Path) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    before = lab.there()
    a.sessions.create("private", title="The canary")
    a.sessions.add("private", [said(n) for n in range(30)])
    a.sessions.conversation("talk").save([said(0), said(1)])
    a.sessions.compact("private", now=True)
    a.sessions.pop("talk")
    lab.sync(a)
    assert lab.there() == before and not a.status().unpublished
    lab.sync(b)
    assert b.sessions.known() == []
    # Other sessions are still published.
    here_only.write_text("")
    a.sessions.add("shared", [said(0)])
    a.sessions.add("private", [said(30)])
    lab.settle(a, b)
    assert [one.session for one in b.sessions.list()] == ["shared"]
    assert {(one.session, one.here) for one in a.sessions.list()} == {
        ("private", True),
        ("talk", True),
        ("shared", False),
    }
    assert len(a.sessions.items("private").items) == 31


def test_first_message_of_a_session_here_opens_no_other_session(
    tmp_path: Path, here_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        here_only.write_text("")
        for n in range(12):
            memory.sessions.add(f"talk {n}", [said(n)])
        here_only.write_text("[sessions]\nhere_only = true\n")
        opened: list[str] = []
        production = StateStore.body
        monkeypatch.setattr(
            StateStore,
            "body",
            lambda store, name, value: opened.append(name) or production(store, name, value),
        )
        memory.sessions.add("private", [said(0)])
        assert opened == []
        memory.sessions.add("talk 3", [said(1)])
        assert opened and all(session_token("talk 3") in name for name in opened)
        assert [one.session for one in memory.sessions.list() if one.here] == ["private"]
        assert len(memory.sessions.items("talk 3").items) == 2


def test_local_sessions_behave_like_published_ones(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        name = memory.sessions.create(title="A trip").session
        assert len(name) == 12
        with pytest.raises(UsageError, match="already exists"):
            memory.sessions.create(name)
        talk = memory.sessions.conversation(name)
        history = [said(n) for n in range(100)]
        assert talk.save(history).added == 100
        told = memory.sessions.told(name)
        assert told.title == "A trip" and told.summary is not None and len(told.messages) == 100
        assert (
            len(memory.sessions.resume(name).items) == 19
        )  # the summary, and turns that begin with a request
        assert memory.sessions.search("canary 42")[0].text == "canary 42"
        assert memory.dreams.status().waits_for == "the settings do not allow it"
        seen = memory.sessions.seen(name)
        memory.sessions.add(name, [said(100)])
        with pytest.raises(ChangedError):
            memory.sessions.forget(name, seen=seen)
    with Memory.load("m", home=tmp_path / "home") as memory:
        assert len(memory.sessions.items(name).items) == 101 and memory.sessions.info(name).here
        assert memory.sessions.pop(name).item == said(100)
        assert memory.sessions.forget(name, seen=memory.sessions.seen(name))
        assert memory.sessions.known() == [] and not memory.sessions.forget(name)
        assert memory.sessions.pop(name).item is None
        with pytest.raises(UsageError):
            memory.sessions.add("a\nb", [said(0)])
        with pytest.raises(UsageError):
            memory.sessions.add("x", [{"a": object()}])
        assert memory.sessions.known() == []


def test_local_session_of_a_sealed_vault_is_sealed(lab: Lab) -> None:
    a = lab.create("a")
    a.sessions.add("canary-name", [said(n) for n in range(5)])
    a.close()
    for path in lab.home("a").rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes(), path


def test_forgotten_local_session_leaves_the_disk_of_a_public_vault(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.mode = "ipfs"
    a = lab.create("a")

    def on_disk() -> bool:
        return any(b"canary" in path.read_bytes() for path in lab.home("a").rglob("*") if path.is_file())

    work = a.scope("work").sessions
    for sessions, take in (
        (a.sessions, lambda: a.sessions.forget("chat")),
        (a.sessions, lambda: a.sessions.pop("chat").item),
        (work, lambda: a.scopes.forget("work")),
    ):
        sessions.add("chat", [said(1)])
        assert on_disk()
        take()
        assert not on_disk()


def test_forgotten_local_session_or_scope_leaves_no_byte_on_the_disk(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        memory.sessions.add("chat", [said(1)])
        memory.scope("work").write("tone", "Brief.")
        memory.scope("work").sessions.add("chat", [{"role": "user", "content": "elsewhere"}])
        assert [one.scope for one in memory.scope("work").sessions.list()] == ["work"]
        memory.scopes.forget("work")
        assert memory.scope("work").sessions.known() == []
        memory.sessions.forget("chat")
        written = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
        assert b"canary" not in written
    text = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"canary" not in text and b"elsewhere" not in text


@pytest.mark.parametrize("mode", ["ipfs", "encrypted-ipfs"])
def test_scope_forgotten_elsewhere_removes_its_local_sessions(tmp_path: Path, mode: str) -> None:
    lab = Lab(tmp_path)
    lab.mode = mode
    a = lab.create("a")
    a.scope("work").write("tone", "Brief.")
    a.scope("rest").write("tone", "Brief.")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    for scope in ("work", "rest", ""):
        (b.scope(scope) if scope else b).sessions.add("chat", [said(1)])
    a.scopes.forget("work")
    lab.settle(a, b)
    assert scopes_with_sessions_here(b.replica) == {"rest", ""}
    assert [one.session for one in b.scope("rest").sessions.list()] == ["chat"]
    a.scopes.restore("work")
    lab.settle(a, b)
    assert b.scope("work").sessions.known() == []


def test_export_names_omitted_local_sessions(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        memory.write("tone", "Brief.")
        work = memory.scope("work")
        work.write("tone", "Brief.")
        memory.sessions.add("chat", [said(1)])
        work.sessions.add("talk", [said(2)])
        names = "only [(]{}[)]".format
        for number, part in enumerate(("export_folder", "export_zip", "export_car")):
            ways = [getattr(one.bundles, part) for one in (memory, work)]
            to: Any = tmp_path / f"{number}" if part == "export_folder" else BytesIO()
            with pytest.raises(IncompleteError, match=names("chat, work/talk")) as refused:
                ways[0](to)
            assert "ipfsmem session export SESSION" in (refused.value.hint or "")
            with pytest.raises(IncompleteError, match=names("work/talk")):
                ways[1](to)
            assert ways[0](to, partial=True).left_out.sessions == ("chat", "work/talk")
        for way in (work.bundles.export, lambda: work.bundles.export_okf(tmp_path / "okf")):
            with pytest.raises(IncompleteError, match=names("work/talk")):
                way()
        assert memory.scope("").bundles.left_out().sessions == ("chat",)
        memory.sessions.forget("chat")
        memory.scopes.forget("work")
        assert not memory.bundles.export_zip(BytesIO()).left_out


@settings(max_examples=cases(8, 80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["add", "pop", "sync", "turn"]), st.booleans()), max_size=10))
def test_local_and_published_parts_of_one_name_are_one_session(
    lab: Lab, here_only: Path, steps: list[tuple[str, bool]]
) -> None:
    """They are read in order, and no local part is lost or published."""
    name = f"s{lab.clock.ns}"
    if "a" not in lab.devices:
        lab.create("a")
        lab.sync(lab.devices["a"])
        lab.restore("b")
    a, b = lab.devices["a"], lab.devices["b"]
    lab.settle(a, b)
    model: list[dict[str, Any]] = []
    here_only.write_text("[sessions]\nhere_only = true\n")
    a.sessions.add(name, [said(0)])
    model.append(said(0))
    here_only.write_text("")
    lab.clock.advance(1)
    b.sessions.add(name, [said(1)])
    model.append(said(1))
    theirs = [said(1)]
    for number, (what, on_a) in enumerate(steps, 2):
        lab.clock.advance(1)
        if what in ("add", "turn"):
            (a if on_a else b).sessions.add(name, [said(number)])
            model.append(said(number))
            theirs += [] if on_a else [said(number)]
        elif what == "sync":
            lab.settle(a, b)
    lab.settle(a, b)
    assert a.sessions.items(name).items == model and b.sessions.items(name).items == theirs
    assert sum(one.session == name for one in a.sessions.list()) == 1
    same(a, b)


def test_scope_with_only_a_session_is_listed(tmp_path: Path, here_only: Path) -> None:
    with Memory.create("x", "local", home=tmp_path) as memory:
        memory.scope("work").sessions.add("chat", [{"role": "user", "content": "zebra"}])
        assert memory.scopes.names() == ["work"] and memory.scopes.get("work")
        memory.scopes.forget("work")
        assert memory.scopes.names() == [] and memory.scope("work").sessions.known() == []


@pytest.mark.parametrize("row", [b"\x97", "text", b"", None])
def test_damaged_local_message_is_reported(tmp_path: Path, here_only: Path, row: bytes | str | None) -> None:
    with Memory.create("x", "local", home=tmp_path) as memory:
        for n in range(3):
            memory.sessions.add("chat", [{"role": "user", "content": f"zebra {n}"}])
        where = memory.replica.db.connection
        if row is None:
            (row,) = where.execute("SELECT row FROM sessions_here WHERE n = 1").fetchone()
            row = row.replace(b'{"', b"{{")
        with memory.replica.transaction():
            where.execute("UPDATE sessions_here SET row = ? WHERE n = 1", (row,))
        for reads in (
            memory.sessions.items,
            memory.sessions.resume,
            memory.sessions.pop,
            memory.sessions.export,
            memory.sessions.compact,
            memory.sessions.info,
            memory.sessions.messages,
        ):
            with pytest.raises(
                StorageError, match="a message of the session 'chat' differs from the written one"
            ):
                reads("chat")
        memory.sessions.add("chat", [{"role": "user", "content": "more"}])
        found = memory.sessions.list()
        assert len(found) == found.older == 0
        (damaged,) = found.problems
        for others in (memory.sessions.search("zebra"), memory.sessions.status(), memory.sessions.compact()):
            assert not len(others) and others.problems == (damaged,)
        assert (damaged.session, damaged.hint) == (
            "chat",
            "Forget that session: ipfsmem session delete SESSION.",
        )
        assert memory.sessions.forget("chat", seen=damaged.seen) and not memory.sessions.known()


def test_damaged_session_is_named_next_to_others_by_http_and_mcp(tmp_path: Path, here_only: Path) -> None:
    with opener(tmp_path, "m")() as memory:
        for name in ("sound", "torn"):
            memory.sessions.add(name, [said(1), said(2)])
        db = memory.replica.db.connection
        with memory.replica.transaction():
            _, (mark,) = db.execute("SELECT mark FROM sessions_here WHERE n = 0 ORDER BY rowid").fetchall()
            db.execute("UPDATE sessions_here SET row = x'00' WHERE mark = ? AND n = 1", (mark,))
        (tool,) = toolset(memory, ["list_sessions"])
        model = tool.call()
        assert "sound" in model.text and "'torn' differs from the written one" in model.text

    async def ask(client: Client) -> None:
        listed, _ = await good(client.get("/v1/sessions"))
        found, _ = await good(client.post("/v1/sessions/search", json={"query": "canary"}))
        assert [one["session"] for one in listed["sessions"]] == ["sound"] and len(found["hits"]) == 2
        for problems in (listed["problems"], found["problems"]):
            assert len(problems) == 1 and "'torn' differs from the written one" in problems[0]["detail"]
        etag = {"If-Match": f'"{listed["problems"][0]["seen"]}"'}
        gone, _ = await good(client.delete("/v1/sessions/torn", headers=etag))
        assert gone == {"session": "torn", "messages": None, "forgotten": True}
        assert (await good(client.get("/v1/sessions")))[0]["problems"] == []

    ApiLab(tmp_path).run(ask)
