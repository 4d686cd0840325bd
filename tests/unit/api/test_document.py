"""The OpenAPI document against live answers: every route is asked, and what it answers is what the document says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ipfsmem.api.document import document
from ipfsmem.api.serving import ROUTES
from ipfsmem.memory import Memory
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.api_lab import NEW, Client, Lab, told
from tests.support.extras import need_extra


def test_every_route_answers_as_the_document_says(tmp_path: Path) -> None:
    need_extra("mcp", "jsonschema")
    import jsonschema

    kept, home = tmp_path / "kept", tmp_path / "home"
    kept.mkdir()
    Memory.load(
        "m", "encrypted-ipfs", provider=f"directory:{kept}", unlock=RootKeys.from_random(b"\x05" * 64, "default", 1),
        passphrase=False, home=home, create=True,
    ).close()  # fmt: skip
    said = json.loads(json.dumps(document(ROUTES)))
    asked: set[str] = set()

    async def ask(client: Client) -> None:
        async def do(method: str, path: str, route: str, status: int = 200, **sent: Any) -> Any:
            async with client.request(method, path, **sent) as got:
                assert got.status == status, (method, path, await got.text())
                operation = said["paths"][route][method]
                asked.add(operation["operationId"])
                content = operation["responses"][str(status)]["content"]
                kind = got.content_type
                assert kind in content, (path, kind)
                if "schema" not in content[kind]:
                    return await got.read()
                value = await got.json()
            form = {**content[kind]["schema"], "components": said["components"]}
            jsonschema.Draft202012Validator(form).validate(value)
            return value

        one = "/v1/memories/{key}"
        made = await do("put", "/v1/memories/tone", one, 201, json={"body": "x", "tags": ["a"]}, headers=NEW)
        etag = {"If-Match": f'"{made["seen"]}"'}
        whole = {"text": "---\nname: Tone\ncreated: 2026-01-01\n---\n\nBe brief.\n"}
        shown = await do("put", "/v1/memories/tone", one, json=whole, headers=etag)
        assert shown["fields"]["name"] == "Tone" and shown["body"].strip() == "Be brief."
        await do("get", "/v1/memories/tone", one)
        await do("get", "/v1/memories?match=TONE&tag=", "/v1/memories")
        history = await do("get", "/v1/memories/tone/history", one + "/history")
        assert [version["now"] for version in history["versions"]] == ["shown"]
        await do("post", "/v1/sync", "/v1/sync")
        etag = {"If-Match": f'"{shown["seen"]}"'}
        shown = await do("put", "/v1/memories/tone", one, json={"body": "newer"}, headers=etag)
        history = await do("get", "/v1/memories/tone/history", one + "/history")
        old = history["versions"][1]["sha256"]
        past = await do("get", f"/v1/memories/tone/history/{old}", one + "/history/{sha256}")
        assert "Be brief." in past["text"]
        # A restore replaces only what its caller was shown, also where that is nothing.
        sent = {"key": "tone", "sha256": old}
        await told(client.post("/v1/restore", json=sent), 428, "UsageError")
        for seen in (made["seen"], ""):
            await told(client.post("/v1/restore", json={**sent, "seen": seen}), 412, "ChangedError")
        assert (await do("get", "/v1/memories/tone", one))["body"].strip() == "newer"
        await do("post", "/v1/restore", "/v1/restore", json={**sent, "seen": shown["seen"]})
        shown = await do("get", "/v1/memories/tone", one)
        await do("delete", "/v1/memories/tone", one, headers={"If-Match": f'"{shown["seen"]}"'})
        await told(client.post("/v1/restore", json=sent), 428, "UsageError")
        await do("post", "/v1/restore", "/v1/restore", json={**sent, "seen": ""})
        assert "Be brief." in (await do("get", "/v1/memories/tone", one))["body"]
        await do("post", "/v1/recall", "/v1/recall", json={"query": "brief", "why": True})
        await do("post", "/v1/context", "/v1/context", json={"query": "brief", "preview": True})
        await _conflict(home)
        conflicts = await do("get", "/v1/conflicts?everywhere=true", "/v1/conflicts")
        (conflict,) = conflicts["conflicts"]
        path = "/v1/memories/both"
        etag = {"If-Match": f'"{conflict["seen"]}"'}
        copy = {"take": conflict["copies"][0]["file"]}
        await do("post", path + "/resolve", one + "/resolve", json=copy, headers=etag)
        assert (await do("get", path, one))["text"] == conflict["copies"][0]["text"]

        await do("post", "/v1/events", "/v1/events", 201, json={"type": "met", "data": {"whom": "Ada"}})
        events = await do("get", "/v1/events?type=met", "/v1/events")
        assert events["events"][0]["whom"] == "Ada"
        assert (await do("get", "/v1/events/days", "/v1/events/days"))["days"][0]["events"] >= 1

        session = "/v1/sessions/{session}"
        await do("post", "/v1/sessions", "/v1/sessions", 201, json={"session": "a/b", "title": "Boats"})
        items = [{"role": "user", "content": f"boat {number}"} for number in range(30)]
        path = "/v1/sessions/a%2Fb"
        await do("post", path + "/items", session + "/items", 201, json={"items": items})
        assert len((await do("get", path + "/items?last=2", session + "/items"))["items"]) == 2
        assert (await do("post", path + "/compact?all=true", session + "/compact"))["covered"] == 10
        await do("get", path + "/resume", session + "/resume")
        assert (await do("get", path, session))["covered"] == 10
        await do("get", "/v1/sessions", "/v1/sessions")
        assert (await do("post", "/v1/sessions/search", "/v1/sessions/search", json={"query": "boat 7"}))[
            "hits"
        ]
        async with client.get(path) as got:
            etag = {"If-Match": got.headers["ETag"]}
        await do("delete", path, session, headers=etag)

        scope = "/v1/scopes/{name}"
        await do("put", "/v1/scopes/work", scope, 201, json={"title": "Work"})
        await do("put", "/v1/scopes/work", scope, json={"title": "The work"})
        await do("get", "/v1/scopes", "/v1/scopes")
        assert (await do("get", "/v1/scopes/work", scope))["card"]["title"] == "The work"
        await do("delete", "/v1/scopes/work", scope)
        await do("post", "/v1/scopes/work/restore", scope + "/restore")

        for name in ("status", "check", "members", "providers", "namespaces"):
            await do("get", f"/v1/{name}", f"/v1/{name}")
        blob = await do("post", "/v1/export", "/v1/export", json={"format": "blob", "partial": True})
        await do("post", "/v1/import?strategy=replace", "/v1/import", json=json.loads(blob))
        for form, begins in (("zip", b"PK"), ("car", b"\x3a\xa2")):
            assert (await do("post", "/v1/export", "/v1/export", json={"format": form})).startswith(begins)
        shown = await do("get", "/v1/memories/tone", one)
        await do("delete", "/v1/memories/tone", one, headers={"If-Match": f'"{shown["seen"]}"'})

    async def _conflict(home: Path) -> None:
        """Two texts of one memory, each written by who had not seen the other."""
        with Memory.load("m", home=home) as memory:
            seen = memory.write("both", "one")
            memory.write("both", "two", seen=seen)
            memory.write("both", "three", seen=seen)

    Lab(home, open_memory=lambda: Memory.load("m", home=home)).run(ask)
    assert asked == {
        operation["operationId"] for at in said["paths"].values() for operation in at.values()
    } - {"changes"}
