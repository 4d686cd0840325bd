"""A token for one scope reaches no other scope by any route, parameter or redirect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ipfsmem.api.calls import Caller
from ipfsmem.http.running import running
from ipfsmem.memory import Memory
from tests.support.api_lab import Lab, bearer
from tests.support.operation_rows import KEY, ROWS, Op
from tests.support.operation_world import LED, MARK, MINE, NAME, ROUTE_OF, SECRET, THEIRS, by_http, world

TOKEN = "a token for one scope"
HTTP = [op for op in ROWS if op.http]
#: Parameters, next to `scope` and `stack`, that name a scope, by operation.
NAMING = {
    "scope show": "name",
    "scope put": "name",
    "scope forget": "name",
    "scope restore": "name",
    "promote": "to",
}


def foreign_calls(op: Op, own: str, texts: list[str]) -> Iterator[dict[str, Any]]:
    """Yield calls of a route about another scope than the token's own, or out of it."""
    call, route = op.call("http"), ROUTE_OF[op.http]
    for other in (THEIRS, LED, ""):
        if "scope" in route.parameters:
            yield {**call, "scope": other}
        if "stack" in route.parameters:
            yield {**call, "stack": [other or own]}
            yield {**call, "stack": [own, other or own]}
        if op.name in NAMING and other:
            where = {"scope": own} if "scope" in route.parameters else {}
            yield {**call, **where, NAMING[op.name]: other}
    for text in texts if "SHA" in call.values() else ():
        yield {name: text if value == "SHA" else value for name, value in call.items()} | {"scope": own}


def foreign_content(home: Path, own: str) -> str:
    """Return everything in scopes other than the token's own."""
    with Memory.load(NAME, home=home) as memory:
        parts = [
            json.loads(memory.scope(one).bundles.export(partial=True))
            for one in (THEIRS, LED, "")
            if one != own
        ]
    return json.dumps(parts, sort_keys=True)


@pytest.mark.parametrize("right", ["read", "write", "admin"])
@pytest.mark.parametrize(
    "own", [MINE, LED], ids=["a scope to which another leads", "a scope that leads to another"]
)
def test_token_of_one_scope_reaches_no_other(own: str, right: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    world(home)
    with Memory.load(NAME, home=home) as memory:
        if own == MINE:  # the foreign key turned out to be in the own scope
            memory.scopes.redirect(LED, None)
            memory.scopes.redirect(THEIRS, MINE)
        texts = [str(one.sha256) for one in memory.scope(THEIRS).history(KEY).versions]
    before, wrong = foreign_content(home, own), []

    async def ask() -> None:
        lab = Lab(home, NAME, open_memory=lambda: Memory.load(NAME, home=home))
        lab.doors.accept_token(TOKEN, Caller(right, frozenset([own])))
        try:
            async with (
                running(lab.api.app()) as url,
                aiohttp.ClientSession(url, headers=bearer(TOKEN)) as client,
            ):
                for op in HTTP:
                    for given in (*foreign_calls(op, own, texts), {**op.call("http"), "scope": own}):
                        if op.name == "scope forget" and given.get("name") == own:
                            continue  # it may, and the common timeline records it
                        if "scope" in given and "scope" not in ROUTE_OF[op.http].parameters:
                            continue
                        answer = await by_http(client, op, given, home=home)
                        told = json.dumps(answer.values)
                        if answer.broken or SECRET in told or MARK in told:
                            wrong.append((op.name, given, told[:200]))
        finally:
            for one in lab.served:
                one.close()

    asyncio.run(ask())
    assert not wrong
    assert foreign_content(home, own) == before


def test_every_scope_route_is_tested_with_a_foreign_scope() -> None:
    about_scope = {route.name for route in ROUTE_OF.values() if route.about in ("scope", "part", "caller")}
    without = {"scopes_list"}  # tested in test_access
    assert about_scope - {op.http for op in HTTP if [*foreign_calls(op, MINE, [])]} == without
