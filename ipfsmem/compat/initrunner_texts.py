"""The answers of InitRunner's memory tools, character for character.

`initrunner` is the form of its first versions, `initrunner-typed` that of versions with memory types. Neither has a fence, so
only own texts appear in them, cleaned, and no line of a text can be mistaken for a heading or for the separator of two blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from ipfsmem.bundle.fence import QUOTE, clean_text

Form = Literal["initrunner", "initrunner-typed"]
NOTHING_STORED: Final = "No memories stored yet."
NOTHING_FOUND: Final = "No relevant memories found."
NOTHING_LISTED: Final = "No memories found."
_BETWEEN: Final = "\n\n---\n\n"
_imitates = re.compile(r"^(?=\s*(?:-{3,}\s*$|\[(?:Category|Type): ))", re.MULTILINE)
_other = re.compile(r"[^a-z0-9]+")


class AnswerEntry(NamedTuple):
    """One text of an answer. `type`: `semantic`, `episodic` or `procedural`; `score`: 0 to 1, or a cosine."""

    body: str
    category: str
    type: str
    at: datetime
    score: float = 0.0


def category(text: str) -> str:
    """Return a category in InitRunner's form: `User Prefs!` is `user_prefs`; `general` if no character of a-z, 0-9 is left."""
    return _other.sub("_", text.lower()).strip("_") or "general"


def recalled(form: Form, found: Iterable[AnswerEntry]) -> str:
    """Return the answer of `recall`."""
    blocks = []
    for one in found:
        head = f"Category: {category(one.category)} | Score: {one.score:.3f} | {time(one.at)}"
        typed = f"Type: {one.type} | " if form == "initrunner-typed" else ""
        blocks.append(f"[{typed}{head}]\n{_body(one.body)}")
    return _BETWEEN.join(blocks) or NOTHING_FOUND


def listed(form: Form, found: Iterable[AnswerEntry]) -> str:
    """Return the answer of `list_memories`: a line for each."""
    lines = []
    for one in found:
        typed = f"{one.type}:" if form == "initrunner-typed" else ""
        body = " ".join(_body(one.body).split())
        lines.append(f"[{typed}{category(one.category)}] ({time(one.at)}) {body}")
    return "\n".join(lines) or NOTHING_LISTED


def time(at: datetime) -> str:
    """Return a time in InitRunner's form: UTC as `+00:00`; microseconds only if there are any."""
    return at.astimezone(UTC).isoformat()


def _body(text: str) -> str:
    return _imitates.sub(QUOTE, clean_text(text).rstrip("\n"))
