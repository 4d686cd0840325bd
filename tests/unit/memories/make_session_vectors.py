"""Writes fixtures/vectors/sessions.json: names of sessions, the items of parts (format section 5.1), and
their display and search. Run it from the checkout after a change of these; a test compares."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.bundle.session_parts import session_token
from ipfsmem.memories.part_lines import entries_of_files, items_of_files
from ipfsmem.memories.session_search import search
from ipfsmem.operations.sessions.info import SessionInfo
from ipfsmem.operations.sessions.messages import SessionMessage
from ipfsmem.sessions.compaction import told
from ipfsmem.sessions.transcript import as_markdown
from ipfsmem.wording import moment

TARGET = Path(__file__).parents[3] / "fixtures" / "vectors" / "sessions.json"
ABOUT = (
    "Sessions, format section 5.1. 'tokens': a name and what stands for it in the keys of parts. 'refused_names': none. "
    "'sessions': parts, and the items that they come to. 'told' and 'searched' are of every face, and no part of the format: parts, and "
    "what is said of their session; sessions by name, and which messages fit a question on the day 'today', counted from 1970."
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
    ("whole numbers in other forms, and such as are none", "chat", [
        part("chat", A, 0, '{"at":1.0,"item":{"is":"1"}}', '{"at":2e0,"n":-0,"item":{"is":"2"}}', '{"at":0.3e1,"n":-0.0,"item":{"is":"3"}}', '{"at":40E-1,"n":1.0,"item":{"is":"4"}}',
             '{"at":9007199254740991.4,"item":{"is":"the greatest"}}', '{"at":9007199254740992,"item":{}}', '{"at":1e400,"item":{}}', '{"at":5.5,"item":{}}',
             '{"at":' + "5" * 5_000 + ',"item":{}}', '{"at":01,"item":{}}', '{"at":true,"item":{}}', '{"at":5.0,"piece":[1.0,2e0],"text":"pieces\\"}"}',
             '{"at":5,"piece":[0,2],"text":"{\\"is\\":\\"5, in "}', '{"at":6,"piece":[0,9007199254740992],"text":"{}"}', '{"at":7,"item":{"is":"taken away"}}'),
        part("chat", B, 0, '{"at":8,"gone":[7.0,"' + A + '",-0]}', '{"at":8,"gone":[1,["' + A + '"],0]}', '{"at":8,"gone":[9007199254740992,"' + A + '",0]}'),
    ]),
    ("null is no field, of a repeated name the last is read, and other names are ignored", "chat", [
        part("chat", A, 0, '{"at":1,"n":null,"item":{"is":"1"}}', '{"at":2,"gone":null,"text":null,"piece":null,"item":{"is":"2"}}', '{"at":null,"item":{}}', '{"at":3,"item":null}',
             '{"at":4,"item":null,"piece":[0,1],"text":"{\\"is\\":\\"4\\"}"}', '{"at":"5","at":5,"item":7,"item":{"is":"5"}}', '{"at":6,"item":{},"item":7}',
             '{"at":7,"item":{"is":"no longer"},"item":null}', '{"at":8,"more":[{"at":9}],"item":{"is":"8"}}', '{"at":9,"item":{"is":"9"},"gone":[9,"' + A + '",0],"gone":null}',
             r'{"at":10,"item":{"is":"\ud83d"},"more":{"is":"\ude00"}}', '{"at":11,"piece":[0,1],"text":"{\\"is\\":NaN}"}', '{"at":12,"item":{"is":NaN}}'),
    ]),
    ("a line that nests as deep as it may, and lines and an item of pieces that nest deeper", "chat", [
        part("chat", A, 0, '{"at":1,"item":{"is":"1"},"more":' + "[" * 511 + "]" * 511 + "}", '{"at":2,"item":{},"more":' + "[" * 512 + "]" * 512 + "}",
             '{"at":3,"item":{"is":"3"},"more":"\\"' + "[" * 600 + '"}', {"at": 4, "piece": [0, 1], "text": '{"is":' + "[" * 512 + "]" * 512 + "}"}),
    ]),
    ("half of a surrogate pair as an escape beside an item, and a character that was cut into its halves", "chat", [
        part("chat", A, 0, r'{"at":1,"item":{"content":"\ud83d\uDE00 and \\ud83d"},"more":"\ud83d\\","less":"\ude00\u0041"}',
             r'{"at":2,"piece":[0,2],"text":"{\"content\":\"one \ud83d"}', r'{"at":2,"piece":[1,2],"text":"\uDE00\"}","\uDBFF":0}',
             r'{"at":3,"item":{"content":"no JSON \ud83"}}', r'{"at":3,"item":{"content":"no JSON \\\ud8"}}', said(4, "left")),
        part("chat", B, 0, r'{"at":5,"gone":[4,"' + A + r'",0],"why":"\ud83d"}'),
    ]),
    ("parts whose header or key names another session", "chat", [
        part("chat", A, 0, said(1, "other"), named="Chat"), part("Chat", A, 1, said(2, "other"), named="chat"),
        part("chat", B, 12, said(3, "left")),
    ]),
]  # fmt: skip


def items(at: int, *given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"at": at + n, "item": item} for n, item in enumerate(given)]


def mark(at: int, **said: Any) -> dict[str, Any]:
    return {"at": at, "item": {"ipfsmem": said}}


NOON = 1_795_600_000_000
TOLD = [
    ("nothing is in it", "chat", [part("chat", A, 0, mark(1, title=""))]),
    ("no title: the first request, cut to 80 letters in one line", "chat", [part("chat", A, 0, *items(
        NOON, {"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": " \x1c\u00a0 "},
        {"role": "user", "content": "\U0001f600 a\u2003b\x85c \ufeffd\t" + "word " * 40}, {"role": "tool", "content": "no preview", "tool_call_id": "x"}))]),
    ("a given title, the last of two; marks are no messages, and what only looks like one is", "chat", [part("chat", A, 0, mark(1, title="First"),
        *items(2, {"ipfsmem": {}, "role": "user", "content": "not a mark"}, {"ipfsmem": 7}), mark(5, title="Second"), mark(6, title=7))]),
    ("the four shapes, and one that nobody knows", "shapes", [part("shapes", A, 0, *items(NOON,
        {"role": "human", "content": [{"type": "text", "text": "One"}, "two", {"type": "image"}, {"content": [{"text": "three"}, {"content": [{"text": "too deep"}]}]}, 7]},
        {"role": "ai", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "look"}}, {"function": 7}, 7]},
        {"role": "function", "content": {"text": "found"}, "tool_call_id": "c1"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "read"}, {"type": "text", "text": "Reading."}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "the file"}]}]},
        {"type": "function_call", "name": "go", "call_id": "c3"}, {"type": "web_search_call"}, {"type": "function_call_output", "call_id": "c3", "output": "gone"},
        {"type": "reasoning", "summary": []}, {"type": "message", "role": "developer", "content": "Rules."},
        {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "Be."}, {"part_kind": "user-prompt", "content": ["Ask", {"text": "more"}]}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Calling."}, {"part_kind": "tool-call", "tool_name": "t", "tool_call_id": "c4"}, {"part_kind": "thinking", "content": "hm"}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "t", "tool_call_id": "c4", "content": "back"}]},
        {"kind": "request", "parts": [{"part_kind": "retry-prompt", "tool_name": "", "content": "again"}]}, {"kind": "request", "parts": [{"part_kind": "retry-prompt", "tool_name": "t", "content": "again"}]},
        {"kind": "request", "parts": 7}, {"kind": "request", "parts": []}, {"role": "stranger", "content": "x"}, {"role": ["user"], "content": "x"}, {}, {"type": "message"}))]),
    ("a message is no heading: lines of every kind are quoted", "chat", [part("chat", A, 0, *items(
        NOON, {"role": "user", "content": "# One\n\n## Two \r\nthree\x0bfour\u2028five\x1csix \t\n"}, {"role": "user", "content": "\n"}))]),
    ("a summary covers each device up to its place, and later ones of other devices stay", "chat", [
        part("chat", A, 0, said(5, "a5"), said(5, "a5 too", 1), said(7, "a7"), mark(9, summary="What was said.", covers={A: [5, 0], B: [6, 4]}, messages=1_234, by="rules")),
        part("chat", B, 0, said(6, "b6"), said(8, "b8")),
    ]),
    ("summaries that are not well formed do not count, and the last of the others does", "chat", [
        part("chat", A, 0, said(1, "one"), mark(2, summary="First", covers={A: [1, 0]}), mark(3, summary="No", covers=[A]), mark(4, summary=4, covers={}),
             mark(5, summary="No", covers={A: [1]}), mark(6, summary="No", covers={A: [1, "0"]}), mark(7, summary="No", covers={A: [1, True]})),
    ]),
    ("half of a surrogate pair as an escape is shown as U+FFFD", "chat", [part("chat", A, 0,
        r'{"at":1,"item":{"role":"user","content":"first \ud83d, last \uDE00, none \\ud83d, both \ud83d\ude00, two \ud83d\ud83d\ude00"}}',
        r'{"at":2,"item":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"look \ude00"},{"type":"text","text":"\ud83d"}]}}',
        r'{"at":3,"item":{"ipfsmem":{"title":"Half \ud83d"}}}',
        r'{"at":4,"item":{"ipfsmem":{"summary":"Half \ud83d.","covers":{"' + A + r'":[1,0]},"messages":1,"by":"m \ude00"}}}')]),
    ("imported messages and their summary are pending", "chat", [
        part("chat", A, 0, said(1, "mine"), said(2, "theirs"), said(3, "theirs too"), mark(4, summary="Theirs.", covers={}, messages=2, by="them"),
             mark(5, imported="agent", device=A, **{"from": [2, 0]}, to=[4, 0]), said(6, "mine again")),
    ]),
    ("approved ones are own, and those after the last approved one pending", "chat", [
        part("chat", A, 0, said(2, "one"), said(3, "two"), said(4, "three"), mark(5, imported="agent", device=A, **{"from": [2, 0]}, to=[4, 0])),
        part("chat", B, 0, mark(6, approved={A: [3, 0]}), mark(7, summary="All.", covers={A: [4, 0]}, messages=3, by="rules")),
    ]),
    ("an approved summary is own, and a mark that was imported approves nothing", "chat", [
        part("chat", A, 0, said(2, "one"), mark(3, summary="One.", covers={A: [2, 0]}, messages=1, by="them"), mark(4, imported="agent", device=A, **{"from": [2, 0]}, to=[3, 0])),
        part("chat", B, 0, said(2, "other"), mark(3, approved={B: [9, 0]}), mark(4, imported="agent", device=B, **{"from": [2, 0]}, to=[3, 0]), mark(6, approved={A: [3, 0]})),
    ]),
    ("later than dates go", "chat", [part("chat", A, 0, said(253_402_300_799_999, "the last"), said(253_402_300_800_000, "after it"))]),
]  # fmt: skip
SEARCHED = {
    "harbour": [part("harbour", A, 0, *items(
        NOON - 3 * 86_400_000, {"role": "user", "content": "When does the ferry leave the harbour?"}, {"role": "assistant", "content": "The ferry leaves at nine; the ferry back at five."},
        {"role": "system", "content": "Ferry rules."}, {"role": "user", "content": "Is there a bus to the harbour in Stra\u00dfe 3?"}, {"role": "assistant", "content": ""}))],
    "tides": [part("tides", A, 0, *items(NOON - 400 * 86_400_000, {"role": "user", "content": "When is high tide?"}, {"role": "assistant", "content": "At noon. The ferry waits for it."}),
                   mark(NOON, summary="Ferry and tide.", covers={A: [NOON, 0]}))],
    "tokyo": [part("tokyo", B, 0, *items(NOON, {"role": "user", "content": "\u6771\u4eac\u30bf\u30ef\u30fc\u306f\u3069\u3053"}, {"role": "stranger", "content": "unseen"}))],
}  # fmt: skip
QUESTIONS = [("ferry", 10), ("ferry", 1), ("harbur bus", 10), ("STRA\u1e9eE", 10), ("high tides last year", 10), ("\u6771\u4eac", 10), ("rules", 10), ("unseen", 10)]  # fmt: skip


def told_of(name: str, session: str, parts: list[dict[str, str]]) -> dict[str, Any]:
    found = told(entries_of_files(session, parts))
    info = SessionInfo.of(session, found, 0)
    return {
        "name": name,
        "session": session,
        "parts": parts,
        "title": info.title,
        "preview": info.preview,
        "messages": [
            {"at": one.at, "role": one.role, "text": one.text, "tools": list(one.tools), "own": one.own}
            for one in (SessionMessage.of(entry, found) for entry in found.messages)
        ],
        "tokens": info.tokens,
        "covered": info.covered,
        "summary": info.summary,
        "summary_by": info.summary_by,
        "summary_own": info.summary_own,
        "markdown": as_markdown(found, moment),
    }


def searched(questions: Iterable[tuple[str, int]]) -> dict[str, Any]:
    today = date(2026, 11, 26)
    known = {session: entries_of_files(session, parts) for session, parts in SEARCHED.items()}
    hits = {one: search(known, *one, today) for one in questions}
    return {
        "said": SEARCHED,
        "today": (today - date(1970, 1, 1)).days,
        "questions": [
            {
                "query": query,
                "limit": limit,
                "hits": [
                    {
                        "session": hit.session,
                        "at": hit.at,
                        "role": hit.role,
                        "text": hit.text,
                        "score": hit.score,
                        "own": hit.own,
                    }
                    for hit in found
                ],
            }
            for (query, limit), found in hits.items()
        ],
    }


def vectors() -> dict[str, Any]:
    return {
        "about": ABOUT,
        "tokens": [{"session": name, "token": session_token(name)} for name in NAMES],
        "refused_names": [{"text": text, "why": why} for text, why in REFUSED],
        "sessions": [
            {"name": name, "session": session, "parts": parts, "items": items_of_files(session, parts)}
            for name, session, parts in CASES
        ],
        "told": [told_of(*case) for case in TOLD],
        "searched": searched(QUESTIONS),
    }


if __name__ == "__main__":
    TARGET.write_text(json.dumps(vectors(), indent=1) + "\n", "utf-8")
