"""Writes fixtures/vectors/ranking.json: entries and the hits among them, by the plain recipe. Run it from
the checkout after a change of the recipe: `python -m tests.unit.make_ranking_vectors`; a test compares."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

from ipfsmem.recall.ranking import Document, Hit
from tests.support.plain_ranking import plain_rank

TARGET = Path(__file__).parents[2] / "fixtures" / "vectors" / "ranking.json"
ABOUT = (
    "Messages of conversations, events of days and memory files ranked by words: no part of the format, and the same in every face. "
    "Days are counted from 1970; 'today' is that of all questions. A score is the sum of its parts."
)
EPOCH = date(1970, 1, 1)
TODAY = date(2026, 11, 23)
#: Above the first number of entries only some are scored.
Limits = tuple[int, int, int]
USUAL: Limits = (5_000, 1_000, 40)

SET_UP = "\n".join(
    f"Step {n}: open valve {n}, then wait until the gauge of pump {n * 7 % 40} is green. 🧭"
    if n != 31
    else "The certificate of the water plant renews itself through certbot every sixty days, at 04:30."
    for n in range(40)
)
TALK = [
    ("user", "How do I set up the box?", 1),
    ("assistant", SET_UP, 1),
    ("user", "Thanks. Any certificate？ \x1c", 1),
    ("assistant", "Yes, one for the plant.", 1),
    ("user", "Who is on call in May?", 200),
    ("Ana", "Ana is on call, then Bob, for two weeks.", 200),
    ("Bob", "I painted the bicycle green yesterday!", 201),
    ("user", "متى يصل القطار؟", 201),
    ("assistant", "يصل القطار في التاسعة", 201),
    ("user", "東京の塔は？", 202),
    ("assistant", "東京の塔は高いです。" * 60 + "庭に池があります。" * 60, 202),
]
DAY = [
    ("decided to ship", "We ship the water plant.", 200),
    ("said", "Café Müller in the Straße is closed. " * 13, 200),
    ("noted deploy ana", "", 200),
    ("said", "Twice as many visitors as last week", 200),
]
FILES = [
    ("plant", "The water plant is run by Tove.", "plant water", 3, 0.7),
    ("bike", "A green bicycle stands in the yard.", "bike", 400, 0.5),
]
QUESTIONS = [
    "when does certbot renew the certificate", "certificate", "who is on call", "how many weeks is Ana on call", "what colour has the bicycle",
    "what did Bob say", "in May 2026", "last week", "القطار", "東京の塔", "庭の池", "strasse", "muller closed", "watr plant", "certificado", "deploy",
    "what date do we ship", "box", "pump 14 green", "nothing of it at all", "8 may", "visitors",
]  # fmt: skip

SPOKEN = ["alpha", "alphabet", "beta", "c++", "gamma", "delta", "the", "2024", "monday", "running", "runs", "two", "twó", "東京都", "this", "x", "y"]  # fmt: skip

#: An unknown word, and texts with similar words; the longest has too many letters to replace it.
WORD = "dampfschifffahrtsgesellschaft"
LENGTHY = [
    Document("long", f"donau{WORD}en"),
    Document("short", "schifffahrtsgesellschaften"),
    Document("other", "ships"),
]


def talk() -> list[Document]:
    """Return a conversation, another with the same words, a day and two memory files."""
    found = [
        Document(f"m{n:02}", text, who if who[0].isupper() else "", "talk", TODAY - timedelta(days))
        for n, (who, text, days) in enumerate(TALK)
    ]
    found += [
        Document("o1", "The certificate is old.", "", "other", TODAY - timedelta(9)),
        Document("o2", "Is it?", "", "other"),
        Document("o3", "A bicycle, green or not. " * 30, "", "other", TODAY - timedelta(9)),
    ]
    found += [
        Document(f"e{n}", text or head, head if text else "", "day", TODAY - timedelta(days))
        for n, (head, text, days) in enumerate(DAY)
    ]
    found += [
        Document(id, text, header, "", TODAY - timedelta(days), memory=True, salience=salience)
        for id, text, header, days, salience in FILES
    ]
    return found


def drawn(random: Random) -> list[Document]:
    """Return entries of three groups and of none, alternating."""
    found = []
    for n in range(random.randint(1, 28)):
        words = " ".join(random.choices(SPOKEN, k=random.randint(0, 8)))
        if random.random() < 0.3:
            words = random.choice([". ", "\n", "。", " "]).join([words] * random.choice([9, 40]))
        memory = random.random() < 0.2
        found.append(
            Document(
                f"{random.randint(0, 99):02}{n:02}",
                words + random.choice(["?", "", "."]),
                random.choice(["", "", "alpha", "beta x"]),
                "" if memory else random.choice(["", "g", "h", "i"]),
                random.choice([None, TODAY - timedelta(random.randint(0, 900))]),
                memory,
                round(random.random(), 3) if memory else 0.5,
            )
        )
    return found


def asked_at_random(random: Random) -> str:
    begin = random.choice(["", "", "when ", "how many ", "what was in 2025 ", "last month "])
    return begin + " ".join(random.choices(SPOKEN, k=random.randint(1, 6)))


def _day(at: date | None) -> int | None:
    return None if at is None else (at - EPOCH).days


def _row(one: Document) -> dict[str, Any]:
    return {
        "id": one.id,
        "text": one.text,
        "header": one.header,
        "group": one.group,
        "at": _day(one.at),
        "salience": one.salience if one.memory else None,
    }


def _question(
    documents: Sequence[Document], query: str, limits: Limits, only: Collection[str] | None
) -> dict[str, Any]:
    look_all, look_best, look_groups = limits
    hits = plain_rank(
        documents,
        query,
        today=TODAY,
        look_all=look_all,
        look_best=look_best,
        look_groups=look_groups,
        only=only,
    )
    return {"query": query, "only": None if only is None else sorted(only), "hits": list(map(_hit, hits))}


def _hit(hit: Hit) -> list[Any]:
    return [hit.id, {part: near for part, value in hit.parts.items() if (near := round(value, 10))}]


def build() -> dict[str, Any]:
    """The whole file."""
    random, documents = Random(26), talk()
    sets = []
    for name, limits in (("a conversation, a day and files", USUAL), ("the best of them", (0, 3, 1))):
        questions = [_question(documents, query, limits, None) for query in QUESTIONS]
        some = {one.id for n, one in enumerate(documents) if n % 3}
        questions += [_question(documents, query, limits, some) for query in QUESTIONS[::3]]
        sets.append((name, limits, documents, questions))
    for number, limits in enumerate([USUAL, (0, 4, 1), (0, 1, 9)] * 6):
        documents = drawn(random)
        only = {one.id for one in documents if random.random() < 0.7}
        questions = [
            _question(documents, asked_at_random(random), limits, whose) for whose in (None, None, only)
        ]
        sets.append((f"drawn {number}", limits, documents, questions))
    sets.append(("words of many letters", USUAL, LENGTHY, [_question(LENGTHY, WORD, USUAL, None)]))
    return {
        "about": ABOUT,
        "today": (TODAY - EPOCH).days,
        "sets": [
            {"name": name, "limits": limits, "documents": list(map(_row, there)), "questions": questions}
            for name, limits, there, questions in sets
        ],
    }


def text(data: dict[str, Any]) -> str:
    """The file for these contents."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(build()), "utf-8")
