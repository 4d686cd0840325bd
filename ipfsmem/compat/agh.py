"""AGH's memory files on a vault: its scopes, names of files, rules and defaults, for tools and for its HTTP interface.

AGH's global scope is the default scope, the workspace is the chosen scope. A file is the memory of its name. AGH offers these
operations as commands and routes; the tools are named after them. An overwritten or deleted file stays in the history.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ipfsmem.bundle.fence import clean_text
from ipfsmem.bundle.header import write_header
from ipfsmem.bundle.keys import INDEX_FILE, key_of_foreign_name
from ipfsmem.bundle.memory_file import TYPES, MemoryFile
from ipfsmem.compat.entries import instant
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.invisible_characters import CONTROLS_AND_BREAKS
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memories.write_request import OF_THE_PERSON
from ipfsmem.tools.definition import Definition
from ipfsmem.tools.schema import JSON, answer, arguments, choice, number, text
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import ToolContext, one_line

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

GLOBAL, WORKSPACE = "global", "workspace"
SCOPES: Final = (GLOBAL, WORKSPACE)
#: Default and maximum hits of a search, and entries of the history.
HITS, MOST_HITS = 10, 50
ENTRIES, MOST_ENTRIES = 25, 100
#: Maximum words of a snippet, and characters of each.
_SNIPPET, _WORD = 18, 60
_FIELDS: Final = ("name", "description", "type", "agent_name")
_RESULT: Final = answer(result={"type": "string"})
#: Its names of operations, by ours.
_OPERATIONS: Final = {
    "write": "memory.write",
    "forget": "memory.delete",
    "fact delete": "memory.delete",
    "recall": "memory.search",
    "reindex": "memory.reindex",
    "dream": "memory.consolidate",
}


class File(NamedTuple):
    """A memory file. `modified`: milliseconds since 1970 UTC."""

    filename: str
    scope: str
    reading: MemoryRecord

    def values(self, *, content: bool = False) -> dict[str, Any]:
        """Return it as JSON."""
        file = self.reading.readable
        fields = {
            "filename": self.filename,
            "scope": self.scope,
            **{field: clean_text(file.fields.get(field, "")) for field in _FIELDS if file.fields.get(field)},
            "mod_time": file.updated or file.created,
        }
        return {**fields, "content": clean_text(document(file))} if content else fields


class WorkspaceFiles:
    """The memory files of a vault: the global ones, and those of a workspace."""

    def __init__(self, memory: Memory, workspace: str) -> None:
        """`workspace`: a scope; "" for none."""
        self.memory = memory
        self._workspace = workspace

    def write(
        self, filename: str, kind: str, content: str, fields: dict[str, str], scope: str = ""
    ) -> tuple[File, bool]:
        """Write a file; returns whether it is new. The old text stays in the history. Raises UsageError."""
        key, kind = _key(filename), kind.strip().lower()
        if kind not in TYPES:
            raise UsageError(f"unsupported memory type {kind[:40]!r}; supported: {', '.join(TYPES)}")
        if not content.strip():
            raise UsageError("the content is empty, so nothing was written")
        scope = scope or (GLOBAL if kind in OF_THE_PERSON else WORKSPACE)
        there = self._there(scope)
        shown = there.read(key, counts=False)
        old = shown if shown is not None and shown.own else None
        name = fields.get("name") or (old.readable.name if old is not None else "") or _title(filename)
        more = {
            **{field: value for field, value in fields.items() if field not in ("name", "description")},
            "agent_name": fields.get("agent_name", ""),
            "origin_name": key_of_foreign_name(_file_name(filename)).origin or "",
        }
        keeping = contextlib.nullcontext() if old is None else there.facts.keeping(key, seen=old.seen)
        with keeping:
            record = there.write(
                key,
                content,
                name=name,
                description=fields.get("description"),
                type=kind,
                fields={field: value for field, value in more.items() if value},
                seen=old,
                if_match=None if old is not None else "" if shown is None else shown.sha256,
            )
        return File(_name_of(record), scope, record), old is None

    def files(self, scope: str = "") -> list[File]:
        """Return the person's own files, last changed first. Raises UsageError."""
        rows = []
        for one in _chosen(scope):
            if one == WORKSPACE and not self._workspace:
                continue
            there = self._there(one)
            for item in there.list():
                reading = there.read(item.key, counts=False) if item.own and item.fetched else None
                if reading is not None:
                    rows.append(File(_name_of(reading), one, reading))
        return sorted(rows, key=lambda one: (one.reading.hlc, one.filename), reverse=True)

    def read(self, filename: str, scope: str = "") -> File:
        """Return one file. Raises NotFoundError; UsageError if both scopes have one."""
        key = _key(filename)
        files = []
        for one in _chosen(scope):
            if one == WORKSPACE and not self._workspace:
                continue
            reading = self._there(one).read(key)
            if reading is not None and reading.own:
                files.append(File(_name_of(reading), one, reading))
        if not files:
            raise NotFoundError(f"memory not found: {filename[:80]}")
        if len(files) > 1:
            raise UsageError(
                f"ambiguous: {filename[:80]} is in both scopes", hint="Set scope to global or workspace."
            )
        return files[0]

    def delete(self, filename: str, scope: str = "") -> File:
        """Delete a file; its text stays in the history. Raises as `read`."""
        file = self.read(filename, scope)
        there = self._there(file.scope)
        there.facts.keep(file.reading.key, seen=file.reading.seen)
        there.forget(file.reading.key, seen=file.reading, keep_earlier=True)
        return file

    def search(self, query: str, scope: str = "", limit: int = HITS) -> list[tuple[File, float, str]]:
        """Return the files that fit a query, best first, each with its score and a snippet. Raises UsageError."""
        if not any(c.isalnum() for c in query):
            raise UsageError("the query has no words")
        limit = max(1, min(limit, MOST_HITS))
        scopes_wanted = _chosen(scope)
        scopes = [self._workspace] * (WORKSPACE in scopes_wanted and bool(self._workspace)) + [""] * (
            GLOBAL in scopes_wanted
        )
        if not scopes:
            return []
        recalled = self.memory.stack(*scopes).recall(query, limit=MOST_HITS)
        hits = [hit for hit in recalled.hits if hit.own and (GLOBAL in scopes_wanted or hit.scope)][:limit]
        readings = ((hit, self.memory.scope(hit.scope).read(hit.key, counts=False)) for hit in hits)
        return [
            (
                File(_name_of(one), WORKSPACE if hit.scope else GLOBAL, one),
                round(hit.score, 3),
                _snippet(hit.body, query),
            )
            for hit, one in readings
            if one is not None
        ]

    def health(self) -> dict[str, Any]:
        """Return counts of files and operations, and when memories were last consolidated."""
        counts = {one: len(self.files(one)) for one in SCOPES}
        operations = self.memory.operations.list(limit=1)
        return {
            "status": "ok",
            "enabled": True,
            "configured": True,
            "global_files": counts[GLOBAL],
            "workspace_files": counts[WORKSPACE],
            "indexed_files": sum(counts.values()),
            "orphaned_files": 0,
            "operation_count": sum(self.memory.operations.counts().values()),
            "last_operation_at": instant(operations[0].at) if operations else None,
        }

    def history(self, operation: str = "", since: str = "", limit: int = ENTRIES) -> list[dict[str, Any]]:
        """Return the operations, newest first, without text of memories. Raises UsageError."""
        limit = max(1, min(limit, MOST_ENTRIES))
        names = {ours for ours, theirs in _OPERATIONS.items() if theirs == operation} if operation else None
        if names is not None and not names:
            raise UsageError(
                f"unknown operation {operation[:40]!r}; known: {', '.join(dict.fromkeys(_OPERATIONS.values()))}"
            )
        operations = [
            one
            for one in self.memory.operations.list(since=since or None, limit=10_000)
            if one.operation in (names or _OPERATIONS)
        ]
        return [
            {
                "operation": _OPERATIONS[one.operation],
                "scope": WORKSPACE if one.scope else GLOBAL,
                "filename": f"{one.key}.md" if one.key else "",
                "agent": one.by or one.face,
                "timestamp": instant(one.at),
                "summary": one.outcome,
            }
            for one in operations[:limit]
        ]

    def index(self, scope: str = "") -> str:
        """Return the lines of MEMORY.md, last changed first."""
        return "\n".join(map(index_line, self.files(scope)))

    def _there(self, scope: str) -> Memory:
        if scope not in SCOPES:
            raise UsageError(f"invalid scope {scope[:40]!r}; expected global or workspace")
        if scope == GLOBAL:
            return self.memory.scope("")
        if not self._workspace:
            raise UsageError(
                "workspace required: no workspace is chosen",
                hint="Start the server for one workspace.",
            )
        return self.memory.scope(self._workspace)


def document(file: MemoryFile) -> str:
    """Return a memory in AGH's form: the fields that its strict reader knows, and the text."""
    fields = {name: file.fields[name] for name in _FIELDS if file.fields.get(name)}
    return f"---\n{write_header(fields)}---\n\n{file.body}\n"


def index_line(file: File) -> str:
    """Return the line of a file in MEMORY.md."""
    readable = file.reading.readable
    name = one_line(readable.name) or _title(file.filename)
    return f"- [{name}]({file.filename})" + (
        f" - {one_line(readable.description)}" if readable.description else ""
    )


def _chosen(scope: str) -> tuple[str, ...]:
    if scope and scope not in SCOPES:
        raise UsageError(f"invalid scope {scope[:40]!r}; expected global or workspace")
    return (scope,) if scope else SCOPES


def _key(filename: str) -> str:
    return key_of_foreign_name(_file_name(filename)).key


def _file_name(filename: str) -> str:
    """Return the name of a file in a scope. Raises UsageError."""
    name = filename.strip()
    unfit = "/" in name or "\\" in name or CONTROLS_AND_BREAKS.search(name)
    if name in ("", ".", "..") or unfit or name == INDEX_FILE:
        raise UsageError(f"invalid filename {filename[:80]!a}")
    return name if name.endswith(".md") else f"{name}.md"


def _name_of(reading: MemoryRecord) -> str:
    return one_line(reading.readable.origin_name) or f"{reading.key}.md"


def _title(filename: str) -> str:
    stem = filename.strip().removesuffix(".md")
    for mark in "-_.":
        stem = stem.replace(mark, " ")
    return " ".join(stem.split()).title()


def _snippet(body: str, query: str) -> str:
    words = clean_text(body).split()
    query_words = {"".join(filter(str.isalnum, word)).lower() for word in query.split()} - {""}
    hits = [bool(query_words & {"".join(filter(str.isalnum, word)).lower()}) for word in words]
    first = max(0, hits.index(True) - _SNIPPET // 3) if any(hits) else 0
    return " ".join(
        f"[{word[:_WORD]}]" if hit else word[:_WORD]
        for word, hit in zip(words[first : first + _SNIPPET], hits[first : first + _SNIPPET], strict=True)
    )


# -- tools ---------------------------------------------------------------------------------------------------


def _files(tool_context: ToolContext, args: JSON) -> WorkspaceFiles:
    return WorkspaceFiles(tool_context.memory, tool_context.scope_of({}))


def _answer(message: str) -> ToolResult:
    return ToolResult(message, {"result": message})


def _write(tool_context: ToolContext, args: JSON) -> ToolResult:
    fields = {name: args.get(name, "") for name in ("name", "description", "agent_name")}
    file, new = _files(tool_context, args).write(
        args["filename"], args["type"], args["content"], fields, args.get("scope", "")
    )
    if new:
        return _answer(f"Wrote {file.filename} ({file.scope})")
    back = f"ipfsmem fact restore {file.reading.key}"
    if file.scope == WORKSPACE:
        back = f"ipfsmem fact restore {file.reading.key} --scope {tool_context.scope_of({})}"
    return _answer(
        f"Updated {file.filename} ({file.scope}). It replaced another text; a person brings that back with: {back}"
    )


def _read(tool_context: ToolContext, args: JSON) -> ToolResult:
    file = _files(tool_context, args).read(args["filename"], args.get("scope", ""))
    return _answer(clean_text(document(file.reading.readable)))


def _list(tool_context: ToolContext, args: JSON) -> ToolResult:
    return _answer(_files(tool_context, args).index(args.get("scope", "")) or "No memories found.")


def _delete(tool_context: ToolContext, args: JSON) -> ToolResult:
    gone = _files(tool_context, args).delete(args["filename"], args.get("scope", ""))
    return _answer(f"Deleted {gone.filename} ({gone.scope})")


def _search(tool_context: ToolContext, args: JSON) -> ToolResult:
    matches = _files(tool_context, args).search(args["query"], args.get("scope", ""), args.get("limit", HITS))
    lines = [f"{index_line(file)} ({file.scope})\n  {snippet}" for file, _, snippet in matches]
    return _answer("\n".join(lines) or "No memories found.")


def _health(tool_context: ToolContext, args: JSON) -> ToolResult:
    return _answer(
        msgspec.json.format(msgspec.json.encode(_files(tool_context, args).health()), indent=2).decode()
    )


def _history(tool_context: ToolContext, args: JSON) -> ToolResult:
    operations = _files(tool_context, args).history(
        args.get("operation", ""), args.get("since", ""), args.get("limit", ENTRIES)
    )
    lines = [
        f"{one['timestamp']} {one['operation']} {one['scope']} {one['filename']} {one['summary']}".rstrip()
        for one in operations
    ]
    return _answer("\n".join(lines) or "No operations found.")


_FILENAME: Final = text("The file, such as review-style.md.", least=1, most=255)
_SCOPE: Final = choice(
    "global or workspace; by default the type decides on a write, and both are read.", SCOPES
)


def _tool(
    name: str,
    title: str,
    description: str,
    run: Callable[[ToolContext, JSON], ToolResult],
    parameters: JSON,
    *,
    reads: bool,
) -> Definition:
    return Definition(
        name=name,
        title=title,
        description=description,
        parameters=parameters,
        returns=_RESULT,
        run=run,
        read_only=reads,
        destructive=name == "memory_delete",
        idempotent=True,
    )


TOOLS: Final = (
    _tool(
        "memory_write",
        "Write a memory file",
        "Write a memory file. user and feedback go to the global scope by default, project and reference to the workspace.",
        _write,
        arguments(
            "filename",
            "type",
            "description",
            "content",
            filename=_FILENAME,
            type=choice("What kind of memory.", TYPES),
            description=text("One concise sentence by which it is discovered.", least=1, most=1_000),
            content=text("The text.", least=1, most=900_000),
            name=text("A title; by default made of the file's name.", most=200),
            agent_name=text("Who wrote it.", most=200),
            scope=_SCOPE,
        ),
        reads=False,
    ),
    _tool(
        "memory_list",
        "List memory files",
        "The index: one line for each memory file, the last changed first.",
        _list,
        arguments(scope=_SCOPE),
        reads=True,
    ),
    _tool(
        "memory_read",
        "Read a memory file",
        "The whole file.",
        _read,
        arguments("filename", filename=_FILENAME, scope=_SCOPE),
        reads=True,
    ),
    _tool(
        "memory_delete",
        "Delete a memory file",
        "Delete a file and its line in the index.",
        _delete,
        arguments("filename", filename=_FILENAME, scope=_SCOPE),
        reads=False,
    ),
    _tool(
        "memory_search",
        "Search memory files",
        "The files that fit some words or a question, the best first.",
        _search,
        arguments(
            "query",
            query=text("Words, or a question.", least=1, most=10_000),
            scope=_SCOPE,
            limit=number("At most so many.", 1, MOST_HITS, HITS),
        ),
        reads=True,
    ),
    _tool(
        "memory_health", "Memory health", "Counts of files and operations.", _health, arguments(), reads=True
    ),
    _tool(
        "memory_history",
        "Memory history",
        "Recent writes, deletes, searches and reindexes.",
        _history,
        arguments(
            operation=text("Only these, such as memory.write.", most=40),
            since=text("Only since then: 24h, or RFC 3339.", most=40),
            limit=number("At most so many.", 1, MOST_ENTRIES, ENTRIES),
        ),
        reads=True,
    ),
)
