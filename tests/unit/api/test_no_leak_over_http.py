"""No route shows a token for some scopes a word or name of another scope, in answers or refusals.

The routes come from the table, so new ones are covered."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.api.calls import Caller
from ipfsmem.api.routes import Route
from ipfsmem.api.serving import ROUTES
from ipfsmem.errors import NotFoundError
from tests.support.api_lab import Client, Lab, bearer
from tests.support.effort import cases
from tests.unit.memories.test_no_leak import KEYS, SCOPES, TALKS, WORDS, filled, marks, operations

TOKEN = "a token for some scopes"
#: Values for each part of a path, and for each required parameter.
IN_PATH = {"key": KEYS, "session": TALKS, "entity": [f"entity {key}" for key in KEYS], "name": SCOPES[1:]}
NEEDED = {"begin": "entity a", "end": "entity d", "key": "value:a", "query": "tea"}
#: The bodies of requests that need one.
BODIES: dict[str, list[dict[str, Any]]] = {
    "recall": [{"query": word, "limit": 200, "kind": kind} for word in WORDS for kind in ("memory", "all")],
    "context": [{"query": "tea milk", "layout": layout} for layout in ("full", "ranked")],
    "sessions_search": [{"query": "tea"}],
    "bundles_export": [{"format": "blob", "partial": True}],
}
#: Routes that request a text by its hash, which only a reader of the text knows.
BY_HASH = {"revision"}


def paths(route: Route) -> list[str]:
    """Yield the paths of a route with existing names."""
    found = [route.path]
    for part, words in IN_PATH.items():
        found = [one.replace(f"{{{part}}}", word) for one in found for word in words]
    return list(dict.fromkeys(found))


def read_requests(tokens: list[str]) -> list[tuple[Route, str, dict[str, str | list[str]], Any]]:
    """Yield all read requests: each route in each scope, and with a stack of the token's scopes and of all
    scopes."""
    reading = [
        one for one in ROUTES if (one.right == "read" or one.method == "get") and one.name not in BY_HASH
    ]
    assert {one.name for one in reading if one.method != "get"} == BODIES.keys()
    found = []
    for route in reading:
        where: list[dict[str, str | list[str]]] = [{}]
        if "scope" in route.parameters:
            where = [{"scope": scope} if scope else {} for scope in SCOPES]
        if "stack" in route.query:
            where += [{"stack": tokens}, {"stack": list(SCOPES[1:])}] if tokens else []
        where += [{**one, name: "true"} for one in where for name in ("hidden", "all") if name in route.query]
        for path in paths(route):
            for query in where:
                for body in BODIES.get(route.name, [None]):
                    found.append(
                        (route, path, {**query, **{name: NEEDED[name] for name in route.needs}}, body)
                    )
    return found


async def asked_all(client: Client, token: str, tokens: list[str]) -> dict[str, set[int]]:
    """Return the scopes whose words are in the answers of each route."""
    shown: dict[str, set[int]] = {}
    for route, path, query, body in read_requests(tokens):
        async with client.request(route.method, path, params=query, json=body, headers=bearer(token)) as got:
            text = (await got.read()).decode()
            assert got.status < 500, (path, query, text)
            shown.setdefault(route.name, set()).update(marks(text) | marks(repr(got.headers)))
    return shown


@settings(
    max_examples=cases(4, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    operations,
    st.lists(st.sampled_from(SCOPES), max_size=2, unique=True),
    st.none() | st.permutations(SCOPES[1:]).map(lambda scopes: scopes[:2]),
)
def test_token_of_some_scopes_is_shown_nothing_of_another(
    tmp_path: Path, done: list[tuple[str, str, str]], tokens: list[str], leads: list[str] | None
) -> None:
    allowed = {SCOPES.index(scope) for scope in tokens}
    with filled(done) as memory:
        with contextlib.suppress(NotFoundError):  # of a scope that is forgotten
            for scope in leads or ():
                memory.scope(scope).write("lead", "tea")
            if leads is not None:
                memory.scopes.redirect(*leads)
        lab = Lab(tmp_path, open_memory=lambda: memory)
        lab.doors.accept_token(TOKEN, Caller("admin", frozenset(tokens)))

        async def ask(client: Client) -> None:
            for name, shown in (await asked_all(client, TOKEN, [one for one in tokens if one])).items():
                assert shown <= allowed, name

        lab.run(ask)


@pytest.mark.parametrize("scopes", [None, ["work", ""]])
def test_reading_routes_show_the_texts_of_their_scope(tmp_path: Path, scopes: list[str] | None) -> None:
    """Otherwise the property above would hold trivially."""
    doings = ("entity", "relate", "fact", "value", "use", "say", "note", "tea", "dream", "hide")
    silent = {
        "history", "conflicts", "timeline_days", "scopes_list", "scopes_show", "status", "check", "members_list", "agents_list", "providers_list",
        "facts_history", "values_history", "dreams_status", "dreams_list", "usage_budgets", "facts_get", "duplicates", "maintenance_index_status",
        "settings_list", "operations_list",
    }  # fmt: skip
    with filled([("work", "a", what) for what in doings]) as memory:
        lab = Lab(tmp_path, open_memory=lambda: memory)
        lab.doors.accept_token(TOKEN, Caller("admin", None if scopes is None else frozenset(scopes)))

        async def ask(client: Client) -> None:
            shown = await asked_all(client, TOKEN, ["work"])
            assert {name for name, found in shown.items() if not found} <= silent

        lab.run(ask)
