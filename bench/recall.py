"""The cost of ranking: building the index, opening its image, and queries, in this process and in a new
one."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from statistics import median as middle
from time import process_time

from bench.context import PYTHON, Context
from bench.measure import least_cpu, median, median_process
from ipfsmem.recall import ranking
from ipfsmem.recall.duplicates import duplicates
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.ranking import Document, Index, rank
from ipfsmem.recall.vectors import Vectors

_TODAY = date(2026, 11, 23)
#: Queries of some words of the texts, so that common words occur more often.
_QUESTIONS = 30
#: Budgets in seconds by size: building the index; a query by words with NumPy and without, and by words and
#: vectors; finding duplicates.
_INDEX = {10_000: 0.3, 100_000: 1.2}
_WORDS, _CORE = {10_000: 0.002, 100_000: 0.005}, {10_000: 0.005, 100_000: 0.013}
_VECTORS = {10_000: 0.003, 100_000: 0.015}
_DUPLICATES = {100_000: 20.0}
#: Dimensions of a vector, as in MiniLM.
_DIMENSION = 384
_COLD = (
    "import sys; from datetime import date; from pathlib import Path; from ipfsmem.recall.ranking import Index, rank; "
    "index = Index.from_image(Path(sys.argv[1]).read_bytes()); "
    "print(len(rank(index, sys.argv[2], today=date(2026, 11, 23))))"
)


def recall(ctx: Context) -> None:
    """Measure memory files, then as many turns of conversations."""
    _measure(ctx, "", _memory)
    _measure(ctx, ", conversations", _turn)
    texts = {key: data.decode() for key, data in ctx.files.items()}
    started = process_time()
    found = len(duplicates(texts))
    ctx.add(
        "duplicates",
        process_time() - started,
        budget_seconds=_DUPLICATES.get(ctx.size),
        note=f"processor time, of texts in RAM; pairs: {found:,}",
    )


def _measure(ctx: Context, what: str, document: Callable[[int, str, str], Document]) -> None:
    texts = [(key, data.decode()) for key, data in ctx.files.items()]
    documents = [document(number, key, text) for number, (key, text) in enumerate(texts)]
    rng = random.Random(ctx.size)
    words = " ".join(one.text for one in documents[:1_000]).split()
    questions = [" ".join(rng.sample(words, rng.choice((1, 3, 5, 8)))) for _ in range(_QUESTIONS)]
    started = process_time()
    index = Index(documents)
    for rows in (index.words, index.headers, index.passages):
        rows.having("")  # terms are sorted when a query needs them
    ctx.add(
        f"index for recall{what}",
        process_time() - started,
        budget_seconds=_INDEX.get(ctx.size),
        note="processor time, of texts in RAM",
    )
    image = index.image()
    path = ctx.work / "recall.image"
    path.write_bytes(image)
    seconds = median(lambda: Index.from_image(image), ctx.runs(5))
    limit = 0.04 if ctx.size == 10_000 else None
    ctx.add(f"open the stored index{what}", seconds, bytes=len(image), budget_seconds=limit)
    how = "words alone, with NumPy where it is installed"
    _warm(ctx, f"recall, warm{what}", index, questions, how, _WORDS.get(ctx.size))
    with _nothing_installed():
        how = "words alone, without NumPy"
        _warm(ctx, f"recall, warm, the core alone{what}", index, questions, how, _CORE.get(ctx.size))
    _with_vectors(ctx, what, index, documents, questions)
    done = median_process(
        lambda run: [PYTHON, "-c", _COLD, path, questions[run % len(questions)]], ctx.runs(5)
    )
    ctx.add(
        f"recall, cold{what}",
        done.seconds,
        runs=ctx.runs(5),
        rss_mb=round(done.rss_mb),
        note="whole process: open the stored index, one question; excluding the time to open the vault",
    )


def _warm(ctx: Context, name: str, index: Index, questions: list[str], how: str, limit: float | None) -> None:
    """Measure the median query, each at its fastest, so that other programs do not disturb it."""
    times = [least_cpu(partial(rank, index, question, today=_TODAY)) for question in questions]
    ctx.add(
        name,
        middle(times),
        runs=len(times),
        budget_seconds=limit,
        note=f"processor time, {how}; the slowest of {len(times)} questions: {max(times) * 1000:.1f} ms",
    )


@contextmanager
def _nothing_installed() -> Iterator[None]:
    """Use only the core: ranking without NumPy."""
    found = ranking._by_arrays
    ranking._by_arrays = lambda index: False
    try:
        yield
    finally:
        ranking._by_arrays = found


def _with_vectors(
    ctx: Context, what: str, index: Index, documents: list[Document], questions: list[str]
) -> None:
    """Measure words and vectors around two hundred random topics, without embedding the query."""
    try:
        import numpy
    except ImportError:
        return  # a dependency of the extra `semantic`
    rng = numpy.random.default_rng(ctx.size)
    topics = rng.normal(size=(200, _DIMENSION)) * 0.8

    def drawn(count: int) -> list[list[float]]:
        about = topics[rng.integers(0, len(topics), count)] + rng.normal(size=(count, _DIMENSION))
        return [row.tolist() for row in about]

    vectors = Vectors(EmbedderIdentity("drawn", "", "", _DIMENSION))
    for begin in range(0, len(documents), 10_000):
        some = drawn(min(10_000, len(documents) - begin))
        vectors.add({(begin + at).to_bytes(16): one for at, one in enumerate(some)})
    started = process_time()
    ready = vectors.comparable()
    ctx.add(f"prepare vectors{what}", process_time() - started, note="once, and after a change")
    rows = array("i", [-1, *range(len(documents))])
    times = []
    for question, asked in zip(questions, drawn(len(questions)), strict=True):

        def both(question: str = question, asked: list[float] = asked) -> None:
            near = ready.nearest(asked, rows, 0.2, 2_000)
            rank(
                index, question, today=_TODAY, meaning={index.ids[at]: cosine for at, cosine in near.items()}
            )

        times.append(least_cpu(both))
    ctx.add(
        f"recall by words and vectors, warm{what}",
        middle(times),
        runs=len(times),
        budget_seconds=_VECTORS.get(ctx.size),
        note=f"processor time, excluding the embedding of the query; the slowest of {len(times)}: {max(times) * 1000:.1f} ms",
    )


def _memory(number: int, key: str, text: str) -> Document:
    """Return a memory file with its name and description as header."""
    head, _, body = text.partition("\n---\n\n")
    header = " ".join(line.partition(": ")[2] for line in head.splitlines()[1:3])
    return Document(key, body, header, at=_TODAY - timedelta(number % 400), memory=True)


def _turn(number: int, key: str, text: str) -> Document:
    """Return one of twenty turns of a conversation: the beginning of a text, each fifth a question."""
    _, _, body = text.partition("\n---\n\n")
    said = body[: random.Random(number).randrange(30, 300)]
    day = _TODAY - timedelta(number // 20 % 400)
    return Document(key, said + "?" * (number % 5 == 0), group=f"talk {number // 20}", at=day)
