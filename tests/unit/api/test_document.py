"""The OpenAPI document against live answers: every route is called, and its answer matches the document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ipfsmem.api.document import document
from ipfsmem.api.serving import ROUTES
from ipfsmem.device.dream_notes import dreaming
from ipfsmem.memory import Memory
from ipfsmem.wallet.root_keys import RootKeys
from tests.cli.test_cli_promote import conversation_database
from tests.support.api_lab import NEW, Client, Lab, told
from tests.support.extras import need_extra


async def _life(client: Client, do: Any, tags: dict[str, str], home: Path) -> None:
    """Call the routes of facts, the graph, dreams and usage."""
    one, facts = "/v1/facts/{key}", "/v1/facts"
    said = {"text": "Likes tea", "category": "preference", "confidence": 0.9}
    made = await do("post", facts, facts, json=said)
    key = made["fact"]["key"]
    assert made["action"] == "added"
    assert (await do("post", facts, facts, json=said))["action"] == "kept"
    await do("post", facts, facts, json={"text": "Works in Oslo", "category": "personal_fact"})
    page = await do("get", facts + "?limit=1", facts)
    assert [one["text"] for one in page["facts"]] == ["Works in Oslo"]
    page = await do("get", f"{facts}?limit=1&cursor={page['next']}", facts)
    assert [one["text"] for one in page["facts"]] == ["Likes tea"] and page["next"] is None
    assert len((await do("get", facts + "?category=preference&kind=fact", facts))["facts"]) == 1
    path = f"{facts}/{key}"
    await do("get", path, one)
    first = {"If-Match": tags[one]}
    await told(client.put(path, json={"text": "x"}), 428, "UsageError")
    await do("put", path, one, json={"text": "Likes green tea"}, headers=first)
    now = {"If-Match": tags[one]}
    # A caller that was shown only the first text replaces, removes and restores nothing.
    await told(client.put(path, json={"text": "Likes coffee"}, headers=first), 412, "ChangedError")
    await told(client.delete(path, headers=first), 412, "ChangedError")
    await told(client.post(path + "/restore", json={"seen": ""}), 412, "ChangedError")
    await told(client.post(path + "/restore", json={}), 428, "UsageError")
    assert (await do("get", path, one))["text"] == "Likes green tea"
    history = await do("get", f"/v1/history/facts?key={key}", "/v1/history/facts")
    assert [(one["text"], one["why"]) for one in history["facts"]] == [("Likes tea", "edited")]
    await do("delete", path, one, headers=now)
    gone = await do("get", "/v1/history/facts", "/v1/history/facts")
    assert [one["text"] for one in gone["facts"]] == ["Likes green tea"]
    await do("post", path + "/restore", one + "/restore", json={"number": 2, "seen": ""})
    assert (await do("get", path, one))["text"] == "Likes tea"
    assert (await do("post", "/v1/hidden", "/v1/hidden", json={"keys": [key]}))["keys"] == [key]
    assert (await do("get", "/v1/hidden", "/v1/hidden"))["hidden"][0]["why"] == "by hand"
    assert key not in str(await do("get", facts, facts))
    assert [one["key"] for one in (await do("get", facts + "?hidden=true", facts))["facts"]] == [key]
    await do("post", "/v1/hidden/back", "/v1/hidden/back", json={"keys": [key]})
    await told(client.post("/v1/hidden/back", json={"keys": [key]}), 404, "NotFoundError")
    assert key in str(await do("get", facts, facts))

    value, values = "/v1/value", "/v1/values"
    named = value + "?key=user%3Apreference%2F%20theme"
    first = await do("put", named, value, json={"value": {"dark": True}, "level": "agent"})
    assert (first["key"], first["value"]) == ("user:preference/ theme", {"dark": True})
    await told(client.put(named, json={"value": 1, "seen": ""}), 412, "ChangedError")
    await do("put", named, value, json={"value": "light"})
    assert (await do("get", named, value))["value"] == "light"
    assert [one["key"] for one in (await do("get", values + "?prefix=user:", values))["values"]] == [
        first["key"]
    ]
    history = value + "/history"
    assert (await do("get", history + named.removeprefix(value), history))["values"][0]["value"] == {
        "dark": True
    }
    restore = value + "/restore"
    await told(client.post(restore + named.removeprefix(value), json={"number": 1}), 428, "UsageError")
    now = (await do("get", named, value))["seen"]
    made = await do("post", restore + named.removeprefix(value), restore, json={"number": 1, "seen": now})
    assert made["value"] == {"dark": True}
    assert (await do("post", values + "/clear", values + "/clear", json={"level": "session"}))["keys"] == []
    assert (await do("post", values + "/sweep", values + "/sweep"))["keys"] == []
    await told(client.delete(named + "&seen="), 412, "ChangedError")  # only if no value exists
    await do("delete", named, value)
    await told(client.get(named), 404, "NotFoundError")
    await told(client.get(value), 400, "UsageError")

    entities, relations = "/v1/graph/entities", "/v1/graph/relations"
    for name in ("Ada", "Acme", "Oslo"):
        await do("post", entities, entities, json={"name": name, "kind": "thing"})
    await do("post", entities, entities, json={"name": "Ada", "observations": ["writes programs"]})
    joined = {"begin": "Ada", "type": "works_at", "end": "acme"}
    added = await do("post", relations, relations, json=joined)
    assert added["relations"] == [{"begin": "ada", "type": "works_at", "end": "acme"}]
    assert (await do("post", relations, relations, json=joined))["relations"] == []  # nothing was added
    await do("post", relations, relations, json={"begin": "Acme", "type": "in", "end": "Oslo"})
    assert len((await do("get", "/v1/graph", "/v1/graph"))["edges"]) == 2
    assert len((await do("get", "/v1/graph?entity=Ada&depth=1", "/v1/graph"))["nodes"]) == 2
    way = await do("get", "/v1/graph/path?begin=Ada&end=Oslo", "/v1/graph/path")
    assert [one["type"] for one in way["relations"]] == ["works_at", "in"]
    await told(client.get("/v1/graph/path?begin=Ada"), 400, "UsageError")
    await told(client.get("/v1/facts?kind=moon"), 400, "UsageError")
    assert (await do("get", "/v1/graph/path?begin=Ada&end=ada", "/v1/graph/path"))["relations"] == []
    assert [one["key"] for one in (await do("get", f"{entities}?limit=1", entities))["entities"]] == ["acme"]
    found = await do("get", "/v1/graph/search?query=programs", "/v1/graph/search")
    assert [one["key"] for one in found["entities"]] == ["ada"]
    assert len((await do("get", f"{relations}?entity=Acme&type=in", relations))["relations"]) == 1
    for form, begins in (("graphml", b"<?xml"), ("mermaid", b"flowchart"), ("html", b"<!")):
        drawn = await do("get", f"/v1/graph/drawing?format={form}", "/v1/graph/drawing")
        assert drawn.lower().startswith(begins), drawn[:20]
    await told(client.get("/v1/graph/drawing?format=pdf"), 400, "UsageError")
    await do("delete", f"{relations}?begin=Acme&type=in&end=Oslo", relations)
    await told(client.delete(f"{relations}?begin=Acme&type=in&end=Oslo"), 404, "NotFoundError")
    ada = entities + "/{entity}"
    await do("get", entities + "/Ada", ada)
    stale, now = {"If-Match": f'"{"0" * 16}"'}, {"If-Match": tags[ada]}
    await told(client.delete(entities + "/Ada", headers=stale), 412, "ChangedError")
    await told(client.delete(entities + "/Ada"), 428, "UsageError")
    gone = await do("delete", entities + "/Ada", ada, headers=now)
    assert gone["key"] == "ada"
    await told(client.delete(entities + "/Ada", headers=now), 404, "NotFoundError")
    await do("post", f"{facts}/ada/restore", one + "/restore", json={"seen": ""})
    await do("get", entities + "/Ada", ada)

    for key in ("first", "second"):
        sent = {"body": "The ferry to the island leaves at nine from the old harbour, on Sundays at ten."}
        await do("put", f"/v1/memories/{key}", "/v1/memories/{key}", 201, json=sent, headers=NEW)
    twice = await do("get", "/v1/duplicates?similarity=0.9", "/v1/duplicates")
    assert [one["how"] for one in twice["duplicates"]] == ["same"]
    proposal = "/v1/dream/proposal"
    await told(client.get(proposal), 404, "NotFoundError")
    await told(client.post("/v1/dream", json={"model": True}), 409, "ConfigError")
    await told(client.post("/v1/dream", json={"model": True, "apply": True}), 400, "UsageError")
    dreamed = await do("post", "/v1/dream", "/v1/dream", json={})
    assert (await do("get", "/v1/dream", "/v1/dream"))["proposed"] == dreamed["proposed"]["id"]
    shown = await do("get", proposal, proposal)
    assert shown["steps"] == dreamed["proposed"]["steps"] != []
    wrong = client.post("/v1/dream/apply", json={"proposal": "0" * 12})
    await told(wrong, 404, "NotFoundError")  # only the shown proposal is applied
    done = await do("post", "/v1/dream/apply", "/v1/dream/apply", json={"proposal": shown["id"]})
    (removed,) = done["removed"]
    assert done["exit_code"] == 0
    (dream,) = (await do("get", "/v1/dreams", "/v1/dreams"))["dreams"]
    undo = "/v1/dreams/{dream}/undo"
    undone = await do("post", f"/v1/dreams/{dream['id']}/undo", undo)
    assert undone["back"] == [removed] and undone["exit_code"] == 0
    dreamed = await do("post", "/v1/dream", "/v1/dream", json={"apply": True})
    sent = {"body": "Somebody wrote it anew."}
    await do("put", f"/v1/memories/{removed}", "/v1/memories/{key}", 201, json=sent, headers=NEW)
    undone = await do("post", f"/v1/dreams/{dreamed['outcome']['id']}/undo", undo)
    assert undone["changed"] == [removed] and undone["exit_code"] == 7
    await told(client.post("/v1/dream/abort"), 404, "NotFoundError")
    with dreaming(home / "m"):  # as another process would
        await told(client.post("/v1/dream", json={}), 503, "LockedError")
        assert (await do("post", "/v1/dream/abort", "/v1/dream/abort"))["under_way"]
    assert (await do("put", "/v1/dream", "/v1/dream", json={"chosen": True}))["chosen"]

    for model, cost in (("m-1", 0.5), ("=m", 0.25)):
        sent = {"model": model, "input_tokens": 7, "cost_usd": cost, "agent": "bot"}
        await do("post", "/v1/usage", "/v1/usage", 201, json=sent)
    sums = await do("get", "/v1/usage?by=model", "/v1/usage")
    assert [(one["name"], one["cost"]) for one in sums["totals"]] == [("m-1", 500_000), ("=m", 250_000)]
    assert (await do("get", "/v1/usage?by=agent", "/v1/usage"))["totals"][0]["input_tokens"] == 14
    await told(client.get("/v1/usage?by=moon"), 400, "UsageError")
    assert (await do("get", "/v1/usage?since=2001-01-01&until=2001-01-02", "/v1/usage"))["totals"] == []
    assert len((await do("get", "/v1/usage/list", "/v1/usage/list"))["uses"]) == 2
    assert b",'=m," in await do("get", "/v1/usage/csv", "/v1/usage/csv")
    assert [
        one["spent"] for one in (await do("get", "/v1/usage/budgets", "/v1/usage/budgets"))["budgets"]
    ] == [
        750_000,
        750_000,
    ]


def test_every_route_answers_as_documented(tmp_path: Path) -> None:
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
    tags: dict[str, str] = {}

    async def ask(client: Client) -> None:
        async def do(method: str, path: str, route: str, status: int = 200, **sent: Any) -> Any:
            async with client.request(method, path, **sent) as got:
                tags[route] = got.headers.get("ETag", "")
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
        for path, left in (("/v1/hidden", 0), ("/v1/hidden/back", 1)):  # the stored list is rebuilt
            await do("post", path, path, json={"keys": ["tone"]})
            assert (await do("get", "/v1/memories", "/v1/memories"))["total"] == left
        history = await do("get", "/v1/memories/tone/history", one + "/history")
        assert [version["now"] for version in history["versions"]] == ["shown"]
        await do("post", "/v1/sync", "/v1/sync")
        etag = {"If-Match": f'"{shown["seen"]}"'}
        shown = await do("put", "/v1/memories/tone", one, json={"body": "newer"}, headers=etag)
        history = await do("get", "/v1/memories/tone/history", one + "/history")
        old = history["versions"][1]["sha256"]
        past = await do("get", f"/v1/memories/tone/history/{old}", one + "/history/{sha256}")
        assert "Be brief." in past["text"]
        # A restore replaces only the text its caller was shown, also if that is none.
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
        # Into another scope, of the shown text, replacing a text there only with its token.
        shown = await do("get", "/v1/memories/tone", one)
        promote, etag = "/v1/memories/tone/promote", {"If-Match": f'"{shown["seen"]}"'}
        await told(client.post(promote, json={"to": "shop"}), 428, "UsageError")
        there = await do("post", promote, one + "/promote", json={"to": "shop", "keep": True}, headers=etag)
        assert (there["scope"], there["text"]) == ("shop", shown["text"])
        other = await do("put", "/v1/memories/tone?scope=shop", one, json={"body": "Other."}, headers={"If-Match": f'"{there["seen"]}"'})  # fmt: skip
        await told(client.post(promote, json={"to": "shop"}, headers=etag), 412, "ChangedError")
        over = {"to": "shop", "keep": True, "if_match": other["sha256"]}
        assert (await do("post", promote, one + "/promote", json=over, headers=etag))["text"] == shown["text"]
        await told(client.post(promote, json={"to": "../x"}, headers=etag), 400, "KeyNameError")
        await do("post", "/v1/recall", "/v1/recall", json={"query": "brief", "explain": True})
        asked_for = {"query": "brief", "preview": True}
        given = await do("post", "/v1/context", "/v1/context", json=asked_for)
        assert given["marks"] and given["shown"] and given["repeated"] == 0
        again = {**asked_for, "exclude": given["marks"]}
        anew = await do("post", "/v1/context", "/v1/context", json=again)
        assert (anew["text"], anew["shown"], anew["repeated"]) == ("", [], len(given["marks"]))
        await _conflict(home)
        conflicts = await do("get", "/v1/conflicts?everywhere=true", "/v1/conflicts")
        (conflict,) = conflicts["conflicts"]
        path = "/v1/memories/both"
        etag = {"If-Match": f'"{conflict["seen"]}"'}
        copy = {"alternative": conflict["copies"][0]["file"]}
        await do("post", path + "/resolve", one + "/resolve", json=copy, headers=etag)
        assert (await do("get", path, one))["text"] == conflict["copies"][0]["reading"]["text"]

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
        shown = await do("get", path + "/messages?last=3", session + "/messages")
        assert shown["before"] == 27 and [one["text"] for one in shown["messages"]][2] == "boat 29"
        done = await do("post", path + "/compact?now=true", session + "/compact")
        assert done == {"sessions": [{"session": "a/b", "covered": 10}], "problems": []}
        assert (await do("get", "/v1/status/sessions", "/v1/status/sessions"))["sessions"][0]["covered"] == 10
        await do("get", path + "/resume", session + "/resume")
        assert (await do("get", path, session))["covered"] == 10
        assert (await do("get", "/v1/sessions", "/v1/sessions"))["older"] == 0
        with Memory.load("m", home=home) as memory:
            memory.bundles.import_from(
                "initrunner", conversation_database(home / "agent.db", "Otters like rain.")
            )
        assert (await do("get", "/v1/sessions/talk", session))["own"] is False
        etag = {"If-Match": tags[session]}
        done = await do("post", "/v1/sessions/talk/approve", session + "/approve", headers=etag)
        assert done["messages"] == 1
        assert (await do("post", "/v1/sessions/search", "/v1/sessions/search", json={"query": "boat 7"}))[
            "hits"
        ]
        await do("post", "/v1/sessions/search?tz=UTC", "/v1/sessions/search", json={"query": "boat 7"})
        async with client.get(path) as got:
            etag = {"If-Match": got.headers["ETag"]}
        exported = await do("get", path + "/export", session + "/export")
        assert exported.startswith(b"# Boats\n")
        exported = await do("get", path + "/export?format=json", session + "/export")
        assert json.loads(exported)[7]["content"] == "boat 7"
        await do("delete", path, session, headers=etag)
        await _life(client, do, tags, home)

        scope = "/v1/scopes/{name}"
        await do("put", "/v1/scopes/work", scope, 201, json={"title": "Work"})
        await do("put", "/v1/scopes/work", scope, json={"title": "The work"})
        await do("get", "/v1/scopes", "/v1/scopes")
        assert (await do("get", "/v1/scopes/work", scope))["card"]["title"] == "The work"
        await do("delete", "/v1/scopes/work", scope)
        await do("post", "/v1/scopes/work/restore", scope + "/restore")

        assert (await do("post", "/v1/reindex", "/v1/reindex"))["behind"] == 0
        assert (await do("post", "/v1/vacuum", "/v1/vacuum"))["after"]
        old = {"older_than": 3600, "dry_run": True}
        assert (await do("post", "/v1/cleanup", "/v1/cleanup", json=old))["dry_run"]
        await told(client.post("/v1/cleanup", json={"older_than": 1}), 400, "UsageError")
        shown = await do("get", "/v1/settings", "/v1/settings")
        assert "facts.closed" in {one["name"] for one in shown["settings"]}
        for name in (
            "index",
            "status",
            "check",
            "operations",
            "members",
            "agents",
            "providers",
            "vaults",
        ):
            await do("get", f"/v1/{name}", f"/v1/{name}")
        blob = await do("post", "/v1/export", "/v1/export", json={"format": "blob", "partial": True})
        await do("post", "/v1/import?strategy=replace", "/v1/import", json=json.loads(blob))
        for form, begins in (("zip", b"PK"), ("car", b"\x3a\xa2")):
            assert (await do("post", "/v1/export", "/v1/export", json={"format": form})).startswith(begins)
        shown = await do("get", "/v1/memories/tone", one)
        await do("delete", "/v1/memories/tone", one, headers={"If-Match": f'"{shown["seen"]}"'})

    async def _conflict(home: Path) -> None:
        """Create two texts of one memory, each written without having seen the other."""
        with Memory.load("m", home=home) as memory:
            seen = memory.write("both", "one")
            memory.write("both", "two", seen=seen)
            memory.write("both", "three", seen=seen)

    Lab(home, open_memory=lambda: Memory.load("m", home=home)).run(ask)
    assert asked == {
        operation["operationId"] for at in said["paths"].values() for operation in at.values()
    } - {"changes"}


def test_export_and_import_are_described_as_they_are_over_http() -> None:
    paths = document(ROUTES)["paths"]
    export, import_ = paths["/v1/export"]["post"], paths["/v1/import"]["post"]
    for route in (export, import_):
        (scope,) = [one for one in route["parameters"] if one["name"] == "scope"]
        assert "whole vault" in scope["description"]
        for text, accepted in (("", True), ("work", True), ("Work", False)):
            assert bool(re.search(scope["schema"]["pattern"], text)) is accepted
    (scope,) = [one for one in paths["/v1/memories"]["get"]["parameters"] if one["name"] == "scope"]
    assert not re.search(scope["schema"]["pattern"], "") and "default scope" in scope["description"]
    assert "Ipfsmem-Outdated" in export["responses"]["200"]["headers"]
    text = f"{import_['summary']} {import_['description']} {import_['requestBody']['description']}"
    assert "JSON export" in text and "64 MiB" in text and "folder" not in text and "source" not in text
    assert list(import_["requestBody"]["content"]) == ["application/json"]
