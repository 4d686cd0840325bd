"""The answers of InitRunner's memory tools, character for character.

`initrunner` is the form of its first versions, `initrunner-typed` that of versions with memory types. Neither has a fence, so
only own texts appear in them, cleaned, and no line of a text can be mistaken for a heading or for the separator of two blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, NamedTuple

from ipfsmem.bundle.fence import QUOTE, clean_text
from ipfsmem.exchange.program_forms import category, time

Form = Literal["initrunner", "initrunner-typed"]
NOTHING_STORED: Final = "No memories stored yet."
NOTHING_FOUND: Final = "No relevant memories found."
NOTHING_LISTED: Final = "No memories found."
_BETWEEN: Final = "\n\n---\n\n"
_imitates = re.compile(r"^(?=\s*(?:-{3,}\s*$|\[(?:Category|Type): ))", re.MULTILINE)


class AnswerEntry(NamedTuple):
    """One text of an answer. `type`: `semantic`, `episodic` or `procedural`; `score`: 0 to 1, or a cosine."""

    body: str
    category: str
    type: str
    at: datetime
    score: float = 0.0


def recalled(form: Form, entries: Iterable[AnswerEntry]) -> str:
    """Return the answer of `recall`."""
    blocks = []
    for one in entries:
        head = f"Category: {category(one.category)} | Score: {one.score:.3f} | {time(one.at)}"
        typed = f"Type: {one.type} | " if form == "initrunner-typed" else ""
        blocks.append(f"[{typed}{head}]\n{_body(one.body)}")
    return _BETWEEN.join(blocks) or NOTHING_FOUND


def listed(form: Form, entries: Iterable[AnswerEntry]) -> str:
    """Return the answer of `list_memories`: a line for each."""
    lines = []
    for one in entries:
        typed = f"{one.type}:" if form == "initrunner-typed" else ""
        body = " ".join(_body(one.body).split())
        lines.append(f"[{typed}{category(one.category)}] ({time(one.at)}) {body}")
    return "\n".join(lines) or NOTHING_LISTED


def _body(text: str) -> str:
    return _imitates.sub(QUOTE, clean_text(text).rstrip("\n"))
