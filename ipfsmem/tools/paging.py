"""How much of a text one answer shows, so that every program passes the whole answer on to its model.

Programs cut the middle out of long tool answers: the strictest known one (Codex) at 10 kB of the answer as JSON or at 256 lines. An
answer within these bounds arrives whole. Both are one measure here: a line weighs its bytes, but at least `LINE`. Pure functions on text.
"""

from __future__ import annotations

from typing import Final

from msgspec import json

from ipfsmem.bundle.fence import JOINERS, QUOTE, clean_text

#: What one answer may weigh, and a line at least: so an answer has at most 195 lines. Cline cuts at 8,000 characters of JSON.
ANSWER: Final = 7_800
LINE: Final = 40
#: What a page may weigh at least, however much stands around it.
_LEAST: Final = 1_000
#: A page ends at a line break once so little room is left for a line that does not fit.
_NEARLY_FULL: Final = ANSWER // 2
#: Characters of a joined sequence, such as an emoji of several persons, that stay on one page.
_JOINED: Final = 40


def weight(text: str) -> int:
    """What a text weighs as a part of an answer."""
    return sum(max(_bytes(line) + 2, LINE) for line in text.split("\n")) if text else 0


def page_end(body: str, start: int, frame: str = "", *, most: int = ANSWER) -> int:
    """Where the page ends that begins at a character, in characters; `frame`: what the answer has around the quoted page."""
    room = max(_LEAST, most - weight(frame))
    end, left = _whole_lines(body, start, room)
    if end == len(body) or (end > start and left < _NEARLY_FULL):
        return end
    return _beside_joiners(body, start, end + max(_fitting(body, end, left), 1 if end == start else 0))


def _beside_joiners(body: str, start: int, end: int) -> int:
    """A page's end that parts no joined characters, where one is near: at an edge their joiner is taken out as invisible."""
    for near in range(end, max(start, end - _JOINED), -1):
        if JOINERS.isdisjoint(body[near - 1 : near + 1]):
            return near
    return end


def beginning(body: str, room: int) -> str:
    """The beginning of a text that fits, quoted, into so much room."""
    end, left = _whole_lines(body, 0, room)
    return body[: end if end == len(body) else end + _fitting(body, end, left)]


def _whole_lines(body: str, start: int, room: int) -> tuple[int, int]:
    """Where the last line ends that fits whole, and how much room is left."""
    end = start
    while end < len(body):
        after = body.find("\n", end) + 1 or len(body)
        # A line of megabytes is not measured for the few kilobytes that fit.
        if after - end > room or (cost := _quoted(body[end:after])) > room:
            break
        end, room = after, room - cost
    return end, room


def _fitting(body: str, start: int, room: int) -> int:
    """Characters of the line that begins there which fit."""
    least, most = 0, max(0, min(len(body) - start, room))
    while least < most:
        middle = (least + most + 1) // 2
        if _quoted(body[start : start + middle]) <= room:
            least = middle
        else:
            most = middle - 1
    return least


def _quoted(line: str) -> int:
    # Other line ends become line breaks when a text is cleaned, and each line has a quotation mark.
    lines = clean_text(line).removesuffix("\n").split("\n")
    return sum(max(_bytes(one) + len(QUOTE) + 2, LINE) for one in lines)


def _bytes(text: str) -> int:
    return len(json.encode(text)) - 2
