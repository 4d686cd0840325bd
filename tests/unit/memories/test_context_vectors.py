"""fixtures/vectors/context.json: hits of recall and blocks of context; the browser client is tested with the same file."""

from __future__ import annotations

import json

from tests.unit.memories.make_context_vectors import TARGET, build


def test_recall_and_context_equal_the_vectors() -> None:
    known, now = json.loads(TARGET.read_text("utf-8")), json.loads(json.dumps(build()))
    for group in ("found", "said", "asked", "blocks"):
        for row, made in zip(known[group], now[group], strict=True):
            assert made == row
    assert now == known
    assert len([row for row in known["blocks"] if row["text"]]) > 40
    assert len([row for row in known["found"] if row["hits"]]) > 10
