"""InitRunner 1.0.0's store of sessions next to ours: this file runs under a Python that has it, and answers
line by line.

It reports the time of its own work without the pipe. A turn is what its loop does after one: the history
cut to 40 messages, and saved."""

from __future__ import annotations

import importlib
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_AGENT = "bench"


def serve(place: str) -> None:
    """`{"sessions": [[texts of a session]]}` fills the store, `{"session": s, "turn": [asked, answered]}`
    saves a turn, `{"resume": s}` resumes it; the answer is the seconds and the number of messages."""
    with suppress(ImportError):  # a Python whose own sqlite3 loads no extensions
        sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
    messages = importlib.import_module("pydantic_ai.messages")
    trim = importlib.import_module("initrunner.agent.history").trim_message_history
    store = importlib.import_module("initrunner.stores.sqlite_vec").SqliteVecMemoryStore(
        Path(place) / "sessions.db", dimensions=384
    )

    def turn(asked: str, answered: str) -> list[Any]:
        return [
            messages.ModelRequest(parts=[messages.UserPromptPart(content=asked)]),
            messages.ModelResponse(parts=[messages.TextPart(content=answered)]),
        ]

    histories: dict[str, list[Any]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        for number, texts in enumerate(asked.get("sessions", ())):
            made = [one for pair in texts for one in turn(*pair)]
            store.save_session(f"s{number}", _AGENT, made)
            histories[f"s{number}"] = made
        began = time.perf_counter()
        found: list[Any] = []
        if "turn" in asked:
            found = trim([*histories[asked["session"]], *turn(*asked["turn"])], 40)
            store.save_session(asked["session"], _AGENT, found)
            histories[asked["session"]] = found
        elif "resume" in asked:
            found = store.load_session_by_id(asked["resume"], _AGENT, 20) or []
        print(json.dumps([time.perf_counter() - began, len(found)]), flush=True)
    store.close()


if __name__ == "__main__":
    serve(sys.argv[1])
