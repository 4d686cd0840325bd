"""AGH's memory routes on a vault. The workspace is the query parameter `workspace`, else the scope with which the server was
started."""

from __future__ import annotations

from typing import Any, Final

from ipfsmem.bundle.keys import is_scope
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.compat.agh import ENTRIES, HITS, MOST_ENTRIES, MOST_HITS, WorkspaceFiles
from ipfsmem.compat.http import HttpAnswer, HttpCall, HttpRoute
from ipfsmem.errors import IpfsmemError, NotFoundError, UsageError

#: Header fields that this program sets, and those of a memory that is not a file.
_NOT_OF_A_FILE: Final = ("type", "origin_name", "session")


def _files(call: HttpCall) -> WorkspaceFiles:
    workspace = call.query.get("workspace") or call.query.get("workspace_id") or call.workspace
    if workspace and not is_scope(workspace):
        raise UsageError(f"invalid workspace {workspace[:40]!a}")
    call.require("")
    if workspace:
        call.require(workspace)
    return WorkspaceFiles(call.memory, workspace)


def _list(call: HttpCall) -> HttpAnswer:
    return HttpAnswer({"memories": [one.values() for one in _files(call).files(call.query.get("scope", ""))]})


def _read(call: HttpCall) -> HttpAnswer:
    file = _files(call).read(call.path["filename"], call.query.get("scope", ""))
    return HttpAnswer({"memory": file.values(content=True)})


def _write(call: HttpCall) -> HttpAnswer:
    body = call.object()
    content = body.get("content")
    if not isinstance(content, str):
        raise UsageError("missing field content")
    file = parse_memory(content.encode("utf-8", "surrogatepass"))
    fields_given: dict[str, Any] = {**file.fields, **body}
    fields = {field: value for field, value in file.fields.items() if field not in _NOT_OF_A_FILE}
    fields |= {name: str(fields_given.get(name) or "") for name in ("name", "description", "agent_name")}
    scope = str(body.get("scope") or call.query.get("scope", ""))
    written, new = _files(call).write(
        call.path["filename"], str(fields_given.get("type") or ""), file.body, fields, scope
    )
    return HttpAnswer({"memory": written.values()}, 201 if new else 200)


def _delete(call: HttpCall) -> HttpAnswer:
    gone = _files(call).delete(call.path["filename"], call.query.get("scope", ""))
    return HttpAnswer({"deleted": True, "filename": gone.filename, "scope": gone.scope})


def _search(call: HttpCall) -> HttpAnswer:
    query = call.query.get("q") or call.query.get("query") or ""
    matches = _files(call).search(query, call.query.get("scope", ""), call.number("limit", HITS, MOST_HITS))
    shown = [{**file.values(), "score": score, "snippet": snippet} for file, score, snippet in matches]
    return HttpAnswer({"results": shown})


def _health(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_files(call).health())


def _history(call: HttpCall) -> HttpAnswer:
    operations = _files(call).history(
        call.query.get("operation", ""),
        call.query.get("since", ""),
        call.number("limit", ENTRIES, MOST_ENTRIES),
    )
    return HttpAnswer({"operations": operations})


def _reindex(call: HttpCall) -> HttpAnswer:
    files = _files(call)
    call.memory.maintenance.reindex()
    return HttpAnswer({"indexed": len(files.files())})


_MEMORY: Final = "/api/memory"

ROUTES: Final = (
    HttpRoute("GET", _MEMORY, "read", _list),
    HttpRoute("GET", f"{_MEMORY}/search", "read", _search),
    HttpRoute("GET", f"{_MEMORY}/health", "read", _health),
    HttpRoute("GET", f"{_MEMORY}/history", "read", _history),
    HttpRoute("POST", f"{_MEMORY}/reindex", "write", _reindex),
    HttpRoute("GET", f"{_MEMORY}/{{filename}}", "read", _read),
    HttpRoute("PUT", f"{_MEMORY}/{{filename}}", "write", _write),
    HttpRoute("DELETE", f"{_MEMORY}/{{filename}}", "write", _delete),
)


def problem(error: IpfsmemError) -> HttpAnswer:
    """Return an error with a stable code."""
    missing = isinstance(error, NotFoundError)
    code = "memory.not_found" if missing else "memory.invalid"
    return HttpAnswer({"error": {"code": code, "message": str(error)}}, 404 if missing else 400)
