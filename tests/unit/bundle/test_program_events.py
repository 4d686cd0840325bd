"""Events with a meaning in the format, as in the vectors."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from ipfsmem.bundle.program_events import (
    agent_data,
    check_kind,
    is_for_programs,
    moved_data,
    read_agent,
    read_move,
    read_vault,
    vault_data,
)
from ipfsmem.errors import UsageError


def maker() -> ModuleType:
    spec = spec_from_file_location("make", Path(__file__).with_name("make_program_event_vectors.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = maker()
VECTORS = json.loads(MAKER.TARGET.read_text("utf-8"))


def test_vector_file_equals_the_generated_one() -> None:
    assert MAKER.TARGET.read_text("utf-8") == MAKER.text()


def test_program_event_is_recognised_only_in_its_valid_form() -> None:
    """Format section 1.4, restated by hand: the first rows of each kind are valid, the others are not."""
    moves = [row["move"] is not None for row in VECTORS["rows"] if row["event"]["type"] == "ipfsmem-moved"]
    vaults = [row["vault"] is not None for row in VECTORS["rows"] if row["event"]["type"] == "ipfsmem-vault"]
    agents = [row["agent"] is not None for row in VECTORS["agents"]]
    assert agents == [True] * 5 + [False] * 21
    assert moves == [True] * 6 + [False] * 12 and vaults == [True] * 2 + [False] * 11
    assert [row["id"] for row in VECTORS["newest"]] == [
        "11bbccddeeff0022-1",
        "11bbccddeeff0022-1",
        "00aabbccddeeff11-7",
    ]


def test_written_program_event_is_read_back() -> None:
    base = {"ts": "2026-04-14T12:03:12.000Z", "id": "00aabbccddeeff11-1"}
    move = read_move({**base, "type": "ipfsmem-moved", **moved_data(tuple(f"p{n}" for n in range(20)), "q")})
    assert move is not None and (len(move.left), move.to, move.by) == (16, "q", "00aabbccddeeff11")
    vault = read_vault(
        {**base, "type": "ipfsmem-vault", "address": "0x" + "ab" * 20, "key_number": 3, "name": "work"}
    )
    assert vault is not None and read_vault({**base, "type": "ipfsmem-vault", **vault_data(vault)}) == vault


def test_program_events_are_written_only_by_the_program() -> None:
    with pytest.raises(UsageError):
        check_kind("ipfsmem-anything")
    check_kind("moved")


def test_written_agent_card_reads_as_it_was_written() -> None:
    data = agent_data("2233445566778899", "web", "writer", ("notes", "acme-api"), 1_800_000_000_000)
    event = {"ts": "2026-04-14T12:03:12.000Z", "type": "ipfsmem-agent", "id": "00aabbccddeeff11-9", **data}
    card = read_agent(event)
    assert card is not None and (card.by, card.scopes) == ("00aabbccddeeff11", ("acme-api", "notes"))
    assert is_for_programs(event) and not is_for_programs({**event, "type": "decision"})
