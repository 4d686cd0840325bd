"""`ipfsmem serve api --as librefang|agh`: the routes of other programs. The answers are those of LibreFang 2026.10.16 for the same calls."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

from ipfsmem.api.calls import Caller
from ipfsmem.memory import Memory
from tests.support.api_lab import Client, Lab, asked, bearer, opener
from tests.support.patience import PATIENCE
from tests.unit.api.test_access import token

AGENT = "2e5bd2c1-e0f3-58d0-9281-77d561bf3a2a"
KV = f"/api/memory/agents/{AGENT}/kv"
OF_AGENT = f"/api/memory/agents/{AGENT}"


async def answered(
    client: Client, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    from yarl import URL

    async with client.request(method, URL(path, encoded=True), json=body, headers=headers) as answer:
        return answer.status, await answer.json() if answer.content_length else None


def test_librefang_routes_serve_its_values(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        key = f"{KV}/user:preference:theme"
        assert await answered(client, "GET", KV) == (200, {"kv_pairs": []})
        stored = (200, {"status": "stored", "key": "user:preference:theme"})
        assert await answered(client, "PUT", key, {"value": "dark"}) == stored
        assert await answered(client, "PUT", key, {"value": "light"}) == stored
        assert (await answered(client, "PUT", f"{KV}/a%2Fb%20c", {"value": {"x": 1}}))[1]["key"] == "a/b c"
        assert await answered(client, "GET", key) == (200, {"key": "user:preference:theme", "value": "light"})
        assert await answered(client, "GET", f"{KV}/a%2Fb%20c") == (200, {"key": "a/b c", "value": {"x": 1}})
        status, said = await answered(client, "GET", f"{KV}/none")
        assert (status, said["message"], said["error"]["code"]) == (
            404,
            "api-error-kv-key-not-found",
            "not_found",
        )
        kv = {"a/b c": {"x": 1}, "user:preference:theme": "light"}
        exported = (200, {"agent_id": AGENT, "version": 1, "kv": kv})
        assert await answered(client, "GET", f"/api/agents/{AGENT}/memory/export") == exported
        other = "/api/agents/coder/memory/import"
        assert await answered(client, "POST", other, {"kv": kv}) == (
            200,
            {"status": "imported", "keys_imported": 2},
        )
        assert (await answered(client, "POST", other, {"bogus": 1}))[0] == 400
        assert await answered(client, "DELETE", key) == (204, None)
        assert await answered(client, "DELETE", key) == (204, None)
        _, listed = await answered(client, "GET", KV)
        assert listed == {"kv_pairs": [{"key": "a/b c", "value": {"x": 1}}]}
        assert (await answered(client, "GET", "/api/memory/agents/not%20an%20id/kv"))[1][
            "message"
        ] == "Invalid agent ID"
        assert (await answered(client, "GET", "/api/health", Authorization="none"))[1]["status"] == "ok"
        _, agents = await answered(client, "GET", "/api/agents")
        assert [one["name"] for one in agents["items"]] == [AGENT, "coder"]

    asked(tmp_path, ask, program="librefang")
    with Memory.load("m", home=tmp_path) as memory:
        history = memory.scope(AGENT).values.history("user:preference:theme")
        assert [one.value for one in history] == ["light", "dark"]


def test_librefang_delete_keeps_a_pending_value_that_it_does_not_list(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory, Memory.load("bob", "none") as other:
        other.scope("x").values.set("theme", "theirs")
        memory.scope(AGENT).bundles.import_(other.scope("x").bundles.export(partial=True), foreign=True)

    async def ask(client: Client) -> None:
        assert await answered(client, "GET", KV) == (200, {"kv_pairs": []})
        assert await answered(client, "DELETE", f"{KV}/theme") == (204, None)

    asked(tmp_path, ask, program="librefang")
    with Memory.load("m", home=tmp_path) as memory:
        assert memory.scope(AGENT).values.get("theme") is not None


def test_agent_token_reaches_no_redirecting_or_redirected_agent(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        for agent in ("sub", "top"):
            part = memory.scope(agent)
            part.write("note", f"canary {agent}")
            part.values.set("colour", f"canary {agent}")
        memory.scopes.redirect("sub", "top")
    sent = {one: bearer(token(tmp_path, "write", one)) for one in ("sub", "top")}

    async def ask(client: Client) -> None:
        for covered, headers in sent.items():
            for path in ("/api/memory", "/api/memory/search?q=canary"):
                status, said = await answered(client, "GET", path, **headers)
                assert status == 200 and "canary" not in json.dumps(said), (covered, path)
            for agent in ("sub", "top"):
                of_agent = f"/api/memory/agents/{agent}"
                for path in (of_agent, f"{of_agent}/kv", f"/api/agents/{agent}/memory/export"):
                    status, said = await answered(client, "GET", path, **headers)
                    assert status == 403 and "canary" not in json.dumps(said), (covered, path)
                put = await answered(client, "PUT", f"{of_agent}/kv/colour", {"value": 1}, **headers)
                assert put[0] == 403

    asked(tmp_path, ask, program="librefang")


def test_librefang_routes_serve_its_memories(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        for content, level in (
            ("Likes tea", "agent"),
            ("Works in Oslo", "user"),
            ("Waits for a build", "session"),
        ):
            given = {
                "content": content,
                "category": "preference",
                "level": level,
                "agent_id": AGENT,
                "user_id": "u1",
            }
            assert (await answered(client, "POST", "/api/memory", given))[0] == 201
        _, everything = await answered(client, "GET", "/api/memory")
        assert everything["total"] == 3 and everything["limit"] == 10 and everything["proactive_enabled"]
        by = {one["content"]: one for one in everything["memories"]}
        assert (by["Likes tea"]["scope"], by["Likes tea"]["agent_id"]) == ("agent_memory", AGENT)
        assert (await answered(client, "GET", OF_AGENT))[1]["total"] == 2
        assert (await answered(client, "GET", "/api/memory?level=session"))[1]["total"] == 1
        assert (await answered(client, "GET", "/api/memory?level=bogus"))[0] == 400
        assert (await answered(client, "GET", "/api/memory/search"))[0] == 400
        _, found = await answered(client, "GET", "/api/memory/search?q=tea&limit=3")
        assert [one["content"] for one in found["memories"]] == ["Likes tea"]
        _, users = await answered(client, "GET", "/api/memory/user/u1")
        assert [one["content"] for one in users["memories"]] == ["Works in Oslo"]
        assert (await answered(client, "GET", "/api/memory/user/u2"))[1] == {"memories": []}
        _, stats = await answered(client, "GET", "/api/memory/stats")
        assert (stats["user_count"], stats["session_count"], stats["by_agent"]) == (1, 1, {AGENT: 2})

        ident = by["Likes tea"]["id"]
        one = f"/api/memory/items/{ident}"
        edited = (200, {"updated": True, "memory_id": ident})
        assert await answered(client, "PUT", one, {"content": "Likes coffee"}) == edited
        _, history = await answered(client, "GET", f"{one}/history")
        assert [was["content"] for was in history["versions"]] == ["Likes tea"] and history[
            "version_count"
        ] == 1
        assert (await answered(client, "GET", f"/api/memory/{ident}"))[1]["content"] == "Likes coffee"
        assert await answered(client, "DELETE", one) == (204, None)
        assert (await answered(client, "DELETE", one))[1]["message"] == "Memory not found"
        bulk = {"ids": [by["Works in Oslo"]["id"], "nope"]}
        assert (await answered(client, "POST", "/api/memory/bulk-delete", bulk))[1] == {
            "deleted": 1,
            "failed": 1,
            "total": 2,
        }
        assert (await answered(client, "DELETE", f"{OF_AGENT}/level/bogus"))[0] == 400
        assert await answered(client, "DELETE", f"{OF_AGENT}/level/session") == (204, None)
        counted = {"agent_id": AGENT, "count": 0, "level": None}
        assert (await answered(client, "GET", f"{OF_AGENT}/count"))[1] == counted
        _, cleaned = await answered(client, "POST", "/api/memory/cleanup")
        assert cleaned == {"cleaned_up": True, "deleted_count": 0, "session_ttl_hours": 24}
        for gone in ("/api/memory/kg/entities", "/api/memory/proactive/search"):
            assert (await answered(client, "GET", gone))[0] == 404

    asked(tmp_path, ask, program="librefang")
    with Memory.load("m", home=tmp_path) as memory:
        assert {one.text for one in memory.scope(AGENT).facts.history()} == {
            "Likes coffee",
            "Waits for a build",
        }


def test_librefang_graph_and_import_routes_are_answered(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        triple = {"subject": "Alice", "subject_type": "person", "relation": "works_at", "object": "Acme"}
        done = {"agent_id": AGENT, "triples_processed": 1}
        assert await answered(client, "POST", f"{OF_AGENT}/relations", [triple]) == (200, done)
        for asked_for in ("", "?source=Alice", "?relation=works_at&target=Acme"):
            _, found = await answered(client, "GET", f"{OF_AGENT}/relations{asked_for}")
            assert found["count"] == 1 and found["matches"][0]["relation"]["type"] == "works_at"
        entry = {"content": "Likes tea", "level": "Agent", "category": "preference", "confidence": 0.9}
        assert (await answered(client, "POST", f"{OF_AGENT}/import", [entry]))[1]["imported"] == 1
        _, exported = await answered(client, "GET", f"{OF_AGENT}/export")
        assert exported["count"] == 1 and exported["memories"][0]["content"] == "Likes tea"

    asked(tmp_path, ask, program="librefang")


def test_token_of_one_agent_reaches_no_other(tmp_path: Path) -> None:
    lab = Lab(tmp_path, program="librefang")
    lab.doors.accept_token("only", Caller("write", frozenset([AGENT])))
    lab.doors.accept_token("reads", Caller("read"))

    async def ask(client: Client) -> None:
        await answered(client, "PUT", "/api/memory/agents/other/kv/secret", {"value": "x"})
        await answered(client, "POST", "/api/memory", {"content": "Everybody's", "level": "user"})
        only = {"Authorization": "Bearer only"}
        assert (await answered(client, "PUT", f"{KV}/k", {"value": 1}, **only))[0] == 200
        assert (await answered(client, "GET", "/api/memory/agents/other/kv/secret", **only))[0] == 403
        assert (await answered(client, "GET", "/api/memory", **only))[1]["total"] == 0
        assert (await answered(client, "PUT", f"{KV}/k", {"value": 2}, Authorization="Bearer reads"))[
            0
        ] == 403
        assert (await answered(client, "GET", KV, Authorization="Bearer wrong"))[0] == 401

    lab.run(ask)


def test_agh_routes_serve_its_files(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        text = "---\nname: Review Style\ndescription: concise findings\ntype: user\n---\n\nFindings first.\n"
        one = "/api/memory/review-style.md"
        assert (await answered(client, "PUT", one, {"content": text}))[0] == 201
        status, again = await answered(client, "PUT", one, {"content": "Other.", "type": "user"})
        assert status == 200 and again["memory"]["name"] == "Review Style"
        docs = {"content": "Under docs.", "type": "project", "description": "where docs are"}
        assert (await answered(client, "PUT", "/api/memory/docs.md", docs))[1]["memory"][
            "scope"
        ] == "workspace"
        _, listed = await answered(client, "GET", "/api/memory")
        assert [each["filename"] for each in listed["memories"]] == ["docs.md", "review-style.md"]
        assert (await answered(client, "GET", f"{one}?scope=global"))[1]["memory"]["content"].endswith(
            "Other.\n"
        )
        _, found = await answered(client, "GET", "/api/memory/search?q=docs")
        assert [each["filename"] for each in found["results"]] == ["docs.md"]
        assert (await answered(client, "GET", "/api/memory/health"))[1]["workspace_files"] == 1
        _, done = await answered(client, "GET", "/api/memory/history?operation=memory.write&limit=1")
        assert len(done["operations"]) == 1 and done["operations"][0]["operation"] == "memory.write"
        assert (await answered(client, "POST", "/api/memory/reindex"))[1] == {"indexed": 2}
        assert (await answered(client, "DELETE", one))[1]["deleted"] is True
        status, said = await answered(client, "GET", one)
        assert (status, said["error"]["code"]) == (404, "memory.not_found")
        assert (await answered(client, "PUT", "/api/memory/x.md", {"content": "x", "type": "odd"}))[0] == 400

    asked(tmp_path, ask, program="agh", workspace="work")


def test_librefang_import_with_one_invalid_entry_writes_nothing(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        memories = [{"content": "Likes tea"}, {"content": "Works in Oslo", "level": "bogus"}]
        assert (await answered(client, "POST", f"{OF_AGENT}/import", {"memories": memories}))[0] == 400
        kv = {"theme": "dark", "x" * 300: "too long a key"}
        assert (await answered(client, "POST", f"/api/agents/{AGENT}/memory/import", {"kv": kv}))[0] == 400
        relations = [{"subject": "Ada", "relation": "knows", "object": "Bob"}, {"subject": "Ada"}]
        assert (await answered(client, "POST", f"{OF_AGENT}/relations", relations))[0] == 400

    asked(tmp_path, ask, program="librefang")
    with Memory.load("m", home=tmp_path) as memory:
        assert memory.scope(AGENT).list().memories == ()


def test_program_call_waits_for_the_turn_of_its_token(tmp_path: Path) -> None:
    Memory.create("m", "local", home=tmp_path).close()
    lab, secret = Lab(tmp_path, program="librefang"), token(tmp_path)
    gate = threading.Event()

    async def ask(client: Client) -> None:
        served = lab.served[0]
        known = lab.doors.caller_of([f"Bearer {secret}"])
        assert known is not None
        at_work = asyncio.ensure_future(served.on(lambda _: gate.wait(60)))
        call = asyncio.ensure_future(answered(client, "GET", "/api/memory", Authorization=f"Bearer {secret}"))
        try:
            async with asyncio.timeout(PATIENCE):
                while known.digest not in served._turns._waiting:
                    await asyncio.sleep(0)
        finally:
            gate.set()
        assert (await call)[0] == 200 and await at_work

    lab.run(ask)


def test_agh_files_keep_every_field_of_their_header(tmp_path: Path) -> None:
    header = "name: Style\ntype: user\ntags: [review, docs]\npriority: high\nowner: Ana\nsession: x\n"

    async def ask(client: Client) -> None:
        given = {"content": f"---\n{header}---\n\nFindings first.\n"}
        assert (await answered(client, "PUT", "/api/memory/style.md", given))[0] == 201

    asked(tmp_path, ask, program="agh", workspace="work")
    with opener(tmp_path)() as memory:
        read = memory.read("style")
        assert read is not None and read.file.tags == ("review", "docs")
        fields = read.file.fields
        assert (fields["priority"], fields["owner"], "session" in fields) == ("high", "Ana", False)
        assert read.file.body.strip() == "Findings first."
