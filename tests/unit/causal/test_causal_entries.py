"""Entry names equal the shared vectors (format sections 3 and 5). Cards and projects: test_causal_cards.py."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.causal.entries import (
    CardName,
    MemoryName,
    SegmentName,
    card_entry,
    card_name,
    check_entry_name,
    entry_context,
    entry_display_name,
    memory_entry,
    memory_name,
    parse_entry,
    scope_of,
    segment_entry,
    segment_name,
)
from ipfsmem.device.codec import body_kind
from ipfsmem.errors import FormatError, KeyNameError

HERE = Path(__file__).parent
VECTORS = json.loads((HERE.parents[2] / "fixtures" / "vectors" / "scopes.json").read_text("utf-8"))


def built(case: dict[str, Any]) -> tuple[object, str]:
    if case["kind"] == "memory":
        return MemoryName(case["scope"], case["key"]), memory_entry(case["key"], case["scope"])
    if case["kind"] == "segment":
        parts = case["day"], case["dev"], case["i"]
        return SegmentName(case["scope"], *parts), segment_entry(*parts, case["scope"])
    return CardName(case["scope"]), card_entry(case["scope"])


def test_vector_file_equals_the_generated_one() -> None:
    spec = importlib.util.spec_from_file_location("make_scope_vectors", HERE / "make_scope_vectors.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert json.loads(json.dumps(made.vectors())) == VECTORS


@pytest.mark.parametrize("case", VECTORS["names"], ids=lambda c: c["name"])
def test_entry_names_are_parsed_as_in_the_vectors(case: dict[str, Any]) -> None:
    name = case["name"]
    parts, made = built(case)
    assert parse_entry(name) == parts and made == name and check_entry_name(name) == name
    kinds = [memory_name(name), segment_name(name), card_name(name)]
    assert [found for found in kinds if found is not None] == [parts]
    assert body_kind(name) == (case["type"], case["ctx"])
    assert entry_context(name) == case["ctx"]
    assert scope_of(name) == case["scope"]
    assert not isinstance(parts, (MemoryName, SegmentName)) or parts.entry == name


@pytest.mark.parametrize("name", VECTORS["refused_names"])
def test_invalid_entry_names_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match="not the name of an entry"):
        parse_entry(name)
    with pytest.raises(FormatError):
        check_entry_name(name)
    assert memory_name(name) is None and segment_name(name) is None and card_name(name) is None


def test_entry_names_have_distinct_contexts_within_a_type() -> None:
    """An object opens only as the entry for which it was sealed."""
    seen = [(case["type"], case["ctx"]) for case in VECTORS["names"]]
    assert len(set(seen)) == len(seen)


def test_default_scope_has_no_card() -> None:
    with pytest.raises(KeyNameError):
        card_entry("")


def test_entry_names_are_shown_in_readable_form() -> None:
    dev = "0" * 16
    assert entry_display_name("m/tone") == "tone"
    assert entry_display_name("m/work/tone") == "work/tone"
    assert entry_display_name(f"t/2026-04-14/{dev}/0") == "timeline/2026-04-14"
    assert entry_display_name(f"t/work/2026-04-14/{dev}/3") == "work/timeline/2026-04-14"
    assert entry_display_name("c/work") == "scopes/work"
