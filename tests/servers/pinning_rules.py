"""The rules of the Pinning Service API 1.0.0 for requests, for stand-ins with `/pins`."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web
from multidict import MultiMapping

from ipfsmem.content.cid import parse_cid
from ipfsmem.errors import FormatError

LIMIT_MAX, LIMIT_DEFAULT = 1_000, 10
_STATUSES = {"queued", "pinning", "pinned", "failed"}
_MATCHES = {"exact", "iexact", "partial", "ipartial"}
_PARAMETERS = {"cid", "name", "match", "status", "before", "after", "limit", "meta"}


def bad(details: str) -> web.HTTPException:
    """The answer to an invalid request."""
    text = json.dumps({"error": {"reason": "BAD_REQUEST", "details": details}})
    return web.HTTPBadRequest(text=text, content_type="application/json")


def check_query(query: MultiMapping[str]) -> None:
    """Refuse an invalid query of `GET /pins`."""
    if unknown := set(query) - _PARAMETERS:
        raise bad(f"no parameter {min(unknown)}")
    if not set(query.get("status", "pinned").split(",")) <= _STATUSES:
        raise bad("status")
    if query.get("match", "exact") not in _MATCHES:
        raise bad("match")
    if len(query.get("name", "")) > 255 or len(query.get("cid", "").split(",")) > 10:
        raise bad("a name has at most 255 characters, and 10 CIDs can be asked for")
    limit = query.get("limit", str(LIMIT_DEFAULT))
    if not limit.isdigit() or not 1 <= int(limit) <= LIMIT_MAX:
        raise bad(f"limit is 1 to {LIMIT_MAX}")


def check_pin(pin: Any) -> None:
    """Refuse an invalid Pin object."""
    if not isinstance(pin, dict) or not isinstance(pin.get("cid"), str):
        raise bad("a pin has a cid")
    try:
        parse_cid(pin["cid"])
    except FormatError:
        raise bad("cid") from None
    name, origins, meta = pin.get("name", ""), pin.get("origins", []), pin.get("meta", {})
    if not isinstance(name, str) or len(name) > 255:
        raise bad("name")
    if not isinstance(origins, list) or len(origins) > 20 or len(set(origins)) != len(origins):
        raise bad("origins are at most 20, each once")
    if not isinstance(meta, dict) or not all(isinstance(value, str) for value in meta.values()):
        raise bad("meta is an object of texts")
