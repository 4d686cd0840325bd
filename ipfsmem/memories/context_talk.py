"""Messages and events of a context block: one line each with its time and speaker, in order of time, in one fence."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from math import log
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from ipfsmem.bundle.fence import QUOTE, clean_text, tagged
from ipfsmem.recall.index import has_number, has_time
from ipfsmem.recall.passages import passages
from ipfsmem.recall.ranking import asks_number, asks_when
from ipfsmem.recall.terms import split, terms, terms_of

if TYPE_CHECKING:
    from ipfsmem.memories.recall import MomentHit

_TAG: Final = "memory-said"
#: Bytes of a line.
MOST_BYTES: Final = 600
#: Bytes of the two marks that show where a text was cut.
_MARKS: Final = len(" …".encode()) * 2
#: What a term of the message that is answered counts, beside a term of the query.
_HALF: Final = 0.5
_FENCE: Final = len(tagged(_TAG, {}, "").encode()) + 1
_sentences = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])").split
_bullet = re.compile(r"^(?:[-*>#]+|\d+[.)])\s+|^\[[^\]]*\] ").sub


class Line(NamedTuple):
    """One message or event as a block shows it."""

    at: int
    #: Its place among those of the same time.
    order: int
    text: str
    #: Stands for it, so that a session is not shown it twice.
    mark: str
    sentences: frozenset[str]

    @property
    def cost(self) -> int:
        """Its bytes in the fence."""
        return len(QUOTE) + len(self.text.encode()) + 1


class Sought(NamedTuple):
    """What a passage is chosen by: what each term counts, and whether a question asks when, or how many."""

    terms: Mapping[str, float]
    when: bool = False
    number: bool = False

    @classmethod
    def of(cls, query: str) -> Sought:
        """What a query asks for."""
        return cls(dict.fromkeys(terms(query), 1.0), asks_when(query), asks_number(query))

    def answering(self, asked: str) -> Sought:
        """The same in the answer to a message, which may ask for it in other words."""
        return self._replace(terms={**dict.fromkeys(terms(asked), _HALF), **self.terms}) if asked else self


class Talk:
    """The lines of a block, which say nothing twice."""

    def __init__(self, known: str = "") -> None:
        self.lines: list[Line] = []
        self._known = [sentences_of(known)] if known else []

    def add(self, line: Line, room: int) -> int:
        """Add a line and return its bytes; 0 where it has no room or repeats a text of the block."""
        cost = line.cost + (0 if self.lines else _FENCE)
        if (
            cost > room
            or any(line.sentences <= known for known in self._known)
            or any(line.sentences == one.sentences for one in self.lines)
        ):
            return 0
        self.lines.append(line)
        return cost

    def without(self, text: str) -> int:
        """Remove the lines that a memory of the block says too, and return the bytes that this frees."""
        known = sentences_of(text)
        self._known.append(known)
        kept = [line for line in self.lines if not line.sentences <= known]
        freed = sum(line.cost for line in self.lines) - sum(line.cost for line in kept)
        if self.lines and not kept:
            freed += _FENCE
        self.lines = kept
        return freed

    def text(self) -> str:
        """The lines in their fence, the oldest first."""
        ordered = sorted(self.lines, key=attrgetter("at", "order"))
        return tagged(_TAG, {}, "\n".join(line.text for line in ordered))


def line_of(hit: MomentHit, sought: Sought, mark: str, asked: str = "") -> Line:
    """The line of a hit; of a long text the passage that fits best what is sought, and the message that it answers (`asked`)."""
    moment = hit.moment
    who = " ".join(clean_text(moment.type).split())[:80]
    head = f"{moment.when[:16].replace('T', ' ')} {who}: ".lstrip()
    text = said_by(hit)
    shown = shortened(text, sought, MOST_BYTES - len(head.encode()), asked)
    return Line(moment.at, hit.order, head + shown, mark, sentences_of(text))


def said_by(hit: MomentHit) -> str:
    """What a message says; of an event its text, and all else that it tells as JSON."""
    if hit.event is None:
        return clean_text(hit.text)
    rest = {name: value for name, value in hit.event.items() if name not in ("ts", "type", "id")}
    text = rest.get("text")
    if isinstance(text, str) and text:
        del rest["text"]
    else:
        text = ""
    told = json.dumps(rest, ensure_ascii=False) if rest else ""
    return clean_text(" ".join(filter(None, (text, told))))


def shortened(text: str, sought: Sought, most: int, asked: str = "") -> str:
    """A text on one line of at most so many bytes."""
    line = " ".join(text.split())
    if len(line.encode()) <= most:
        return line
    sought = sought.answering(asked)
    parts = passages(text)
    wanted = frozenset(sought.terms)
    having = [_wanted_in(part, wanted) for part in parts]
    worth = {
        term: counts * log(1 + len(parts) / times)
        for term, counts in sought.terms.items()
        if (times := sum(term in one for one in having))
    }

    def fits(at: int) -> tuple[float, int]:
        told = sought.when and has_time(parts[at]), sought.number and has_number(parts[at])
        return sum(worth[term] for term in sorted(having[at])) + sum(told), -at

    best = max(range(len(parts)), key=fits)
    line = " ".join(parts[best].split())
    data = line.encode()
    before = "… " if best else ""
    if len(data) > most - _MARKS:
        return f"{before}{_around(line, sought.terms, most - _MARKS)} …"
    return f"{before}{line}{' …' if best + 1 < len(parts) else ''}"


def _wanted_in(text: str, wanted: frozenset[str]) -> frozenset[str]:
    """Those of some terms that a text has."""
    first = {term[0] for term in wanted if term}
    words = (
        one for one in set(split(text)) if one[0] in first or not one.isascii()
    )  # a stem begins as its word does
    return wanted.intersection(term for word in words for term in terms_of(word))


def _around(line: str, wanted: Collection[str], most: int) -> str:
    """Of a passage without an end of a sentence the part with most of the wanted terms."""
    words = line.split(" ")
    sought = frozenset(wanted)
    start, best, size = 0, (0, 0), 0
    hits = [len(sought.intersection(terms(word))) for word in words]
    there = 0
    for end, word in enumerate(words):
        size += len(word.encode()) + 1
        there += hits[end]
        while size > most and start < end:
            size -= len(words[start].encode()) + 1
            there -= hits[start]
            start += 1
        best = max(best, (there, -start))
    return " ".join(words[-best[1] :]).encode()[:most].decode("utf-8", "ignore")


def sentences_of(text: str) -> frozenset[str]:
    """The sentences and lines of a text, without case and marks of lists."""
    found = (
        _bullet("", " ".join(one.split())).casefold().rstrip(".!") for one in _sentences(clean_text(text))
    )
    return frozenset(filter(None, found))
