"""fixtures/vectors/graph.json: relations found in texts; the browser client is tested with the same file."""

from __future__ import annotations

import json

from tests.unit.graph.make_graph_vectors import TARGET, build


def test_graph_of_texts_equals_the_vectors() -> None:
    known, now = json.loads(TARGET.read_text("utf-8")), json.loads(json.dumps(build()))
    for group in ("links", "same", "types", "entities", "graphs"):
        for row, made in zip(known[group], now[group], strict=True):
            assert made == row
    assert now == known
    assert 5 < sum(row["same"] for row in known["same"]) < len(known["same"]) / 2
    walks = [walk for graph in known["graphs"] for walk in graph["around"]]
    assert {walk["more"] for walk in walks} == {True, False} and max(len(walk["keys"]) for walk in walks) > 20
