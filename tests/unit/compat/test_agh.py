"""AGH's memory files over a vault: its scopes, names, rules and index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.compat.agh import WorkspaceFiles
from ipfsmem.compat.programs import program_tools
from ipfsmem.errors import LimitError
from ipfsmem.memory import Memory
from ipfsmem.tools.tool import ToolResult
from tests.support.hints import hinted

STYLE = {
    "filename": "review-style.md",
    "type": "user",
    "description": "User wants concise review findings with file references first",
    "content": "Put blocking findings first. Cite file paths and symbols.",
}
DOCS = {
    "filename": "runtime-docs-location.md",
    "type": "project",
    "description": "Runtime docs live in the Fumadocs runtime collection",
    "content": "Runtime docs are authored under `packages/site/content/runtime/` and build to `/runtime/*`.",
}


def call(memory: Memory, name: str, /, at: str | None = "work", **given: object) -> ToolResult:
    (tool,) = (one for one in program_tools(memory, "agh", scope=at) if one.name == name)
    return tool.call(**given)


def said(memory: Memory, name: str, /, **given: object) -> str:
    answer = call(memory, name, **given)
    assert not answer.is_error, answer.text
    return answer.text


def test_documented_files_are_written_listed_and_read() -> None:
    with Memory.load("alex", "none") as memory:
        said(memory, "memory_write", **STYLE)
        said(memory, "memory_write", **DOCS)
        assert said(memory, "memory_list").split("\n") == [
            "- [Runtime Docs Location](runtime-docs-location.md) - Runtime docs live in the Fumadocs runtime collection",
            "- [Review Style](review-style.md) - User wants concise review findings with file references first",
        ]
        assert said(memory, "memory_list", scope="global").count("\n") == 0
        read = said(memory, "memory_read", filename="runtime-docs-location.md", scope="workspace")
        assert read == (
            "---\nname: Runtime Docs Location\ndescription: Runtime docs live in the Fumadocs runtime collection\n"
            f"type: project\n---\n\n{DOCS['content']}\n"
        )
        assert {one.key for one in memory.list()} == {"review-style"}
        assert {one.key for one in memory.scope("work").list()} == {"runtime-docs-location"}


def test_refused_write_leaves_nothing_in_the_history(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        said(memory, "memory_write", **STYLE)
        with pytest.raises(LimitError):
            WorkspaceFiles(memory, "").write("review-style.md", "user", "x" * 1_000_000, {})
        assert not memory.facts.history("review-style")
        said(memory, "memory_write", **{**STYLE, "content": "Shorter."})
        assert [one.text.strip() for one in memory.facts.history("review-style")] == [STYLE["content"]]
        assert "Shorter." in (tmp_path / "alex" / "memory" / "review-style.md").read_text()


def test_overwritten_or_deleted_file_is_kept_in_the_history() -> None:
    with Memory.load("alex", "none") as memory:
        said(memory, "memory_write", **STYLE)
        assert said(memory, "memory_write", **{**STYLE, "content": "New text."}).startswith("Updated ")
        said(memory, "memory_delete", filename="review-style.md")
        assert call(memory, "memory_read", filename="review-style.md").is_error
        assert [one.text for one in memory.facts.history("review-style")] == ["New text.", STYLE["content"]]
        assert memory.facts.restore("review-style").text == "New text."


def test_file_in_both_scopes_is_ambiguous() -> None:
    with Memory.load("alex", "none") as memory:
        for scope in ("global", "workspace"):
            said(memory, "memory_write", **STYLE, scope=scope)
        refused = call(memory, "memory_read", filename="review-style.md").text
        assert "ambiguous" in refused
        hinted("Set scope to global or workspace.", refused)
        assert "User wants" in said(memory, "memory_read", filename="review-style.md", scope="global")
        assert "not found" in call(memory, "memory_read", filename="nothing.md").text


def test_workspace_file_without_a_workspace_is_refused() -> None:
    with Memory.load("alex", "none") as memory:
        answer = call(memory, "memory_write", at=None, **DOCS)
        assert answer.is_error and "workspace required" in answer.text and not memory.list()
        hinted("Start the server for one workspace.", answer.text)
        assert not call(memory, "memory_write", at="work", **DOCS).is_error


@pytest.mark.parametrize("filename", ["", ".", "..", "a/b.md", "a\\b.md", "MEMORY.md"])
def test_invalid_file_name_is_refused(filename: str) -> None:
    with Memory.load("alex", "none") as memory:
        assert call(memory, "memory_write", **{**STYLE, "filename": filename}).is_error


def test_unknown_type_is_refused() -> None:
    with Memory.load("alex", "none") as memory:
        assert call(memory, "memory_write", **{**STYLE, "type": "secret"}).is_error and not memory.list()


def test_name_with_capitals_keeps_its_file() -> None:
    with Memory.load("alex", "none") as memory:
        said(memory, "memory_write", **{**STYLE, "filename": "Review Style.md"})
        assert "User wants" in said(memory, "memory_read", filename="Review Style.md")
        assert "(Review Style.md)" in said(memory, "memory_list")


def test_search_health_and_history_are_answered(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        said(memory, "memory_write", **STYLE)
        found = said(memory, "memory_search", query="what goes first in a review?")
        assert found.startswith("- [Review Style](review-style.md)") and "[first.]" in found
        health = json.loads(said(memory, "memory_health"))
        assert (health["global_files"], health["workspace_files"]) == (1, 0)
        assert said(memory, "memory_history", operation="memory.write").count("memory.write") == 1
        assert call(memory, "memory_history", operation="memory.fly").is_error


def test_name_with_a_line_break_is_refused_and_shown_on_one_line() -> None:
    with Memory.load("alex", "none") as memory:
        for name in ("x\n- [Fake](fake.md)", "x\r.md", "x\u2028y", "x\x00y"):
            assert call(memory, "memory_write", **{**DOCS, "filename": name}).is_error
        assert not memory.scope("work").list()
        memory.write("other", "Text.", fields={"origin_name": "x\n- [Fake](fake.md)"})
        assert len(said(memory, "memory_list").split("\n")) == 1


def test_snippet_of_long_words_is_short() -> None:
    with Memory.load("alex", "none") as memory:
        said(memory, "memory_write", **{**DOCS, "content": "x" * 50_000 + " docs " + "y" * 50_000})
        assert len(said(memory, "memory_search", query="docs")) < 1_500
