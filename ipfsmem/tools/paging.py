"""The part of a text that one answer shows, so that every program passes the whole answer on to its model.

Programs cut the middle out of long tool answers: the strictest known one (Codex) at 10 kB of the answer as JSON or at 256
lines. An answer within these limits arrives whole. One measure covers both: a line weighs its bytes, but at least `LINE`. Pure
functions on text.
"""

from __future__ import annotations

from typing import Final

from msgspec import json

from ipfsmem.bundle.fence import JOINERS, QUOTE, clean_text

#: Maximum weight of an answer, and minimum weight of a line: so an answer has at most 195 lines. Cline cuts at 8,000 characters
#: of JSON.
ANSWER: Final = 7_800
LINE: Final = 40
#: Minimum weight of a page, whatever surrounds it.
_LEAST: Final = 1_000
#: A page ends at a line break if less room is left for a line that does not fit.
_NEARLY_FULL: Final = ANSWER // 2
#: Maximum characters of a joined sequence, such as an emoji of several persons, that stay on one page.
_JOINED: Final = 40


def weight(text: str) -> int:
    """Return the weight of a text as a part of an answer."""
    return sum(max(_bytes(line) + 2, LINE) for line in text.split("\n")) if text else 0


def page_end(body: str, start: int, frame: str = "", *, most: int = ANSWER) -> int:
    """Return the end of the page that begins at `start`, in characters; `frame`: the answer around the quoted page."""
    room = max(_LEAST, most - weight(frame))
    end, rest = _whole_lines(body, start, room)
    if end == len(body) or (end > start and rest < _NEARLY_FULL):
        return end
    return _beside_joiners(body, start, end + max(_fitting(body, end, rest), 1 if end == start else 0))


def _beside_joiners(body: str, start: int, end: int) -> int:
    """Return an end of the page that separates no joined characters, if one is near: at an edge their joiner is removed as
    invisible."""
    for near in range(end, max(start, end - _JOINED), -1):
        if JOINERS.isdisjoint(body[near - 1 : near + 1]):
            return near
    return end


def beginning(body: str, room: int) -> str:
    """Return the beginning of a text that fits, quoted, into `room`."""
    end, rest = _whole_lines(body, 0, room)
    return body[: end if end == len(body) else end + _fitting(body, end, rest)]


def _whole_lines(body: str, start: int, room: int) -> tuple[int, int]:
    """Return the end of the last line that fits whole, and the room left."""
    end = start
    while end < len(body):
        after = body.find("\n", end) + 1 or len(body)
        # A line of megabytes is not measured for the few kilobytes that fit.
        if after - end > room or (cost := _quoted(body[end:after])) > room:
            break
        end, room = after, room - cost
    return end, room


def _fitting(body: str, start: int, room: int) -> int:
    """Return how many characters of the line at `start` fit."""
    least, most = 0, max(0, min(len(body) - start, room))
    while least < most:
        middle = (least + most + 1) // 2
        if _quoted(body[start : start + middle]) <= room:
            least = middle
        else:
            most = middle - 1
    return least


def _quoted(line: str) -> int:
    # Cleaning converts other line ends to line breaks, and each line has a quotation mark.
    lines = clean_text(line).removesuffix("\n").split("\n")
    return sum(max(_bytes(one) + len(QUOTE) + 2, LINE) for one in lines)


def _bytes(text: str) -> int:
    return len(json.encode(text)) - 2
