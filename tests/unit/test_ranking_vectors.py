"""fixtures/vectors/ranking.json: hits of the plain formula, for this package and the browser client."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ipfsmem.recall import ranking
from ipfsmem.recall.ranking import Document, Index, rank
from tests.support.extras import need_extra
from tests.unit.make_ranking_vectors import EPOCH, TARGET, build

WRITTEN = json.loads(TARGET.read_text("utf-8"))


def test_vector_file_equals_the_plain_formula() -> None:
    assert json.loads(json.dumps(build())) == WRITTEN


@pytest.mark.parametrize("arrays", [False, True], ids=["plainly", "with NumPy"])
def test_hits_of_each_question_equal_the_vectors(arrays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if arrays:
        need_extra("semantic", "numpy")
    monkeypatch.setattr(ranking, "_by_arrays", lambda index: arrays)
    for row in WRITTEN["sets"]:
        for name, limit in zip(("_ALL", "_BEST", "_BEST_GROUPS"), row["limits"], strict=True):
            monkeypatch.setattr(ranking, name, limit)
        index = Index(map(_document, row["documents"]))
        for question in row["questions"]:
            whose = question["only"]
            only = None if whose is None else frozenset(filter(None, map(index.number, whose)))
            today = EPOCH + timedelta(WRITTEN["today"])
            hits = rank(index, question["query"], today=today, limit=99, only=only)
            what = (row["name"], question["query"])
            assert [hit.id for hit in hits] == [id for id, _ in question["hits"]], what
            for hit, (_, parts) in zip(hits, question["hits"], strict=True):
                assert hit.parts == pytest.approx(parts, abs=1e-9), what


def _document(row: dict[str, Any]) -> Document:
    at = None if row["at"] is None else EPOCH + timedelta(row["at"])
    worth = row["salience"]
    return Document(
        row["id"],
        row["text"],
        row["header"],
        row["group"],
        at,
        memory=worth is not None,
        salience=0.5 if worth is None else worth,
    )
