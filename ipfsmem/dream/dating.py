"""Adds the day of writing to words that mean another day each day ("yesterday", "next week").

The words stay, and no day is computed: which one "last week" meant is a judgement, when it was written is not. English words
only; "the last Friday" of each month means no day, and words in code, in a quotation or before a bracket stay unchanged.
"""

from __future__ import annotations

import re

from ipfsmem.bundle.memory_file import MemoryFile

_WORDS = re.compile(
    r"\b(?:yesterday|tomorrow|(?<!the )(?<!every )(?<!each )(?:last|next) (?:week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|\d{1,3} (?:days?|weeks?|months?) ago)\b(?!'|\u2019| ?[(\[]| of\b)",
    re.IGNORECASE,
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def written_once(file: MemoryFile) -> str:
    """Return the day on which all of a text was written, by its header; "" if it was changed on another day since, or if unknown."""
    created, updated = file.created[:10], file.fields.get("updated", "")[:10]
    return created if _DAY.fullmatch(created) and created == updated else ""


def dated(text: str, day: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with that day after each such word, and the words, each once and in lower case."""
    found: dict[str, None] = {}

    def with_day(match: re.Match[str]) -> str:
        found[match[0].lower()] = None
        return f"{match[0]} (as of {day})"

    lines, code = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        code ^= fence
        stays = fence or code or line.lstrip().startswith(">") or "`" in line or line.startswith("    ")
        lines.append(line if stays else _WORDS.sub(with_day, line))
    return "\n".join(lines), tuple(found)
