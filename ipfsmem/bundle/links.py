"""Find and rewrite links between memories: `[[key]]`, `[[Name]]`, `[[key|words]]`, `[[key#part]]`, `[words](key.md)`.

The target is a key or a memory's name; keys take precedence. Case and white space in names are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ipfsmem.lazy_pattern import lazy_pattern

#: Maximum characters of a link target, and of the line returned with it: a text can be one line with a link at each
#: word.
MAX_TARGET: Final = 200
_LINE: Final = 400

_LINK = lazy_pattern(
    rf"\[\[(?P<wiki>[^\[\]\n|#]{{1,{MAX_TARGET}}})(?=\]\]|[|#][^\[\]\n]*\]\])"
    r"|\]\((?:\./)?(?P<file>[a-z0-9][a-z0-9_-]{0,63})\.md(?=\)|#[^()\s]*\))"
)
_INDEX_LINE = lazy_pattern(r"^\s*[-*]\s+\[", re.MULTILINE)


class Link(msgspec.Struct, frozen=True):
    """The target of a link, and its line (truncated if long)."""

    to: str
    line: str


def links(text: str) -> Iterator[Link]:
    """Yield the links of a text, in order. A path into another folder is not a link."""
    start = end = 0
    for match in _LINK.finditer(text):
        start = text.rfind("\n", end, match.start()) + 1 or start
        end = match.end()
        to = (match["wiki"] or match["file"]).strip()
        if to:
            yield Link(to, text[start : start + _LINE].partition("\n")[0])


def folded(name: str) -> str:
    """Return a name with normalised case and white space, for comparison."""
    return " ".join(name.casefold().split())


def target_of(text: str) -> str:
    """Return the target of a text that is a link; any other text unchanged."""
    match = _LINK.match(text.strip())
    return (
        match["wiki"] if match is not None and match["wiki"] else re.split("[|#]", text, maxsplit=1)[0]
    ).strip()


def is_index_line(line: str) -> bool:
    """Tell whether a line is an index line: a list item that begins with a link."""
    return _INDEX_LINE.match(line) is not None


def retarget_links(text: str, to: Mapping[str, str], names: Mapping[str, str] | None = None) -> str:
    """Replace the target of each link to a key in `to`, or to a name in `names` (folded); a link by name keeps the
    name as its words."""

    def changed(match: re.Match[str]) -> str:
        old = match["wiki"] or match["file"]
        group = "wiki" if match["wiki"] else "file"
        new = to.get(old.strip())
        if new is None and match["wiki"] and names and (new := names.get(folded(old))) is not None:
            new += "" if text[match.end()] == "|" else f"|{old}"
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return match[0] if new is None else match[0][:start] + new + match[0][end:]

    return _LINK.sub(changed, text)
