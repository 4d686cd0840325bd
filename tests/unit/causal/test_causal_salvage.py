"""The salvage of damaged heads, as vectors for every implementation."""

from __future__ import annotations

import json

import msgspec
import pytest

from ipfsmem.causal.salvage import DamagedHead, rewrite, salvage
from ipfsmem.causal.value import Entry, Value
from tests.unit.causal.make_salvage_vectors import NAME, VECTORS, A, B, C, live, vectors

FILE = json.loads((VECTORS / "salvage.json").read_text("utf-8"))


def test_vector_file_equals_the_generated_one() -> None:
    assert vectors() == FILE


@pytest.mark.parametrize("row", FILE["rows"], ids=lambda row: row["about"])
def test_salvage_of_damaged_heads_equals_the_vectors(row: dict[str, object]) -> None:
    base = msgspec.convert(row["base"], dict[str, Entry])
    ctx = msgspec.convert(row["ctx"], dict[str, int])
    parts = msgspec.convert(row["parts"], list[DamagedHead])
    found = [
        {"name": change.name, "taken": [dot for dot, _ in change.taken], "gone": list(change.gone)}
        for change in salvage(base, ctx, parts)
    ]
    assert found == row["changes"]


def test_salvaged_text_keeps_clock_and_bases_and_records_its_author() -> None:
    theirs = live("two", "one")
    ((change),) = salvage({}, {}, [DamagedHead({B: 1}, {NAME: {f"{B}-1": theirs}}, ())])
    made = rewrite({}, change, C, 4, lambda dev: dev != B)
    ((dot, value),) = made.entry.items()
    assert (dot, made.n, made.back) == (f"{C}-5", 5, True)
    assert value == msgspec.structs.replace(theirs, author=B)


def test_salvaged_text_without_a_free_dot_is_reported_as_crowded() -> None:
    entry: Entry = {f"{C}-{n}": live(f"own {n}") for n in range(1, 5)}
    theirs: dict[str, Value] = {f"{A}-1": live("one")}
    ((change),) = salvage({NAME: entry}, {C: 4}, [DamagedHead({A: 1}, {NAME: theirs | entry}, ())])
    made = rewrite(entry, change, C, 4, lambda _: True)
    assert made.crowded and not made.back and made.entry == entry and made.n == 4
