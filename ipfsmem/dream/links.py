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


#: Characters of a line from its beginning: a text may be all one line, with a link at each word.
_LINE = 400


class Link(NamedTuple):
    """A link and the line in which it stands, cut where it is long."""

    key: str
    line: str


def links(text: str) -> Iterator[Link]:
    """The links of a text, in order. A path into another folder is none."""
    start = looked = 0
    for match in _LINK.finditer(text):
        start = text.rfind("\n", looked, match.start()) + 1 or start
        looked = match.end()
        yield Link(match["wiki"] or match["file"], text[start : start + _LINE].partition("\n")[0])


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
