"""Files of other programs and helpers to import them, for the tests of `ipfsmem.exchange`."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from ipfsmem.exchange.importing import ReaderResult, Taken, gather
from ipfsmem.exchange.places import one_file, open_place
from ipfsmem.exchange.programs import reader
from ipfsmem.exchange.records import ImportRecord
from ipfsmem.memory import Memory


def records(program: str, data: bytes, called: str = "export.json") -> ReaderResult:
    """Return the records that the reader of a program finds in one file."""
    return gather(reader(program)(one_file(called, data)), program)


def records_at(program: str, path: Path) -> ReaderResult:
    """Return the records that the reader of a program finds at a path."""
    with open_place(path) as files:
        return gather(reader(program)(files), program)


def by_name(found: ReaderResult) -> dict[str, ImportRecord]:
    return {record.name: record for record in found.records}


def lines(*values: Any) -> bytes:
    """Return JSON Lines of the values."""
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def tree(base: Path, files: dict[str, str]) -> Path:
    """Create a folder with these files by path."""
    for name, text in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return base


def everything(memory: Memory) -> tuple[dict[str, bytes], list[str], list[dict[str, Any]]]:
    """Return everything that a vault shows: memories, pending texts and conflict copies by file name, and
    events without ids."""
    shown = {one.key: reading.data for one in memory.list() if (reading := memory.read(one.key)) is not None}
    copies = sorted(copy.file for item in memory.conflicts() for copy in item.copies)
    events = [{name: v for name, v in event.items() if name != "id"} for event in memory.timeline.read()]
    return shown, copies, events


def written(taken: Taken) -> int:
    """Return how many records were, or would be, written."""
    return taken.own + taken.candidates


def counted(taken: Taken, *names: str) -> int:
    return sum(taken.counts.get(name, 0) for name in names)


def twice(memory: Memory, program: str, path: Path) -> Taken:
    """Import from a path: check that a dry run predicts the result and that a second import adds nothing.
    Return the first import's answer."""
    before = everything(memory)
    planned = memory.bundles.import_from(program, path, dry_run=True)
    assert everything(memory) == before
    taken = memory.bundles.import_from(program, path)
    assert (taken.counts, taken.own, taken.candidates, taken.events, taken.problems) == (
        planned.counts,
        planned.own,
        planned.candidates,
        planned.events,
        planned.problems,
    )
    after = everything(memory)
    again = memory.bundles.import_from(program, path)
    assert written(again) == again.events == 0 and again.problems == taken.problems
    assert everything(memory) == after
    return taken


def keys(items: Iterable[Any]) -> list[str]:
    return sorted(item.key for item in items)


# -- what their programs write ----------------------------------------------------------------------------------------

ROWS = [
    (1, "Uses uv, not pip", "tools", "2026-08-01T10:00:00.000001+00:00", "semantic", '{"source":"consolidation"}'),
    (2, "Run the linter before a commit", "policy", "2026-08-02T10:00:00+00:00", "procedural", None),
    (3, "Deployed 1.4", "autonomous_run", "2026-08-03T10:00:00+00:00", "episodic", "{}"),
]  # fmt: skip


def initrunner_db(path: Path, *, wal: bool = False, seed: bool = False) -> Path:
    """Create a database as InitRunner wrote it before typed memory (`seed`) and after."""
    with closing(sqlite3.connect(path)) as db:
        if wal:
            db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE store_meta (key TEXT PRIMARY KEY, value TEXT)")
        db.execute(
            "CREATE TABLE sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, agent_name TEXT NOT NULL, "
            "timestamp TEXT NOT NULL, messages_json TEXT NOT NULL)"
        )
        typed = (
            ""
            if seed
            else ", memory_type TEXT NOT NULL DEFAULT 'semantic', metadata_json TEXT, consolidated_at TEXT"
        )
        db.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, category TEXT NOT NULL "
            f"DEFAULT 'general', created_at TEXT NOT NULL{typed})"
        )
        for row in ROWS:
            some = row[:4] if seed else row
            names = ("id", "content", "category", "created_at", "memory_type", "metadata_json")[: len(some)]
            db.execute(
                f"INSERT INTO memories ({', '.join(names)}) VALUES ({', '.join('?' * len(some))})", some
            )
        for messages, when in (
            ([{}], "2026-08-01T10:00:00+00:00"),
            ([{}, {}, {}], "2026-08-01T10:05:00+00:00"),
        ):
            db.execute(
                "INSERT INTO sessions (session_id, agent_name, timestamp, messages_json) VALUES ('0123456789ab', 'helper', ?, ?)",
                (when, json.dumps(messages)),
            )
        db.commit()
    return path


MEM0 = {
    "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e", "memory": "User is named Ada", "hash": "1a271c007316c94377175ee80e746a19",
    "created_at": "2026-08-19T16:53:05.403000-07:00", "updated_at": None, "user_id": "ada", "metadata": {"category": "personal", "tags": ["name"]}, "categories": ["personal_details"],
}  # fmt: skip


LETTA = {
    "agents": [{"id": "agent-0", "name": "helper", "block_ids": ["block-0", "block-1"], "system": "You are", "messages": [
        {"id": "message-0", "role": "user", "content": "hi", "created_at": "2026-08-01T10:00:00+00:00"},
        {"id": "message-1", "role": "assistant", "content": "hello", "created_at": "2026-08-01T10:01:00+00:00"}],
        "tool_exec_environment_variables": {"KEY": "sk-not-a-memory"}}],
    "groups": [], "files": [], "sources": [], "tools": [], "mcp_servers": [], "metadata": {}, "created_at": None,
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Name: Ada", "limit": 20000, "description": "about the human", "metadata": {}},
        {"id": "block-1", "label": "persona", "value": "I am terse.", "limit": 20000, "description": None, "metadata": {}},
        {"id": "block-2", "label": "empty", "value": "", "limit": 20000}, {"id": "block-3", "label": "bad"},
    ],
}  # fmt: skip


def chatgpt_message(role: str, text: str, *, to: str = "all", **content: Any) -> dict[str, Any]:
    said = content or {"content_type": "text", "parts": [text]}
    return {
        "message": {
            "id": text[:4],
            "author": {"role": role},
            "recipient": to,
            "create_time": 1755000001.5,
            "content": said,
        }
    }


CHATGPT = [
    {"title": "Tea\nand cake", "create_time": 1755000000.123, "update_time": 1755000100.0, "conversation_id": "c-1", "current_node": "d", "mapping": {
        "root": {"message": None}, "a": chatgpt_message("user", "I love tea"), "b": chatgpt_message("assistant", "Noted"),
        "c": chatgpt_message("assistant", "User loves tea.", to="bio"), "e": chatgpt_message("tool", "Model set context updated."),
        "d": chatgpt_message("system", "", content_type="user_editable_context", user_profile="An engineer.", user_instructions="Be brief.")}},
    {"title": None, "create_time": None, "mapping": {}}, {"title": "no mapping"}, "nonsense",
]  # fmt: skip


def zipped(path: Path, files: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, str) else json.dumps(value))
    return path


CLAUDE = [
    {"uuid": "c-1", "name": "Bridges", "summary": "", "created_at": "2026-08-01T10:00:00.000000Z", "updated_at": "2026-08-02T10:00:00.000000Z", "account": {"uuid": "a"},
     "chat_messages": [{"uuid": "m", "text": "secret words", "sender": "human"}, {"uuid": "n", "text": "…", "sender": "assistant"}]},
    {"uuid": "c-2", "name": "no messages"}, {"uuid": "c-3", "chat_messages": []},
]  # fmt: skip
REMEMBERED = {
    "conversations_memory": "**Work**\n\nAda builds bridges.",
    "project_memories": {"p-1": "The span is 40 m.", "p-2": ""},
    "account_uuid": "7d0b8f5e-3c1a-4e2f-9b6d-2a4c8e0f1357",
}
PROJECT = {
    "uuid": "p-1",
    "name": "Footbridge",
    "prompt_template": "Be exact.",
    "docs": [{"filename": "x", "content": "y"}],
}


TONE = "---\nname: Tone\ndescription: be direct\nmetadata:\n  type: feedback\n---\n\nLead with the issue.\n"
ADA = {
    "type": "entity",
    "name": "Ada",
    "entityType": "person",
    "observations": ["likes tea", "builds bridges"],
}
WORKS = {"type": "relation", "from": "Ada", "to": "ACME", "relationType": "works_at"}
#: For each program that stores JSON: a document, and the name of its file.
DOCUMENTS: dict[str, tuple[str, Any]] = {
    "chatgpt": ("conversations.json", CHATGPT),
    "claude": ("conversations.json", CLAUDE),
    "infraware": (
        "memory.json",
        [{"fact": "Short.", "category": "preference", "created_at": "2026-03-20T10:00:00Z"}],
    ),
    "initrunner": (
        "memories.json",
        [
            {
                "id": 1,
                "content": "x",
                "category": "c",
                "created_at": "2026-08-01",
                "memory_type": "semantic",
                "metadata": {"a": 1},
            }
        ],
    ),
    "letta": ("agent.af", LETTA),
    "librefang": (
        "export.json",
        {
            "agent_id": "a",
            "version": 1,
            "kv": {"k": {"v": 1}},
            "memories": [
                {
                    "content": "x",
                    "level": "user",
                    "category": "c",
                    "confidence": 0.5,
                    "created_at": "2026-08-01",
                    "metadata": {},
                }
            ],
        },
    ),
    "mcp-memory": ("memory.json", ADA),
    "mem0": (
        "dump.json",
        {"results": [MEM0], "relations": [{"source": "a", "relationship": "b", "target": "c"}]},
    ),
    "mif": (
        "doc.mif.json",
        {
            "mif_version": "2.0",
            "memories": [
                {"id": "1", "content": "x", "created_at": "2026-08-01", "tags": ["t"], "custom": [1]}
            ],
        },
    ),
    "three-ws": (
        "export.json",
        [
            {
                "id": "1",
                "type": "user",
                "content": "x",
                "tags": ["a"],
                "createdAt": 1775044800000,
                "expiresAt": None,
                "context": {},
            }
        ],
    ),
}
#: The fields of these documents that hold texts; all others are side fields.
TEXTS: dict[str, set[str]] = {
    "chatgpt": {"parts", "user_profile", "user_instructions", "content_type"},
    "claude": {"conversations_memory", "p-1"},
    "infraware": {"fact"},
    "initrunner": {"content"},
    "letta": {"value"},
    "librefang": {"content", "kv"},
    "mcp-memory": {"observations"},
    "mem0": {"memory", "source", "relationship", "target"},
    "mif": {"content"},
    "three-ws": {"content"},
}
#: Programs that store Markdown.
MARKDOWN = ("agh", "basic-memory", "claude-code", "okf", "three-ws")
