"""The OpenAPI 3.1 document, made from the types that the handlers use: pure, and it knows no memory."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from ipfsmem.api.bodies import MAX_PAGE, PAGE, ContextBody, MemoryPage, Problem, RecallBody, WriteBody
from ipfsmem.memories.readings import SEEN_DIGITS
from ipfsmem.results import ContextText, Forgotten, MemoryText, Recalled


class Route(NamedTuple):
    """An operation: its name, which its handler has too, what it does, what it takes and gives, and the statuses of that."""

    method: str
    path: str
    name: str
    summary: str
    body: type | None
    answer: type
    statuses: tuple[str, ...] = ("200",)
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


#: All operations; the server has these routes and no others beside its health and this document.
ROUTES: Final = (
    Route(
        "get",
        "/v1/memories",
        "list",
        "List memories",
        None,
        MemoryPage,
        query=("type", "tag", "cursor", "limit"),
    ),
    Route("get", "/v1/memories/{key}", "read", "Read a memory", None, MemoryText),
    Route(
        "put",
        "/v1/memories/{key}",
        "write",
        "Write a memory",
        WriteBody,
        MemoryText,
        ("200", "201"),
        headers=("If-Match", "If-None-Match"),
    ),
    Route(
        "delete",
        "/v1/memories/{key}",
        "forget",
        "Forget a memory",
        None,
        Forgotten,
        query=("reason",),
        headers=("If-Match",),
    ),
    Route("post", "/v1/recall", "recall", "Find memories", RecallBody, Recalled),
    Route("post", "/v1/context", "context", "What a model is given", ContextBody, ContextText),
)
#: What a parameter may be.
_KEY: Final = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}
_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "key": _KEY,
    "scope": _KEY,
    "cursor": _KEY,
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": PAGE},
    "If-Match": {"type": "string", "pattern": f'^"[0-9a-f]{{{SEEN_DIGITS}}}"$'},
    "If-None-Match": {"type": "string", "enum": ["*"]},
}


@cache
def document() -> dict[str, Any]:
    """The document as it is served."""
    types = [one for route in ROUTES for one in (route.body, route.answer) if one is not None]
    refs, components = msgspec.json.schema_components(
        [*types, Problem], ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip([*types, Problem], refs, strict=True))
    problem = {
        "description": "An error",
        "content": {"application/problem+json": {"schema": by_type[Problem]}},
    }
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        made = {
            "description": route.summary,
            "content": {"application/json": {"schema": by_type[route.answer]}},
        }
        operation: dict[str, Any] = {
            "summary": route.summary,
            "operationId": route.name,
            "parameters": _parameters(route),
            "responses": {**dict.fromkeys(route.statuses, made), "default": problem},
        }
        if route.body is not None:
            schema = {"application/json": {"schema": by_type[route.body]}}
            operation["requestBody"] = {"required": True, "content": schema}
        paths.setdefault(route.path, {})[route.method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "ipfsmem", "version": "1"},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _parameters(route: Route) -> list[dict[str, Any]]:
    named = [("scope", "query"), *([("key", "path")] if "{key}" in route.path else [])]
    named += [*((name, "query") for name in route.query), *((name, "header") for name in route.headers)]
    # Of two headers one is sent, so neither is required by itself.
    return [
        {
            "name": name,
            "in": place,
            "required": place == "path" or route.headers == (name,),
            "schema": _SCHEMAS.get(name, {"type": "string"}),
        }
        for name, place in named
    ]
