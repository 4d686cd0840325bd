"""A model that calls the tools of a vault by name, and texts of others for it to read."""

from __future__ import annotations

import json
from typing import Any

from ipfsmem.memory import Memory
from ipfsmem.tools import ToolResult, toolset


class Model:
    """Calls tools by name, and checks each answer against its schema."""

    def __init__(self, memory: Any, **more: Any) -> None:
        self.tools = {tool.name: tool for tool in toolset(memory, **{"names": ["all"], **more})}

    def __call__(self, tool: str, /, **arguments: Any) -> ToolResult:
        result = self.tools[tool].call(**arguments)
        json.dumps(result.structured)
        if not result.is_error:
            check(result.structured, self.tools[tool].returns)
        return result

    def refused(self, tool: str, /, **arguments: Any) -> str:
        result = self(tool, **arguments)
        assert result.is_error and result.text.startswith("Error: ") and result.structured["error"]["message"]
        return result.text


def check(value: Any, schema: dict[str, Any]) -> None:
    """Check a value against the subset of JSON Schema that our answers use."""
    if "anyOf" in schema:
        (fitting,) = [one for one in schema["anyOf"] if (one["type"] == "null") == (value is None)]
        return None if value is None else check(value, fitting)
    if "enum" in schema:
        assert value in schema["enum"], (value, schema)
        return None
    kinds: dict[str, Any] = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}
    kinds["number"] = int | float
    assert isinstance(value, kinds[schema["type"]]), (value, schema)
    if "properties" in schema:
        assert set(schema["required"]) <= value.keys(), value
        assert schema["additionalProperties"] or value.keys() <= schema["properties"].keys(), value
        for name, one in schema["properties"].items():
            check(value[name], one)
    for item, one in zip(value, schema["prefixItems"], strict=True) if "prefixItems" in schema else ():
        check(item, one)
    for item in value if schema.get("items") else ():
        check(item, schema["items"])
    return None


def others(memory: Memory, key: str, text: str) -> None:
    """Write a text of somebody else in the default scope."""
    blob = {"version": "memory/0.1", "files": {f"{key}.md": text}, "timeline": []}
    memory.bundles.import_(json.dumps(blob), foreign=True)
