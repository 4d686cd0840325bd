"""LibreFang's tools over a vault. The texts are the answers of LibreFang 2026.10.16 to the same calls."""

from __future__ import annotations

import json
from pathlib import Path

from ipfsmem.compat.programs import program_tools
from ipfsmem.memory import Memory
from ipfsmem.tools.tool import ToolResult


def call(memory: Memory, name: str, scope: str | None = None, /, **given: object) -> ToolResult:
    (tool,) = (one for one in program_tools(memory, "librefang", scope=scope) if one.name == name)
    return tool.call(**given)


def said(memory: Memory, name: str, scope: str | None = None, /, **given: object) -> str:
    answer = call(memory, name, scope, **given)
    assert not answer.is_error, answer.text
    return answer.text


def test_values_are_answered_like_librefang() -> None:
    with Memory.load("alex", "none") as memory:
        assert said(memory, "memory_list") == "No entries found in this agent's memory."
        for key, value in (
            ("user:preference:theme", "dark"),
            ("theme", "light"),
            ("obj", {"a": 1}),
            ("num", 5),
        ):
            assert said(memory, "memory_store", key=key, value=value) == f"Stored value under key '{key}'."
        assert said(memory, "memory_recall", key="user:preference:theme") == '"dark"'
        assert said(memory, "memory_recall", key="obj") == '{\n  "a": 1\n}'
        assert said(memory, "memory_recall", key="num") == "5"
        assert said(memory, "memory_recall", key="none") == "No value found for key 'none'."
        everything = '[\n  "num",\n  "obj",\n  "theme",\n  "user:preference:theme"\n]'
        assert said(memory, "memory_list") == everything
        assert said(memory, "memory_list", limit=2, offset=1) == (
            '[\n  "obj",\n  "theme"\n]\n\nShowing 2 of 4 entries (offset=1). Use offset=3 to see more.'
        )
        assert said(memory, "memory_list", limit=2, offset=300) == (
            "No entries in range (offset=300, limit=2, total=4)."
        )
        assert call(memory, "memory_store", key="", value="x").is_error
        assert call(memory, "memory_store", value="x").is_error


def test_overwritten_value_is_kept_as_a_revision() -> None:
    with Memory.load("alex", "none") as memory:
        for value in ("dark", "light"):
            said(memory, "memory_store", key="user:theme", value=value)
        assert said(memory, "memory_recall", key="user:theme") == '"light"'
        assert [one.value for one in memory.values.history("user:theme")] == ["dark"]


def test_agents_have_separate_values() -> None:
    with Memory.load("alex", "none") as memory:
        said(memory, "memory_store", "coder", key="theme", value="dark")
        assert said(memory, "memory_recall", "writer", key="theme") == "No value found for key 'theme'."
        assert said(memory, "memory_recall", "coder", key="theme") == '"dark"'


def test_graph_calls_are_answered_like_librefang() -> None:
    with Memory.load("alex", "none") as memory:
        made = said(
            memory, "knowledge_add_entity", name="John", entity_type="person", properties={"role": "dev"}
        )
        assert made.startswith("Entity 'John' added with ID: ")
        said(memory, "knowledge_add_entity", name="Acme", entity_type="organization")
        related = said(memory, "knowledge_add_relation", source="John", relation="works_at", target="Acme")
        assert related.startswith("Relation 'John' --[works_at]--> 'Acme' added with ID: ")
        line = "Found 1 match(es) (showing 1):\n\n  John (Person) --[WorksAt (100%)]--> Acme (Organization)"
        for given in (
            {"source": "John"},
            {"source": made.rpartition(" ")[2]},
            {"relation": "works_at"},
            {"target": "Acme", "max_depth": 2},
            {"source": "John", "relation": "works_at", "target": "Acme", "max_depth": 3},
        ):
            assert said(memory, "knowledge_query", **given) == line
        for given in ({"source": "Nobody"}, {"source": "Acme"}, {"source": "John", "relation": "uses"}):
            assert said(memory, "knowledge_query", **given) == "No matching knowledge graph entries found."
        assert call(memory, "knowledge_query").is_error
        assert memory.graph.get("John").observations == ("role: dev",)  # type: ignore[union-attr]


def test_graph_query_with_a_depth_follows_relations() -> None:
    with Memory.load("alex", "none") as memory:
        for source, target in (("Ann", "Ben"), ("Ben", "Cid"), ("Cid", "Dee")):
            said(memory, "knowledge_add_relation", source=source, relation="knows_about", target=target)
        assert said(memory, "knowledge_query", source="Ann").startswith("Found 1 match")
        assert said(memory, "knowledge_query", source="Ann", max_depth=2).startswith("Found 2 match")


def test_imported_key_value_export_is_found_by_its_keys(tmp_path: Path) -> None:
    export = {
        "agent_id": "a1",
        "version": 1,
        "kv": {"user:preference:theme": "dark", "n": 5, "o": {"x": [1]}, "e": ""},
    }
    (tmp_path / "kv.json").write_text(json.dumps(export))
    with Memory.load("alex", "none") as memory:
        assert memory.bundles.import_from("librefang", tmp_path / "kv.json").own == 4
        assert memory.bundles.import_from("librefang", tmp_path / "kv.json").own == 0
        for key, value in export["kv"].items():  # type: ignore[attr-defined]
            assert json.loads(said(memory, "memory_recall", key=key)) == value
        assert json.loads(said(memory, "memory_list")) == ["e", "n", "o", "user:preference:theme"]
