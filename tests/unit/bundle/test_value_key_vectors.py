"""fixtures/vectors/value_key.json: the memory of each free key, for this package and the browser client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.bundle.keys import is_key
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.value_file import memory_key, name_of, value_file, value_of
from ipfsmem.errors import UsageError

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/value_key.json").read_text("utf-8"))


def name_in(row: dict[str, Any]) -> str:
    return "".join(text * times for text, times in row["parts"])


@pytest.mark.parametrize("row", VECTORS["keys"], ids=lambda row: str(row["key"]))
def test_free_key_maps_to_the_memory_of_the_vectors(row: dict[str, Any]) -> None:
    name = name_in(row)
    if row["key"] is None:
        with pytest.raises(UsageError):
            memory_key(name)
        return
    assert memory_key(name) == row["key"] and is_key(row["key"])
    file = parse_memory(value_file(name, "tea", {}))
    assert name_of(file, row["key"]) == name and value_of(file) == "tea"


def test_two_free_keys_of_the_vectors_never_share_a_memory() -> None:
    valid = [row for row in VECTORS["keys"] if row["key"] is not None]
    assert len({row["key"] for row in valid}) == len({name_in(row) for row in valid}) == len(valid) > 30
    assert len(VECTORS["keys"]) - len(valid) > 3
