"""Writes fixtures/vectors/sessions.json: names of sessions, and the items that parts come to (format section 5.1). Run it from the
checkout after a change of the format; a test compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.bundle.session_parts import session_token
from ipfsmem.memories.sessions import items_of_files

TARGET = Path(__file__).parents[3] / "fixtures" / "vectors" / "sessions.json"
ABOUT = (
    "Sessions, format section 5.1. 'tokens': a name and what stands for it in the keys of parts. 'refused_names': none. "
    "'sessions': parts, and the items that they come to."
)
A, B = "00aabbccddeeff11", "11bbccddeeff0022"
NAMES = [
    "chat",
    "a_1",
    "a" * 24,
    "a" * 25,
    "Chat",
    "chat-1",
    "\u65e5\u672c",
    " x y ",
    "../x",
    "\u212a",
    "_",
    "\U0001f600",
    "x" * 256,
]
REFUSED = [
    ("", "empty"),
    ("x" * 257, "too long"),
    ("a\nb", "a control character"),
    ("a\u2028b", "a line separator"),
    ("\ufeffa", "a BOM"),
]


def part(session: str, dev: str, number: int, *lines: Any, named: str | None = None) -> dict[str, str]:
    body = "\n".join(
        line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines
    )
    fields = {"type": "session", "session": session if named is None else named}
    return {
        "key": f"session-{session_token(session)}-{dev}-{number}",
        "file": render_memory(MemoryFile(fields, body)).decode(),
    }


def said(at: int, text: str, n: int = 0) -> dict[str, Any]:
    return {"at": at, **({"n": n} if n else {}), "item": {"content": text, "role": "user"}}


CASES = [
    ("one part", "chat", [part("chat", A, 0, said(5, "one"), said(5, "two", 1), said(6, "three"))]),
    ("two devices, by time; of one time by device", "Chat 1", [
        part("Chat 1", B, 0, said(5, "b5"), said(7, "b7")), part("Chat 1", A, 0, said(5, "a5"), said(6, "a6")),
    ]),
    ("taken away by another device, and its own taking back means nothing", "chat", [
        part("chat", A, 0, said(5, "one"), said(6, "two")),
        part("chat", B, 0, {"at": 7, "gone": [6, A, 0]}, {"at": 8, "gone": [9, A, 0]}),
    ]),
    ("an item in pieces over two parts, in any order", "chat", [
        part("chat", A, 0, {"at": 5, "piece": [1, 3], "text": "tent\":\""}, {"at": 5, "piece": [0, 3], "text": "{\"con"}),
        part("chat", A, 1, {"at": 5, "piece": [2, 3], "text": "x\"}"}, said(6, "after")),
    ]),
    ("pieces of which one is missing, of two counts, and that are no object", "chat", [
        part("chat", A, 0, {"at": 1, "piece": [0, 2], "text": "{}"}, {"at": 2, "piece": [0, 1], "text": "[]"},
             {"at": 3, "piece": [0, 2], "text": "{"}, {"at": 3, "piece": [1, 3], "text": "}"}, said(4, "left")),
    ]),
    ("lines that mean nothing", "chat", [
        part("chat", A, 0, "no json", "7", "{}", "[1]", {"at": 1}, {"at": "1", "item": {}}, {"at": -1, "item": {}}, {"at": 1.5, "item": {}},
             {"at": 1, "item": 7}, {"at": 1, "item": []}, {"at": 1, "n": -1, "item": {}}, {"at": 1, "item": {}, "gone": [1, A, 0]},
             {"at": 1, "gone": [1, "x", 0]}, {"at": 1, "gone": [1, A]}, {"at": 1, "text": "{}"}, {"at": 1, "piece": [0, 1]},
             {"at": 1, "piece": [1, 1], "text": "{}"}, said(2, "left"), {"at": 3, "item": {"more": True}, "unknown": 1}),
    ]),
    ("parts whose header or key names another session", "chat", [
        part("chat", A, 0, said(1, "other"), named="Chat"), part("Chat", A, 1, said(2, "other"), named="chat"),
        part("chat", B, 12, said(3, "left")),
    ]),
]  # fmt: skip


def vectors() -> dict[str, Any]:
    return {
        "about": ABOUT,
        "tokens": [{"session": name, "token": session_token(name)} for name in NAMES],
        "refused_names": [{"text": text, "why": why} for text, why in REFUSED],
        "sessions": [
            {"name": name, "session": session, "parts": parts, "items": items_of_files(session, parts)}
            for name, session, parts in CASES
        ],
    }


if __name__ == "__main__":
    TARGET.write_text(json.dumps(vectors(), indent=1) + "\n", "utf-8")
