"""Links from one memory to another in its text: `[[key]]`, `[[key|words]]`, `[[key#part]]`, and `[words](key.md)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_LINK = re.compile(
    r"\[\[(?P<wiki>[a-z0-9][a-z0-9_-]{0,63})(?=\]\]|[|#][^\[\]\n]*\]\])"
    r"|\]\((?:\./)?(?P<file>[a-z0-9][a-z0-9_-]{0,63})\.md(?=\)|#[^()\s]*\))"
)
_INDEX_LINE = re.compile(r"^\s*[-*]\s+\[", re.MULTILINE)


class Link(NamedTuple):
    """A link and the line in which it stands."""

    key: str
    line: str


def links(text: str) -> Iterator[Link]:
    """The links of a text, in order. A path into another folder is none."""
    for match in _LINK.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        yield Link(match["wiki"] or match["file"], text[start : end if end >= 0 else len(text)])


def is_index_line(line: str) -> bool:
    """Whether a line is one of an index: a list item that begins with a link."""
    return _INDEX_LINE.match(line) is not None


def led_elsewhere(text: str, to: Mapping[str, str]) -> str:
    """The text with each link to a key of `to` leading to what stands there."""

    def changed(match: re.Match[str]) -> str:
        old = match["wiki"] or match["file"]
        name = "wiki" if match["wiki"] else "file"
        start, end = match.start(name) - match.start(), match.end(name) - match.start()
        return match[0][:start] + to.get(old, old) + match[0][end:]

    return _LINK.sub(changed, text)
