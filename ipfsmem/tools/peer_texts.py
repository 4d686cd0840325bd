"""The answers of recall and of lists in the exact texts of another program's tools, for agents whose prompts know these.

InitRunner's, of its first versions (`initrunner`) and with types (`initrunner-typed`). They have no fence, so a person chooses them
when the tools are made, never a model; only own texts stand in them, cleaned, and no line of one can be taken for a heading of
ours or for the line between two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from ipfsmem.bundle.fence import QUOTE, clean_text

Texts = Literal["", "initrunner", "initrunner-typed"]
TEXTS: Final = ("initrunner", "initrunner-typed")
NOTHING_STORED: Final = "No memories stored yet."
NOTHING_FOUND: Final = "No relevant memories found."
NOTHING_LISTED: Final = "No memories found."
_BETWEEN: Final = "\n\n---\n\n"
_TYPES: Final = {"procedure": "procedural", "episode": "episodic", "event": "episodic"}
_imitates = re.compile(r"^(?=\s*(?:-{3,}\s*$|\[(?:Category|Type): ))", re.MULTILINE)
_other = re.compile(r"[^a-z0-9]+")


class Told(NamedTuple):
    """One text of an answer. `at`: milliseconds since 1970 UTC; `score`: 0 to 1, or a cosine."""

    body: str
    category: str
    type: str
    at: int
    score: float = 0.0


def category(text: str) -> str:
    """A category as InitRunner writes it: `User Prefs!` is `user_prefs`, what has no letter of a to z `general`."""
    return _other.sub("_", text.lower()).strip("_") or "general"


def recalled(texts: Texts, found: Iterable[Told]) -> str:
    """What its `recall` answers."""
    blocks = []
    for one in found:
        head = f"Category: {category(one.category)} | Score: {one.score:.3f} | {_time(one.at)}"
        typed = f"Type: {_TYPES.get(one.type, 'semantic')} | " if texts == "initrunner-typed" else ""
        blocks.append(f"[{typed}{head}]\n{_body(one.body)}")
    return _BETWEEN.join(blocks) or NOTHING_FOUND


def listed(texts: Texts, found: Iterable[Told]) -> str:
    """What its `list_memories` answers: a line each."""
    lines = []
    for one in found:
        typed = f"{_TYPES.get(one.type, 'semantic')}:" if texts == "initrunner-typed" else ""
        body = " ".join(_body(one.body).split())
        lines.append(f"[{typed}{category(one.category)}] ({_time(one.at)}) {body}")
    return "\n".join(lines) or NOTHING_LISTED


def remembered(key: str, of_category: str) -> str:
    """What its `remember` answers, with the key in the place of a number."""
    return f"Remembered (id={key}, category={category(of_category)})"


def _body(text: str) -> str:
    return _imitates.sub(QUOTE, clean_text(text).rstrip("\n"))


def _time(at: int) -> str:
    try:
        return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat(timespec="microseconds")
