"""Routes of files: export and import."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from msgspec.structs import asdict

from ipfsmem.api.bodies import ExportBody, TakenIn
from ipfsmem.api.calls import Call, Download
from ipfsmem.api.routes import Route
from ipfsmem.errors import IncompleteError, NotFoundError
from ipfsmem.memory import Memory

_KINDS: Final = {
    "blob": ("application/json", "memory.json"),
    "zip": ("application/zip", "memory.zip"),
    "car": ("application/vnd.ipld.car", "memory.car"),
}


def _part(call: Call) -> Memory:
    """Return the named scope, else the whole vault, which requires a token for all scopes. Raises Refused."""
    if call.scope:
        return call.memory
    call.caller.require_all_scopes()
    return call.whole


def _export(call: Call) -> Download:
    given: ExportBody = call.body
    bundles = _part(call).bundles
    kind, name = _KINDS[given.format]
    if given.format == "blob":
        return Download(bundles.export(partial=given.partial), kind, name)
    out = BytesIO()
    (bundles.export_zip if given.format == "zip" else bundles.export_car)(out, partial=given.partial)
    return Download(out.getvalue(), kind, name)


def _import(call: Call) -> TakenIn:
    done = _part(call).bundles.import_(
        call.body,
        strategy=call.query.get("strategy", "merge"),
        foreign=call.query.get("foreign", False),
        same=call.query.get("same", False),
        whole=call.query.get("whole", False),
        dry_run=call.query.get("dry_run", False),
    )
    exit_code = 0
    try:
        done.raise_if_incomplete()
    except IncompleteError as error:
        exit_code = error.exit_code
    return TakenIn(**asdict(done), exit_code=exit_code)


def not_found(what: str) -> NotFoundError:
    """Return the error for a namespace that is not served, or that the caller may not read."""
    return NotFoundError(f"this server has no vault {what[:64]!a} for this token")


ROUTES: Final = (
    Route(
        "post",
        "/v1/export",
        "export",
        "Export the vault or one scope as a file",
        _export,
        bytes,
        body=ExportBody,
        gives=tuple(kind for kind, _ in _KINDS.values()),
    ),
    Route(
        "post",
        "/v1/import",
        "import",
        "Import a JSON export",
        _import,
        TakenIn,
        right="admin",
        writes=True,
        body=bytes,
        query=("strategy", "foreign", "same", "whole", "dry_run"),
        most=64 * 1024 * 1024,
    ),
)
