"""Sessions in the browser client: listed, read, found, saved and forgotten as in Python, whoever wrote
them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory
from ipfsmem.operations.sessions.info import SessionInfo
from ipfsmem.sessions.compaction import approved_mark
from ipfsmem.sessions.transcript import as_markdown
from ipfsmem.wording import moment
from tests.cli.test_cli_promote import conversation_database
from tests.servers.threaded import serve
from tests.support.web_lab import (
    PEER_TOKEN,
    Client,
    ClientError,
    WebDevice,
    by_wallet,
    lacking,
    largest_block,
    root_of,
    web_client,
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


def device(client: Client, name: str, url: str) -> WebDevice:
    return client.open(name, url, **by_wallet(), token=PEER_TOKEN)


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def conversed(memory: Memory, name: str) -> list[str]:
    return [item["content"] for item in memory.sessions.items(name).items]


def test_browser_sessions_equal_those_of_python_with_hits_and_markdown(
    client: Client, url: str, memory: Memory
) -> None:
    memory.sessions.create("harbour", title="How to get to the island")
    memory.sessions.add("harbour", said("When does the ferry leave?", "At nine.\n\n# And at ten."))
    memory.sessions.add("harbour", [{"role": "user", "content": "x" * 250_000}])
    memory.sessions.compact("harbour", now=True)
    memory.sessions.add("Tides & more", said("When is high tide?"))
    # Its history is stored as a session that is not a conversation.
    remembered = memory.facts.add("Tea after two.")
    assert remembered is not None
    earlier = remembered.fact.key
    memory.facts.edit(earlier, "Tea after three.")
    assert memory.facts.history(earlier)
    memory.scope("shop").sessions.add("till", said("What does it cost?"))
    root_of(memory)
    web = device(client, "reader", url)
    found = web.sessions()
    known = list(memory.sessions.list())
    wanted = [{"session": one.session, "scope": "", "title": one.title, "preview": one.preview, "messages": one.messages, "changed": one.changed, "own": one.own} for one in known]  # fmt: skip
    assert [one["session"] for one in wanted] == ["Tides & more", "harbour"]
    assert found == {"sessions": wanted, "older": 0}
    assert web.sessions({"limit": 1}) == {"sessions": wanted[:1], "older": 1}
    assert [one["title"] for one in web.sessions({"scope": "shop"})["sessions"]] == ["What does it cost?"]

    told = memory.sessions.told("harbour")
    info = SessionInfo.of("harbour", told, 0)
    one = web.session("harbour", {"last": 1})
    assert (one["tokens"], one["covered"], one["summary"], one["summaryBy"], one["began"], one["changed"]) == (
        info.tokens, info.covered, info.summary, info.summary_by, info.began, info.changed,
    )  # fmt: skip
    assert one["before"] == 2 and [len(line["text"]) for line in one["said"]] == [250_000]
    assert one["seen"] == memory.sessions.seen("harbour")
    assert web.exportSession("harbour") == as_markdown(told, moment)
    assert (
        json.loads(web.exportSession("harbour", {"format": "json"})) == memory.sessions.items("harbour").items
    )
    hits = [(hit.session, hit.at, hit.role, hit.score) for hit in memory.sessions.search("high ferry")]
    assert len(hits) == 2
    assert [
        (one["session"], one["at"], one["role"], one["score"]) for one in web.searchSessions("high ferry")
    ] == hits
    assert web.session("nobody") is None and web.session(f"ipfsmem-history/{earlier}") is None
    assert web.deleteSession(f"ipfsmem-history/{earlier}") is False
    for wrong, why in (("a\nb", "control"), ("x" * 257, "256")):
        with pytest.raises(ClientError, match=why):
            web.session(wrong)
    with pytest.raises(ClientError, match="there is no session nobody"):
        web.exportSession("nobody")


def test_message_of_another_device_survives_forgetting_of_shown_ones(
    client: Client, url: str, memory: Memory
) -> None:
    memory.sessions.add("chat", said("one", "two"))
    root_of(memory)
    web = device(client, "forgetter", url)
    seen = web.session("chat")["seen"]
    memory.sessions.add("chat", said("three"))
    root_of(memory)
    with pytest.raises(ClientError, match="changed since it was read") as refused:
        web.sync()
        web.deleteSession("chat", {"seen": seen})
    assert refused.value.kind == "changed"
    assert [line["text"] for line in web.session("chat")["said"]] == ["one", "two", "three"]
    # A concurrent addition elsewhere starts the session again on both sides.
    assert web.deleteSession("chat", {"seen": web.session("chat")["seen"], "reason": "old"}) is True
    assert web.sessions()["sessions"] == [] and web.deleteSession("chat") is False
    memory.sessions.add("chat", said("four"))
    assert web.sync()["published"]
    root_of(memory)
    web.sync()
    assert conversed(memory, "chat") == ["four"]
    assert [line["text"] for line in web.session("chat")["said"]] == ["four"]
    assert [one["messages"] for one in web.sessions()["sessions"]] == [1]
    forgot = [one for one in memory.timeline.read() if one["type"] == "forgot"]
    assert [(one["session"], one["reason"]) for one in forgot] == [("chat", "old")]


def test_sessions_of_a_redirected_scope_equal_those_of_python(
    client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    sub, top = memory.scope("sub"), memory.scope("top")
    sub.sessions.add("old", said("a canary in sub"))
    sub.sessions.add("both", said("first in sub"))
    top.sessions.add("both", said("second in top"))
    sub.bundles.import_from("initrunner", conversation_database(tmp_path / "agent.db", "Otters like rain."))
    memory.scopes.redirect("sub", "top")
    root_of(memory)
    web = device(client, "led", url)
    for scope in ("sub", "top"):
        part, at = memory.scope(scope), {"scope": scope}
        listed = [(one.session, one.scope, one.messages) for one in part.sessions.list()]
        assert sorted(listed) == [("both", "top", 2), ("old", "sub", 1), ("talk", "sub", 1)]
        found = web.sessions(at)["sessions"]
        assert [(one["session"], one["scope"], one["messages"]) for one in found] == listed
        assert [one["text"] for one in web.session("both", at)["said"]] == ["first in sub", "second in top"]
        assert [one["session"] for one in web.searchSessions("canary", at)] == ["old"]
        assert json.loads(web.exportSession("old", {**at, "format": "json"})) == said("a canary in sub")
        assert web.session("nobody", at) is None
        with pytest.raises(ClientError, match="changed since it was read"):
            web.deleteSession("both", {**at, "seen": "0" * 16})
    assert (
        web.approveSession("talk", {"scope": "sub", "seen": web.session("talk", {"scope": "top"})["seen"]})
        == 1
    )
    assert web.session("talk", {"scope": "top"})["own"]
    assert web.deleteSession("old", {"scope": "sub"}) and web.deleteSession("both", {"scope": "top"})
    web.sync()
    root_of(memory)
    memory.scopes.redirect("sub", None)
    assert [one.session for one in sub.sessions.list()] == ["talk"] and not list(top.sessions.list())
    talk = sub.sessions.info("talk")
    assert talk is not None and talk.own


def test_session_with_a_missing_part_is_not_shown(client: Client, tmp_path: Path, memory: Memory) -> None:
    memory.sessions.add("chat", said("one", Random(0).randbytes(8000).hex()))
    root_of(memory)
    hidden: set[str] = set()
    with serve(lambda: lacking(tmp_path / "kept", hidden)) as url:
        at = [f"gateway:{url}", f"routing:{url}"]
        hidden.add(largest_block(client.open("probe", url, **by_wallet(), at=at)))
        web = client.open("lacking", url, **by_wallet(), at=at)
        for ask in (web.sessions, lambda: web.session("chat"), lambda: web.searchSessions("one")):
            with pytest.raises(ClientError, match="not fetched yet"):
                ask()
        hidden.clear()
        web.sync()
        assert web.session("chat")["messages"] == 2


def test_imported_messages_are_marked_and_stay_pending_in_the_browser(
    client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    """The mark is in another part than the first messages."""
    pending = [f"Otters like rain, says number {number}. " + "More. " * 1_000 for number in range(8)]
    memory.bundles.import_from("initrunner", conversation_database(tmp_path / "agent.db", *pending))
    memory.sessions.add("talk", said("Mine, about otters."))
    parts = {key: text for key, text in memory.files().items() if key.startswith("session-")}
    (mark,) = (key for key in parts if b'"imported"' in parts[key])
    assert len(parts) > 1
    root_of(memory)
    web = device(client, "guarded", url)
    whose = [False] * len(pending) + [True]

    def seen() -> list[Any]:
        found = web.session("talk", {"last": 100})
        items = json.loads(web.exportSession("talk", {"format": "json"}))
        hits = {one["own"] for one in web.searchSessions("otters rain")}
        return [
            [one["own"] for one in web.sessions()["sessions"]],
            [one["own"] for one in found["said"]],
            [one.get("own", True) for one in items],
            hits,
            web.exportSession("talk") == as_markdown(memory.sessions.told("talk"), moment),
        ]

    assert seen() == [[False], whose, whose, {False, True}, True]
    file = parts[mark].decode()
    header = file[: file.index("\n---\n", 4) + 5]
    device_of = mark.rsplit("-", 2)[1]
    approval = {"at": 2**53 - 2, "item": approved_mark([(2**53 - 1, device_of, 0)])}
    other = f"{mark.rpartition('-')[0]}-{len(parts) + 5}"
    for refused, why in (
        (lambda: web.forget(mark), "pending"),
        (lambda: web.writeText(mark, "another text"), "pending"),
        (lambda: web.write(mark, "another text"), "pending"),
        (lambda: web.writeText(other, f"{header}\n{json.dumps(approval)}\n"), "person's decision"),
        *((lambda key=key: web.promote(key, "work"), "part of a session") for key in parts),
    ):
        with pytest.raises(ClientError, match=why):
            refused()
    with pytest.raises(UsageError, match="person's decision"):
        memory.write_text(other, f"{header}\n{json.dumps(approval)}\n".encode())
    assert seen()[1] == whose
    memory.approve(source="initrunner")
    root_of(memory)
    web.sync()
    assert seen() == [[True], [True] * 9, [True] * 9, {True}, True]
    assert web.forget(mark) is True


def test_browser_approves_only_shown_messages(
    client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    memory.bundles.import_from(
        "initrunner", conversation_database(tmp_path / "agent.db", "Otters like rain.", "Obey.")
    )
    memory.sessions.add("talk", said("Mine."))
    (mark,) = (key for key in memory.files() if key.startswith("session-talk-"))
    root_of(memory)
    web = device(client, "approver", url)
    file = memory.files()[mark].decode()
    header = file[: file.index("\n---\n", 4) + 5]
    approval = {"at": 2**53 - 2, "item": approved_mark([(2**53 - 1, mark.rsplit("-", 2)[1], 0)])}
    key, text = f"{mark.rpartition('-')[0]}-20", f"{header}\n{json.dumps(approval)}\n"
    plain = web.writeText(key, header)
    with pytest.raises(ClientError, match="person's decision"):
        web.resolve(key, text, {"seen": plain["token"]})
    files = {f"{key}.md": text, "plain.md": "A plain note"}
    taken = web.take(json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": []}))
    assert ["person's decision" in one for one in taken["problems"]] == [True] and web.read(
        "plain"
    ) is not None
    seen = web.session("talk")["seen"]
    memory.sessions.add("talk", said("More."))
    root_of(memory)
    web.sync()
    with pytest.raises(ClientError, match="changed since it was read"):
        web.approveSession("talk", {"seen": seen})
    assert web.session("talk")["own"] is False
    assert web.approveSession("talk", {"seen": web.session("talk")["seen"]}) == 2
    assert web.session("talk")["own"] is True
    with pytest.raises(ClientError, match="no pending messages"):
        web.approveSession("talk")
    web.sync()
    root_of(memory)
    told = memory.sessions.told("talk")
    assert not told.pending and [str(one.item.get("content", "")) for one in told.messages][2:] == [
        "Mine.",
        "More.",
    ]


def imported_parts(memory: Memory, folder: Path) -> tuple[str, list[str]]:
    """Import a conversation over several parts; return the key of the part with the mark, and those of the
    others."""
    texts = [f"Otters like rain, says number {number}. " + "More. " * 1_000 for number in range(8)]
    memory.bundles.import_from("initrunner", conversation_database(folder / "agent.db", *texts))
    parts = [key for key in memory.files() if key.startswith("session-talk-")]
    (mark,) = (key for key in parts if b'"imported"' in memory.files()[key])
    assert len(parts) > 1
    return mark, [key for key in parts if key != mark]


def test_part_of_forgotten_session_is_restored_only_behind_its_mark(
    client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    mark, others = imported_parts(memory, tmp_path)
    root_of(memory)
    web = device(client, "restorer", url)
    texts = {key: web.history(key)["versions"][0]["sha256"] for key in (mark, *others)}
    web.deleteSession("talk")
    web.sync()
    for key in others:
        with pytest.raises(ClientError, match="that nobody approved"):
            web.restore(key, {"text": texts[key]})
    assert web.session("talk") is None
    for key in (mark, *others):
        web.restore(key, {"text": texts[key]})
    assert [one["own"] for one in web.session("talk")["said"]] == [False] * 8
    web.sync()
    root_of(memory)
    assert len(memory.sessions.told("talk").pending) == 8


def test_approved_part_of_a_forgotten_session_is_restored_in_the_browser(
    client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    _, others = imported_parts(memory, tmp_path)
    root_of(memory)
    web = device(client, "approving restorer", url)
    web.approveSession("talk")
    web.sync()
    text = web.history(others[0])["versions"][0]["sha256"]
    web.deleteSession("talk")
    web.sync()
    web.restore(others[0], {"text": text})
    assert {one["own"] for one in web.session("talk")["said"]} == {True}


def test_false_dream_event_about_session_parts_changes_nothing(
    client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    mark, others = imported_parts(memory, tmp_path)
    root_of(memory)
    entry = {key: memory.replica.store.entry(f"m/{key}") for key in (mark, others[0])}
    bodies = {key: {dot: value.body for dot, value in held.items()} for key, held in entry.items()}
    written = [{"key": mark, "text": next(iter(bodies[mark].values())), "replaced": {}}]
    memory.note("dream", dream="mark", by="me", written=written, removed=[])
    removed = [{"key": others[0], "replaced": bodies[others[0]]}]
    memory.note("dream", dream="part", by="me", written=[], removed=removed)
    root_of(memory)
    web = device(client, "dream sceptic", url)
    assert [one["back"] for one in web.dreams()] == [0, 0]
    assert web.undoDream("mark")["lost"] == [mark]
    assert {one["own"] for one in web.session("talk")["said"]} == {False}
    web.deleteSession("talk")
    # Deleted without a trace, as if by a dream.
    assert web.undoDream("part")["back"] == [] and web.session("talk") is None


def test_imported_parts_cannot_approve_together(
    client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    mark, _ = imported_parts(memory, tmp_path)
    root_of(memory)
    web = device(client, "taker of pieces", url)
    text = memory.files()[mark].decode()
    header = text[: text.index("\n---\n", 4) + 5]
    said = json.dumps(approved_mark([(2**53 - 1, mark.rsplit("-", 2)[1], 0)]))
    halves = [
        json.dumps({"at": 2**53 - 2, "n": 0, "piece": [n, 2], "text": half})
        for n, half in enumerate((said[:20], said[20:]))
    ]
    keys = [f"{mark.rpartition('-')[0]}-{20 + n}" for n in range(2)]
    files = {f"{key}.md": f"{header}{half}\n" for key, half in zip(keys, halves, strict=True)}
    done = web.take(json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": []}))
    assert ["person's decision" in one for one in done["problems"]] == [True]
    assert {one["own"] for one in web.session("talk", {"last": 100})["said"]} == {False}


@pytest.mark.parametrize("form", ["blob", "files", "cut off"])
def test_parts_before_an_unreadable_part_are_not_imported(
    form: str, client: Client, url: str, tmp_path: Path, memory: Memory
) -> None:
    with Memory.create("other", "local", home=tmp_path / "elsewhere") as other:
        mark, others = imported_parts(other, tmp_path)
        texts = {key: other.files()[key].decode() for key in (mark, *others)}
    text = texts[mark]
    header = text[: text.index("\n---\n", 4) + 5]
    later = f"{mark.rpartition('-')[0]}-20"
    line = json.dumps({"at": 2**52, "item": {"role": "user", "content": "Said later."}})
    spoilt = text.rstrip()[:-3] if form == "cut off" else text + "x" * 1_000_000
    files = {f"{key}.md": one for key, one in {**texts, mark: spoilt, later: f"{header}{line}\n"}.items()}
    root_of(memory)
    web = device(client, f"careful taker of {form}", url)
    if form != "files":
        done = web.take(json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": []}))
    else:
        done = web.importFiles({f"memory/{name}": one for name, one in files.items()})
    assert [line["text"] for line in web.session("talk")["said"]] == ["Said later."]
    assert len(done["problems"]) == len(texts)
