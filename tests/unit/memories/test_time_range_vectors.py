"""fixtures/vectors/time_ranges.json: time ranges in words, for this package and the browser client."""

from __future__ import annotations

import json

from tests.unit.memories.make_time_range_vectors import TARGET, build


def test_time_ranges_in_words_equal_the_vectors() -> None:
    known = json.loads(TARGET.read_text("utf-8"))
    assert json.loads(json.dumps(build())) == known
    assert sum(row["range"] is not None for row in known["ranges"]) > 150
