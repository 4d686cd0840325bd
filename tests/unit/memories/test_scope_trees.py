"""fixtures/vectors/scope_trees.json against the code that exports and imports call (format section 1.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipfsmem.causal.cards import Card
from tests.unit.memories.make_scope_tree_vectors import FILE, assigned, scopes_of, written

VECTORS: dict[str, Any] = json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("row", VECTORS["written"], ids=lambda row: row["about"])
def test_written_scope_tree_equals_the_vector(row: dict[str, Any]) -> None:
    card = row.get("card")
    if card is not None:
        card = Card(**{**card, "ids": tuple(map(tuple, card["ids"]))})
    assert written({**row, "card": card}) == row["tree"]


@pytest.mark.parametrize("row", VECTORS["read"], ids=lambda row: row["about"])
def test_read_scope_tree_equals_the_vector(row: dict[str, Any]) -> None:
    assert scopes_of(row["tree"]) == row["scopes"]
    # The order in which a container lists its files has no meaning.
    assert scopes_of(dict(reversed(row["tree"].items()))) == row["scopes"]


@pytest.mark.parametrize("row", VECTORS["written"], ids=lambda row: row["about"])
def test_exported_scope_tree_is_read_back(row: dict[str, Any]) -> None:
    part = scopes_of(row["tree"])[row["scope"]]
    texts = {**part["files"], **{f"{key}+": text for key, text in part["more"] + part["others"]}}
    assert sorted(texts.values()) == sorted(row.get("texts", {}).values())
    assert (part["card"], part["forgotten"], part["events"], part["problems"]) == (
        row.get("card"), row.get("forgotten", []), row.get("events", []), 0,
    )  # fmt: skip


@pytest.mark.parametrize("row", VECTORS["assigned"], ids=lambda row: row["about"])
def test_assigned_scope_tokens_equal_the_vector(row: dict[str, Any]) -> None:
    assert assigned(row) == row["chosen"]
