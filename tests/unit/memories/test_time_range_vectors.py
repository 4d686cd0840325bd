"""fixtures/vectors/time_ranges.json, against which the browser client is held, says what ranges of time in words mean."""

from __future__ import annotations

import json

from tests.unit.memories.make_time_range_vectors import TARGET, build


def test_ranges_in_words_mean_what_the_vectors_say() -> None:
    known = json.loads(TARGET.read_text("utf-8"))
    assert json.loads(json.dumps(build())) == known
    assert sum(row["range"] is not None for row in known["ranges"]) > 150
