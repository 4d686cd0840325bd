"""How well entries are found: `python -m bench.retrieval [PATH...]`, on the set made from a seed, or on LoCoMo, LongMemEval, ConvoMem,
BEAM and BEIR data that somebody has.

Each pipeline answers the same questions. Half of the conversations, or of a single collection's questions, is to tune on, the
other to report: the made set says which is which, elsewhere it follows from their names.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime
from functools import partial
from hashlib import sha256
from itertools import zip_longest
from math import log2
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import NamedTuple

from bench.report import machine
from bench.retrieval_peer import PeerError, basic_memory, initrunner
from bench.retrieval_set import synthetic, to_tune_on
from bench.retrieval_sets import SetError, read
from bench.retrieval_talk import Collection, Question
from ipfsmem.errors import ConfigError
from ipfsmem.memories.event_entries import Moment
from ipfsmem.memories.event_search import EventSource, read_together
from ipfsmem.provider.contract import open_embedder
from ipfsmem.recall.embedder import Embedder
from ipfsmem.recall.fusion import fused
from ipfsmem.recall.ranking import USUAL, WEIGHTS, Index, rank, weigh
from ipfsmem.recall.recipe import Hit
from ipfsmem.recall.terms import terms
from ipfsmem.recall.vectors import Vectors

#: Number of requested hits: more than ten, because a session counts by its best entry.
DEPTH = 100
Search = Callable[[Question], list[str]]
Ranking = Callable[[Question], list[Hit]]
HEADINGS = ("R@5", "R@10", "hit", "MRR", "nDCG@10")


class Scores(NamedTuple):
    """Means over queries: share of the evidence among the first 5 and 10, any among 10, reciprocal rank of
    the first, and nDCG of the first 10."""

    recall5: float
    recall10: float
    hit: float
    mrr: float
    ndcg: float


class Asked(NamedTuple):
    """One query, its scores by entry and by session (by exchange in talk with an agent), and its seconds."""

    question: Question
    half: str
    turn: Scores
    session: Scores
    seconds: float
    #: Whether it is about talk with an agent: then `session` is by exchange.
    agent: bool = False


def score(found: Sequence[str], relevant: dict[str, int]) -> Scores:
    """Return one query's scores for distinct hits, best first."""
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
    """SQLite's FTS5 in its usual form: Porter stemming, any word may match."""
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
    """Our terms with BM25, without the rest of the recipe."""
    index = Index(collection.documents)

    def search(question: Question) -> list[str]:
        scores = index.words.scores(terms(question.text))
        return [index.ids[n] for n in sorted(scores, key=lambda n: (-scores[n], index.ids[n]))[:DEPTH]]

    return search


def ranked_by_words(collection: Collection) -> Ranking:
    """What recall ranks without a model."""
    index = Index(collection.documents)
    return lambda question: rank(index, question.text, today=question.today, limit=DEPTH)


def recipe(collection: Collection) -> Search:
    """What recall finds without a model."""
    return ids(ranked_by_words(collection))


def ids(ranking: Ranking) -> Search:
    """Return the same hits by id."""
    return lambda question: [hit.id for hit in ranking(question)]


def asked_at_once(ranking: Ranking) -> Search:
    """All phrasings of a query in one recall, as an agent that has read nothing yet."""
    return lambda question: [
        hit.id
        for hit in fused(
            [ranking(question._replace(text=one)) for one in (question.text, *question.phrasings)]
        )
    ]


#: Number of hits that an agent reads before its second query.
READ = 10


def asked_again(ranking: Ranking) -> Search:
    """Two recalls: all phrasings, then, if a read hit has the first hop, the query with its content. The
    hits of both alternate, the second first."""
    first = asked_at_once(ranking)

    def search(question: Question) -> list[str]:
        found = first(question)
        if question.then is None or question.then[0] not in found[:READ]:
            return found
        then = [hit.id for hit in ranking(question._replace(text=question.then[1]))]
        both = zip_longest(then, [question.then[0], *found])
        return list(dict.fromkeys(id for pair in both for id in pair if id is not None))

    return search


#: The minimum share of entries with vectors, and the embedded characters of a memory file.
COUNTED, LOOKED_AT = 0.9, 4_000


def meant(collection: Collection) -> list[str]:
    """Return the embedded text of each entry: of a message its first passage, and the previous message if
    both are short."""
    texts, before = list[str](), None
    for one in collection.documents:
        if one.group:
            moment = Moment("message", "", True, "", 0, "", one.group)
            told = EventSource("", moment, f"{one.header}: {one.text}" if one.header else one.text)
            same = before is not None and before.moment.place == one.group
            texts.append(read_together(told, before if same else None))
            before = told
        else:
            texts.append(one.words[:LOOKED_AT])
    return texts


def texts_of(question: Question) -> list[str]:
    """Return all texts that an agent may use for a query."""
    return [question.text, *question.phrasings, *([] if question.then is None else [question.then[1]])]


def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    made = list[list[float]]()
    for begin in range(0, len(texts), 256):
        made += asyncio.run(embedder.embed(texts[begin : begin + 256]))
    return made


class Model:
    """A model, and the vectors of its texts, which two pipelines share."""

    def __init__(self, folder: Path | None = None) -> None:
        """The model of a directory, else that of the extra `semantic`. Raises ConfigError."""
        named = {"provider": "minilm"} if folder is None else {"path": str(folder)}
        embedder, of_texts = (open_embedder({**named, "question": asked}) for asked in (True, False))
        assert embedder is not None and of_texts is not None
        self.embedder, self._of_texts = embedder, of_texts
        self.name = "MiniLM" if folder is None else embedder.identity.name
        self._vectors: dict[str, Vectors] = {}
        self._questions: dict[str, list[float]] = {}

    def vectors(self, collection: Collection) -> Vectors:
        """Return the vectors of its entries, by the 16 bytes of their indexes; also computes those of its
        queries."""
        if collection.name not in self._vectors:
            made = Vectors(self.embedder.identity)
            made.add(
                {at.to_bytes(16): one for at, one in enumerate(_embedded(self._of_texts, meant(collection)))}
            )
            asked = [text for question in collection.questions for text in texts_of(question)]
            self._questions.update(zip(asked, _embedded(self.embedder, asked), strict=True))
            self._vectors[collection.name] = made
        return self._vectors[collection.name]

    def near(
        self, collection: Collection, question: Question, least: float, share: float = 1.0
    ) -> dict[str, float]:
        """Return the similarity of entries to a query by id; with a share, only of the newest, whose
        vectors are computed first."""
        vectors = self.vectors(collection)
        ids = [one.id for one in collection.documents]
        there = sorted(range(len(ids)), key=lambda at: collection.documents[at].at or date.min, reverse=True)
        some = set(there[: round(share * len(ids))])
        rows = [at if at in some else -1 for at in range(len(ids))]
        found = vectors.comparable().nearest(self._questions[question.text], rows, least, 2_000)
        return {ids[at]: cosine for at, cosine in found.items()}

    def alone(self, collection: Collection) -> Search:
        """Only the most similar entries."""
        self.vectors(collection)

        def search(question: Question) -> list[str]:
            near = self.near(collection, question, -1.0)
            return sorted(near, key=lambda id: (-near[id], id))[:DEPTH]

        return search

    def recipe(self, collection: Collection, share: float = 1.0) -> Search:
        """What recall finds with a model, if this share of the entries has a vector."""
        return ids(self.ranked(collection, share))

    def ranked(self, collection: Collection, share: float = 1.0) -> Ranking:
        """What recall ranks with a model."""
        index = Index(collection.documents)
        self.vectors(collection)

        def ranking(question: Question) -> list[Hit]:
            if share < COUNTED:
                near, weighed = None, USUAL
            else:
                near = self.near(collection, question, self.embedder.unrelated, share)
                weighed = USUAL.with_meaning(self.embedder.knows(question.text))
            return rank(
                index, question.text, today=question.today, limit=DEPTH, meaning=near, weighed=weighed
            )

        return ranking


PIPELINES: dict[str, Callable[[Collection], Search]] = {
    "FTS5, porter": fts5,
    "BM25 of our terms": bm25,
    "recipe, no model": recipe,
}
#: Shares of the entries with a vector, besides all of them.
PARTS = (0.1, 0.5, 0.9)


def model_here(folder: Path | None = None) -> Model | None:
    """Return the model of a directory, else of the extra `semantic`; None without the extra. Raises
    ConfigError for a directory without a usable model."""
    try:
        return Model(folder)
    except ConfigError:
        if folder is not None:
            raise
        return None


def pipelines(model: Model | None, parts: bool = False) -> dict[str, Callable[[Collection], Search]]:
    """Return all pipelines; with a model also its own, and with `parts` those with incomplete vectors."""
    if model is None:
        return PIPELINES
    name = f"recipe and {model.name}"
    partly = {f"{name}, {share:.0%} have vectors": partial(model.recipe, share=share) for share in PARTS}
    return {**PIPELINES, f"{model.name} alone": model.alone, name: model.recipe, **(partly if parts else {})}


def rankings(model: Model | None) -> dict[str, Callable[[Collection], Ranking]]:
    """Return the recipe, without and with a model."""
    found: dict[str, Callable[[Collection], Ranking]] = {"recipe, no model": ranked_by_words}
    if model is not None:
        found[f"recipe and {model.name}"] = model.ranked
    return found


def ask(collections: Sequence[Collection], make: Callable[[Collection], Search]) -> list[Asked]:
    """Run every query through one pipeline."""
    asked = []
    if len(collections) > 1:
        half = halves(one.name for one in collections)
    else:
        half = halves(question.text for one in collections for question in one.questions)
    for collection in collections:
        search = make(collection)
        groups = {one.id: one.group or one.id for one in collection.documents} | collection.exchanges
        for question in collection.questions:
            began = perf_counter()
            found = list(dict.fromkeys(search(question)))
            seconds = perf_counter() - began
            sessions = list(dict.fromkeys(groups[id] for id in found))
            wanted: Counter[str] = Counter()
            for id, grade in question.relevant.items():
                wanted[groups[id]] = max(wanted[groups[id]], grade)
            name = collection.name if len(collections) > 1 else question.text
            belongs = collection.half or half[name]
            asked.append(
                Asked(
                    question,
                    belongs,
                    score(found, question.relevant),
                    score(sessions, wanted),
                    seconds,
                    bool(collection.exchanges),
                )
            )
    return asked


def halves(names: Iterable[str]) -> dict[str, str]:
    """Return the half of each name: lower hashes for tuning, the others for the report."""
    order = sorted(set(names), key=lambda name: sha256(name.encode()).digest())
    return {name: "tune" if place < len(order) // 2 else "report" for place, name in enumerate(order)}


def mean(scores: Sequence[Scores]) -> Scores:
    """The means of figures."""
    return Scores(*(fmean(column) for column in zip(*scores, strict=True)))


def digest(collections: Sequence[Collection]) -> str:
    """Return the SHA-256 of a synthetic set."""
    return sha256(repr(collections).encode()).hexdigest()


def table(
    collections: Sequence[Collection], pipelines: Mapping[str, Callable[[Collection], Search]] = PIPELINES
) -> list[str]:
    """Return the figures of every pipeline as Markdown: by half and kind of talk, and by kind of query."""
    asked = {name: ask(collections, make) for name, make in pipelines.items()}
    lines = [
        "| pipeline | half | talk | by | questions | " + " | ".join(HEADINGS) + " | ms each |",
        "| " + " | ".join(["---"] * (6 + len(HEADINGS))) + " |",
    ]
    for which in ("tune", "report"):
        for agent in (False, True):
            for name, rows in asked.items():
                some = [row for row in rows if row.half == which and row.agent == agent]
                talk, unit = ("with an agent", "exchange") if agent else ("of people", "session")
                for by, scores in (
                    ("turn", [row.turn for row in some]),
                    (unit, [row.session for row in some]),
                ):
                    if scores:
                        took = f"{median(row.seconds for row in some) * 1000:.2f}" if by == "turn" else ""
                        figures = [f"{value:.3f}" for value in mean(scores)]
                        cells = [name, which, talk, by, str(len(some)), *figures, took]
                        lines.append("| " + " | ".join(cells) + " |")
    return lines + by_kind(asked)


def by_kind(asked: Mapping[str, Sequence[Asked]]) -> list[str]:
    """Return the figures of each kind of query as Markdown, one table per half, with R@5 / R@10 by turn,
    then by session."""
    lines = list[str]()
    first = next(iter(asked.values()))
    for which in ("tune", "report"):
        kinds = sorted({row.question.kind for row in first if row.half == which})
        if len(kinds) < 2:
            continue
        lines += [
            "",
            f"| kind, half to {which}: R@5 / R@10 by turn, by session (with an agent: exchange) | questions | "
            + " | ".join(asked)
            + " |",
        ]
        lines.append("| " + " | ".join(["---"] * (2 + len(asked))) + " |")
        for kind in kinds:
            cells, number = [kind], 0
            for rows in asked.values():
                some = [row for row in rows if row.half == which and row.question.kind == kind]
                turn, session = mean([row.turn for row in some]), mean([row.session for row in some])
                number = len(some)
                cells.append(
                    f"{turn.recall5:.3f} / {turn.recall10:.3f}, {session.recall5:.3f} / {session.recall10:.3f}"
                )
            lines.append("| " + " | ".join([cells[0], str(number), *cells[1:]]) + " |")
    return lines


def _searched(
    way: Callable[[Ranking], Search], rank_all: Callable[[Collection], Ranking], collection: Collection
) -> Search:
    return way(rank_all(collection))


def hops(
    collections: Sequence[Collection], rankings: Mapping[str, Callable[[Collection], Ranking]]
) -> list[str]:
    """Return the multi-hop queries as Markdown: one query, all phrasings at once, and a second query after
    the first hop was read."""
    some = [
        one._replace(questions=tuple(question for question in one.questions if question.phrasings))
        for one in collections
    ]
    some = [one for one in some if one.questions]
    if not some:
        return []
    ways = {"the question": ids, "its phrasings at once": asked_at_once, "and again": asked_again}
    lines = [
        "",
        f"| several hops: R@5 / R@10 by turn | half | talk | questions | {' | '.join(ways)} |",
        "| " + " | ".join(["---"] * (4 + len(ways))) + " |",
    ]
    for name, rank_all in rankings.items():
        rows = [ask(some, partial(_searched, way, rank_all)) for way in ways.values()]
        for which in ("tune", "report"):
            for agent in (False, True):
                of = [[row.turn for row in way if (row.half, row.agent) == (which, agent)] for way in rows]
                if of[0]:
                    figures = [f"{mean(way).recall5:.3f} / {mean(way).recall10:.3f}" for way in of]
                    talk = "with an agent" if agent else "of people"
                    lines.append(f"| {' | '.join([name, which, talk, str(len(of[0])), *figures])} |")
    return lines


def ablation(collections: Sequence[Collection]) -> list[str]:
    """Return the effect of each part of the recipe as Markdown: R@10 by words without it, and the
    difference."""
    indexes = {id(one): Index(one.documents) for one in collections}

    def without(part: str) -> Callable[[Collection], Search]:
        weighed = weigh({part: 0.0}) if part else USUAL

        def make(collection: Collection) -> Search:
            index = indexes[id(collection)]
            return lambda question: [
                hit.id
                for hit in rank(index, question.text, today=question.today, limit=DEPTH, weighed=weighed)
            ]

        return make

    def figures(asked: Sequence[Asked]) -> list[float]:
        return [mean(scores).recall10 for scores in columns(asked).values() if scores]

    def columns(asked: Sequence[Asked]) -> dict[str, list[Scores]]:
        found: dict[str, list[Scores]] = {}
        for which in ("tune", "report"):
            for agent, unit in ((False, "session"), (True, "exchange")):
                some = [row for row in asked if row.half == which and row.agent == agent]
                talk = f"{which}, {'with an agent' if agent else 'of people'}"
                found[f"{talk}, turn"] = [row.turn for row in some]
                found[f"{talk}, {unit}"] = [row.session for row in some]
        return found

    whole = ask(collections, without(""))
    heads, usual = [name for name, scores in columns(whole).items() if scores], figures(whole)
    lines = [
        f"| without | {' | '.join(heads)} |",
        "| " + " | ".join(["---"] * (1 + len(heads))) + " |",
        "| nothing | " + " | ".join(f"{value:.3f}" for value in usual) + " |",
    ]
    for part in WEIGHTS:
        if part != "meaning":  # without effect by words
            values = zip(figures(ask(collections, without(part))), usual, strict=True)
            cells = [f"{value:.3f} ({value - all:+.3f})" for value, all in values]
            lines.append(f"| {part} | {' | '.join(cells)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation; return 1 if a path is not a set."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval", description="Measures how well entries are found."
    )
    parser.add_argument(
        "path",
        nargs="*",
        type=Path,
        help="LoCoMo, LongMemEval or ConvoMem JSON, or a BEIR or BEAM folder; none: the set made from a seed",
    )
    parser.add_argument(
        "--report", action="store_true", help="of the made set the half to report too; CI prints it"
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="DIR",
        help="a model of yours in place of the extra's, as embeddings.path takes it",
    )
    parser.add_argument("--words", action="store_true", help="leave out what needs a model")
    parser.add_argument(
        "--ablation",
        action="store_true",
        help="only what each part of the recipe adds, by words; with --report on that half alone",
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
        if not sets:
            made = synthetic() if given.report else to_tune_on()
            sets = [("made from a seed", made, digest(made))]
        if given.ablation:
            for name, collections, hashed in sets:
                if given.report and not given.path:
                    collections = [one for one in collections if one.half == "report"]
                print(f"## {name}\n\nSHA-256 {hashed}.\n", *ablation(collections), sep="\n")
            return 0
        model = None if given.words else model_here(given.model)
        asked = pipelines(model, parts=not given.path)
        report = _report(sets, asked, rankings(model), given.initrunner, given.basic_memory)
    except (SetError, PeerError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 1
    print(report)
    if given.write:
        said = shlex.join(sys.argv[1:] if arguments is None else arguments)
        how = _HOW.format(arguments=said, day=datetime.now(UTC).date(), machine=machine())
        peers = _PEERS if given.initrunner or given.basic_memory else ""
        given.write.write_text(f"# Quality of recall\n\n{how}{peers}\n{report}", "utf-8")
    return 0


_HOW = """Generated by `python -m bench.retrieval {arguments}` on {day}; do not edit. Machine: {machine}.

R@5 and R@10 are the share of the evidence among the first 5 and 10 hits, "hit" the share of questions with any evidence among 10,
MRR the mean reciprocal rank of the first. Results are by turn (an entry) and by session (its conversation, ranked by its best
entry); for talk with an agent, by exchange (a question and its answer). Times are medians per question in a warm process.

The synthetic set is written for this project. Its two halves have different topics, templates, names and languages. Recall is
tuned on one half (`bench/retrieval_set.py`, `bench/retrieval_set_agents.py`); people who tune it do not read the generator of
the other (`bench/retrieval_set_report.py`). No question contains a word of its answer, or five consecutive words of the entry
with the answer. The set shows the effect of a change and the weaknesses of recall. To compare systems on conversations of
people, pass LoCoMo, LongMemEval, ConvoMem or BEAM data by path.

Multi-hop questions are also asked as an agent would ask them: with a second phrasing for the first hop in the same recall
(`queries`), and ("and again") with a second recall that uses the text of the first hop, if that is among the ten hits. MiniLM is
the model of the extra `semantic`; its times include the comparison of vectors, not the embedding of the question. "N % have
vectors": only the newest entries have vectors, as during indexing; below 90 %, recall ranks by words only.
"""
_PEERS = """
InitRunner's store searches by vectors only and has no offline model: it was given words hashed to 384 numbers. Its times are
therefore realistic (with a pipe to its process), and its hits are not. basic-memory is searched by words, with its MCP tool
`search_notes`, because its vector search loads a model from the network.
"""


def _report(
    sets: list[tuple[str, list[Collection], str]],
    asked: Mapping[str, Callable[[Collection], Search]],
    ranked: Mapping[str, Callable[[Collection], Ranking]],
    store: Path | None,
    search: Path | None,
) -> str:
    """All tables."""
    lines: list[str] = []
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
            lines += [*table(collections, theirs), *hops(collections, ranked)]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
