"""Graph tools write nothing into values and delete no text that the model was not shown."""

from __future__ import annotations

from ipfsmem.compat.programs import program_tools
from ipfsmem.memory import Memory
from ipfsmem.tools import toolset
from ipfsmem.tools.tool import ToolResult
from ipfsmem.tools.tool_context import Session
from tests.support.hints import hinted


class Model:
    """One connection with all tools."""

    def __init__(self, memory: Memory) -> None:
        self._tools = {one.name: one for one in toolset(memory, ["all"], session=Session())}

    def __call__(self, name: str, /, **given: object) -> ToolResult:
        return self._tools[name].call(**given)


def test_entity_named_like_a_value_leaves_the_value() -> None:
    with Memory.load("alex", "none") as memory:
        model = Model(memory)
        model("memory_store", key="theme", value="dark")
        model("memory_store", key="config", value={"a": 1})
        made = [
            {"name": name, "entityType": "setting", "observations": ["seen"]} for name in ("theme", "config")
        ]
        assert not model("create_entities", entities=made).is_error
        model("create_relations", relations=[{"from": "theme", "relationType": "part_of", "to": "config"}])
        assert memory.values.get("theme").value == "dark"  # type: ignore[union-attr]
        assert memory.values.get("config").value == {"a": 1}  # type: ignore[union-attr]
        assert not model("delete_entities", entityNames=["theme", "config"]).is_error
        assert {one.key for one in memory.values.list()} == {"theme", "config"}


def test_entity_of_librefang_named_like_a_value_leaves_the_value() -> None:
    with Memory.load("alex", "none") as memory:
        tools = {one.name: one for one in program_tools(memory, "librefang", scope="coder")}
        tools["memory_store"].call(key="Ada", value=[1, 2])
        tools["knowledge_add_entity"].call(name="Ada", entity_type="person", properties={"born": 1815})
        tools["knowledge_add_relation"].call(source="Ada", relation="uses", target="Engine")
        assert memory.scope("coder").values.get("Ada").value == [1, 2]  # type: ignore[union-attr]


def test_delete_entities_of_an_unseen_text_is_refused() -> None:
    long = "\n".join(f"Line {number} of what the person wrote." for number in range(2_000))
    with Memory.load("alex", "none") as memory:
        memory.write("notes", long, name="Notes")
        model = Model(memory)
        model(
            "create_entities",
            entities=[{"name": "Acme", "entityType": "organization", "observations": ["x"]}],
        )
        for name in ("notes", "Notes"):
            refused = model("delete_entities", entityNames=["Acme", name])
            assert refused.is_error and "was not shown" not in refused.text and "not shown" in refused.text
            hinted("First read the whole text with read_memory, or use forget.", refused.text)
        assert memory.read("notes") is not None and memory.read("acme") is not None
        assert not model("delete_entities", entityNames=["Acme"]).is_error
        assert memory.read("acme") is None

        memory.write("short", "One line.")
        model("read_memory", key="short")
        assert not model("delete_entities", entityNames=["short"]).is_error
        assert memory.read("short") is None


def test_value_equal_only_in_python_is_stored() -> None:
    with Memory.load("alex", "none") as memory:
        model = Model(memory)
        for before, after in ((True, 1), ([False], [0])):
            model("memory_store", key="flag", value=before)
            assert not model("memory_store", key="flag", value=after).is_error
            assert repr(memory.values.get("flag").value) == repr(after)  # type: ignore[union-attr]
