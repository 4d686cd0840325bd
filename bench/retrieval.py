"""How well entries are found: `python -m bench.retrieval [PATH...]`, on the set made from a seed, or on LoCoMo, LongMemEval and
BEIR data that somebody has.

Each pipeline answers the same questions. Half of the conversations, or of a single collection's questions, is to tune on, the
other to report; which is which follows from their names.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from math import log2
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import NamedTuple

from bench.report import machine
from bench.retrieval_peer import PeerError, basic_memory, initrunner
from bench.retrieval_set import Collection, Question, synthetic
from bench.retrieval_sets import SetError, read
from ipfsmem.errors import ConfigError
from ipfsmem.recall.ranking import USUAL, Index, rank
from ipfsmem.recall.terms import terms
from ipfsmem.recall.vectors import Vectors

#: How many hits are asked for: sessions are counted by their best entry, so more than ten.
DEPTH = 100
Search = Callable[[Question], list[str]]
HEADINGS = ("R@5", "R@10", "hit", "MRR", "nDCG@10")


class Scores(NamedTuple):
    """Means over questions: share of the evidence among the first 5 and 10, any among 10, one through the place of the first,
    and nDCG of the first 10."""

    recall5: float
    recall10: float
    hit: float
    mrr: float
    ndcg: float


class Asked(NamedTuple):
    """One question, what it scored by entry and by session, and how long it took, in seconds."""

    question: Question
    half: str
    turn: Scores
    session: Scores
    seconds: float


def score(found: Sequence[str], relevant: dict[str, int]) -> Scores:
    """One question's figures, given what was found, the best first, each once."""
    places = [place for place, id in enumerate(found, 1) if id in relevant]
    gain = sum(relevant[id] / log2(place + 1) for place, id in enumerate(found[:10], 1) if id in relevant)
    ideal = sorted(relevant.values(), reverse=True)[:10]
    return Scores(
        sum(place <= 5 for place in places) / len(relevant),
        sum(place <= 10 for place in places) / len(relevant),
        float(any(place <= 10 for place in places)),
        1 / places[0] if places else 0.0,
        gain / sum(grade / log2(place + 1) for place, grade in enumerate(ideal, 1)),
    )


def fts5(collection: Collection) -> Search:
    """SQLite's FTS5 as most use it: porter's stems, any word may match."""
    base = sqlite3.connect(":memory:")
    base.execute(
        "CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, words, tokenize='porter unicode61 remove_diacritics 2')"
    )
    base.executemany("INSERT INTO t VALUES (?, ?)", [(one.id, one.words) for one in collection.documents])

    def search(question: Question) -> list[str]:
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", question.text)))
        if not wanted:
            return []
        return [
            id
            for (id,) in base.execute(
                "SELECT id FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (wanted, DEPTH)
            )
        ]

    return search


def bm25(collection: Collection) -> Search:
    """Our own terms and BM25 over them, without the rest of the recipe."""
    index = Index(collection.documents)

    def search(question: Question) -> list[str]:
        scores = index.words.scores(terms(question.text))
        return [index.ids[n] for n in sorted(scores, key=lambda n: (-scores[n], index.ids[n]))[:DEPTH]]

    return search


def recipe(collection: Collection) -> Search:
    """What recall does where no model is installed."""
    index = Index(collection.documents)
    return lambda question: [hit.id for hit in rank(index, question.text, today=question.today, limit=DEPTH)]


class Model:
    """The model of the extra `semantic`, and the vectors of the texts that it was asked for: two pipelines ask for the same."""

    def __init__(self) -> None:
        from ipfsmem_providers.minilm.embedder import MiniLmEmbedder

        self.embedder = MiniLmEmbedder({})
        self._vectors: dict[str, Vectors] = {}

    def vectors(self, collection: Collection) -> Vectors:
        """Those of its entries, by the 16 bytes of their places."""
        if collection.name not in self._vectors:
            made = Vectors(self.embedder.identity)
            texts = [one.words for one in collection.documents]
            for begin in range(0, len(texts), 256):
                some = asyncio.run(self.embedder.embed(texts[begin : begin + 256]))
                made.add({(begin + at).to_bytes(16): vector for at, vector in enumerate(some)})
            self._vectors[collection.name] = made
        return self._vectors[collection.name]

    def near(self, collection: Collection, question: Question, least: float) -> dict[str, float]:
        """How similar entries are to a question, by id."""
        (asked,) = asyncio.run(self.embedder.embed([question.text]))
        ids = [one.id for one in collection.documents]
        found = self.vectors(collection).comparable().nearest(asked, range(len(ids)), least, 2_000)
        return {ids[at]: cosine for at, cosine in found.items()}

    def alone(self, collection: Collection) -> Search:
        """The most similar entries, and nothing else."""
        self.vectors(collection)

        def search(question: Question) -> list[str]:
            near = self.near(collection, question, -1.0)
            return sorted(near, key=lambda id: (-near[id], id))[:DEPTH]

        return search

    def recipe(self, collection: Collection) -> Search:
        """What recall does where the model is installed."""
        index = Index(collection.documents)
        self.vectors(collection)

        def search(question: Question) -> list[str]:
            near = self.near(collection, question, self.embedder.unrelated)
            weighed = USUAL.with_meaning(self.embedder.knows(question.text))
            hits = rank(
                index, question.text, today=question.today, limit=DEPTH, meaning=near, weighed=weighed
            )
            return [hit.id for hit in hits]

        return search


PIPELINES: dict[str, Callable[[Collection], Search]] = {
    "FTS5, porter": fts5,
    "BM25 of our terms": bm25,
    "recipe, no model": recipe,
}


def pipelines() -> dict[str, Callable[[Collection], Search]]:
    """All that can be asked here: with the extra `semantic` its model too."""
    try:
        model = Model()
    except ConfigError:
        return PIPELINES
    return {**PIPELINES, "MiniLM alone": model.alone, "recipe and MiniLM": model.recipe}


def ask(collections: Sequence[Collection], make: Callable[[Collection], Search]) -> list[Asked]:
    """Every question put to one pipeline."""
    asked = []
    if len(collections) > 1:
        half = halves(one.name for one in collections)
    else:
        half = halves(question.text for one in collections for question in one.questions)
    for collection in collections:
        search = make(collection)
        groups = {one.id: one.group or one.id for one in collection.documents}
        for question in collection.questions:
            began = perf_counter()
            found = list(dict.fromkeys(search(question)))
            seconds = perf_counter() - began
            sessions = list(dict.fromkeys(groups[id] for id in found))
            wanted: Counter[str] = Counter()
            for id, grade in question.relevant.items():
                wanted[groups[id]] = max(wanted[groups[id]], grade)
            name = collection.name if len(collections) > 1 else question.text
            asked.append(
                Asked(question, half[name], score(found, question.relevant), score(sessions, wanted), seconds)
            )
    return asked


def halves(names: Iterable[str]) -> dict[str, str]:
    """Which half each name belongs to: those whose hashes are lower to tune on, the others to report."""
    order = sorted(set(names), key=lambda name: sha256(name.encode()).digest())
    return {name: "tune" if place < len(order) // 2 else "report" for place, name in enumerate(order)}


def mean(scores: Sequence[Scores]) -> Scores:
    """The means of figures."""
    return Scores(*(fmean(column) for column in zip(*scores, strict=True)))


def digest(collections: Sequence[Collection]) -> str:
    """The SHA-256 of a set that was made here."""
    return sha256(repr(collections).encode()).hexdigest()


def table(
    collections: Sequence[Collection], pipelines: Mapping[str, Callable[[Collection], Search]] = PIPELINES
) -> list[str]:
    """The figures of every pipeline as Markdown: both halves, and by kind of question."""
    asked = {name: ask(collections, make) for name, make in pipelines.items()}
    lines = [
        "| pipeline | half | by | questions | " + " | ".join(HEADINGS) + " | ms each |",
        "| " + " | ".join(["---"] * (5 + len(HEADINGS))) + " |",
    ]
    for name, rows in asked.items():
        for which in ("tune", "report"):
            some = [row for row in rows if row.half == which]
            for by, scores in (
                ("turn", [row.turn for row in some]),
                ("session", [row.session for row in some]),
            ):
                if scores:
                    took = f"{median(row.seconds for row in some) * 1000:.2f}" if by == "turn" else ""
                    cells = [
                        name,
                        which,
                        by,
                        str(len(some)),
                        *(f"{value:.3f}" for value in mean(scores)),
                        took,
                    ]
                    lines.append("| " + " | ".join(cells) + " |")
    kinds = sorted({row.question.kind for row in next(iter(asked.values()))})
    if len(kinds) > 1:
        lines += ["", "| kind, turn R@10, both halves | questions | " + " | ".join(asked) + " |"]
        lines.append("| " + " | ".join(["---"] * (2 + len(asked))) + " |")
        for kind in kinds:
            of_kind = [
                [row.turn.recall10 for row in rows if row.question.kind == kind] for rows in asked.values()
            ]
            cells = [kind, str(len(of_kind[0])), *(f"{fmean(values):.3f}" for values in of_kind)]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it. 1 where a path is no set."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval", description="Measures how well entries are found."
    )
    parser.add_argument(
        "path",
        nargs="*",
        type=Path,
        help="LoCoMo or LongMemEval JSON, or a BEIR folder; none: the set made from a seed",
    )
    parser.add_argument(
        "--initrunner",
        type=Path,
        metavar="PYTHON",
        help="ask InitRunner's store too, under a Python that has initrunner==1.0.0",
    )
    parser.add_argument(
        "--basic-memory",
        type=Path,
        metavar="PYTHON",
        help="ask basic-memory's search too, under a Python that has it",
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="also write it here, such as bench/RESULTS_RETRIEVAL.md"
    )
    given = parser.parse_args(arguments)
    try:
        sets = [(path.name, *read(path)) for path in given.path]
        report = _report(sets, given.initrunner, given.basic_memory)
    except (SetError, PeerError) as error:
        print(error, file=sys.stderr)
        return 1
    print(report)
    if given.write:
        how = _HOW.format(day=datetime.now(UTC).date(), machine=machine())
        given.write.write_text(f"# How well ipfsmem finds\n\n{how}\n\n{report}", "utf-8")
    return 0


_HOW = """Generated by `python -m bench.retrieval --write FILE` on {day}; do not edit. Machine: {machine}.

Shares of the evidence among the first 5 and 10 hits, questions with any of it among 10, one through the place of the first, and
nDCG of 10; by turn (an entry) and by session (its conversation, found by its best entry). Times are medians of one question in
a warm process. The set made from a seed is written for this project (`bench/retrieval_set.py`): its halves are drawn from the
same sentences, and both were seen when the weight `file` was chosen, so it says what a change does, not how systems compare on
the talk of people.
InitRunner's store finds by vectors only and brings none that work offline: it was given words hashed to 384 numbers, so its time is
its own (with a pipe to its process), and what it finds is worth what such vectors are worth. basic-memory 0.24.1 is asked by its MCP tool
`search_notes` for words, as its search by vectors loads a model from the network. MiniLM is the model of the extra
`semantic`, and its times are with embedding the question; 0.2, the cosine below which it counts nothing, is about that of the nine of
ten of this set's questions about something else, and the least length of a word that is spelled anew was chosen on the half to tune on."""


def _report(sets: list[tuple[str, list[Collection], str]], store: Path | None, search: Path | None) -> str:
    """All tables; without a set those of the one made from a seed."""
    if not sets:
        made = synthetic()
        sets = [("made from a seed", made, digest(made))]
    lines: list[str] = []
    asked = pipelines()
    for name, collections, hashed in sets:
        entries = sum(len(one.documents) for one in collections)
        questions = sum(len(one.questions) for one in collections)
        lines += [f"## {name}", ""]
        lines += [
            f"{len(collections)} collections, {entries:,} entries, {questions:,} questions; SHA-256 {hashed}.",
            "",
        ]
        with ExitStack() as peers:
            theirs = dict(asked)
            if store:
                theirs["InitRunner 1.0.0's store, hashed words"] = peers.enter_context(initrunner(store))
            if search:
                theirs["basic-memory, by words"] = peers.enter_context(basic_memory(search))
            lines += table(collections, theirs)
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
