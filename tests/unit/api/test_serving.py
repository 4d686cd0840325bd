"""The HTTP API of a vault, called by an independent client as documented."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.api.document import document
from ipfsmem.api.serving import ROUTES
from ipfsmem.errors import IncompleteError
from ipfsmem.memory import Memory
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.api_lab import JSON, NEW, TOKEN, Client, Lab, asked, good, told
from tests.support.extras import need_extra
from tests.support.hints import hinted

DOC = Path(__file__).parents[3] / "docs" / "reference" / "http.md"


def test_memory_is_written_read_listed_changed_and_forgotten(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        made, first = await good(
            client.put("/v1/memories/tone", json={"body": "Be brief.", "type": "feedback"}, headers=NEW), 201
        )
        assert made["body"] == "Be brief." and first == f'"{made["seen"]}"'
        assert made.pop("better") and await good(client.get("/v1/memories/tone")) == (made, first)
        changed, second = await good(
            client.put("/v1/memories/tone", json={"name": "Tone"}, headers={"If-Match": first})
        )
        assert changed["body"] == "Be brief." and changed["fields"]["name"] == "Tone" and second != first
        page, _ = await good(client.get("/v1/memories?type=feedback"))
        assert [one["key"] for one in page["memories"]] == ["tone"] and page["next"] is None
        assert (await good(client.get("/v1/memories?type=user")))[0]["memories"] == []
        await told(client.delete("/v1/memories/tone", headers={"If-Match": first}), 412, "ChangedError")
        gone, _ = await good(client.delete("/v1/memories/tone?reason=old", headers={"If-Match": second}))
        assert gone == {"key": "tone", "scope": "", "forgotten": True}
        await told(client.get("/v1/memories/tone"), 404, "NotFoundError")

    asked(tmp_path, ask)


def test_write_replaces_only_the_text_its_caller_was_shown(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        path = "/v1/memories/tone"
        await told(client.put(path, json={"body": "x"}), 428, "UsageError")
        _, etag = await good(client.put(path, json={"body": "one"}, headers=NEW), 201)
        await told(client.put(path, json={"body": "two"}, headers=NEW), 412, "ChangedError")
        await good(client.put(path, json={"body": "two"}, headers={"If-Match": etag}))
        await told(client.put(path, json={"body": "three"}, headers={"If-Match": etag}), 412, "ChangedError")
        for wrong in ("*", "tone", '"12"', f"{etag}, {etag}", f"W/{etag}"):
            await told(client.put(path, json={"body": "x"}, headers={"If-Match": wrong}), 400, "UsageError")
        await told(client.delete(path), 428, "UsageError")
        await told(client.delete(path, headers=NEW), 400, "UsageError")
        assert (await good(client.get(path)))[0]["body"] == "two"

    asked(tmp_path, ask)


def test_session_is_forgotten_only_as_its_caller_was_shown_it(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        path = "/v1/sessions/boats"
        await good(client.post("/v1/sessions", json={"session": "boats"}), 201)
        await good(client.post(path + "/items", json={"items": [{"role": "user", "content": "one"}]}), 201)
        _, seen = await good(client.get(path))
        assert (await good(client.get(path + "/items")))[1] == seen
        await good(client.post(path + "/items", json={"items": [{"role": "user", "content": "two"}]}), 201)
        await told(client.delete(path), 428, "UsageError")
        await told(client.delete(path, headers={"If-Match": seen}), 412, "ChangedError")
        shown, seen = await good(client.get(path + "/items"))
        assert [one["content"] for one in shown["items"]] == ["one", "two"]
        assert (await good(client.delete(path, headers={"If-Match": seen})))[0]["messages"] == 2
        await told(client.delete(path, headers={"If-Match": seen}), 404, "NotFoundError")

    asked(tmp_path, ask)


def test_every_memory_type_is_written_and_removed(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        etag = NEW
        for kind in ("user", "feedback", "project", "reference", "procedure", "episode", ""):
            sent = client.put("/v1/memories/tone", json={"body": "x", "type": kind}, headers=etag)
            shown, seen = await good(sent, 201 if etag == NEW else 200)
            etag = {"If-Match": seen}
            assert shown["fields"].get("type", "") == kind

    asked(tmp_path, ask)


def test_import_that_omits_texts_has_an_exit_code(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        bad = f"---\nname: x\ndescription: {'d' * 5_000}\n---\n\nb\n"
        blob = {
            "version": "memory/0.1",
            "index": "",
            "timeline": [],
            "files": {"good.md": "hi\n", "bad.md": bad},
        }
        done, _ = await good(client.post("/v1/import", json=blob))
        assert (done["added"], len(done["problems"]), done["exit_code"]) == (1, 1, IncompleteError.exit_code)
        del blob["files"]["bad.md"]  # type: ignore[attr-defined]
        done, _ = await good(client.post("/v1/import", json=blob))
        assert (done["problems"], done["exit_code"]) == ([], 0)

    asked(tmp_path, ask)


def test_write_between_pages_repeats_no_memory(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        for number in range(7):
            await good(client.put(f"/v1/memories/k{number}", json={"body": "x"}, headers=NEW), 201)
        seen, cursor = [], ""
        while cursor is not None:
            page, _ = await good(client.get(f"/v1/memories?limit=3&cursor={cursor}"))
            seen += [one["key"] for one in page["memories"]]
            cursor = page["next"]
            if len(seen) == 3:
                await good(client.put("/v1/memories/a", json={"body": "x"}, headers=NEW), 201)
        assert seen == [f"k{number}" for number in range(7)]

    asked(tmp_path, ask)


def test_invalid_limit_or_cursor_is_refused(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        for wrong in ("0", "1001", "-1", "x", "", "99999", "\u0661"):
            await told(client.get("/v1/memories", params={"limit": wrong}), 400, "UsageError")
        await told(client.get("/v1/memories?cursor=../x"), 400, "KeyNameError")

    asked(tmp_path, ask)


def test_recall_context_and_scope_routes_answer(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        await good(client.put("/v1/memories/tea", json={"body": "Green tea at four."}, headers=NEW), 201)
        await good(client.put("/v1/memories/tea?scope=work", json={"body": "No tea here."}, headers=NEW), 201)
        found, _ = await good(client.post("/v1/recall", json={"query": "tea", "explain": True}))
        assert [one["key"] for one in found["hits"]] == ["tea"] and found["hits"][0]["parts"]
        given, _ = await good(client.post("/v1/context", json={"query": "tea"}))
        assert "Green tea" in given["text"] and given["tokens"] <= 2_000
        alone, _ = await good(client.post("/v1/context", json={}))
        for prompt in ("🎉", "?!", "🎉 " * 4_000):
            assert (await good(client.post("/v1/context", json={"query": prompt})))[0] == alone
        for prompt in (f"{'lorem ' * 1_000} tea?", f"tea? {'lorem ' * 1_000}"):
            given, _ = await good(client.post("/v1/context", json={"query": prompt}))
            assert "Green tea" in given["text"]
        assert (await good(client.get("/v1/memories/tea?scope=work")))[0]["body"] == "No tea here."
        await told(client.get("/v1/memories?scope=nobodys"), 404, "NotFoundError")
        await told(client.get("/v1/memories?scope=NO!"), 400, "KeyNameError")
        await told(client.post("/v1/recall", json={"query": "x", "since": "never"}), 400, "UsageError")

    asked(tmp_path, ask)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"body": 1}',
        b'{"body": "\\ud800"}',
        b'{"bdoy": "x"}',
        b'{"type": "x"}',
        b"\xff",
        b"[" * 100_000,
        b'{"body": "\xff"}',
        b'{"tags": "x"}',
    ],
)
def test_invalid_body_is_refused(tmp_path: Path, sent: bytes) -> None:
    async def ask(client: Client) -> None:
        headers = {**NEW, **JSON}
        await told(client.put("/v1/memories/tone", data=sent, headers=headers), 400, "UsageError")
        for route in ("recall", "context"):
            if sent != b"{}":
                await told(client.post(f"/v1/{route}", data=sent, headers=JSON), 400, "UsageError")
        assert (await good(client.get("/v1/memories")))[0]["memories"] == []

    asked(tmp_path, ask)


def test_invalid_routes_methods_keys_and_sizes_are_refused(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        await told(client.get("/v1/nothing"), 404, "NotFoundError")
        await told(client.post("/v1/memories"), 405, "UsageError")
        await told(client.get("/v1/memories/No%20Key"), 400, "KeyNameError")
        await told(client.put("/v1/memories/x", data=b"{}", headers=NEW), 415, "UsageError")
        huge = json.dumps({"body": "x" * (5 << 20)}).encode()
        await told(client.put("/v1/memories/x", data=huge, headers={**NEW, **JSON}), 413, "UsageError")

    asked(tmp_path, ask)


def test_mistyped_parameter_is_refused(tmp_path: Path) -> None:
    """`?scop=work` would otherwise use the default scope."""

    async def ask(client: Client) -> None:
        mistyped = client.put("/v1/memories/x?scop=work", json={"body": "x"}, headers=NEW)
        hinted("Parameters: VALUE", (await told(mistyped, 400, "UsageError"))["hint"])
        for query in (
            "scop=work",
            "scope=a&scope=b",
            "scope=a&stack=b",
            "stack=A",
            "stack=a&" * 17,
            "since=2026-01-01",
        ):
            async with client.get(f"/v1/memories?{query}") as got:
                assert got.status == 400, query
        for query in ("since=soon", "until=2026-02-30", "limit=0", "since=2026-01-02&until=2026-01-01"):
            await told(client.get(f"/v1/events?{query}"), 400, "UsageError")
        assert (await good(client.get("/v1/memories")))[0]["memories"] == []

    asked(tmp_path, ask)


def test_huge_or_slow_body_is_aborted_and_delays_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.api import serving

    async def ask(client: Client) -> None:
        url = client._base_url
        assert url is not None
        head = "PUT /v1/memories/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nIf-None-Match: *\r\nContent-Type: application/json\r\n{}\r\n\r\n"
        for more, sent, status in (
            (f"Content-Length: {1 << 40}", b"", b"413"),
            ("Transfer-Encoding: chunked", b"%x\r\n" % (5 << 20) + b"x" * (5 << 20) + b"\r\n", b"413"),
            ("Content-Length: 100", b"{", b"408"),
        ):
            if status == b"408":
                monkeypatch.setattr(serving, "BODY_TIME", 0.3)
            reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
            writer.write(head.format(TOKEN, more).encode() + sent)
            await good(client.get("/v1/memories"))
            assert status in await reader.readline(), more
            writer.close()

    asked(tmp_path, ask)


def filled(path: str) -> str:
    """Return a path with its parameters filled in."""
    return re.sub(r"{\w+}", "tone", path)


def test_request_needs_token_host_and_origin_on_every_route(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        _, etag = await good(client.put("/v1/memories/tone", json={"body": "mine"}, headers=NEW), 201)
        port = client._base_url.port  # type: ignore[union-attr]
        await good(client.get("/v1/memories", headers={"Origin": f"http://127.0.0.1:{port}"}))
        routes = [("get", "/healthz"), ("get", "/v1/openapi.json")]
        routes += [
            ("get", "/metrics"),
            *((m, filled(p)) for p, at in document(ROUTES)["paths"].items() for m in at),
        ]
        for method, path in routes:
            for headers, status in (
                ({"Host": "evil.example"}, 421),
                ({"Host": f"127.0.0.1.evil.example:{port}"}, 421),
                ({"Origin": "https://evil.example"}, 403),
                ({"Origin": f"http://127.0.0.1:{port + 1}"}, 403),
                ({"Origin": "null"}, 403),
                ({"Authorization": "Bearer wrong"}, 401),
                ({"Authorization": ""}, 401),
                ({"Authorization": "Bearer "}, 401),
            ):
                all_headers = {**headers, "If-Match": etag}
                async with client.request(method, path, headers=all_headers, json={"body": "gone"}) as got:
                    assert got.status == status, (method, path, headers)
                    kind = {401: "TokenError", 403: "OriginError", 421: "HostError"}[status]
                    assert (await got.json(content_type=None))["kind"] == kind
                    assert "mine" not in await got.text()
                    assert not [name for name in got.headers if name.lower().startswith("access-control")]
                    assert "Set-Cookie" not in got.headers
        assert (await good(client.get("/v1/memories/tone")))[0]["body"] == "mine"

    asked(tmp_path, ask)


def test_read_only_server_changes_nothing(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        await told(client.put("/v1/memories/tone", json={"body": "x"}, headers=NEW), 403, "ReadOnlyError")
        etag = {"If-Match": '"0123456789abcdef"'}
        await told(client.delete("/v1/memories/tone", headers=etag), 403, "ReadOnlyError")
        assert (await good(client.get("/v1/memories")))[0]["memories"] == []

    asked(tmp_path, ask, read_only=True)


def test_openapi_document_names_every_route_and_validates_live_answers(tmp_path: Path) -> None:
    need_extra("mcp", "jsonschema")
    import jsonschema

    async def ask(client: Client) -> None:
        said, _ = await good(client.get("/v1/openapi.json"))
        assert said == json.loads(json.dumps(document(ROUTES))) and said["openapi"] == "3.1.0"
        served = {
            (route.method.lower(), route.resource.canonical)
            for route in Lab(tmp_path).api.app().router.routes()
            if route.resource is not None and route.method != "HEAD"
        }
        described = {(method, path) for path, at in said["paths"].items() for method in at}
        assert described == served - {("get", "/healthz"), ("get", "/v1/openapi.json"), ("get", "/metrics")}

        def holds(name: str, value: Any) -> None:
            form = {"$ref": f"#/components/schemas/{name}", "components": said["components"]}
            jsonschema.Draft202012Validator(form).validate(value)

        text, _ = await good(client.put("/v1/memories/tone", json={"body": "x"}, headers=NEW), 201)
        holds("MemoryRecord", text)
        holds("MemoryPage", (await good(client.get("/v1/memories")))[0])
        holds("Recalled", (await good(client.post("/v1/recall", json={"query": "x"})))[0])
        holds("ContextBlock", (await good(client.post("/v1/context", json={})))[0])
        holds("Problem", await told(client.get("/v1/memories/none"), 404, "NotFoundError"))
        with pytest.raises(jsonschema.ValidationError):
            holds("MemoryRecord", {**text, "key": 1})

    asked(tmp_path, ask)


def test_overlong_address_gets_the_documented_one_sentence_answer(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        async with client.get(f"/v1/memories?match={'x' * 9_000}") as got:
            assert (got.status, got.content_type) == (400, "text/plain")
            assert await got.text() == "The request cannot be read.\n"
            said = document(ROUTES)["paths"]["/v1/memories"]["get"]["responses"]["default"]["content"]
            assert got.content_type in said

    asked(tmp_path, ask)


def test_http_page_documents_every_route_and_no_other() -> None:
    rows = set(re.findall(r"^\| `([A-Z]+) (/[^`?]*)", DOC.read_text("utf-8"), re.M))
    there = {(method.upper(), path) for path, at in document(ROUTES)["paths"].items() for method in at}
    assert rows == there | {("GET", "/healthz"), ("GET", "/v1/openapi.json"), ("GET", "/metrics")}


def test_locked_vault_returns_423(tmp_path: Path) -> None:
    from ipfsmem.errors import PassphraseError

    (tmp_path / "kept").mkdir()
    Memory.load(
        "m",
        "encrypted-ipfs",
        provider=f"directory:{tmp_path / 'kept'}",
        unlock=RootKeys.from_random(b"\x05" * 64, "default", 1),
        passphrase="correct horse battery staple",
        home=tmp_path / "home",
        create=True,
    ).close()

    async def ask(client: Client) -> None:
        said = await told(client.get("/v1/memories"), 423, "PassphraseError")
        assert said["exit_code"] == PassphraseError.exit_code and said["hint"]
        assert (await good(client.get("/healthz")))[0] == {"ok": True}
        known, _ = await good(client.get("/v1/vaults"))
        assert known["vaults"] == [{"vault_name": "m", "locked": True, "until": None}]

    Lab(tmp_path / "home", open_memory=lambda: Memory.load("m", home=tmp_path / "home")).run(ask)
