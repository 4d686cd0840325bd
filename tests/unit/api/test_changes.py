"""The stream of changes: foreign writes appear within a second, once, and a reconnected client continues
from its cursor."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ipfsmem.api import changes, served
from ipfsmem.api.changes import Change, Feed
from ipfsmem.errors import PassphraseError
from ipfsmem.memory import Memory
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.api_lab import NEW, Client, Lab, good, opener
from tests.support.hints import hinted
from tests.support.patience import PATIENCE


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server polls for foreign changes ten times as often, including folders."""
    monkeypatch.setattr(served, "LOOK_EVERY", 0.025)
    monkeypatch.setattr(served, "FOLDERS_EVERY", 0.2)


class Stream:
    """A reader of server-sent events."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.cursor = ""

    async def next(self) -> tuple[str, dict[str, Any]]:
        """Return the kind and the data of the next event."""
        async with asyncio.timeout(PATIENCE):
            while True:
                text = (await self._answer.content.readuntil(b"\n\n")).decode()
                lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line[1:])
                if "event" in lines:
                    self.cursor = lines["id"]
                    return lines["event"], json.loads(lines["data"])


async def listen(client: Client, path: str = "/v1/changes", **headers: str) -> Stream:
    stream = Stream(await client.get(path, headers={k.replace("_", "-"): v for k, v in headers.items()}))
    assert (await stream.next())[0] == "ready"
    return stream


def test_writes_of_other_processes_and_the_api_appear_in_the_stream(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        stream = await listen(client)
        with opener(tmp_path)() as other:  # as Python, the command line or MCP of another process would
            other.write("tone", "Be brief.")
            assert await stream.next() == ("memory", {"what": "memory", "key": "tone"})
            other.scope("work").write("plan", "Go.")
            found = [await stream.next(), await stream.next()]
            assert ("memory", {"what": "memory", "scope": "work", "key": "plan"}) in found
            other.note("met", whom="Ada")
            assert (await stream.next())[0] == "timeline"
            other.sessions.add("chat", [{"role": "user", "content": "hi"}])
            assert (await stream.next())[0] == "session"
            work = other.scope("work")
            work.hidden.add(["plan"])
            assert await stream.next() == ("sight", {"what": "sight", "scope": "work"})
            work.dreams.propose()
            assert await stream.next() == ("dream", {"what": "dream", "scope": "work"})
            # Changes by this process besides the state are reported too.
            await good(client.post("/v1/hidden/back?scope=work", json={"keys": ["plan"]}))
            assert (await stream.next())[0] == "sight"
            other.forget("tone")
            kinds = {(await stream.next())[0] for _ in range(2)}
            assert kinds == {"memory", "timeline"}
        await good(client.put("/v1/memories/mine", json={"body": "x"}, headers=NEW), 201)
        assert await stream.next() == ("memory", {"what": "memory", "key": "mine"})

    Lab(tmp_path).run(ask)


@pytest.mark.parametrize(
    "fault", [KeyError("a fault of ours"), PassphraseError("locked in this very moment")]
)
def test_failed_scan_does_not_end_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    lab = Lab(tmp_path)
    failing = [fault]

    def fails_once(of: object, name: str) -> None:
        right = getattr(of, name)

        def call(*args: Any) -> Any:
            if failing:
                raise failing.pop()
            return right(*args)

        monkeypatch.setattr(of, name, call)

    async def ask(client: Client) -> None:
        stream = await listen(client)
        holder = lab.served[0].holder
        if isinstance(fault, PassphraseError):
            mark = holder.mark

            def locked_right_after() -> Any:
                found = mark()
                fails_once(holder, "memory")
                return found

            monkeypatch.setattr(holder, "mark", locked_right_after)
        else:
            fails_once(changes.Comparison, "changes")
        with opener(tmp_path)() as other:
            other.write("tone", "Be brief.")
            heard = (await stream.next())[0]
            assert not failing and heard == ("memory" if isinstance(fault, PassphraseError) else "reset")
            other.write("tea", "Green.")
            assert await stream.next() == ("memory", {"what": "memory", "key": "tea"})

    lab.run(ask)


def test_unlock_is_reported_although_the_scan_after_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = False

    def open_memory() -> Memory:
        if locked:
            raise PassphraseError("it is locked")
        return opener(tmp_path)()

    lab = Lab(tmp_path, open_memory=open_memory)

    async def lock(yes: bool) -> None:
        nonlocal locked
        async with lab.served[0]._turns.of():
            locked = yes
            lab.served[0].holder.close()

    def fail(*_: object) -> None:
        monkeypatch.undo()
        raise KeyError("a fault of ours")

    async def ask(client: Client) -> None:
        stream = await listen(client)
        await lock(True)
        assert await stream.next() == ("locked", {"what": "locked", "locked": True})
        monkeypatch.setattr(changes.Comparison, "__init__", fail)
        await lock(False)
        assert await stream.next() == ("locked", {"what": "locked"})

    lab.run(ask)


def test_file_edit_in_a_linked_folder_appears_in_the_stream(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.")
    file = tmp_path / "m" / "memory" / "tone.md"

    async def ask(client: Client) -> None:
        stream = await listen(client)
        file.write_text(file.read_text() + "And kind.\n")
        assert await stream.next() == ("memory", {"what": "memory", "key": "tone"})

    Lab(tmp_path).run(ask)


def test_resumed_stream_has_the_missed_changes_only(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        first, second = await listen(client), await listen(client)
        await good(client.put("/v1/memories/a", json={"body": "x"}, headers=NEW), 201)
        await second.next()
        cursor = second.cursor
        await good(client.put("/v1/memories/b", json={"body": "x"}, headers=NEW), 201)
        assert [(await first.next())[1]["key"] for _ in "ab"] == ["a", "b"]
        for again in (
            await listen(client, Last_Event_ID=cursor),
            await listen(client, f"/v1/changes?cursor={cursor}"),
        ):
            assert (await again.next())[1]["key"] == "b"
        lost = await listen(client, Last_Event_ID="another-7")
        assert (await lost.next())[0] == "reset"

    Lab(tmp_path).run(ask)


def test_stream_of_token_for_one_scope_has_only_that_scope(tmp_path: Path) -> None:
    from ipfsmem.api.tokens import make_token

    with opener(tmp_path)() as memory:
        made = make_token(memory.replica, tmp_path / "m", name="", right="read", scopes=("work",))

    async def ask(client: Client) -> None:
        stream = await listen(client, Authorization=f"Bearer {made.secret}")
        for path in ("a?scope=other", "a", "b?scope=work"):
            await good(client.put(f"/v1/memories/{path}", json={"body": "x"}, headers=NEW), 201)
        found = [(await stream.next())[1]]
        while found[-1].get("key") != "b":
            found.append((await stream.next())[1])
        assert all(one["scope"] == "work" for one in found)

    Lab(tmp_path).run(ask)


def test_sync_reports_its_progress_and_runs_one_at_a_time(tmp_path: Path) -> None:
    kept, home = tmp_path / "kept", tmp_path / "home"
    kept.mkdir()
    Memory.load(
        "m", "encrypted-ipfs", provider=f"directory:{kept}", unlock=RootKeys.from_random(b"\x05" * 64, "default", 1),
        passphrase=False, home=home, create=True,
    ).close()  # fmt: skip

    async def ask(client: Client) -> None:
        stream = await listen(client)
        await good(client.put("/v1/memories/tone", json={"body": "x"}, headers=NEW), 201)
        answers = [asyncio.create_task(_status(client.post("/v1/sync"))) for _ in range(2)]
        done = [await one for one in answers]
        assert sorted(status for status, _ in done) == [200, 409]
        hinted("Wait until it ends.", next(body for status, body in done if status == 409)["hint"])
        report = next(body for status, body in done if status == 200)
        assert report["exit_code"] == 0 and report["report"]["published"]
        said = [await stream.next()]
        while not said[-1][1].get("ended"):
            said.append(await stream.next())
        assert any(what == "sync" and data.get("doing") for what, data in said)
        status, _ = await good(client.get("/v1/status"))
        assert status["root"] == report["report"]["root"] and not status["unpublished"]
        assert (await good(client.get("/v1/providers")))[0]["providers"][0]["root"] == status["root"]
        assert (await good(client.get("/v1/members")))[0]["members"]
        await good(client.post("/v1/sync"))

    Lab(home, open_memory=lambda: Memory.load("m", home=home)).run(ask)


async def _status(answer: Any) -> tuple[int, Any]:
    async with answer as got:
        return got.status, await got.json(content_type=None)


def test_change_numbers_continue_and_a_gap_is_a_reset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "KEPT", 3)
    feed = Feed()
    start = feed.cursor()
    for number in range(3):
        feed.add(Change(what="memory", key=f"k{number}"))
    assert [one.change.key for one in feed.since(feed.behind(start) or 0)] == ["k0", "k1", "k2"]
    assert [one.change.key for one in feed.since(2)] == ["k2"]
    feed.add(Change(what="memory", key="k3"))
    assert feed.behind(start) is None and feed.behind(feed.cursor()) == 4
    assert [one.change.what for one in feed.since(0)] == ["reset"]
    for wrong in ("", "x", f"{start[:-1]}9", f"{start[:-1]}-1", f"{start[:-1]}\u0661", start + "0" * 40):
        assert feed.behind(wrong) is None, wrong


def test_cursor_does_not_reveal_change_counts_of_unreadable_scopes() -> None:
    feed = Feed()
    for _ in range(300):
        feed.add(Change(what="timeline", scope="other"))
    cursors = [feed.cursor(number) for number in range(301)]
    assert {len(one) for one in cursors} == {16} and cursors != sorted(cursors)
    assert [feed.behind(one) for one in cursors] == [*range(301)]
    assert len(set(cursors)) == 301
