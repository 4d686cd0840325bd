"""The OpenAPI 3.1 document, made from the table of routes and the types of their functions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ipfsmem.api.calls import KEY_SCHEMA, OUTDATED, QUERY, Parameter, Vaults
from ipfsmem.api.changes import Change
from ipfsmem.api.problems import Problem
from ipfsmem.api.routes import Route
from ipfsmem.memories.memory_records import SEEN_DIGITS

_PATH: Final[dict[str, dict[str, Any]]] = {
    "key": KEY_SCHEMA,
    "name": KEY_SCHEMA,
    "sha256": {"type": "string", "pattern": "^[0-9a-fA-F]{8,64}$"},
    "session": {"type": "string", "minLength": 1},
    "entity": {"type": "string", "minLength": 1},
    "dream": {"type": "string", "pattern": "^[0-9a-f]{12}$"},
}
_HEADERS: Final[dict[str, dict[str, Any]]] = {
    "If-Match": {"type": "string", "pattern": f'^"[0-9a-f]{{{SEEN_DIGITS}}}"$'},
    "If-None-Match": {"type": "string", "enum": ["*"]},
}
_SEEN: Final = {"type": "object", "additionalProperties": True}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document as it is served."""
    bodies = [route.body for route in routes if route.body not in (None, bytes)]
    answers = [route.answer for route in routes if route.answer not in (bytes, dict)]
    types = [*dict.fromkeys([*bodies, *answers, Vaults, Change, Problem])]
    refs, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type: dict[Any, Any] = dict(zip(types, refs, strict=True))
    by_type[dict] = by_type[bytes] = _SEEN
    problem = {
        "description": "An error",
        "content": {
            "application/problem+json": {"schema": by_type[Problem]},
            # Invalid HTTP, such as a URL of more than 8,190 bytes, is answered by one sentence.
            "text/plain": {"schema": {"type": "string"}},
        },
    }
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation: dict[str, Any] = {
            "summary": route.summary,
            **({"description": route.description} if route.description else {}),
            "operationId": route.name,
            "tags": [route.path.split("/")[2]],
            "parameters": _parameters(route),
            "responses": {
                **{status: _operation(route, by_type, status) for status in route.statuses},
                "default": problem,
            },
            "x-right": route.right,
        }
        if route.body is not None:
            schema = {"application/json": {"schema": by_type[route.body]}}
            operation["requestBody"] = {"required": True, "content": schema}
            if route.body is bytes:
                operation["requestBody"]["description"] = f"A file of at most {route.most >> 20} MiB"
        paths.setdefault(route.path, {})[route.method] = operation
    paths["/v1/vaults"] = {
        "get": _plain("vaults", "List the vaults of this server", by_type[Vaults], problem)
    }
    changes = _plain("changes", "Stream changes as server-sent events", by_type[Change], problem)
    changes["responses"]["200"]["content"] = {"text/event-stream": {"schema": by_type[Change]}}
    changes["parameters"] = [_parameter(name, QUERY[name]) for name in ("vault", "cursor")]
    paths["/v1/changes"] = {"get": changes}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ipfsmem",
            "version": "1",
            "description": "The HTTP API of an unlocked vault.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8789"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, by_type: dict[Any, Any], status: str) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "description": "Made" if status == "201" else route.summary,
        "content": dict.fromkeys(
            route.gives, {} if route.answer is bytes else {"schema": by_type[route.answer]}
        ),
    }
    if route.tagged:
        operation["headers"] = {
            "ETag": {"description": "Version of the text, for If-Match", "schema": {"type": "string"}}
        }
    if route.answer is bytes:
        operation["headers"] = {
            OUTDATED: {
                "description": "Why the file may be out of date, one sentence each; absent if it is not",
                "content": {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}},
            }
        }
    return operation


def _plain(name: str, summary: str, schema: Any, problem: Any) -> dict[str, Any]:
    return {
        "summary": summary,
        "operationId": name,
        "tags": [name],
        "parameters": [],
        "responses": {
            "200": {"description": summary, "content": {"application/json": {"schema": schema}}},
            "default": problem,
        },
        "x-right": "read",
    }


def _parameter(name: str, parameter: Parameter, *, required: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": parameter.about,
        "schema": parameter.schema,
    }


def _parameters(route: Route) -> list[dict[str, Any]]:
    path = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _PATH[name]} for name in path]
    parameters += [
        _parameter(name, route.known[name], required=name in route.needs) for name in route.parameters
    ]
    # Of two headers one is sent, so neither alone is required.
    headers = (["If-Match"] if route.seen else []) + (["If-None-Match"] if route.new else [])
    parameters += [
        {"name": name, "in": "header", "required": len(headers) == 1, "schema": _HEADERS[name]}
        for name in headers
    ]
    return parameters
