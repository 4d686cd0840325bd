"""Tokens of the HTTP API: their rights, their scopes, including redirected ones, and their end."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipfsmem.api.calls import Caller
from ipfsmem.api.page import PageFiles
from ipfsmem.api.serving import MAX_LISTENERS, MAX_OF_A_TOKEN, ROUTES
from ipfsmem.api.tokens import TOKENS_FILE, make_token, revoke_token, tokens_of
from ipfsmem.api.turns import MOST
from ipfsmem.api.who import CODE_LIFE, CODE_TRIES, AccessControl
from ipfsmem.errors import KeyNameError, LimitError, NotFoundError, StorageError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.operation import Right
from ipfsmem.wallet.root_keys import RootKeys
from tests.cli.test_cli_promote import conversation_database
from tests.support.api_lab import NEW, Client, Lab, a_page, bearer, good, opener, told
from tests.support.cli_lab import Cli
from tests.support.hints import hinted
from tests.support.patience import PATIENCE


def token(home: Path, right: Right = "read", *scopes: str, name: str = "m") -> str:
    """Create a token as the command does; for all scopes if none is named."""
    with opener(home, name)() as memory:
        return make_token(memory.replica, home / name, name="t", right=right, scopes=scopes or None).secret


def prepared(home: Path) -> None:
    """Create a vault with a text in the default scope, and in the scopes `work` and `secret`."""
    with opener(home)() as memory:
        memory.write("tone", "everybody reads this")
        memory.scope("work").write("plan", "work reads this")
        memory.scope("secret").write("plan", "nobody else reads this")
        memory.scope("secret").note("met", whom="nobody else reads this")


def test_admin_sees_operations_by_the_id_of_each_token(tmp_path: Path) -> None:
    prepared(tmp_path)
    sent = {right: bearer(token(tmp_path, right)) for right in ("write", "admin")}
    with opener(tmp_path)() as memory:
        ids = {one.right: one.id for one in tokens_of(memory.replica, tmp_path / "m")}

    async def ask(client: Client) -> None:
        where = "/v1/memories/plan?scope=work"
        _, etag = await good(client.get(where, headers=sent["write"]))
        await good(client.delete(where, headers={**sent["write"], "If-Match": etag}))
        await told(client.get("/v1/operations", headers=sent["write"]), 403, "RightError")
        found, _ = await good(client.get("/v1/operations?scope=work&since=1h&limit=1", headers=sent["admin"]))
        (one,) = found["operations"]
        said = {name: one[name] for name in ("operation", "scope", "key", "face", "by", "outcome")}
        assert said == {"operation": "forget", "scope": "work", "key": "plan", "face": "http", "by": ids["write"], "outcome": ""}  # fmt: skip
        await told(client.get("/v1/operations?since=soon", headers=sent["admin"]), 400, "UsageError")
        found, _ = await good(client.get("/v1/operations?operation=write", headers=sent["admin"]))
        assert {one["face"] for one in found["operations"]} == {"python"}

    Lab(tmp_path).run(ask)


def test_each_right_permits_its_routes_only(tmp_path: Path) -> None:
    prepared(tmp_path)
    tokens = {right: token(tmp_path, right) for right in ("read", "write", "admin")}

    async def ask(client: Client) -> None:
        for right, sent in tokens.items():
            head = bearer(sent)
            await good(client.get("/v1/memories/tone", headers=head))
            assert (await good(client.get("/v1/vaults", headers=head)))[0]["right"] == right
            put = client.put(f"/v1/memories/{right}", json={"body": "x"}, headers={**NEW, **head})
            blob = json.dumps({"version": "memory/0.1", "index": "", "files": {}, "timeline": []})
            took = client.post("/v1/import", json=json.loads(blob), headers=head)
            if right == "read":
                await told(put, 403, "RightError")
            else:
                await good(put, 201)
            if right == "admin":
                await good(took)
            else:
                await told(took, 403, "RightError")

    Lab(tmp_path).run(ask)


def test_every_route_checks_its_right_first(tmp_path: Path) -> None:
    prepared(tmp_path)
    sent = bearer(token(tmp_path))
    changing = {route.name for route in ROUTES if route.right != "read"}
    reading = {route.name for route in ROUTES if route.method != "get" and route.right == "read"}
    assert reading == {"recall", "context", "sessions_search", "bundles_export"}
    assert {route.name for route in ROUTES if route.method in ("put", "delete")} <= changing

    async def ask(client: Client) -> None:
        for route in ROUTES:
            if route.right == "read":
                continue
            path = re.sub(r"{\w+}", lambda at: _IN_PATH.get(at[0], "s"), route.path)
            path += "?" + "&".join(f"{name}=x" for name in route.needs)
            head = {**sent, "If-Match": '"0123456789abcdef"'}
            await told(
                client.request(route.method, path, json={}, headers=head),
                *((403, "RightError") if route.body is None or not _needs(route) else (400, "UsageError")),
            )

    Lab(tmp_path).run(ask)


_IN_PATH = {"{key}": "tone", "{name}": "work", "{dream}": "0" * 12}


def _needs(route: Any) -> bool:
    """Return whether this route requires a body, so that an empty one is refused before the right is
    checked."""
    return route.body is not bytes and any(field.required for field in msgspec.structs.fields(route.body))


def test_token_for_a_scope_reads_no_other_scope(tmp_path: Path) -> None:
    prepared(tmp_path)
    sent = bearer(token(tmp_path, "admin", "work"))

    async def ask(client: Client) -> None:
        assert (await good(client.get("/v1/memories/plan?scope=work", headers=sent)))[0]["body"].startswith(
            "work"
        )
        for path in (
            "/v1/memories",
            "/v1/memories/tone",
            "/v1/memories?scope=secret",
            "/v1/memories/plan?scope=secret",
            "/v1/memories/plan/history?scope=secret",
            "/v1/memories?stack=secret",
            "/v1/memories?stack=work&stack=secret",
            "/v1/memories?stack=work",
            "/v1/memories/plan?stack=work",
            "/v1/events?stack=work",
            "/v1/events?scope=secret",
            "/v1/events/days",
            "/v1/sessions",
            "/v1/conflicts",
            "/v1/conflicts?scope=work&everywhere=true",
            "/v1/facts",
            "/v1/facts?scope=secret",
            "/v1/history/facts?scope=secret",
            "/v1/hidden?scope=secret",
            "/v1/duplicates?stack=work",
            "/v1/graph?scope=secret",
            "/v1/graph/entities",
            "/v1/graph/path?scope=secret&begin=a&end=b",
            "/v1/graph/search?scope=secret&query=a",
            "/v1/graph/entities/a?scope=secret",
            "/v1/dream",
            "/v1/dream?scope=work",
            "/v1/dream/proposal?scope=secret",
            "/v1/dreams",
            "/v1/usage",
            "/v1/usage/csv?scope=secret",
            "/v1/scopes/secret",
            "/v1/status",
            "/v1/check",
            "/v1/operations",
            "/v1/members",
            "/v1/providers",
            "/v1/index",
            "/v1/settings",
            "/metrics",
        ):
            await told(client.get(path, headers=sent), 403, "ScopeError")
        for path, body in (
            ("/v1/recall", {"query": "reads"}),
            ("/v1/recall?scope=secret", {"query": "reads"}),
            ("/v1/recall?stack=work", {"query": "reads"}),
            ("/v1/context?scope=work", {}),
            ("/v1/context", {}),
            ("/v1/export", {}),
            ("/v1/export?scope=secret", {}),
            ("/v1/import", {}),
            ("/v1/sync", None),
            ("/v1/dream?scope=secret", {}),
            ("/v1/dream/apply?scope=secret", {"proposal": "0" * 12}),
            ("/v1/dream/abort", None),
            ("/v1/facts", {"text": "x"}),
            ("/v1/hidden?scope=secret", {"keys": ["plan"]}),
            ("/v1/restore?scope=secret", {"key": "plan", "sha256": "0" * 64}),
        ):
            await told(client.post(path, json=body, headers=sent), 403, "ScopeError")
        await told(
            client.put("/v1/memories/x?scope=secret", json={"body": "x"}, headers={**sent, **NEW}),
            403,
            "ScopeError",
        )
        # Neither into a foreign scope nor out of one.
        _, seen = await good(client.get("/v1/memories/plan?scope=work", headers=sent))
        etag = {**sent, "If-Match": seen}
        for scope, to in (("work", "secret"), ("work", ""), ("secret", "work")):
            asked = client.post(f"/v1/memories/plan/promote?scope={scope}", json={"to": to}, headers=etag)
            await told(asked, 403, "ScopeError")
        await told(client.put("/v1/scopes/other", json={}, headers=sent), 403, "ScopeError")
        await told(client.delete("/v1/scopes/secret", headers=sent), 403, "ScopeError")
        listed, _ = await good(client.get("/v1/scopes", headers=sent))
        assert [one["scope"] for one in listed["scopes"]] == ["work"]
        found, _ = await good(client.post("/v1/recall?scope=work", json={"query": "reads"}, headers=sent))
        assert [(one["scope"], one["key"]) for one in found["hits"]] == [("work", "plan")]

    Lab(tmp_path).run(ask)


def test_redirected_scope_requires_a_token_for_both_scopes(tmp_path: Path) -> None:
    prepared(tmp_path)
    sent = bearer(token(tmp_path, "write", "work"))
    other = bearer(token(tmp_path, "write", "secret"))
    both = bearer(token(tmp_path, "write", "work", "secret"))
    third = bearer(token(tmp_path, "write", "third", "secret"))
    with opener(tmp_path)() as memory:
        memory.scope("work").sessions.add("talk", [{"role": "user", "content": "work reads this"}])
        memory.scopes.redirect("secret", "work")

    async def ask(client: Client) -> None:
        for head in (sent, both):
            assert (await good(client.get("/v1/memories?scope=work", headers=head)))[0]["total"] == 1
        await told(client.get("/v1/memories?scope=work", headers=other), 403, "ScopeError")
        # Dreams of `secret` are those of `work` now.
        for path in ("/v1/dream/proposal", "/v1/dreams"):
            await told(client.get(f"{path}?scope=secret", headers=other), 403, "ScopeError")
        with opener(tmp_path)() as memory:  # a write checks each scope that redirects to `work`
            memory.scope("third").write("new", "of third")
            memory.scopes.redirect("third", "work")
        put = client.put("/v1/memories/new?scope=secret", json={"body": "x"}, headers={**both, **NEW})
        await told(put, 403, "ScopeError")
        with opener(tmp_path)() as memory:
            memory.scopes.redirect("third", None)
        # Every write for `secret` goes to `work` now.
        etag = {"If-Match": f'"{"0" * 16}"'}
        into = client.post(
            "/v1/memories/x/promote?scope=third", json={"to": "secret"}, headers={**third, **etag}
        )
        await told(into, 403, "ScopeError")
        put = client.put("/v1/memories/new?scope=secret", json={"body": "x"}, headers={**other, **NEW})
        await told(put, 403, "ScopeError")
        put = client.put("/v1/memories/new?scope=secret", json={"body": "x"}, headers={**both, **NEW})
        assert (await good(put, 201))[0]["scope"] == "work"

    Lab(tmp_path).run(ask)


LED_PATHS = (
    "/v1/memories",
    "/v1/memories/plan",
    "/v1/events",
    "/v1/events/days",
    "/v1/hidden",
    "/v1/conflicts",
    "/v1/duplicates",
    "/v1/sessions",
    "/v1/sessions/talk",
    "/v1/sessions/talk/items",
    "/v1/sessions/talk/messages",
    "/v1/sessions/talk/resume",
    "/v1/sessions/talk/export",
    "/v1/status/sessions",
    "/v1/facts",
    "/v1/facts/KEY",
    "/v1/history/facts",
    "/v1/history/facts?key=KEY",
    "/v1/values",
    "/v1/value?key=colour",
    "/v1/value/history?key=colour",
    "/v1/graph",
    "/v1/graph/relations",
    "/v1/graph/drawing",
    "/v1/graph/entities",
    "/v1/graph/entities/shared",
    "/v1/graph/search?query=canary",
)


async def read_by(client: Client, scope: str, key: str, sent: dict[str, str]) -> str:
    """Return all answers of the routes that read a scope."""
    told = []
    for path in LED_PATHS:
        to = path.replace("KEY", key)
        url = f"{to}{'&' if '?' in to else '?'}scope={scope}"
        async with client.get(url, headers=sent) as answer:
            told.append(f"{answer.status} {await answer.text()}")
    for path in ("/v1/sessions/search", "/v1/recall"):
        kind = {"kind": "all", "limit": 100} if path == "/v1/recall" else {}
        asked = client.post(f"{path}?scope={scope}", json={"query": "canary", **kind}, headers=sent)
        async with asked as answer:
            told.append(f"{answer.status} {await answer.text()}")
    return "\n".join(told)


@pytest.mark.parametrize("named", ["sub", "top"])
def test_token_for_a_redirected_scope_reads_only_its_scopes(tmp_path: Path, named: str) -> None:
    scopes = ("sub", "top", "third")
    with opener(tmp_path)() as memory:
        for scope in scopes:
            part = memory.scope(scope)
            part.sessions.add("talk", [{"role": "user", "content": f"canary {scope}"}])
            made = part.facts.add("The canary sings.", source=f"source {scope}")
            assert made is not None
            key = part.facts.edit(made.fact.key, f"The canary sings in {scope}.").key
            for value in ("before", "after"):
                part.values.set("colour", f"{value} {scope}")
            part.graph.add("shared", "bird", [f"canary {scope}"])
            for plan in ("plan", f"plan_{scope}"):
                part.write(plan, f"The canary plans in {scope}.")
            part.note("met", whom=f"canary {scope}")
        for scope in ("sub", "third"):
            memory.scopes.redirect(scope, "top")
    tokens = {
        covered: bearer(token(tmp_path, "write", *covered))
        for covered in (("sub",), ("top",), ("third",), ("sub", "top"), scopes)
    }

    async def ask(client: Client) -> None:
        for covered, sent in tokens.items():
            told_all = await read_by(client, named, key, sent)
            if named not in covered:
                assert set(re.findall(r"^\d+", told_all, re.M)) == {"403"}
                assert not any(f"canary {one}" in told_all for one in scopes)
                continue
            assert set(re.findall(r"^\d+", told_all, re.M)) == {"200"}, told_all
            for scope in scopes:
                assert (f"canary {scope}" in told_all) is (scope in covered), (covered, scope)
                if scope not in covered:
                    assert f" {scope}" not in told_all and f'"{scope}"' not in told_all, (covered, scope)
            listed, _ = await good(client.get(f"/v1/memories?scope={named}", headers=sent))
            led = set(covered) if named == "top" else {named}
            shown = {one["key"] for one in listed["memories"] if one["key"].startswith("plan")}
            assert shown == {"plan", *(f"plan_{one}" for one in led)}
            # A write may replace a text shown through any of them.
            body = {"value": "green"}
            put = client.put(f"/v1/value?key=colour&scope={named}", json=body, headers=sent)
            if covered == scopes:
                assert (await good(put))[0]["scope"] == "top"
            else:
                await told(put, 403, "ScopeError")

    Lab(tmp_path).run(ask)


def test_context_and_stacks_show_scopes_that_the_token_covers(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        for scope in ("", "sub", "top"):
            memory.scope(scope).write(f"plan-{scope or 'all'}", f"The canary plans in {scope or 'all'}.")
        memory.scopes.redirect("sub", "top")
    some = bearer(token(tmp_path, "read", "top", ""))
    whole = bearer(token(tmp_path, "read", "top", "sub", ""))

    async def ask(client: Client) -> None:
        for sent, shown in ((some, {"top", "all"}), (whole, {"top", "sub", "all"})):
            given = {"query": "canary", "layout": "full"}
            for where in ("scope=top", "stack=top"):
                found, _ = await good(client.post(f"/v1/context?{where}", json=given, headers=sent))
                assert {one for one in ("top", "sub", "all") if f"plan-{one}" in found["text"]} == shown
            for path in ("/v1/memories?stack=top", "/v1/duplicates?stack=top", "/v1/events?stack=top"):
                await good(client.get(path, headers=sent))
            listed, _ = await good(client.get("/v1/memories?stack=top", headers=sent))
            assert {one["key"] for one in listed["memories"]} == {f"plan-{one}" for one in shown}
            hits, _ = await good(client.post("/v1/recall?stack=top", json={"query": "plans"}, headers=sent))
            assert {one["key"] for one in hits["hits"]} == {f"plan-{one}" for one in shown}
        await told(client.get("/v1/memories?stack=sub", headers=some), 403, "ScopeError")

    Lab(tmp_path).run(ask)


def test_promote_needs_a_token_for_scopes_whose_text_it_would_hide(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.scope("mine").write("plan", "of mine")
        memory.scope("sub").write("plan", "of sub")
        memory.scope("top").write("other", "of top")
        memory.scopes.redirect("sub", "top")
    some = bearer(token(tmp_path, "write", "mine", "top"))
    whole = bearer(token(tmp_path, "write", "mine", "top", "sub"))

    async def ask(client: Client) -> None:
        _, seen = await good(client.get("/v1/memories/plan?scope=mine", headers=some))
        for to in ("top", "sub"):
            asked = client.post(
                "/v1/memories/plan/promote?scope=mine", json={"to": to}, headers={**some, "If-Match": seen}
            )
            said = await told(asked, 403, "ScopeError")
            assert said["detail"] == "the token is not for: sub"
        asked = client.post(
            "/v1/memories/plan/promote?scope=mine", json={"to": "top"}, headers={**whole, "If-Match": seen}
        )
        await told(asked, 412, "ChangedError")

    Lab(tmp_path).run(ask)


def test_revoked_token_opens_nothing_and_its_stream_ends(tmp_path: Path) -> None:
    prepared(tmp_path)
    secret = token(tmp_path)
    sent = bearer(secret)

    async def ask(client: Client) -> None:
        await good(client.get("/v1/memories", headers=sent))
        stream = await client.get("/v1/changes", headers=sent)
        assert (await stream.content.readuntil(b"\n\n")).startswith(b"retry")
        with opener(tmp_path)() as memory:
            (known,) = tokens_of(memory.replica, tmp_path / "m")
        revoke_token(tmp_path / "m", known.id)
        await told(client.get("/v1/memories", headers=sent), 401, "TokenError")
        async with asyncio.timeout(PATIENCE):
            assert b"event: memory" not in await stream.content.read()

    Lab(tmp_path).run(ask)


def test_token_has_few_streams_and_leaves_the_others_free(tmp_path: Path) -> None:
    prepared(tmp_path)
    sent = bearer(token(tmp_path))

    async def ask(client: Client) -> None:
        streams = await asyncio.gather(*(client.get("/v1/changes", headers=sent) for _ in range(80)))
        assert [one.status for one in streams].count(200) == MAX_OF_A_TOKEN
        assert {one.status for one in streams} == {200, 503}
        mine = await asyncio.gather(*(client.get("/v1/changes") for _ in range(80)))
        assert [one.status for one in mine].count(200) == MAX_LISTENERS - MAX_OF_A_TOKEN
        for one in (*streams, *mine):
            one.close()
        async with asyncio.timeout(PATIENCE):
            while (again := await client.get("/v1/changes", headers=sent)).status != 200:
                await asyncio.sleep(0.1)
        again.close()

    Lab(tmp_path).run(ask)


def test_token_belongs_to_one_vault(tmp_path: Path) -> None:
    for name in ("m", "n"):
        with opener(tmp_path, name)() as memory:
            memory.write("which", name)
    sent = bearer(token(tmp_path, name="n"))

    async def ask(client: Client) -> None:
        assert (await good(client.get("/v1/memories/which", headers=sent)))[0]["body"] == "n"
        assert (await good(client.get("/v1/memories/which?vault=n", headers=sent)))[0]["body"] == "n"
        await told(client.get("/v1/memories/which?vault=m", headers=sent), 404, "NotFoundError")
        await told(client.get("/v1/memories/which?vault=../m"), 404, "NotFoundError")
        for path in ("memories/which", "changes"):  # the answer of another vault would look the same
            former = await told(client.get(f"/v1/{path}?namespace=n"), 400, "UsageError")
            assert "the parameter namespace was renamed to vault" in former["detail"], former
        known, _ = await good(client.get("/v1/vaults", headers=sent))
        assert [one["vault_name"] for one in known["vaults"]] == ["n"]
        # The unrestricted token chooses; without a choice it uses the first.
        assert (await good(client.get("/v1/memories/which")))[0]["body"] == "m"
        assert (await good(client.get("/v1/memories/which?vault=n")))[0]["body"] == "n"

    Lab(tmp_path, "m", "n").run(ask)


def test_stored_tokens_hold_no_secret_and_lend_no_rights_to_other_rows(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    home = tmp_path / "home"
    memory = Memory.load(
        "m", "encrypted-ipfs", provider=f"directory:{kept}", unlock=RootKeys.from_random(b"\x05" * 64, "default", 1),
        passphrase=False, home=home, create=True,
    )  # fmt: skip
    folder = home / "m"
    reader = make_token(memory.replica, folder, name="thename", right="read", scopes=("thescope",))
    admin = make_token(memory.replica, folder, name="", right="admin", scopes=None)
    stored = (folder / TOKENS_FILE).read_bytes()
    for word in (reader.secret.encode(), b"thename", b"thescope", b"admin", b"read"):
        assert word not in stored
    assert reader.secret not in repr(reader)
    rows = json.loads(stored)
    rows["tokens"][0]["sealed"] = rows["tokens"][1]["sealed"]  # the reader's row with the other's rights
    rows["tokens"].append({"hash": "0" * 64, "sealed": ""})
    (folder / TOKENS_FILE).write_text(json.dumps(rows))
    found = tokens_of(memory.replica, folder)
    assert [one.right for one in found] == ["read", "admin", "read"] and found[0].scopes == ()
    memory.close()

    async def ask(client: Client) -> None:
        await told(client.get("/v1/memories", headers=bearer(reader.secret)), 401, "TokenError")
        await good(client.get("/v1/memories", headers=bearer(admin.secret)))

    Lab(home, open_memory=lambda: Memory.load("m", home=home)).run(ask)


def test_invalid_tokens_are_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opener(tmp_path)() as memory:
        folder = tmp_path / "m"

        def make(name: str = "", *scopes: str) -> None:
            make_token(memory.replica, folder, name=name, right="read", scopes=scopes or None)

        for name in ("a\nb", "x" * 101):
            with pytest.raises(UsageError):
                make(name)
        with pytest.raises(KeyNameError):
            make("", "No Scope")
        monkeypatch.setattr("ipfsmem.api.tokens.MAX_TOKENS", 1)
        make()
        with pytest.raises(LimitError):
            make()
        with pytest.raises(NotFoundError):
            revoke_token(folder, "nobody")
        (folder / TOKENS_FILE).write_text("{")
        with pytest.raises(StorageError):
            tokens_of(memory.replica, folder)


def test_page_code_is_valid_once_and_briefly() -> None:
    now = 0.0
    doors = AccessControl({}, now=lambda: now)
    assert doors.exchange("") is None
    code = doors.new_code()
    assert doors.exchange(code[:-1]) is None
    first = doors.exchange(code)
    assert first is not None and doors.exchange(code) is None
    assert doors.caller_of([f"Bearer {first}"]) == (Caller("admin"), None, "")
    code = doors.new_code()
    for _ in range(CODE_TRIES):
        assert doors.exchange("wrong") is None
    assert doors.exchange(code) is None
    code = doors.new_code()
    now += CODE_LIFE
    assert doors.exchange(code) is None
    assert [doors.caller_of([given]) for given in (first, f"Basic {first}", "Bearer", "")] == [None] * 4
    assert doors.caller_of([f"Bearer {first}", f"Bearer {first}"]) is None
    for _ in range(100):  # each reload of the page; the oldest end
        assert doors.exchange(doors.new_code()) is not None
    assert len(doors._run) <= 65


def test_page_is_the_only_route_without_a_token(tmp_path: Path) -> None:
    prepared(tmp_path)
    lab = Lab(tmp_path, files=a_page())
    code = lab.doors.new_code()

    async def ask(client: Client) -> None:
        nobody = {"Authorization": ""}
        for path in ("/", "/index.html", "/assets/app-1.js"):
            async with client.get(path, headers=nobody) as got:
                assert got.status == 200
                policy = got.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy and "require-trusted-types-for 'script'" in policy
                assert "unsafe" not in policy and "http" not in policy
        for path in (
            "/../m/ipfsmem.json",
            "/%2e%2e/m/ipfsmem.json",
            "/assets/",
            "/assets/..%2findex.html",
            "/none",
        ):
            await told(client.get(path, headers=nobody), 404, "NotFoundError")
        for path in ("/v1/memories", "/healthz", "/metrics", "/v1/session"):
            await told(client.get(path, headers=nobody), 401, "TokenError")
        for head, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
            async with client.post("/v1/session", json={"code": code}, headers={**nobody, **head}) as got:
                assert got.status == status
        wrong = await told(client.post("/v1/session", json={"code": "x"}, headers=nobody), 401, "CodeError")
        hinted(
            "Press Enter in the terminal that serves this page: it prints a new link. Or end it there with Ctrl-C, and run again: ipfsmem ui",
            wrong["hint"],
        )
        made, _ = await good(client.post("/v1/session", json={"code": code}, headers=nobody), 201)
        await good(client.get("/v1/memories", headers=bearer(made["token"])))
        await told(client.post("/v1/session", json={"code": code}, headers=nobody), 401, "CodeError")

    lab.run(ask)


def test_hint_of_a_refused_token_creates_one_that_suffices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new token has no further rights."""
    prepared(tmp_path)
    cli = Cli(tmp_path, monkeypatch)

    def made(problem: dict[str, Any]) -> dict[str, str]:
        words = problem["hint"].split(": ipfsmem ")[1].split()
        return bearer(cli.ok("-n", "m", *words).out.strip())

    async def ask(client: Client) -> None:
        def put(sent: dict[str, str]) -> Any:
            return client.put("/v1/memories/new?scope=work", json={"body": "x"}, headers={**NEW, **sent})

        wrong = await told(put(bearer(token(tmp_path, "read", "work"))), 403, "RightError")
        hinted("Create one: ipfsmem token new --right VALUEVALUE", wrong["hint"])
        await good(put(writer := made(wrong)), 201)

        wrong = await told(client.get("/v1/memories/plan?scope=secret", headers=writer), 403, "ScopeError")
        hinted("Create one for these too: ipfsmem token new --right VALUEVALUE", wrong["hint"])
        both = made(wrong)
        for scope in ("work", "secret"):
            await good(client.get(f"/v1/memories/plan?scope={scope}", headers=both))

        wrong = await told(client.get("/v1/memories/tone", headers=both), 403, "ScopeError")
        everybody = made(wrong)
        for query in ("tone", "plan?scope=work"):
            await good(client.get(f"/v1/memories/{query}", headers=everybody))

        wrong = await told(client.get("/v1/status", headers=everybody), 403, "ScopeError")
        hinted("Create one for the whole vault: ipfsmem token new --right VALUE", wrong["hint"])
        everything = made(wrong)
        await good(client.get("/v1/status", headers=everything))
        known, _ = await good(client.get("/v1/vaults", headers=everything))
        assert (known["right"], known["scopes"]) == ("write", None)

    Lab(tmp_path).run(ask)


def test_page_that_was_not_built_is_absent(tmp_path: Path) -> None:
    assert PageFiles.built(tmp_path) is None


def test_configured_host_name_is_accepted_and_no_other(tmp_path: Path) -> None:
    doors = AccessControl({}, names=["Memory.example"])
    assert doors.check_host_and_origin(["memory.example:8789"], []) is None
    assert doors.check_host_and_origin(["memory.example"], ["https://memory.example"]) is None
    assert doors.check_host_and_origin(["localhost:1"], ["http://localhost:1"]) is None
    for hosts, origins, status in (
        (["other.example"], [], 421),
        ([], [], 421),
        (["localhost", "localhost"], [], 421),
        (["memory.example.evil.example"], [], 421),
        (["localhost:1"], ["https://localhost:1"], 403),
        (["localhost:1"], ["http://localhost:2"], 403),
        (["localhost:1"], ["http://localhost:1", "http://evil.example"], 403),
        (["memory.example"], ["null"], 403),
    ):
        found = doors.check_host_and_origin(hosts, origins)
        assert found is not None and found[0] == status, (hosts, origins)


def test_dream_of_a_scope_token_reveals_no_key_of_another_scope(tmp_path: Path) -> None:
    """Otherwise a link and a dream would show whether a memory exists."""
    prepared(tmp_path)
    with opener(tmp_path)() as memory:
        memory.scope("secret").write("plot", "nobody else reads this")
        memory.scope("work").write("asking", "See [[plot]] and [[tone]] and [[nowhere]].")
    sent = bearer(token(tmp_path, "write", "work"))

    async def ask(client: Client) -> None:
        for head, broken in ((sent, ["nowhere", "plot", "tone"]), ({}, ["nowhere"])):
            made, _ = await good(client.post("/v1/dream?scope=work", json={}, headers=head))
            found = made["proposed"]["found"]
            assert sorted(one["other"] for one in found if one["kind"] == "broken-link") == broken

    Lab(tmp_path).run(ask)


def test_paths_of_earlier_systems_do_not_exist(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        for path in ("kg/entities", "kg/relations", "kg/query", "proactive", "proactive/items", ""):
            for asked in (client.get, client.post):
                await told(asked(f"/api/memory/{path}"), 404, "NotFoundError")

    Lab(tmp_path).run(ask)


def test_many_calls_of_a_token_delay_others_by_one_call(tmp_path: Path) -> None:
    """While the vault is busy, one token sends its maximum number of calls and one more, then another
    token sends one."""
    prepared(tmp_path)
    lab, eager, other = Lab(tmp_path), token(tmp_path), token(tmp_path, "admin")
    gate = threading.Event()

    async def ask(client: Client) -> None:
        served = lab.served[0]
        waiting, end = served._turns._waiting, served._turns._end
        digests = {secret: _digest(lab, secret) for secret in (eager, other)}
        turns: list[str] = []

        def note(caller: str) -> None:
            turns.append(caller)
            end(caller)

        served._turns._end = note  # type: ignore[method-assign]

        async def read(secret: str) -> int:
            async with client.get("/v1/memories/tone", headers=bearer(secret)) as answer:
                return answer.status

        at_work = asyncio.ensure_future(served.on(lambda _: gate.wait(60)))
        many = [asyncio.ensure_future(read(eager)) for _ in range(MOST)]
        while len(waiting.get(digests[eager], ())) < MOST:
            await asyncio.sleep(0)
        async with client.get("/v1/memories/tone", headers=bearer(eager)) as refused:
            assert refused.status == 429 and refused.headers["Retry-After"] == "1"
            assert (await refused.json())["kind"] == "LimitError"
        once = asyncio.ensure_future(read(other))
        while digests[other] not in waiting:
            await asyncio.sleep(0)
        gate.set()
        assert {*await asyncio.gather(once, *many), await at_work} == {200, True}
        assert turns[: turns.index(digests[other])].count(digests[eager]) <= 1
        assert turns.count(digests[eager]) == MOST

    lab.run(ask)


def _digest(lab: Lab, secret: str) -> str:
    known = lab.doors.caller_of([f"Bearer {secret}"])
    assert known is not None
    return known.digest


@pytest.mark.parametrize("kept", ["everywhere", "here too"])
def test_approval_of_imported_messages_requires_admin_and_shown_text(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(tmp_path)
    with opener(tmp_path)() as memory:
        if kept == "here too":
            settings = tmp_path / "config.toml"
            settings.write_text("[sessions]\nhere_only = true\n")
            monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
            memory.sessions.add("talk", [{"role": "user", "content": "Mine."}])
            assert memory.sessions.info("talk").here
        memory.bundles.import_from(
            "initrunner", conversation_database(tmp_path / "agent.db", "Otters like rain.", "Obey.")
        )
    sent = {right: bearer(token(tmp_path, right)) for right in ("read", "write", "admin")}
    work = bearer(token(tmp_path, "admin", "work"))
    here = "/v1/sessions/talk"

    async def ask(client: Client) -> None:
        _, etag = await good(client.get(here, headers=sent["write"]))
        for headers in (sent["read"], sent["write"]):
            await told(
                client.post(f"{here}/approve", headers={**headers, "If-Match": etag}), 403, "RightError"
            )
        await told(client.post(f"{here}/approve", headers={**work, "If-Match": etag}), 403, "ScopeError")
        await told(client.post(f"{here}/approve", headers=sent["admin"]), 428, "UsageError")
        more = {"items": [{"role": "user", "content": "More."}]}
        await good(client.post(f"{here}/items", json=more, headers=sent["write"]), 201)
        admin = {**sent["admin"], "If-Match": etag}
        await told(client.post(f"{here}/approve", headers=admin), 412, "ChangedError")
        found, etag = await good(client.get(here, headers=sent["admin"]))
        assert found["own"] is False
        admin["If-Match"] = etag
        done, _ = await good(client.post(f"{here}/approve", headers=admin))
        assert done == {"session": "talk", "messages": 2}
        found, etag = await good(client.get(here, headers=sent["read"]))
        assert found["own"] is True
        admin["If-Match"] = etag
        await told(client.post(f"{here}/approve", headers=admin), 404, "NotFoundError")

    Lab(tmp_path).run(ask)
