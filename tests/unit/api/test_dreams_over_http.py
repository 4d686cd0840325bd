"""Dreams over HTTP: other calls are answered meanwhile, an abort ends one, and the model sees only the
token's scopes."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.servers.chat_model import ChatServer
from tests.servers.threaded import serve
from tests.support.api_lab import Client, Lab, bearer, good, opener, told
from tests.unit.api.test_access import token

REMOVE = ("propose_removal", json.dumps({"key": "tea_too", "stands_in": "tea", "reason": "Said there"}))

READ = [("read_memory", json.dumps({"key": key})) for key in ("tea", "tea_too")]


def lived(home: Path) -> None:
    with opener(home)() as memory:
        memory.write("everybody", "zqeverybodyzq")
        memory.scope("secret").write("plan", "zqsecretzq")
        work = memory.scope("work")
        work.write("tea", "They drink tea, and green tea.")
        work.write("tea_too", "They drink green tea.")
        for n in range(6):  # a model may propose to remove a quarter of them
            work.write(f"fact_{n}", f"Fact {n}")


def test_dream_model_sees_only_its_scope_and_other_calls_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(tmp_path)
    sent = bearer(token(tmp_path, "write", "work"))
    may_go_on, began = threading.Event(), threading.Event()
    left: list[Any] = [[("list_memories", "{}")], READ, [REMOVE]]

    def says(messages: list[dict[str, Any]]) -> Any:
        began.set()
        assert may_go_on.wait(60)
        return left.pop(0) if left else "Done."

    server = ChatServer(says)
    with serve(server.app) as address:
        file = tmp_path / "settings.toml"
        file.write_text(f'[model]\nmodel = "dreamer"\nbase_url = "{address}/v1"\n')
        monkeypatch.setenv("IPFSMEM_CONFIG", str(file))

        async def ask(client: Client) -> None:
            async def dream() -> Any:
                return await good(client.post("/v1/dream?scope=work", json={"model": True}, headers=sent))

            dreaming = asyncio.create_task(dream())
            assert await asyncio.to_thread(began.wait, 20)
            await good(client.get("/v1/memories/tea?scope=work", headers=sent))
            assert (await good(client.get("/v1/dream")))[0]["under_way"]
            may_go_on.set()
            made, _ = await dreaming
            assert made["proposed"]["by"] == "dreamer" and made["outcome"] is None
            changes = [one["key"] for step in made["proposed"]["steps"] for one in step["changes"]]
            assert changes == ["tea_too"]
            applied = client.post(
                "/v1/dream/apply?scope=work", json={"proposal": made["proposed"]["id"]}, headers=sent
            )
            assert (await good(applied))[0]["removed"] == ["tea_too"]

        Lab(tmp_path).run(ask)
    assert server.asked and not any(
        word in json.dumps(server.asked) for word in ("zqsecretzq", "zqeverybodyzq", "plan")
    )


def test_aborted_dream_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lived(tmp_path)
    may_go_on, began = threading.Event(), threading.Event()

    def says(messages: list[dict[str, Any]]) -> Any:
        began.set()
        assert may_go_on.wait(60)
        return [REMOVE]

    with serve(ChatServer(says).app) as address:
        file = tmp_path / "settings.toml"
        file.write_text(f'[model]\nmodel = "dreamer"\nbase_url = "{address}/v1"\n')
        monkeypatch.setenv("IPFSMEM_CONFIG", str(file))

        async def ask(client: Client) -> None:
            dreaming = asyncio.create_task(
                told(client.post("/v1/dream?scope=work", json={"model": True}), 409, "IncompleteError")
            )
            assert await asyncio.to_thread(began.wait, 20)
            await told(client.post("/v1/dream?scope=work", json={}), 503, "LockedError")
            await good(client.post("/v1/dream/abort"))
            may_go_on.set()
            await dreaming
            await told(client.get("/v1/dream/proposal?scope=work"), 404, "NotFoundError")
            assert (await good(client.get("/v1/dream")))[0]["failure"] == "IncompleteError"

        Lab(tmp_path).run(ask)


def test_proposal_of_one_scope_remains_after_a_dream_over_another(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        for one in (memory, memory.scope("work")):
            one.write("tea", "They drink tea.")
            one.write("tea_too", "They drink tea.")

    async def ask(client: Client) -> None:
        made = {}
        for scope in ("", "work"):
            made[scope], _ = await good(client.post(f"/v1/dream?scope={scope}", json={}))
        for scope in ("", "work"):
            proposed = made[scope]["proposed"]
            assert await good(client.get(f"/v1/dream/proposal?scope={scope}")) == (proposed, "")  # no ETag
            assert (await good(client.get(f"/v1/dream?scope={scope}")))[0]["proposed"] == proposed["id"]
        for scope in ("", "work"):
            wanted = {"proposal": made[scope]["proposed"]["id"]}
            done, _ = await good(client.post(f"/v1/dream/apply?scope={scope}", json=wanted))
            assert done["removed"] and done["exit_code"] == 0

    Lab(tmp_path).run(ask)
