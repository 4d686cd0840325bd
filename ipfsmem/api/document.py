"""The OpenAPI 3.1 document, made from the types that the handlers use: pure, and it knows no memory."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from ipfsmem.api.bodies import ContextBody, MemoryPage, Problem, RecallBody, WriteBody
from ipfsmem.results import ContextText, Forgotten, MemoryText, Recalled

#: Method, path, what it does, the type of its body, of its answer, and the status of that.
ROUTES: Final[tuple[tuple[str, str, str, type | None, type, tuple[str, ...]], ...]] = (
    ("get", "/v1/memories", "List memories", None, MemoryPage, ("200",)),
    ("get", "/v1/memories/{key}", "Read a memory", None, MemoryText, ("200",)),
    ("put", "/v1/memories/{key}", "Write a memory", WriteBody, MemoryText, ("200", "201")),
    ("delete", "/v1/memories/{key}", "Forget a memory", None, Forgotten, ("200",)),
    ("post", "/v1/recall", "Find memories", RecallBody, Recalled, ("200",)),
    ("post", "/v1/context", "What a model is given", ContextBody, ContextText, ("200",)),
)


@cache
def document() -> dict[str, Any]:
    """The document as it is served."""
    types = [one for _, _, _, body, answer, _ in ROUTES for one in (body, answer) if one is not None]
    refs, components = msgspec.json.schema_components(
        [*types, Problem], ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip([*types, Problem], refs, strict=True))
    problem = {
        "description": "An error",
        "content": {"application/problem+json": {"schema": by_type[Problem]}},
    }
    paths: dict[str, dict[str, Any]] = {}
    for method, path, summary, body, answer, statuses in ROUTES:
        made = {"description": summary, "content": {"application/json": {"schema": by_type[answer]}}}
        operation: dict[str, Any] = {
            "summary": summary,
            "operationId": summary.lower().replace(" ", "_"),
            "parameters": _parameters(method, path),
            "responses": {**dict.fromkeys(statuses, made), "default": problem},
        }
        if body is not None:
            schema = {"application/json": {"schema": by_type[body]}}
            operation["requestBody"] = {"required": True, "content": schema}
        paths.setdefault(path, {})[method] = operation
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


def _parameters(method: str, path: str) -> list[dict[str, Any]]:
    found = [_parameter("scope", "query")]
    if "{key}" in path:
        found.append(_parameter("key", "path"))
    elif method == "get":
        found += [_parameter(name, "query") for name in ("type", "tag", "cursor", "limit")]
    if method in ("put", "delete"):
        found.append(_parameter("If-Match", "header"))
    if method == "put":
        found.append(_parameter("If-None-Match", "header"))
    if method == "delete":
        found.append(_parameter("reason", "query"))
    return found


def _parameter(name: str, place: str) -> dict[str, Any]:
    kind = "integer" if name == "limit" else "string"
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": kind}}
