"""The parsed request to a trustless gateway, and the headers of the answer. Reads no block.

Formats, paths, scopes and ranges are those of the Trustless Gateway Specification (2026-03-05) and of IPIP-412; the table of its
clauses with a test each is tests/unit/providers/test_gateway_clauses.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from multidict import CIMultiDictProxy, MultiMapping

from ipfsmem.content.cid import CID
from ipfsmem.errors import UsageError
from ipfsmem.http.guard import NotServed

RAW_TYPE: Final = "application/vnd.ipld.raw"
CAR_TYPE: Final = "application/vnd.ipld.car"
RECORD_TYPE: Final = "application/vnd.ipfs.ipns-record"
#: format -> content type
FORMATS: Final = {"raw": RAW_TYPE, "car": CAR_TYPE, "ipns-record": RECORD_TYPE}
SCOPES: Final = ("block", "entity", "all")
#: For pages of other origins, on every answer below /ipfs, /ipns and /routing: the data is for anybody with its CID.
CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Range, User-Agent, X-Requested-With, Accept, Cache-Control, If-None-Match",
    "Access-Control-Expose-Headers": (
        "Content-Disposition, Content-Length, Content-Location, Content-Range, Etag, Ipfs-Uri, X-Chunked-Output, X-Ipfs-Path, X-Ipfs-Roots, "
        "X-Stream-Output"
    ),
    "X-Content-Type-Options": "nosniff",
}
#: For a page that sends the token: a browser that is a device of its own.
DEVICE_CORS: Final = {
    **CORS,
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, " + CORS["Access-Control-Allow-Headers"],
}
FOREVER: Final = "public, max-age=29030400, immutable"
_RANGE: Final = re.compile(r"(-?\d{1,18}):(\*|-?\d{1,18})", re.ASCII)
_BYTES: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
_TAG: Final = re.compile(r'(?:W/)?"([^"]*)"')


class GatewayRequest(NamedTuple):
    """The parsed request. `span` is `entity-bytes`: from, and to or None for the end; negative ones count from the end."""

    kind: str
    scope: str = "all"
    span: tuple[int, int | None] | None = None
    dups: bool = False


def parse_request(
    headers: CIMultiDictProxy[str], query: MultiMapping[str], offered: Mapping[str, str] = FORMATS
) -> GatewayRequest:
    """Parse a request; `format` wins over Accept, and the query over the parameters of a type (IPIP-412, IPIP-523).

    Raises NotServed for other formats, orders and versions, UsageError for an invalid scope or range.
    """
    kind, parameters = _kind(headers, query, offered)
    if kind != "car":
        return GatewayRequest(kind)
    car = _car(query, parameters)
    if not _is_served(car):
        raise NotServed(406, "CARs are served with version=1, order=dfs and dups=y or n only")
    dups = car["dups"]
    span = None
    if "entity-bytes" in query:
        match = _RANGE.fullmatch(query["entity-bytes"])
        if match is None:
            raise UsageError(f"entity-bytes {query['entity-bytes']!r} is not from:to")
        span = int(match[1]), None if match[2] == "*" else int(match[2])
    scope = query.get("dag-scope", "all" if span is None else "entity")
    if scope not in SCOPES or (span is not None and scope != "entity"):
        raise UsageError(
            f"dag-scope {scope!r} is not known" if span is None else "entity-bytes is for dag-scope=entity"
        )
    return GatewayRequest(kind, scope, span, dups == "y")


def _car(query: MultiMapping[str], parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a CAR: the query wins over the parameters of its type in Accept."""
    defaults = {"order": "dfs", "version": "1", "dups": "n"}
    return {name: query.get(f"car-{name}", parameters.get(name, value)) for name, value in defaults.items()}


def _is_served(car: Mapping[str, str]) -> bool:
    return car["order"] in ("dfs", "unk") and car["version"] == "1" and car["dups"] in ("y", "n")


def _kind(
    headers: CIMultiDictProxy[str], query: MultiMapping[str], offered: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Return the format, and the parameters of its type in Accept."""
    accepted: list[tuple[float, str, dict[str, str]]] = []
    named = False
    for part in ",".join(headers.getall("Accept", [])).split(","):
        kind, *rest = (piece.strip() for piece in part.split(";"))
        named |= bool(kind) and "*" not in kind
        pairs = (piece.partition("=") for piece in rest)
        parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
        for short, content_type in offered.items():
            if kind.lower() == content_type:
                accepted.append((_quality(parameters.pop("q", "1")), short, parameters))
    # A list is in order of preference; unsupported entries are skipped.
    accepted = [one for one in accepted if one[1] != "car" or _is_served(_car(query, one[2]))] or accepted
    accepted.sort(key=lambda item: -item[0])
    best = accepted[0] if accepted else None
    requested = query.get("format")
    if requested is not None:
        if requested not in offered:
            raise NotServed(406, _only(offered))
        return requested, next((chosen for _, short, chosen in accepted if short == requested), {})
    if best is None:
        raise NotServed(406 if named else 400, _only(offered))
    return best[1], best[2]


def _only(offered: Mapping[str, str]) -> str:
    return f"this gateway serves format={' and format='.join(offered)} only"


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def resolved(span: tuple[int, int | None], size: int) -> tuple[int, int] | None:
    """Return first and last byte of a span in a file of `size` bytes; None if it is empty.

    Raises UsageError for a span entirely beyond the end.
    """
    first = max(0, span[0] + size if span[0] < 0 else span[0])
    last = size - 1 if span[1] is None else span[1] + size if span[1] < 0 else min(span[1], size - 1)
    if size and span[0] >= size:
        raise UsageError(f"entity-bytes begins at {span[0]} of {size} bytes")
    return (first, last) if first <= last else None


def byte_range(header: str, size: int) -> tuple[int, int] | None:
    """Return first and last byte that a Range header requests of `size` bytes; None for all of them, also if it requests several.

    Raises ValueError if it is empty (416).
    """
    match = _BYTES.fullmatch(header.replace(" ", ""))
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        if int(match[2]) == 0 or not size:
            raise ValueError
        return max(0, size - int(match[2])), size - 1
    first, last = int(match[1]), int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None  # not a range
    if first >= size:
        raise ValueError
    return first, min(last, size - 1)


def etag(cid: CID, path: tuple[str, ...], gateway_request: GatewayRequest) -> str:
    """Return the Etag of an answer: of the block itself, or of everything that determines the blocks of a CAR."""
    if gateway_request.kind == "raw":
        return f'"{cid}.raw"'
    about = repr((path, gateway_request.span, gateway_request.dups)).encode()
    return f'W/"{gateway_request.scope}.{cid}.car.{hashlib.sha256(about).hexdigest()[:16]}"'


def location(
    path: str, headers: CIMultiDictProxy[str], query: MultiMapping[str], gateway_request: GatewayRequest
) -> str:
    """Return the URL of the same answer whatever Accept says (Content-Location); "" if the request used that itself."""
    fixed = {"format": gateway_request.kind, **({"car-dups": "y"} if gateway_request.dups else {})}
    chosen = any(";" in accept for accept in headers.getall("Accept", []))  # parameters, some from the query
    if not chosen and all(query.get(name) == value for name, value in fixed.items()):
        return ""
    return f"{path}?{urlencode({**query, **fixed}, quote_via=quote)}"


def is_known(header: str, tag: str) -> bool:
    """Return whether If-None-Match has a tag (compared weakly, as 304 requires)."""
    return header.strip() == "*" or tag.removeprefix("W/").strip('"') in _TAG.findall(header)


def attachment(query: MultiMapping[str], default: str) -> str:
    """Return Content-Disposition: for saving, never for showing, under the requested name."""
    name = query.get("filename") or default
    plain = "".join(char if " " <= char <= "~" and char not in '"\\' else "_" for char in name)
    if plain == name:
        return f'attachment; filename="{name}"'
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
