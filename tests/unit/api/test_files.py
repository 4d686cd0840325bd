"""Exports and imports over HTTP: unchanged files, only of the named scopes, and no change by a failed
request."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ipfsmem.api.calls import Caller
from ipfsmem.api.served import ServedMemory
from ipfsmem.api.tokens import make_token
from ipfsmem.memory import Memory
from ipfsmem.operation import Right
from ipfsmem.operations.bundles.imports import MAX_UPLOAD
from tests.support.api_lab import JSON, Client, Lab, asked, bearer, good, told

BLOB = json.dumps({"version": "memory/0.1", "files": {"tone.md": "Be brief.\n"}, "timeline": []})


def two_scopes(home: Path) -> None:
    with Memory.load("m", "local", home=home, passphrase=False, create=True) as memory:
        memory.write("tone", "Be brief.")
        memory.scope("work").write("plan", "Sail.")


def listed(home: Path) -> list[tuple[str, str, str, str]]:
    """Return the exports and imports in the list of operations, oldest first: name, scope, interface,
    outcome."""
    with Memory.load("m", home=home) as memory:
        found = [one for one in memory.operations.list() if one.operation in ("export", "import")]
    return [(one.operation, one.scope, one.face, one.outcome) for one in reversed(found)]


def token(home: Path, right: Right, *scopes: str) -> str:
    with Memory.load("m", home=home) as memory:
        made = make_token(memory.replica, home / "m", name="agent", right=right, scopes=scopes or None)
    return made.secret


def keys(home: Path, scope: str = "") -> set[str]:
    with Memory.load("m", home=home) as memory:
        return {one.key for one in memory.scope(scope).list()}


async def exported(client: Client, query: str = "", **body: Any) -> tuple[bytes, str, str]:
    """Return an export, its content type and its file name."""
    async with client.post(f"/v1/export{query}", json=body) as answer:
        data = await answer.read()
        assert answer.status == 200, data
        return data, answer.content_type, answer.headers["Content-Disposition"]


def files_of(data: bytes) -> set[str]:
    return {name for name in zipfile.ZipFile(BytesIO(data)).namelist() if name.endswith(".md")}


def test_export_is_a_file_with_its_content_type_and_name(tmp_path: Path) -> None:
    two_scopes(tmp_path)

    async def ask(client: Client) -> None:
        for form, kind, begins in (
            ("zip", "application/zip", b"PK"),
            ("car", "application/vnd.ipld.car", b"\x3a\xa2"),
            ("blob", "application/json", b"{"),
        ):
            data, content_type, name = await exported(client, format=form, partial=True)
            assert (content_type, name) == (
                kind,
                f'attachment; filename="memory.{"json" if form == "blob" else form}"',
            )
            assert data.startswith(begins)

    asked(tmp_path, ask)
    assert listed(tmp_path) == [("export", "", "http", "")] * 3


def test_empty_scope_exports_the_default_scope_and_no_scope_all(tmp_path: Path) -> None:
    two_scopes(tmp_path)

    async def ask(client: Client) -> None:
        whole, one, work = [
            files_of((await exported(client, query))[0]) for query in ("", "?scope=", "?scope=work")
        ]
        assert {name.rpartition("/")[2] for name in whole} >= {"tone.md", "plan.md"}
        assert {name.rpartition("/")[2] for name in one} - {"MEMORY.md"} == {"tone.md"}
        assert {name.rpartition("/")[2] for name in work} - {"MEMORY.md"} == {"plan.md"}
        problem = await told(client.post("/v1/export", json={"format": "blob"}), 409, "IncompleteError")
        assert "work" in problem["detail"]
        assert b"Be brief" in (await exported(client, "?scope=", format="blob"))[0]

    asked(tmp_path, ask)


def test_token_of_scopes_exports_and_imports_only_these(tmp_path: Path) -> None:
    two_scopes(tmp_path)
    lab = Lab(tmp_path)
    lab.doors.accept_token("a token for work", Caller("admin", frozenset(["work"])))
    lab.doors.accept_token("a token for the default", Caller("admin", frozenset([""])))

    async def ask(client: Client) -> None:
        for token, own, other in (("a token for work", "work", ""), ("a token for the default", "", "work")):
            sent = bearer(token)
            for query in ("", f"?scope={other}"):
                await told(client.post(f"/v1/export{query}", json={}, headers=sent), 403, "ScopeError")
                took = client.post(f"/v1/import{query}", data=BLOB, headers={**sent, **JSON})
                await told(took, 403, "ScopeError")
            async with client.post(f"/v1/export?scope={own}", json={}, headers=sent) as answer:
                assert answer.status == 200 and files_of(await answer.read())
            await good(client.post(f"/v1/import?scope={own}", data=BLOB, headers={**sent, **JSON}))

    lab.run(ask)
    assert keys(tmp_path, "work") == {"plan", "tone"} and keys(tmp_path) == {"tone"}


def test_unknown_argument_and_value_of_a_file_route_are_refused(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        for path, body, said in (
            ("/v1/export", {"format": "tar"}, "format"),
            ("/v1/export", {"out": "/etc/passwd"}, "out"),
            ("/v1/import?strategy=other", None, "strategy must be merge or replace"),
            ("/v1/import?strategy=", None, "strategy must be merge or replace"),
            ("/v1/import?whole=yes", None, "whole: must be true or false"),
            ("/v1/import?prune=true", None, "unknown parameter 'prune'"),
            ("/v1/import?source=tone", None, "unknown parameter 'source'"),
        ):
            sent = client.post(path, json=body) if body else client.post(path, data=BLOB, headers=JSON)
            assert said in (await told(sent, 400, "UsageError"))["detail"], path

    asked(tmp_path, ask)
    assert keys(tmp_path) == set()


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (BLOB[: len(BLOB) // 2], 400, "FormatError"),
        ("", 400, "FormatError"),
        ('{"memories": []}', 400, "FormatError"),
        ("[" * 100_000, 400, "FormatError"),
        ("\xff\xfe", 400, "FormatError"),
    ],
    ids=["cut off", "empty", "of another program", "nested", "not UTF-8"],
)
def test_import_of_an_invalid_body_writes_nothing(body: str, status: int, kind: str, tmp_path: Path) -> None:
    two_scopes(tmp_path)

    async def ask(client: Client) -> None:
        await told(client.post("/v1/import", data=body.encode("latin-1"), headers=JSON), status, kind)

    asked(tmp_path, ask)
    assert keys(tmp_path) == {"tone"}
    assert listed(tmp_path) == [("import", "", "http", kind)]


def test_import_of_another_content_type_is_refused(tmp_path: Path) -> None:
    two_scopes(tmp_path)

    async def ask(client: Client) -> None:
        for kind in ("application/zip", "text/plain", "multipart/form-data; boundary=x"):
            sent = client.post("/v1/import", data=BLOB.encode(), headers={"Content-Type": kind})
            await told(sent, 415, "UsageError")

    asked(tmp_path, ask)
    assert listed(tmp_path) == []


def test_import_that_names_a_path_imports_no_file(tmp_path: Path) -> None:
    """The body is always data, never a path on the server."""
    (tmp_path / "secret.md").write_text("A secret of the server.")

    async def ask(client: Client) -> None:
        for body in (str(tmp_path / "secret.md"), json.dumps(str(tmp_path / "secret.md"))):
            await told(client.post("/v1/import", data=body, headers=JSON), 400, "FormatError")

    asked(tmp_path, ask)
    assert keys(tmp_path) == set()


def test_import_longer_than_the_limit_is_refused_while_received(tmp_path: Path) -> None:
    two_scopes(tmp_path)

    async def too_long() -> AsyncIterator[bytes]:
        for _ in range(MAX_UPLOAD // 2**20 + 1):
            yield b" " * 2**20

    async def ask(client: Client) -> None:
        sent = client.post("/v1/import", data=too_long(), headers=JSON)
        await told(sent, 413, "UsageError")

    asked(tmp_path, ask)
    assert listed(tmp_path) == []


def test_dry_run_of_an_import_is_recorded_and_writes_nothing(tmp_path: Path) -> None:
    """Its counts reveal which texts are here."""
    two_scopes(tmp_path)

    async def ask(client: Client) -> None:
        made, _ = await good(client.post("/v1/import?scope=work&dry_run=true", data=BLOB, headers=JSON))
        assert made["dry_run"] and made["added"] == 1

    asked(tmp_path, ask)
    assert keys(tmp_path, "work") == {"plan"}
    assert listed(tmp_path) == [("import", "work", "http", "")]


def test_backup_is_imported_to_the_default_scope_and_to_no_named_one(tmp_path: Path) -> None:
    two_scopes(tmp_path)

    async def ask(client: Client) -> None:
        await good(client.post("/v1/import?scope=&same=true", data=BLOB, headers=JSON))
        wrong = client.post("/v1/import?scope=work&same=true", data=BLOB, headers=JSON)
        detail = (await told(wrong, 400, "UsageError"))["detail"]
        assert "scope and same" in detail

    asked(tmp_path, ask)
    assert keys(tmp_path) == {"tone"} and keys(tmp_path, "work") == {"plan"}


@pytest.mark.parametrize(
    ("right", "scopes", "kind"),
    [("read", (), "RightError"), ("admin", ("work",), "ScopeError")],
    ids=["right", "scope"],
)
def test_body_of_a_token_without_the_right_is_not_read(
    right: Right, scopes: tuple[str, ...], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_scopes(tmp_path)
    secret, read = token(tmp_path, right, *scopes), []

    async def note(request: web.Request, most: int) -> bytes:
        read.append(most)
        return b""

    async def in_parts() -> AsyncIterator[bytes]:
        yield b" " * 2**20

    monkeypatch.setattr("ipfsmem.api.serving._bytes", note)

    async def ask(client: Client) -> None:
        for data in (b" " * 2**20, in_parts()):
            await told(client.post("/v1/import", data=data, headers={**bearer(secret), **JSON}), 403, kind)

    asked(tmp_path, ask)
    assert read == []


def test_token_has_one_large_body_in_memory_and_delays_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_scopes(tmp_path)
    lab, eager, other = Lab(tmp_path), token(tmp_path, "admin"), token(tmp_path, "admin")
    large = BLOB.encode() + b" " * 2**20
    begun: list[str] = []

    async def ask(client: Client) -> None:
        gate = asyncio.Event()

        async def slow(request: web.Request, most: int) -> bytes:
            secret = request.headers["Authorization"].removeprefix("Bearer ")
            begun.append(secret)
            if secret == eager:
                await gate.wait()
            return BLOB.encode()

        monkeypatch.setattr("ipfsmem.api.serving._bytes", slow)

        async def import_(secret: str) -> None:
            await good(client.post("/v1/import", data=large, headers={**bearer(secret), **JSON}))

        both = [asyncio.ensure_future(import_(eager)) for _ in range(2)]
        while not any(turns._waiting for turns in lab.api._bodies.values()):
            await asyncio.sleep(0)
        await import_(other)
        await good(client.get("/v1/memories", headers=bearer(eager)))
        assert begun == [eager, other]
        gate.set()
        await asyncio.gather(*both)
        assert begun == [eager, other, eager]

    lab.run(ask)


@pytest.mark.parametrize(("size", "is_held"), [(100, False), (2**20, True)], ids=["small", "large"])
def test_body_of_unknown_length_delays_others_only_if_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, is_held: bool
) -> None:
    two_scopes(tmp_path)
    lab, secret = Lab(tmp_path), token(tmp_path, "admin")
    held: list[bool] = []
    on = ServedMemory.on

    async def noted(self: ServedMemory, *args: Any, **named: Any) -> Any:
        held.append(any(turns._busy for turns in lab.api._bodies.values()))
        return await on(self, *args, **named)

    async def in_parts() -> AsyncIterator[bytes]:
        yield BLOB.encode() + b" " * size

    monkeypatch.setattr(ServedMemory, "on", noted)

    async def ask(client: Client) -> None:
        await good(client.post("/v1/import", data=in_parts(), headers={**bearer(secret), **JSON}))

    lab.run(ask)
    assert held == [False, is_held]
