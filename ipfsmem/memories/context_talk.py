"""Renders the messages and events of a context block: one line each with time and speaker, by time, in one fence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from math import log
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.bundle.fence import QUOTE, clean_text, tagged, unquote
from ipfsmem.bundle.timeline import normal_ts
from ipfsmem.device.shown_texts import mark_of
from ipfsmem.memories.event_entries import place_of
from ipfsmem.recall.index import has_number, has_time
from ipfsmem.recall.passages import passages
from ipfsmem.recall.ranking import asks_number, asks_when
from ipfsmem.recall.terms import split, terms, terms_of

if TYPE_CHECKING:
    from ipfsmem.memories.event_entries import Moment
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.memories.recall import Match, MomentHit

_TAG: Final = "memory-said"
#: Maximum bytes of a line.
MOST_BYTES: Final = 600
#: Bytes of the two marks that show where a text was cut.
_MARKS: Final = len(" …".encode()) * 2
#: Weight of a term of the answered message, relative to a term of the query: it only breaks ties, because an answer often begins
#: with the words of its question.
_ANSWERED_WEIGHT: Final = 0.1
#: Maximum bytes lost where a cut falls within a character.
_MAX_CUT_BYTES: Final = 4
_FENCE: Final = len(tagged(_TAG, {}, "").encode()) + 1
_sentences = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])").split
#: Sort key of lines of the same time: whether it is a message, then its session or segment, and its position there.
Order = tuple[int, str, str, str, int, str, int]
_bullet = re.compile(r"^(?:[-*>#]+|\d+[.)])\s+|^\[[^\]]*\] ").sub


class ContextLine:
    """One message or event as it appears in a block."""

    def __init__(
        self,
        at: int,
        order: Order,
        who: str,
        text: str,
        whole: str,
        mark: Callable[[], str],
        asked: Callable[[], str],
    ) -> None:
        """`who`: the speaker of a message, or the type of an event. `asked`: reads the message that this one answers; returns "" if
        there is none."""
        self.at = at
        self._who, self._asked = who, asked
        #: Its sort key among lines of the same time.
        self.order = order
        self.text = text
        self._whole = whole
        self._mark = mark

    @property
    def cost(self) -> int:
        """Bytes of the line in the fence."""
        return _cost(self.text)

    @cached_property
    def sentences(self) -> frozenset[str]:
        """The sentences of the whole text."""
        return sentences_of(self._whole)

    def repeats(self, other: ContextLine) -> bool:
        """Return whether both have the same text and speaker, and answer the same text: "yes" to another question is not a
        repetition."""
        return (
            self._who == other._who and self.sentences == other.sentences and self._asked() == other._asked()
        )

    @property
    def mark(self) -> str:
        """The mark by which a session is not shown this line twice."""
        return self._mark()


class Said:
    """A matching message or event, whose text is read only if it may fit into the block."""

    def __init__(
        self, match: Match, parts: Sequence[MemoryStore], least: dict[str, int], sought: Sought
    ) -> None:
        """`parts`: the scopes that are read. `least`: a cache of the minimum bytes of lines, by id."""
        moment = match.moment
        assert moment is not None
        self.match = match
        self._least = least
        self._sought = sought
        #: The message that it answers.
        self.asked: Match | None = None
        self._replica = parts[0].replica
        self._scopes = [part.scope for part in parts]
        self.moment: Moment = moment
        who = " ".join(clean_text(moment.type).split())[:80]
        self._who = who
        self._head = f"{moment.when[:16].replace('T', ' ')} {who}: ".lstrip()

    def line(self, room: int) -> ContextLine | None:
        """Return the line, of a long text the passage that matches `sought` best; None if the text is no longer on this device, or
        the line is longer than `room` bytes."""
        if max(self._least.get(self.match.id, 0), _cost(self._head)) > room:
            return None
        return self._line

    @cached_property
    def _line(self) -> ContextLine | None:
        hit = self.match.moment_hit
        if hit is None:
            return None
        text, most = said_by(hit), MOST_BYTES - len(self._head.encode())
        if self.match.id not in self._least:
            self._least[self.match.id] = _cost(self._head) + least_bytes(text, most)
        shown = self._head + shortened(text, self._sought, most, self._asked)
        order, mark = self._order(hit), lambda: self.mark
        return ContextLine(self.moment.at, order, self._who, shown, text, mark, self._asked)

    def _asked(self) -> str:
        hit = self.asked.moment_hit if self.asked is not None else None
        return hit.text if hit is not None else ""

    @property
    def place(self) -> tuple[str, str, str, int, str, int]:
        """The sort key of a message: its session, and its place there."""
        moment = self.moment
        return (moment.scope, moment.place, moment.session, *place_of(self.match.id))

    def _order(self, hit: MomentHit) -> Order:
        """Return the sort key among lines of the same time: events, which come from segments in any order, then messages in the
        order of their session."""
        moment = self.moment
        if hit.event is None:
            return (1, *self.place)
        of_scope = self._scopes.index(moment.scope)
        return (0, normal_ts(hit.event["ts"]), hit.event["id"], "", of_scope, "", 0)

    @cached_property
    def mark(self) -> str:
        """The mark by which a session is not shown this text twice; "" if the text is no longer on this device."""
        hit = self.match.moment_hit
        if hit is None:
            return ""
        if hit.event is not None:
            return mark_of(self._replica, "event", hit.text)
        moment = self.moment
        return mark_of(self._replica, "said", moment.scope, moment.session, str(moment.at), hit.text)


class Sought(msgspec.Struct, frozen=True):
    """The criteria for a passage: the weight of each term, and whether the query asks for a time or a number."""

    terms: Mapping[str, float]
    when: bool = False
    number: bool = False

    @classmethod
    def of(cls, query: str) -> Sought:
        """Return the criteria for a query."""
        return cls(dict.fromkeys(terms(query), 1.0), asks_when(query), asks_number(query))

    def answering(self, question: str) -> Sought:
        """Return the criteria for an answer to `question`, whose terms get a small weight."""
        return (
            msgspec.structs.replace(
                self, terms={**dict.fromkeys(terms(question), _ANSWERED_WEIGHT), **self.terms}
            )
            if question
            else self
        )


class Talk:
    """The messages and events of a block, without repetitions."""

    def __init__(self, text: str = "") -> None:
        """`text`: the text that precedes these lines in the block."""
        self.lines: list[ContextLine] = []
        #: Other texts of the block, whose sentences are not extracted yet.
        self._texts = [text] if text else []
        self._known: list[frozenset[str]] = []

    def add(self, line: ContextLine, room: int) -> int:
        """Add a line; returns the bytes used, 0 if the line does not fit or repeats a text of the block. A repeated message is
        shown with its latest time."""
        cost = line.cost + (0 if self.lines else _FENCE)
        if cost > room or any(line.sentences <= sentences for sentences in self._text_sentences()):
            return 0
        for n, one in enumerate(self.lines):
            if line.repeats(one):
                if line.at <= one.at:
                    return 0
                self.lines[n] = line
                return line.cost - one.cost
        self.lines.append(line)
        return cost

    def without(self, fenced: str) -> int:
        """Remove the lines whose sentences a memory of the block contains; returns the freed bytes."""
        self._texts.append(fenced)
        if not self.lines:
            return 0
        sentences = self._text_sentences()[-1]
        lines = [line for line in self.lines if not line.sentences <= sentences]
        freed = sum(line.cost for line in self.lines) - sum(line.cost for line in lines)
        if not lines:
            freed += _FENCE
        self.lines = lines
        return freed

    def _text_sentences(self) -> list[frozenset[str]]:
        self._known += [sentences_of(unquote(one)) for one in self._texts]
        self._texts.clear()
        return self._known

    def text(self) -> str:
        """Return the lines in their fence, the oldest first."""
        ordered = sorted(self.lines, key=attrgetter("at", "order"))
        return tagged(_TAG, {}, "\n".join(line.text for line in ordered))


def _cost(text: str) -> int:
    return len(QUOTE) + len(text.encode()) + 1


def said_by(hit: MomentHit) -> str:
    """Return the text of a message, or of an event its text and its other fields as JSON."""
    if hit.event is None:
        return clean_text(hit.text)
    rest = {name: value for name, value in hit.event.items() if name not in ("ts", "type", "id")}
    text = rest.get("text")
    if isinstance(text, str) and text:
        del rest["text"]
    else:
        text = ""
    fields_text = json.dumps(rest, ensure_ascii=False) if rest else ""
    return clean_text(" ".join(filter(None, (text, fields_text))))


def shortened(text: str, sought: Sought, most: int, asked: Callable[[], str] = str) -> str:
    """Shorten a text to one line of at most `most` bytes. `asked`: reads the message that the text answers, called for a long text
    only."""
    line = " ".join(text.split())
    if len(line.encode()) <= most:
        return line
    sought = sought.answering(asked())
    parts = passages(text)
    query_terms = frozenset(sought.terms)
    having = [_wanted_in(part, query_terms) for part in parts]
    worth = {
        term: counts * log(1 + len(parts) / times)
        for term, counts in sought.terms.items()
        if (times := sum(term in one for one in having))
    }

    def fits(at: int) -> tuple[float, int]:
        bonus = sought.when and has_time(parts[at]), sought.number and has_number(parts[at])
        return sum(worth[term] for term in sorted(having[at])) + sum(bonus), -at

    best = max(range(len(parts)), key=fits)
    line = " ".join(parts[best].split())
    before, behind = best > 0, best + 1 < len(parts)
    if len(line.encode()) > most - _MARKS:
        rest = _around(line, sought.terms, most - _MARKS)
        before = before or rest != line
        line = rest.encode()[: most - _MARKS].decode("utf-8", "ignore")
        behind = behind or line != rest
    return f"{'… ' if before else ''}{line}{' …' if behind else ''}"


def least_bytes(text: str, most: int) -> int:
    """Return the minimum bytes of the results of `shortened` for a text, over all criteria."""
    line = " ".join(text.split())
    size = len(line.encode())
    if size <= most:
        return size
    return min(_least_of(" ".join(part.split()), most - _MARKS) for part in passages(text))


def _least_of(line: str, most: int) -> int:
    size = len(line.encode())
    if size <= most:
        return size
    # `_around` returns the rest of the line once it has at most `most` bytes, except for a single word of that length.
    longest = max(len(word.encode()) for word in line.split(" "))
    return max(0, most - longest - len(" ") - _MAX_CUT_BYTES)


def _wanted_in(text: str, query_terms: frozenset[str]) -> frozenset[str]:
    """Return the terms that occur in a text."""
    first = {term[0] for term in query_terms if term}
    words = (
        one for one in set(split(text)) if one[0] in first or not one.isascii()
    )  # a word begins with the first letters of its stem
    return query_terms.intersection(term for word in words for term in terms_of(word))


def _around(line: str, query_terms: Collection[str], most: int) -> str:
    """Return the passage of at most `most` bytes with the greatest weight of query terms, of a text without sentence ends."""
    words = line.split(" ")
    sought = frozenset(query_terms)
    start, best, size = 0, (0, 0), 0
    having = {word: len(sought.intersection(terms(word))) for word in set(words)}
    hits = [having[word] for word in words]
    there = 0
    for end, word in enumerate(words):
        size += len(word.encode()) + 1
        there += hits[end]
        while size > most and start < end:
            size -= len(words[start].encode()) + 1
            there -= hits[start]
            start += 1
        best = max(best, (there, -start))
    return " ".join(words[-best[1] :])


def sentences_of(text: str) -> frozenset[str]:
    """Split a text into sentences and lines, in lower case and without list marks."""
    sentences = (
        _bullet("", " ".join(one.split())).casefold().rstrip(".!") for one in _sentences(clean_text(text))
    )
    return frozenset(filter(None, sentences))
