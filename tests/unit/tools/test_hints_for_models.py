"""Following the hint of a refused tool call makes the call work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory
from ipfsmem.tools import Tool, toolset
from tests.support.device_lab import Lab
from tests.support.hints import hinted


@pytest.fixture
def tools() -> dict[str, Tool]:
    memory = Memory.load("alex", "none")
    memory.write("tone", "direct")
    memory.scope("work").write("role", "pilot")
    return {tool.name: tool for tool in toolset(memory, ["all"])}


def told(tool: Tool, **given: Any) -> tuple[str, dict[str, Any]]:
    refused = tool.call(**given)
    assert refused.is_error
    return refused.text, refused.structured


def works(tool: Tool, **given: Any) -> None:
    done = tool.call(**given)
    assert not done.is_error, done.text


def test_hints_about_scopes_keys_tags_and_arguments_work(tools: dict[str, Tool]) -> None:
    hinted("Scopes: VALUE.", told(tools["read_memory"], key="role", scope="wrok")[0])
    works(tools["read_memory"], key="role", scope="work")
    hinted(
        "A tag is a word without commas, brackets and quotation marks.",
        told(tools["remember"], key="k", body="x", tags=["[a]"])[0],
    )
    works(tools["remember"], key="k", body="x", tags=["a", "b"])
    hinted("Arguments: VALUE.", told(tools["read_memory"], word="k")[0])
    works(tools["read_memory"], key="k")
    works(tools["memory_store"], key="a:b", value="x")


def test_existing_memory_is_shown_and_can_then_be_replaced(tools: dict[str, Tool]) -> None:
    text, said = told(tools["remember"], key="tone", body="soft")
    hinted(
        "This is the current text. To replace it, call remember again with the whole new text and this seen value; for another subject choose another key.",
        text,
    )
    works(tools["remember"], key="other", body="soft")
    works(tools["remember"], key="tone", body="soft", seen=said["seen"])
    text, said = told(tools["forget"], key="tone", confirm="0" * 16)
    hinted("This is the current text. To delete it: confirm=VALUE.", text)
    works(tools["forget"], key="tone", confirm=said["confirm"])
    works(tools["memory_store"], key="v", value="one")
    memory = Memory.load("alex", "none")
    memory.values.set("v", "two")
    (store,) = toolset(memory, ["memory_store"])
    hinted(
        "This is it. Call memory_store again to replace it, or use another key.",
        told(store, key="v", value="one")[0],
    )
    works(store, key="w", value="one")
    works(store, key="v", value="one")


def test_empty_text_suggests_forget(tools: dict[str, Tool]) -> None:
    hinted("To delete a memory: forget.", told(tools["remember"], key="tone", body=" ")[0])
    hinted("To delete a value, use memory_delete.", told(tools["memory_store"], key="tone2", value=" ")[0])
    works(tools["memory_store"], key="a:b", value="x")
    works(tools["memory_delete"], key="a:b")
    works(tools["forget"], key="tone", confirm=tools["forget"].call(key="tone").structured["confirm"])


def test_hints_about_conflicts_work(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    a.write("tone", "one")
    lab.settle(a, b)
    a.write("tone", "two")
    b.write("tone", "three")
    lab.settle(a, b)
    (resolve,) = toolset(a, ["resolve_conflict"])
    hinted("resolve_conflict without a key lists the conflicts.", told(resolve, key="role")[0])
    assert resolve.call().structured["keys"] == ["tone"]
    text, said = told(resolve, key="tone", seen="0" * 16, keep=True)
    hinted("These are the current texts, with their seen value.", text)
    works(resolve, key="tone", seen=said["seen"], keep=True)
    foreign = {"version": "memory/0.1", "files": {"tone.md": "theirs"}, "timeline": []}
    a.bundles.import_(json.dumps(foreign), foreign=True)
    hinted("For the person: ipfsmem conflicts VALUE", told(resolve, key="tone")[0])
    assert [item.key for item in a.conflicts()] == ["tone"]


def test_unknown_tool_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown tool"):
        toolset(Memory.load("alex", "none"), ["promote"])
    assert [tool.name for tool in toolset(Memory.load("alex", "none"), ["recall"])] == ["recall"]
