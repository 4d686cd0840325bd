"""Runs a dream without a model: changes that need no judgement become steps, others are listed for a person.

Steps remove a memory whose sentences are all in another one, remove a memory that expired by its own date, and add the day of
writing to words like "yesterday". Two memories with most words in common are only listed, because they may differ by a "not".
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from ipfsmem.bundle.keys import is_key
from ipfsmem.bundle.links import folded, is_index_line, links, retarget_links
from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.dream.proposal import MOST_CHANGES, Change, DreamFinding, Note, Proposal, Step
from ipfsmem.errors import LimitError
from ipfsmem.recall.duplicates import Pair, duplicates
from ipfsmem.recall.terms import split

#: Minimum share of common words of two memories that are compared. With less, a dream over 10,000 memories exceeds its limit of 10
#: seconds.
_ALIKE = 0.8
#: Priority below which a memory is listed as faded.
FADED = 0.1
#: Maximum memories merged into one in one dream.
_MOST_INTO = 100
#: Maximum findings of each kind.
_MOST_FOUND = 200
#: Days without a write from which an expiry is doubtful.
FAR: Final = 30
#: Words that mean another day each day. English only; excludes phrases like "the last Friday" of each month.
_WORDS = re.compile(
    r"\b(?:yesterday|tomorrow|(?<!the )(?<!every )(?<!each )(?:last|next) (?:week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|\d{1,3} (?:days?|weeks?|months?) ago)\b(?!'|\u2019| ?[(\[]| of\b)",
    re.IGNORECASE,
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
#: Fields in which two equal memories may differ; `_joined` merges them.
_JOINED = frozenset(
    {"name", "description", "tags", "created", "updated", "source", "important", "confidence"}
)
#: Words that reverse the meaning of a sentence, as they are split ("don't" is two words).
_TURNS = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "nobody",
        "nothing",
        "neither",
        "nor",
        "without",
        "cannot",
        "dont",
        "don",
        "doesn",
        "didn",
        "isn",
        "wasn",
        "aren",
        "won",
        "wouldn",
        "shouldn",
        "stopped",
        "stop",
        "avoid",
        "dislikes",
        "hates",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "nie",
        "niemals",
        "ohne",
        "ne",
        "pas",
        "jamais",
        "sans",
        "nunca",
        "sin",
    ]
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_NUMBER = re.compile(r"\d")
#: The tag of an entity of the graph.
_ENTITY = "entity"

Progress = Callable[[str], None]


def tidy(
    notes: Sequence[Note],
    *,
    elsewhere: Collection[str] = (),
    index_key: str = "",
    meant: Sequence[tuple[str, str, float]] = (),
    progress: Progress = lambda phase: None,
) -> Proposal:
    """Return the steps for the memories of one scope, and the findings. `elsewhere`: keys of other scopes that links may mean;
    `index_key`: the memory that holds the lines of another program's index; `meant`: pairs of keys with their cosine that a
    model considers nearly equal. The same notes give the same proposal."""
    progress("orient")
    of = {note.key: note for note in sorted(notes, key=lambda note: note.key)}
    called = _called(of)
    linked = Counter(_meant(link.to, of, called) for note in of.values() for link in links(note.file.body))
    progress("gather")
    texts = {key: _said(note.file) for key, note in of.items() if key != index_key}
    pairs = duplicates(texts, _ALIKE, {key: _not_joined(of[key].file) for key in texts})
    progress("consolidate")
    merging = _Merging(of, linked, called)
    unsure = [pair for pair in pairs if not merging.take(pair)]
    progress("prune")
    steps = [*merging.steps(), *_expired(of, merging.gone)]
    steps += _perhaps_expired(of, {key for step in steps for key in step.keys})
    steps += _dated(of, {key for step in steps for key in step.keys} | {index_key})
    remaining = [note for key, note in of.items() if key not in merging.gone and not note.expired]
    findings = [
        *_limited(
            chain(
                _judged(unsure, of, merging.gone),
                _meaning_the_same(meant, pairs, of, merging.gone, index_key),
            )
        ),
        *_limited(_leading_nowhere(remaining, _known(of, elsewhere), called, index_key)),
        *_limited(_faded(remaining)),
    ]
    done, left = _bounded(steps)
    _sentences.cache_clear()  # free the cached texts
    return Proposal(steps=tuple(done), found=tuple(findings), looked_at=len(of), left=left)


class _Merging:
    """Merges memories into others that contain them."""

    def __init__(self, of: Mapping[str, Note], linked: Mapping[str, int], called: Mapping[str, str]) -> None:
        self._of = of
        self._linked = linked
        self._called = called
        #: The removed memories, each with the memory that contains it.
        self.gone: dict[str, str] = {}
        #: Number of memories merged into each.
        self._took: Counter[str] = Counter()
        #: The headers of the remaining memories, with the additions from removed ones.
        self._files: dict[str, MemoryFile] = {}

    def take(self, pair: Pair) -> bool:
        """Merge one of two memories into the other; False if that needs a judgement."""
        if pair.how == "alike" and pair.similarity < 1:
            return False  # each has a word that the other lacks
        one, other = self._last(pair.one), self._last(pair.other)
        if one == other:
            return True
        tries = [(one, other)] if pair.how == "contained" else self._better_last(one, other)
        for goes, stays in tries:
            file = _joined(
                self._files.get(stays, self._of[stays].file), self._files.get(goes, self._of[goes].file)
            )
            full = self._took[goes] + self._took[stays] >= _MOST_INTO
            if file is not None and not full and not (self._of[goes].expired or self._of[stays].expired):
                self.gone[goes] = stays
                self._took[stays] += 1 + self._took.pop(goes, 0)
                self._files.pop(goes, None)
                if file != self._of[stays].file:
                    self._files[stays] = file
                return True
        return False

    def _last(self, key: str) -> str:
        while key in self.gone:
            key = self.gone[key]
        return key

    def _better_last(self, one: str, other: str) -> list[tuple[str, str]]:
        """Return the possible directions of a merge, the better one first: the memory with more header fields and more incoming
        links stays, else the older one."""

        def worth(key: str) -> tuple[bool, int, int, int]:
            file = self._of[key].file
            return file.important, self._linked[key], len(file.fields), len(file.body)

        goes, stays = sorted((one, other), key=lambda key: (worth(key), -len(key), key))
        return [(goes, stays), (stays, goes)]

    def steps(self) -> Iterator[Step]:
        """Yield steps, each with the merges into one or more memories and the redirected links. A memory is changed in one step
        only."""
        into: dict[str, list[str]] = {}
        for goes in sorted(self.gone):
            into.setdefault(self._last(goes), []).append(goes)
        targets = {goes: self._last(goes) for goes in self.gone}
        names = self._names(targets)
        linking = self._linking(targets)
        for together in _together(into, linking):
            changed = {key for stays in together for key in linking.get(stays, ())}
            texts = {key: self._text(key, targets, names) for key in sorted(changed | {*together})}
            changes = [
                Change(key=key, text=text)
                for key, text in texts.items()
                if key in self._files or text != render_memory(self._of[key].file).decode()
            ]
            changes += [Change(key=goes) for stays in together for goes in into[stays]]
            why = "; ".join(
                f"{stays} contains everything that {_named(into[stays])} says" for stays in together
            )
            yield Step(why=why, changes=tuple(changes), reads=tuple(together))

    def _linking(self, targets: Mapping[str, str]) -> dict[str, set[str]]:
        """Return the remaining memories with links to removed ones, by the memory into which those were merged."""
        linking: dict[str, set[str]] = {}
        for key, note in self._of.items():
            if key not in self.gone and not note.expired:
                meant = {_meant(link.to, self._of, self._called) for link in links(note.file.body)}
                for name in meant & targets.keys():
                    linking.setdefault(targets[name], set()).add(key)
        return linking

    def _names(self, targets: Mapping[str, str]) -> dict[str, str]:
        """Return the new targets of links by name to removed memories, by folded name, unless a remaining memory has the name."""
        stay = {
            folded(self._files.get(key, note.file).name)
            for key, note in self._of.items()
            if key not in targets
        }
        return {
            name: targets[key]
            for name, key in self._called.items()
            if key in targets and name not in stay and name not in self._of
        }

    def _text(self, key: str, targets: Mapping[str, str], names: Mapping[str, str]) -> str:
        file = self._files.get(key, self._of[key].file)
        return render_memory(MemoryFile(file.fields, retarget_links(file.body, targets, names))).decode()


def _called(of: Mapping[str, Note]) -> dict[str, str]:
    """Return the keys of memories by folded name; of several memories with the same name the least key, as in the graph."""
    keys: dict[str, str] = {}
    for key in sorted(of):
        if name := folded(of[key].file.name):
            keys.setdefault(name, key)
    return keys


def _meant(to: str, of: Mapping[str, Note], called: Mapping[str, str]) -> str:
    """Return the key that a link refers to, or the link itself if it is unknown."""
    return to if to in of else called.get(folded(to), to)


def _together(into: Mapping[str, object], linking: Mapping[str, set[str]]) -> list[list[str]]:
    """Group the remaining memories whose steps would change the same memory."""
    groups: list[tuple[list[str], set[str]]] = []
    for stays in sorted(into):
        mine, touched = [stays], {stays, *linking.get(stays, ())}
        apart = []
        for names, others in groups:
            if others & touched:
                mine, touched = [*names, *mine], touched | others
            else:
                apart.append((names, others))
        groups = [*apart, (mine, touched)]
    return [sorted(names) for names, _ in groups]


def _named(keys: Sequence[str]) -> str:
    return ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")


def _joined(stays: MemoryFile, goes: MemoryFile) -> MemoryFile | None:
    """Return the first memory with the header fields of the second added; None if a field of the second would be lost."""
    fields = dict(stays.fields)
    for name, value in goes.fields.items():
        if name not in _JOINED and fields.get(name, "") != value:
            return None
    if any(name not in _JOINED and name not in goes.fields for name in fields):
        return None  # its validity is different
    here = _sentences(f"{stays.description}\n{stays.body}")
    if not _sentences(goes.body) <= here:
        return None
    if goes.description and not _sentences(goes.description) <= here:
        if stays.description:
            return None
        fields["description"] = goes.description
    if goes.name and not set(split(goes.name)) <= set(
        split(f"{stays.name} {fields.get('description', '')} {stays.body}")
    ):
        if stays.name:
            return None
        fields["name"] = goes.name
    tags = [*stays.tags, *(tag for tag in goes.tags if tag not in stays.tags)]
    if len(tags) > len(stays.tags):
        fields["tags"] = f"[{', '.join(tags)}]"
    if goes.important:
        fields["important"] = "true"
    if stays.confidence is not None and (goes.confidence is None or goes.confidence > stays.confidence):
        fields["confidence"] = goes.fields.get("confidence", "")
    made = MemoryFile({name: value for name, value in fields.items() if value}, stays.body)
    try:
        render_memory(made)
    except LimitError:
        return None
    return made


def _not_joined(file: MemoryFile) -> tuple[tuple[str, str], ...]:
    """Return the header fields in which two memories of equal text must agree, or may have to, so that `_joined` merges them."""
    fields = {name: value for name, value in file.fields.items() if name not in _JOINED}
    return tuple(sorted({**fields, "name": file.name, "description": file.description}.items()))


def _said(file: MemoryFile) -> str:
    return file.body if file.body.strip() else file.description


@lru_cache(maxsize=1024)
def _sentences(text: str) -> frozenset[str]:
    """Return the sentences and lines of a text, with white space folded. Cached, as it is requested with each similar one."""
    folded = (" ".join(one.split()) for one in _SENTENCE.split(unicodedata.normalize("NFC", text)))
    return frozenset(one for one in folded if one)


def _expired(of: Mapping[str, Note], gone: Collection[str]) -> Iterator[Step]:
    for key, note in of.items():
        if note.expired and key not in gone:
            yield Step(
                why=f"{key} was valid until {note.file.expires[:10]}, as it states",
                changes=(Change(key=key),),
            )


def _perhaps_expired(of: Mapping[str, Note], but: Collection[str]) -> Iterator[Step]:
    for key, note in of.items():
        if note.doubtful and key not in but:
            why = f"{key} was valid until {note.file.expires[:10]}, as it states; {note.doubtful}"
            yield Step(why=why, changes=(Change(key=key),), asks=True)


def _known(of: Mapping[str, Note], elsewhere: Collection[str]) -> set[str]:
    """Return the valid targets of links after the steps, which redirect links to removed memories."""
    return {*(key for key, note in of.items() if not note.expired), *elsewhere}


def _dated(of: Mapping[str, Note], but: Collection[str]) -> Iterator[Step]:
    """Yield steps for texts with "yesterday": with the day on which they were written."""
    for key, note in of.items():
        day = written_once(note.file)
        if not day or key in but:
            continue
        text, words = dated(note.file.body, day)
        if words:
            data = render_memory(note.file.with_fields({}, text)).decode()
            yield Step(
                why=f"{key} says {', '.join(words[:3])}, and was written on {day}",
                changes=(Change(key=key, text=data),),
            )


def _judged(pairs: Sequence[Pair], of: Mapping[str, Note], gone: Collection[str]) -> Iterator[DreamFinding]:
    """Yield findings for pairs of similar memories that were not merged."""
    for pair in pairs:
        if pair.one in gone or pair.other in gone:
            continue
        one, other = of[pair.one], of[pair.other]
        if _ENTITY in one.file.tags and _ENTITY in other.file.tags:
            continue  # the same text about two subjects
        if pair.how == "contained":
            yield DreamFinding(
                kind="alike",
                key=pair.one,
                other=pair.other,
                detail="the second contains the text of the first",
            )
        elif (turn := _turn(_said(one.file), _said(other.file))) and one.file.type == other.file.type:
            yield DreamFinding(kind="contradiction", key=pair.one, other=pair.other, detail=turn)
        else:
            share = f"{pair.similarity:.0%} of their words"
            yield DreamFinding(
                kind="alike", key=pair.one, other=pair.other, detail=f"they have {share} in common"
            )


def _meaning_the_same(
    meant: Sequence[tuple[str, str, float]],
    pairs: Sequence[Pair],
    of: Mapping[str, Note],
    gone: Collection[str],
    index_key: str,
) -> Iterator[DreamFinding]:
    """Yield findings for pairs that are nearly equal by a model only. Neither is removed, because each has words that the other
    lacks."""
    known = {frozenset((pair.one, pair.other)) for pair in pairs}
    for one, other, cosine in meant:
        here = one in of and other in of and index_key not in (one, other)
        if here and not {one, other} & set(gone) and frozenset((one, other)) not in known:
            detail = f"they have a similar meaning (cosine {cosine:.2f})"
            yield DreamFinding(kind="alike", key=one, other=other, detail=detail)


def _turn(one: str, other: str) -> str:
    """Return a possible contradiction between two similar texts, in words; "" if there is none."""
    first, second = set(split(one)), set(split(other))
    only_first, only_second = first - second, second - first
    turned = (only_first | only_second) & _TURNS
    if turned and bool(only_first & _TURNS) != bool(only_second & _TURNS):
        return f"only one of them says {sorted(turned)[0]}"
    numbers = [sorted(word for word in words if _NUMBER.search(word)) for words in (only_first, only_second)]
    if numbers[0] and numbers[1]:
        return f"one says {numbers[0][0]}, the other {numbers[1][0]}"
    return ""


def _leading_nowhere(
    notes: Sequence[Note], known: Collection[str], called: Mapping[str, str], index_key: str
) -> Iterator[DreamFinding]:
    """Yield findings for links to missing memories. A link without the form of a key is not reported, because it may be the name of
    a memory outside the dream."""
    for note in notes:
        for link in dict.fromkeys(links(note.file.body)):
            if link.to in known or not is_key(link.to) or folded(link.to) in called:
                continue
            if note.key == index_key and is_index_line(link.line):
                yield DreamFinding(
                    kind="stale-line", key=note.key, other=link.to, detail=link.line.strip()[:200]
                )
            else:
                yield DreamFinding(kind="broken-link", key=note.key, other=link.to)


def _faded(notes: Sequence[Note]) -> Iterator[DreamFinding]:
    faint = [note for note in notes if note.priority < FADED]
    for note in sorted(faint, key=lambda note: (note.priority, note.key)):
        yield DreamFinding(kind="faded", key=note.key, detail=f"low relevance: {note.priority:.2f} of 1")


def _limited(findings: Iterator[DreamFinding]) -> list[DreamFinding]:
    return [one for one, _ in zip(findings, range(_MOST_FOUND), strict=False)]


def _bounded(steps: Sequence[Step]) -> tuple[list[Step], int]:
    """Return the first steps up to the limit of one dream, and the number of changes of the others. A single step beyond the limit
    is never proposed."""
    done: list[Step] = []
    number = 0
    for step in steps:
        if number + len(step.changes) <= MOST_CHANGES:
            done.append(step)
            number += len(step.changes)
    return done, sum(len(step.changes) for step in steps) - number


def written_once(file: MemoryFile) -> str:
    """Return the day on which the whole text was written, by its header; "" if it was changed on a later day, or if unknown."""
    created, updated = file.created[:10], file.fields.get("updated", "")[:10]
    return created if _DAY.fullmatch(created) and created == updated else ""


def dated(text: str, day: str) -> tuple[str, tuple[str, ...]]:
    """Insert the day of writing after words that mean another day each day ("yesterday", "next week"); returns the text, and these
    words in lower case, each once.

    The words are kept, and the meant day is not computed, because that would need a judgement. Words in code, in a quotation or
    before a bracket are unchanged.
    """
    words: dict[str, None] = {}

    def with_day(match: re.Match[str]) -> str:
        words[match[0].lower()] = None
        return f"{match[0]} (as of {day})"

    lines, code = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        code ^= fence
        stays = fence or code or line.lstrip().startswith(">") or "`" in line or line.startswith("    ")
        lines.append(line if stays else _WORDS.sub(with_day, line))
    return "\n".join(lines), tuple(words)


class Gap(NamedTuple):
    """The last day with a write before a day, and the first day with a write after it, or today."""

    before: date
    after: date


def doubtful(ended: date, written: Iterable[date], today: date) -> Gap | None:
    """Return the gap without writes that contains a day, if it is so long that the day may not be past; None if it is past by the
    days of other writes, or precedes all writes.

    If a clock jumps far ahead, all memories expire at once, and no device has written between the right time and the wrong one. A
    vault that was unused for long looks the same, so a person has to decide. Later writes by the wrong clock do not close the gap.
    """
    before, after = date.min, today
    for day in written:
        if day <= ended:
            before = max(before, day)
        else:
            after = min(after, day)
    far = before > date.min and (after - before).days > FAR
    return Gap(before, after) if far else None
