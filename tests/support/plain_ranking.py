"""A slow second implementation of the score, from the texts alone: the result that the ranking must have.

`look_all` and similar parameters are limits above which only a part of the entries is scored; small sets
lower them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from math import log, log10

from ipfsmem.recall import index as marks
from ipfsmem.recall.dates import days_named
from ipfsmem.recall.index import Document
from ipfsmem.recall.passages import passages
from ipfsmem.recall.ranking import USUAL, Hit, RankingWeights, recency
from ipfsmem.recall.terms import terms

CYRILLIC, GREEK = "абвгдежзиклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω"


def worth_of(texts: Sequence[list[str]], term: str) -> float:
    having = sum(term in text for text in texts)
    return max(1e-6, log((len(texts) - having + 0.5) / (having + 0.5)))


def bm25(texts: Sequence[list[str]], wanted: list[str]) -> list[float]:
    average = sum(map(len, texts)) / len(texts) if texts else 0.0
    scores, worths = [], {term: worth_of(texts, term) for term in wanted}
    for text in texts:
        score = 0.0
        for term in wanted:
            if times := text.count(term):
                against = 1.2 * (0.25 + 0.75 * len(text) / average)
                score += worths[term] * times * 2.2 / (times + against)
        scores.append(score)
    return scores


def one_slip(one: str, other: str) -> bool:
    """Return whether one inserted, deleted, replaced or swapped letter turns one word into the other."""
    if len(one) > len(other):
        one, other = other, one
    if len(one) < len(other):
        return len(other) - len(one) == 1 and any(
            other[:at] + other[at + 1 :] == one for at in range(len(other))
        )
    apart = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(apart) == 2:
        first, second = apart
        return second == first + 1 and (one[first], one[second]) == (other[second], other[first])
    return len(apart) == 1


def plainly_spelled(term: str, having: Mapping[str, int]) -> str:
    """Replace a term that no text has with the similar one that most texts have."""
    letters = next(
        (letters for letters in ("abcdefghijklmnopqrstuvwxyz", CYRILLIC, GREEK) if set(term) <= set(letters)),
        "",
    )
    near = [other for other in having if one_slip(term, other) and set(other) <= set(letters)]
    if having.get(term) or not 5 <= len(term) <= 30 or not near:
        return term
    return min(near, key=lambda other: (-having[other], other))


def threes(term: str) -> set[tuple[str, ...]]:
    letters = ["", *term, ""]
    return set(zip(letters, letters[1:], letters[2:], strict=False))


def plainly_likened(term: str, having: Mapping[str, int]) -> str:
    """Replace a term that no text has with the one that shares most trigrams with it."""
    if having.get(term) or not 5 <= len(term) <= 30 or not term.isalpha():
        return term
    shares = {}
    for other, times in having.items():
        common, fewer = len(threes(term) & threes(other)), min(len(threes(term)), len(threes(other)))
        if times and other.isalpha() and len(other) <= 30 and common >= 3 and 2 * common > fewer:
            shares[other] = common / fewer
    return min(shares, key=lambda other: (-shares[other], -having[other], other), default=term)


def plain_rank(
    documents: Sequence[Document],
    question: str,
    *,
    today: date,
    meaning: Mapping[str, float] | None = None,
    look_all: int = 5_000,
    look_best: int = 1_000,
    look_groups: int = 40,
    weighed: RankingWeights = USUAL,
    only: Collection[str] | None = None,
) -> list[Hit]:
    """Return all hits, best first. `only`: the ids of allowed hits."""
    weights = weighed.weights
    everyone = range(len(documents))
    may = {n for n in everyone if only is None or documents[n].id in only}
    days = [
        f" {one.at.day} {one.at:%B %Y}" if one.group and not one.memory and one.at else ""
        for one in documents
    ]
    texts = [terms(one.words + day) for one, day in zip(documents, days, strict=True)]
    having = Counter(term for n in may for term in set(texts[n]))
    asked = list(dict.fromkeys(terms(question)))
    wanted = asked
    if len(asked) <= 12:
        wanted = [plainly_spelled(term, having) for term in asked]
        wanted = list(dict.fromkeys(plainly_likened(term, having) for term in wanted))
    raw = bm25(texts, wanted)
    top = max([raw[n] for n in may], default=0.0) or 1.0
    pieces = [passages(one.text) for one in documents]
    in_passages = [
        [terms(f"{one.header}\n{piece}{day}") for piece in of]
        for one, of, day in zip(documents, pieces, days, strict=True)
    ]
    scored = iter(bm25([one for of in in_passages for one in of], wanted))
    of_passages = [[next(scored) for _ in of] for of in in_passages]
    with_words = {n for n in may if raw[n]}
    by_words = with_words
    if len(documents) > look_all:
        by_words = set(sorted(with_words, key=lambda n: (-raw[n], documents[n].id))[:look_best])
    top_passage = max([max(of_passages[n]) for n in by_words], default=0.0) or 1.0
    words = [
        (min(1.0, whole / top) + min(1.0, max(each) / top_passage)) / 2
        for whole, each in zip(raw, of_passages, strict=True)
    ]
    best_passage = [next(k for k, one in enumerate(each) if one >= max(each) - 1e-9) for each in of_passages]
    close = {
        n: meaning[documents[n].id] for n in everyone if n in may and meaning and documents[n].id in meaning
    }
    low, high = min(close.values(), default=0.0), max(close.values(), default=0.0)
    close = {n: (value - low) / (high - low) if high > low else 1.0 for n, value in close.items()}
    named = days_named(question, today)
    dated = {n for n in may if (at := documents[n].at) and any(at in days for days in named)}

    groups: dict[str, list[int]] = {}
    group_of = []
    for n, one in enumerate(documents):
        grouped = one.group and not one.memory
        group_of.append(f"of {one.group}" if grouped else f"alone {one.id}")
        groups.setdefault(group_of[n], []).append(n)
    of_groups = dict(
        zip(
            groups, bm25([[t for n in row for t in texts[n]] for row in groups.values()], wanted), strict=True
        )
    )
    talks = {name: score for name, score in of_groups.items() if name.startswith("of ") and score}

    def own(n: int) -> float:
        value = weights["words"] * words[n] + (weights["meaning"] * close.get(n, 0.0) if close else 0.0)
        return value / ((weights["words"] + (weights["meaning"] if close else 0.0)) or 1.0)

    def around(n: int, before: int, after: int) -> list[int]:
        row = groups[group_of[n]]
        at = row.index(n)
        return row[max(0, at - before) : at + after + 1]

    def first(found: set[int], value: Callable[[int], object], most: int) -> set[int]:
        return set(sorted(sorted(found, key=lambda n: documents[n].id), key=value, reverse=True)[:most])  # type: ignore[arg-type]

    if len(documents) <= look_all:
        looked = with_words | close.keys() | dated | {n for name in talks for n in groups[name]}
    else:
        looked = by_words | set()
        looked |= first(set(close), lambda n: close[n], look_best)
        latest = {n: (at, documents[n].id) for n in dated if (at := documents[n].at)}
        looked |= first(dated, lambda n: latest[n], look_best)
        looked |= {near for n in looked for near in around(n, 2, 2)}
        best = sorted(talks, key=lambda name: (talks[name], name), reverse=True)[:look_groups]
        looked |= {n for name in best for n in groups[name]}
    looked &= may
    top_group = max(talks.values(), default=0.0) or 1.0
    total = sum(worth_of(texts, term) for term in wanted)

    def share(there: set[str]) -> float:
        return sum(worth_of(texts, term) for term in wanted if term in there) / total if total else 0.0

    asked_for = f" {question.lower()} "
    times = (" when ", "how long ago", *(f"what {one} " for one in ("day", "date", "month", "year", "time")))
    asks_when = any(one in asked_for for one in times)
    asks_number = any(one in asked_for for one in ("how many ", "how long ", "how old ", "how far "))

    def in_sight(n: int) -> set[str]:
        """Return the terms of the best passage and its neighbours; the second neighbours only if a nearer
        one has fewer than 300 characters."""
        row = [(m, k) for m in groups[group_of[n]] for k in range(len(pieces[m]))]
        at = row.index((n, best_passage[n]))
        there = set(in_passages[n][best_passage[n]])
        for way in (range(at - 1, -1, -1), range(at + 1, len(row))):
            for m, k in [row[place] for place in way][:2]:
                there |= set(in_passages[m][k])
                if len(pieces[m][k]) >= 300:
                    break
        return there

    hits = []
    for n in looked:
        one, before = documents[n], around(n, 1, -1)
        parts = {"words": words[n], "meaning": close.get(n, 0.0)}
        together = (weights["words"] + (weights["meaning"] if close else 0.0)) or 1.0
        if one.group and not one.memory:
            parts = {part: weights["own"] / together * value for part, value in parts.items()}
            beside = [near for near in around(n, 2, 2) if near != n]
            asked_before = before and documents[before[0]].text.rstrip().endswith(("?", "？", "؟"))
            parts["date"] = float(n in dated)
            parts["cover"] = share(in_sight(n))
            parts["beside"] = sum(map(own, beside)) / len(beside) if beside else own(n)
            parts["answer"] = own(before[0]) if asked_before else 0.0
            parts["best"] = max(map(own, groups[group_of[n]]))
            parts["group"] = of_groups[group_of[n]] / top_group
            parts["by"] = float(bool(set(terms(one.header)) & set(wanted)))
            parts["when"] = float(asks_when and bool(marks._time.search(one.text)))
            parts["number"] = float(asks_number and bool(marks._number.search(one.text)))
            parts["question"] = float(one.text.rstrip().endswith(("?", "？", "؟")))
            parts["long"] = log10(max(len(one.text), 400) / 400)
        else:
            parts = {part: weights["alone"] / together * value for part, value in parts.items()}
            parts["day"] = float(n in dated)
            parts["cover"] = share(set(texts[n]))
        if one.memory:
            parts["file"] = 1.0
            parts["header"] = share(set(terms(one.header)))
            parts["salience"] = one.salience
            parts["recency"] = recency((today - one.at).days, weighed.half_life) if one.at else 0.0
        sums = {part: counts for part, value in parts.items() if (counts := weights[part] * value)}
        hits.append(Hit(one.id, sum(sums.values()), sums))
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def same_hits(ours: Sequence[Hit], theirs: Sequence[Hit]) -> bool:
    """Return whether these are the first of those; sums within rounding are equal."""
    known = {hit.id: hit for hit in theirs}
    if len({hit.id for hit in ours}) < len(ours):
        return False
    for hit, expected in zip(ours, theirs, strict=False):
        other = known.get(hit.id)
        if other is None or abs(hit.score - expected.score) > 1e-9 or abs(hit.score - other.score) > 1e-9:
            return False
        parts = hit.parts.keys() | other.parts.keys()  # scores that round to 0 are omitted
        if any(abs(hit.parts.get(part, 0.0) - other.parts.get(part, 0.0)) > 1e-9 for part in parts):
            return False
    return True
