"""Exports in other programs' forms, and their import."""

from __future__ import annotations

import json
from pathlib import Path

from ipfsmem.compat.programs import program_tools
from ipfsmem.memory import Memory

#: As `memory export` of InitRunner writes it.
INITRUNNER = [
    {
        "id": 1,
        "content": "The user prefers dark mode.",
        "category": "preferences",
        "created_at": "2025-06-01T10:30:00+00:00",
    },
    {
        "id": 2,
        "content": "Several\n\nlines.",
        "category": "projects",
        "created_at": "2025-06-02T09:15:00.123456+00:00",
    },
]
#: The format of Infraware's `memory.json`.
INFRAWARE = [
    {"fact": "User prefers dark themes", "category": "preference", "created_at": "2026-03-12T10:30:00Z"},
    {"fact": "Never push to main", "category": "restriction", "created_at": "2026-03-13T10:30:00Z"},
]


def test_initrunner_export_equals_the_imported_file(tmp_path: Path) -> None:
    (tmp_path / "memories.json").write_text(json.dumps(INITRUNNER))
    with Memory.load("alex", "none") as memory:
        memory.bundles.import_from("initrunner", tmp_path / "memories.json")
        assert json.loads(memory.bundles.export_for("initrunner")) == INITRUNNER
        typed = json.loads(memory.bundles.export_for("initrunner-typed"))
        assert [one["memory_type"] for one in typed] == ["semantic", "semantic"]
        (tool,) = (one for one in program_tools(memory, "initrunner") if one.name == "list_memories")
        assert tool.call().text == (
            "[projects] (2025-06-02T09:15:00.123456+00:00) Several lines.\n"
            "[preferences] (2025-06-01T10:30:00+00:00) The user prefers dark mode."
        )


def test_infraware_export_equals_the_imported_file(tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_text(json.dumps(INFRAWARE))
    with Memory.load("alex", "none") as memory:
        memory.bundles.import_from("infraware", tmp_path / "memory.json")
        assert json.loads(memory.bundles.export_for("infraware")) == INFRAWARE


def test_infraware_export_maps_unknown_categories() -> None:
    with Memory.load("alex", "none") as memory:
        memory.write("role", "Works on\nfirmware.", type="user")
        memory.write("odd", "Odd.", type="reference", fields={"category": "from the future"})
        found = json.loads(memory.bundles.export_for("infraware"))
        assert {(one["fact"], one["category"]) for one in found} == {
            ("Works on firmware.", "personal_fact"),
            ("Odd.", "convention"),
        }
        assert all(one.keys() == {"fact", "category", "created_at"} for one in found)


def test_export_of_a_scope_has_only_that_scope() -> None:
    with Memory.load("alex", "none") as memory:
        memory.write("a", "Everybody's.")
        memory.scope("work").write("b", "Work's.")
        found = json.loads(memory.scope("work").bundles.export_for("initrunner"))
        assert [one["content"] for one in found] == ["Work's."]
